//! Copies of plugins for machines without a network.
//!
//! A copy is an image layout of OCI, which other programs read as well. The lock file says which
//! components belong to a configuration and who has signed them, so it travels with the
//! configuration, and the copy need not be trusted.

use std::path::Path;

use cofferdam_registry::{ArtifactStore, Descriptor, Digest, ImageLayout};

use crate::artifacts::{self, Origin};
use crate::config::ConfigFile;
use crate::error::Context as _;
use crate::pins::Pins;
use crate::{Error, Result};

/// Maximum size of a manifest or its configuration in bytes.
const DOCUMENT_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// Copies the locked plugins of a configuration into an image layout at `directory`, which is
/// created if it does not exist. Returns their names.
///
/// # Errors
/// Returns an error if a plugin is not in the lock file or not on this machine, or the layout
/// cannot be written.
pub fn export_ambient(config: &ConfigFile, directory: &Path) -> Result<Vec<String>> {
    let store = artifacts::store()?;
    let origins = origins(config)?;
    let failed = || format!("{} cannot be written", directory.display());
    let copy = ArtifactStore::open_ambient(directory).with_context(failed)?;
    let mut layout = ImageLayout::default();
    for (name, origin) in &origins {
        let absent = || {
            Error::NotAccepted(format!(
                "`{name}` is not on this machine; run `cofferdam fetch --config {}`",
                config.path.display()
            ))
        };
        let component = read(&store, origin.layer, origin.size)?.ok_or_else(absent)?;
        copy.insert(&component).with_context(failed)?;
        let Some(manifest) = origin.manifest else { continue };
        let manifest = read(&store, manifest, DOCUMENT_BYTES_MAX)?.ok_or_else(absent)?;
        let document = layout
            .add(&manifest, &origin.source)
            .map_err(|error| Error::failed(format!("the manifest of `{name}` {error}")))?;
        for Descriptor { digest, size, .. } in document.contents() {
            if let Some(content) = read(&store, *digest, *size)? {
                copy.insert(&content).with_context(failed)?;
            }
        }
        copy.insert(&manifest).with_context(failed)?;
    }
    layout.write_ambient(directory).with_context(failed)?;
    Ok(origins.into_iter().map(|(name, _)| name).collect())
}

/// Copies the locked plugins of a configuration from an image layout to this machine. Returns their
/// names.
///
/// # Errors
/// Returns an error if a plugin is not in the lock file, or the layout does not contain it
/// unchanged.
pub fn import_ambient(config: &ConfigFile, directory: &Path) -> Result<Vec<String>> {
    let store = artifacts::store()?;
    let unreadable = || format!("{} cannot be read", directory.display());
    let copy = ArtifactStore::open_existing_ambient(directory).with_context(unreadable)?;
    let mut names = Vec::new();
    for (name, origin) in origins(config)? {
        let absent = || {
            let layer = origin.layer;
            Error::NotAccepted(format!(
                "{} does not contain `{name}`: {layer}",
                directory.display()
            ))
        };
        let component = read(&copy, origin.layer, origin.size)?.ok_or_else(absent)?;
        store.insert(&component).context("the artifact store cannot be written")?;
        if let Some(manifest) = origin.manifest
            && let Some(manifest) = read(&copy, manifest, DOCUMENT_BYTES_MAX)?
        {
            store.insert(&manifest).context("the artifact store cannot be written")?;
        }
        names.push(name);
    }
    Ok(names)
}

/// Reads a blob. Other bytes are an error.
fn read(store: &ArtifactStore, digest: Digest, bytes_max: u64) -> Result<Option<Vec<u8>>> {
    store.read(digest, bytes_max).with_context(|| format!("{digest} cannot be used"))
}

/// Returns the origins of the plugins of a configuration that are not files.
fn origins(config: &ConfigFile) -> Result<Vec<(String, Origin)>> {
    let pins = Pins::of_config_ambient(&config.path)?;
    let plugins = config.config.plugins.iter();
    let fetched = plugins.filter(|(_, plugin)| plugin.component.get_ref().file().is_none());
    let origin = |(name, plugin): (&String, &crate::config::PluginConfig)| {
        let origin = pins.origin_at(name, plugin.component.get_ref()).cloned();
        origin.map(|origin| (name.clone(), origin)).ok_or_else(|| {
            let lock = pins.path().display();
            Error::NotAccepted(format!("`{name}` is not in {lock}; run `cofferdam fetch`"))
        })
    };
    fetched.map(origin).collect()
}
