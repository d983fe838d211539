//! `server.json` of a plugin, which lists it in the MCP registry.
//!
//! Everything is checked before the plugin is published, and the file is written after that, since
//! it contains the digest. A file that is not the listing of the same server is not replaced.

use std::path::{Path, PathBuf};

use cofferdam_files::read_named_text_ambient;
pub use cofferdam_registry::ServerName;
use cofferdam_registry::{BundlePackage, Digest, Reference, ServerJson};
use serde_json::Value;

use crate::config::edit::replace_file;
use crate::error::Context as _;
use crate::remembered::digest_of;
use crate::{Error, Result};

/// Maximum size of a `server.json` in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// Parts of a listing.
#[derive(Debug, Clone)]
pub struct ListingOptions {
    /// Name of the server.
    pub name: ServerName,
    /// Description of the plugin.
    pub description: Option<String>,
    /// Address of the source code.
    pub source: Option<String>,
    /// Bundle of the plugin, and the address where it will be.
    pub bundle: Option<(PathBuf, String)>,
    /// File to write.
    pub path: PathBuf,
}

/// Listing of a plugin that is about to be published.
#[derive(Debug, Clone)]
pub struct PluginListing {
    server: ServerJson,
    path: PathBuf,
}

impl PluginListing {
    /// Checks the listing of a plugin that will be published under the tag of `reference`. Reads
    /// the bundle, and the file that will be replaced.
    ///
    /// # Errors
    /// Returns an error if the registry does not accept such a listing, if the bundle cannot be
    /// read, or if the file exists and is something else.
    pub fn new_ambient(reference: &Reference, options: ListingOptions) -> Result<Self> {
        let ListingOptions { name, description, source, bundle, path } = options;
        let server = ServerJson::new(name, reference, description.as_deref());
        let mut server = server.map_err(|error| Error::invalid(error.to_string()))?;
        if let Some(source) = &source {
            server = server.with_source(source);
        }
        if let Some((file, address)) = bundle {
            let digest = digest(&file)?;
            let bundle = BundlePackage::new(&address, digest);
            let bundle = bundle.map_err(|error| Error::invalid(error.to_string()))?;
            server = server.with_bundle(bundle);
        }
        check_replaceable(&path, server.name())?;
        Ok(Self { server, path })
    }

    /// Returns the annotation of the artifact that proves that it belongs to the server.
    #[must_use]
    pub fn annotation(&self) -> (String, String) {
        self.server.name().annotation()
    }

    /// Returns what the public MCP registry does not accept.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        self.server.notes()
    }

    /// Writes the file for the artifact with this manifest. Returns its path.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, manifest: Digest) -> Result<&Path> {
        let unwritable = || format!("{} cannot be written", self.path.display());
        let json = serde_json::to_string_pretty(&self.server.to_json(manifest));
        let json = json.with_context(unwritable)?;
        replace_file(&self.path, format!("{json}\n").as_bytes()).with_context(unwritable)?;
        Ok(&self.path)
    }
}

/// Returns an error if a listing of the server `name` cannot be written to `path`, or would replace
/// something else.
fn check_replaceable(path: &Path, name: &ServerName) -> Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(Error::invalid(format!("{} is not a directory", folder.display())));
    }
    let content = match read_named_text_ambient(path, FILE_BYTES_MAX) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        read => read.with_context(|| format!("{} cannot be read", path.display()))?,
    };
    let listed: Value = serde_json::from_str(&content).unwrap_or_default();
    if listed.get("name").and_then(Value::as_str) == Some(name.as_str()) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{} exists and is not the listing of {name}; name another file: --server-json FILE",
        path.display()
    )))
}

/// Returns the digest of a bundle.
fn digest(path: &Path) -> Result<Digest> {
    let unreadable = || format!("{} cannot be read", path.display());
    digest_of(path).with_context(unreadable)?.parse().with_context(unreadable)
}
