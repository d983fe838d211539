//! `server.json`: the listing of a plugin in the MCP registry, by the schema of 2025-12-11.
//!
//! The registry has no type for WebAssembly. A plugin is listed as a package in an OCI registry,
//! with the reference of its component, digest included, in the metadata of the publisher. What the
//! schema or the public registry rejects is rejected here, before anything is published. What only
//! the public registry rejects and others may accept is a note.

use std::fmt;
use std::str::FromStr;

use reqwest::Url;
use serde_json::{Value, json};

use crate::catalog::{EXTENSION, OCI, PUBLISHER_PROVIDED};
use crate::manifest::SERVER_NAME;
use crate::{Digest, Reference};

/// Address of the schema.
const SCHEMA: &str = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
/// Maximum length of a name in bytes.
const NAME_BYTES_MAX: usize = 200;
/// Maximum length of a description in characters.
const DESCRIPTION_CHARS_MAX: usize = 100;
/// Program that runs the package.
const RUNTIME: &str = "cofferdam";
/// Hosts whose OCI packages the public registry accepts.
const OCI_HOSTS: [&str; 4] = ["docker.io", "ghcr.io", "quay.io", "mcr.microsoft.com"];
/// Ends of further such hosts.
const OCI_HOST_ENDS: [&str; 2] = [".pkg.dev", ".azurecr.io"];
/// Hosts of source code, with the names that the registry has for them.
const FORGES: [(&str, &str); 2] = [("github.com", "github"), ("gitlab.com", "gitlab")];

/// Name of a server: `NAMESPACE/NAME`, where the namespace is a domain in reverse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerName(String);

/// Error returned for a string that is not the name of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of a server: expected NAMESPACE/NAME, such as io.github.acme/csv, of A-Z \
     a-z 0-9 `.` `-`, and `_` in NAME, each with a letter or a digit at both ends, \
     {NAME_BYTES_MAX} bytes at most"
)]
pub struct InvalidServerName(String);

/// Reason why a plugin cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidServer {
    /// There is no description.
    #[error("the MCP registry wants a description; pass --description TEXT")]
    NoDescription,
    /// The description is too long.
    #[error(
        "the description has {0} characters, and the MCP registry takes {DESCRIPTION_CHARS_MAX}; \
         shorten --description"
    )]
    LongDescription(usize),
    /// The tag is not a version.
    #[error(
        "`{0}` is not a version for the MCP registry: expected one such as 1.2.0, not `latest` and \
         not a range such as 1.x; publish another tag"
    )]
    Version(String),
    /// The address of a bundle is invalid.
    #[error(
        "`{0}` is not the address of a bundle for the MCP registry: expected an https address that \
         contains `mcp`, such as https://github.com/acme/csv/releases/download/v1.2.0/csv.mcpb"
    )]
    BundleAddress(String),
}

/// Bundle of a plugin for hosts that install with a click.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundlePackage {
    address: Url,
    digest: Digest,
}

/// Content of a `server.json` for a plugin.
#[derive(Debug, Clone)]
pub struct ServerJson {
    name: ServerName,
    description: String,
    version: String,
    reference: Reference,
    source: Option<String>,
    bundle: Option<BundlePackage>,
}

impl FromStr for ServerName {
    type Err = InvalidServerName;

    fn from_str(string: &str) -> Result<Self, InvalidServerName> {
        let is_part = |part: &str, marks: &[u8]| {
            let bytes = part.as_bytes();
            let is_bounded = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
            bytes.len() > 1
                && is_bounded(bytes.first())
                && is_bounded(bytes.last())
                && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(byte))
        };
        let is_valid = string.len() <= NAME_BYTES_MAX
            && string
                .split_once('/')
                .is_some_and(|(space, name)| is_part(space, b".-") && is_part(name, b"._-"));
        if is_valid {
            Ok(Self(string.to_owned()))
        } else {
            Err(InvalidServerName(string.to_owned()))
        }
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl ServerName {
    /// Returns the name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the annotation of an artifact that belongs to the server, with which its owner
    /// agrees to the listing.
    #[must_use]
    pub fn annotation(&self) -> (String, String) {
        (SERVER_NAME.to_owned(), self.0.clone())
    }
}

impl BundlePackage {
    /// Creates a bundle with the digest of its file and the address where it will be.
    ///
    /// # Errors
    /// Returns an error if the registry accepts no such address.
    pub fn new(address: &str, digest: Digest) -> Result<Self, InvalidServer> {
        let url = Url::parse(address).ok();
        let is_named = address.to_ascii_lowercase().contains("mcp") && !address.contains(' ');
        let url = url.filter(|url| url.scheme() == "https" && is_named);
        let address = url.ok_or_else(|| InvalidServer::BundleAddress(address.to_owned()))?;
        Ok(Self { address, digest })
    }
}

impl ServerJson {
    /// Creates the listing of the plugin that is published under the tag of `reference`.
    ///
    /// # Errors
    /// Returns an error if the registry does not accept the description, or the tag as a version.
    pub fn new(
        name: ServerName,
        reference: &Reference,
        description: Option<&str>,
    ) -> Result<Self, InvalidServer> {
        let description = description.map(str::trim).filter(|text| !text.is_empty());
        let description = description.ok_or(InvalidServer::NoDescription)?.to_owned();
        let chars = description.chars().count();
        if chars > DESCRIPTION_CHARS_MAX {
            return Err(InvalidServer::LongDescription(chars));
        }
        let version = reference.version().to_string();
        if reference.tag().is_none() || version == "latest" || is_range(&version) {
            return Err(InvalidServer::Version(version));
        }
        let (source, bundle) = (None, None);
        Ok(Self { name, description, version, reference: reference.clone(), source, bundle })
    }

    /// Adds the address of the source code.
    #[must_use]
    pub fn with_source(mut self, address: &str) -> Self {
        self.source = Some(address.to_owned());
        self
    }

    /// Adds a bundle.
    #[must_use]
    pub fn with_bundle(mut self, bundle: BundlePackage) -> Self {
        self.bundle = Some(bundle);
        self
    }

    /// Returns the name of the server.
    #[must_use]
    pub fn name(&self) -> &ServerName {
        &self.name
    }

    /// Returns what the public MCP registry does not accept, and other registries may.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let host = self.reference.registry();
        let is_accepted =
            OCI_HOSTS.contains(&host) || OCI_HOST_ENDS.iter().any(|end| host.ends_with(end));
        if !is_accepted {
            notes.push(format!(
                "the public MCP registry does not list plugins at {host}; it accepts docker.io, \
                 ghcr.io, quay.io, mcr.microsoft.com, *.pkg.dev and *.azurecr.io"
            ));
        }
        if let Some(source) = &self.source
            && forge(source).is_none()
        {
            notes.push(format!(
                "{source} is left out of the listing; the public MCP registry accepts repositories \
                 such as https://github.com/acme/csv and https://gitlab.com/acme/csv"
            ));
        }
        let bundle = self.bundle.as_ref().and_then(|bundle| bundle.address.host_str());
        if let Some(host) = bundle.filter(|host| !FORGES.iter().any(|(forge, _)| forge == host)) {
            notes.push(format!(
                "the public MCP registry does not list bundles at {host}; it accepts files of \
                 releases at github.com and gitlab.com"
            ));
        }
        notes
    }

    /// Returns the content of the file for the artifact with this manifest.
    #[must_use]
    pub fn to_json(&self, manifest: Digest) -> Value {
        let stdio = json!({"type": "stdio"});
        let identifier = format!("{}:{}", self.reference.name(), self.version);
        let oci = json!({
            "registryType": OCI, "identifier": identifier, "runtimeHint": RUNTIME,
            "transport": stdio,
        });
        let mcpb = self.bundle.iter().map(|bundle| {
            json!({
                "registryType": "mcpb", "identifier": bundle.address.as_str(),
                "fileSha256": bundle.digest.hex(), "transport": stdio,
            })
        });
        let packages: Vec<_> = [oci].into_iter().chain(mcpb).collect();
        let component = self.reference.with_digest(manifest);
        let mut server = json!({
            "$schema": SCHEMA,
            "name": self.name.as_str(),
            "description": self.description,
            "version": self.version,
            "packages": packages,
            "_meta": {PUBLISHER_PROVIDED: {EXTENSION: {"component": component}}},
        });
        let forge = self.source.as_deref().and_then(|source| Some((source, forge(source)?)));
        if let (Some((source, forge)), Some(server)) = (forge, server.as_object_mut()) {
            let repository = json!({"url": source, "source": forge});
            server.insert("repository".to_owned(), repository);
        }
        server
    }
}

/// Returns the name of the forge that has the repository at `address`, if the registry accepts it.
fn forge(address: &str) -> Option<&'static str> {
    let rest = address.strip_prefix("https://").or_else(|| address.strip_prefix("http://"))?;
    let (host, path) = rest.strip_prefix("www.").unwrap_or(rest).split_once('/')?;
    let (_, name) = FORGES.into_iter().find(|(forge, _)| *forge == host)?;
    let (owner, repository) = path.strip_suffix('/').unwrap_or(path).split_once('/')?;
    let is_part = |part: &str| {
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
        !part.is_empty() && part.bytes().all(is_word)
    };
    (is_part(owner) && is_part(repository)).then_some(name)
}

/// Returns whether the registry takes a tag for a range: two or three parts that are numbers or
/// `x`, and an `x` anywhere.
fn is_range(tag: &str) -> bool {
    let (version, suffix) = tag.split_once('-').unwrap_or((tag, "0"));
    let parts: Vec<_> = version.split('.').collect();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_part = |(index, part): (usize, &&str)| {
        let number = part.strip_prefix('v').filter(|_| index == 0).unwrap_or(part);
        is_number(number) || part.eq_ignore_ascii_case("x")
    };
    let is_version = (2..=3).contains(&parts.len()) && parts.iter().enumerate().all(is_part);
    let is_suffix = !suffix.is_empty() && !suffix.contains('_');
    is_version && is_suffix && tag.contains(['x', 'X'])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::CatalogPage;

    fn name() -> ServerName {
        "io.github.acme/csv".parse().unwrap()
    }

    fn reference(string: &str) -> Reference {
        string.parse().unwrap()
    }

    fn listing(string: &str) -> ServerJson {
        ServerJson::new(name(), &reference(string), Some("Reads CSV files")).unwrap()
    }

    #[test]
    fn names_have_two_parts() {
        let long = |length: usize| format!("io.github.acme/{}", "a".repeat(length - 15));
        for string in ["io.github.acme/csv", "com.example/a_b.c-d", "ab/cd", &long(200)] {
            assert_eq!(string.parse::<ServerName>().map(|name| name.to_string()).unwrap(), string);
        }
        for string in [
            "",
            "/",
            "csv",
            "a/cd",
            "ab/c",
            "io.github.acme/",
            "/csv",
            "io/github/csv",
            "a_b/csv",
            "io.github.acme/csv-",
            "-io/csv",
            "io.github.acme/c v",
            "io.github.acmé/csv",
            &long(201),
        ] {
            let refused = string.parse::<ServerName>();
            assert_eq!(refused, Err(InvalidServerName(string.to_owned())));
        }
    }

    #[test]
    fn descriptions_and_versions_are_checked() {
        let at = |tag: &str, description: Option<&str>| {
            let reference = reference(&format!("oci://ghcr.io/acme/csv:{tag}"));
            ServerJson::new(name(), &reference, description).map(drop)
        };
        let long = "ä".repeat(101);
        assert_eq!(at("1.0", Some(&long)), Err(InvalidServer::LongDescription(101)));
        assert_eq!(at("1.0", Some(&"ä".repeat(100))), Ok(()));
        assert_eq!(at("1.0", None), Err(InvalidServer::NoDescription));
        assert_eq!(at("1.0", Some(" ")), Err(InvalidServer::NoDescription));
        for tag in ["1.0.0", "v2", "1.2.3-rc.1", "nightly", "1.2.3.4x", "x", "1.2.3-x_y", "1.2-"] {
            assert_eq!(at(tag, Some("CSV")), Ok(()), "{tag}");
        }
        for tag in ["latest", "1.x", "1.2.X", "x.1", "v1.x", "1.2.3-x86"] {
            assert_eq!(at(tag, Some("CSV")), Err(InvalidServer::Version(tag.to_owned())), "{tag}");
        }
        let untagged = ServerJson::new(name(), &reference("oci://ghcr.io/acme/csv"), Some("CSV"));
        assert!(matches!(untagged, Err(InvalidServer::Version(_))), "{untagged:?}");
    }

    #[test]
    fn the_file_has_what_the_schema_wants_and_is_found_as_a_plugin() {
        let (manifest, file) = (Digest::of(b"manifest"), Digest::of(b"bundle"));
        let address = "https://github.com/acme/csv/releases/download/v1.2.0/csv.mcpb";
        let listing = listing("oci://ghcr.io/acme/csv:1.2.0")
            .with_source("https://github.com/acme/csv")
            .with_bundle(BundlePackage::new(address, file).unwrap());
        assert_eq!(listing.notes(), Vec::<String>::new());
        let server = listing.to_json(manifest);
        let component = format!("oci://ghcr.io/acme/csv:1.2.0@{manifest}");
        let expected = json!({
            "$schema": SCHEMA,
            "name": "io.github.acme/csv",
            "description": "Reads CSV files",
            "version": "1.2.0",
            "repository": {"url": "https://github.com/acme/csv", "source": "github"},
            "packages": [
                {"registryType": "oci", "identifier": "ghcr.io/acme/csv:1.2.0",
                 "runtimeHint": "cofferdam", "transport": {"type": "stdio"}},
                {"registryType": "mcpb", "identifier": address, "fileSha256": file.hex(),
                 "transport": {"type": "stdio"}},
            ],
            "_meta": {PUBLISHER_PROVIDED: {"cofferdam": {"component": component}}},
        });
        assert_eq!(server, expected);
        let index = json!({"servers": [{"server": server}]}).to_string();
        let page = CatalogPage::from_index(index.as_bytes()).unwrap();
        let found = page.servers.first().unwrap().component.as_ref().unwrap();
        assert_eq!(found.to_string(), component);
    }

    #[test]
    fn the_metadata_is_smaller_than_the_limit_of_the_registry() {
        let longest = format!("oci://ghcr.io/{}:{}", "a".repeat(200), "1".repeat(128));
        let server = listing(&longest).to_json(Digest::of(b""));
        let metadata = server.get("_meta").unwrap().get(PUBLISHER_PROVIDED).unwrap().to_string();
        assert!(metadata.len() <= 4_096, "{metadata}");
    }

    #[test]
    fn notes_tell_what_the_public_registry_does_not_accept() {
        let bundle = BundlePackage::new("https://acme.example/csv.mcpb", Digest::of(b"")).unwrap();
        let listing = listing("oci://registry.acme.example/csv:1")
            .with_source("https://acme.example/csv")
            .with_bundle(bundle);
        let notes = listing.notes();
        assert_eq!(notes.len(), 3, "{notes:?}");
        assert_eq!(listing.to_json(Digest::of(b"")).get("repository"), None);
        for host in ["docker.io", "europe-docker.pkg.dev", "acme.azurecr.io", "quay.io"] {
            let listing = super::tests::listing(&format!("oci://{host}/acme/csv:1"));
            assert_eq!(listing.notes(), Vec::<String>::new(), "{host}");
        }
        for (address, expected) in [
            ("https://github.com/acme/csv", Some("github")),
            ("http://www.gitlab.com/acme/csv.git/", Some("gitlab")),
            ("https://gitlab.com/acme/tools/csv", None),
            ("https://github.com/acme", None),
            ("https://github.com.example/acme/csv", None),
            ("github.com/acme/csv", None),
        ] {
            assert_eq!(forge(address), expected, "{address}");
        }
        for address in ["http://github.com/a.mcpb", "https://github.com/a.zip", "mcp", ""] {
            let refused = BundlePackage::new(address, Digest::of(b""));
            assert_eq!(refused, Err(InvalidServer::BundleAddress(address.to_owned())));
        }
    }

    proptest! {
        #[test]
        fn any_string_is_a_name_or_refused(string in "\\PC{0,30}/?\\PC{0,30}") {
            if let Ok(name) = string.parse::<ServerName>() {
                prop_assert_eq!(name.as_str(), string);
            }
        }

        #[test]
        fn any_address_has_a_forge_or_none(address in "(https://(github|gitlab).com)?\\PC{0,40}") {
            let _ = forge(&address);
        }
    }
}
