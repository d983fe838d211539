//! Location of a component: a file, a registry, or an address on the web.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use cofferdam_registry::{InvalidReference, Reference};
use serde::{Deserialize, Deserializer};
use url::Url;

/// Location of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComponentLocation {
    /// File, relative to the configuration.
    File(PathBuf),
    /// Artifact in a registry: `oci://HOST/REPOSITORY:TAG`.
    Registry(Reference),
    /// Component at an `https` address.
    Web(Url),
}

/// Error returned for a string that is not the location of a component.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidLocation {
    /// The reference is invalid.
    #[error(transparent)]
    Reference(#[from] InvalidReference),
    /// The address is invalid, or has another scheme.
    #[error(
        "`{0}` is not a location: expected a file, oci://HOST/REPOSITORY:TAG or an https address"
    )]
    Address(String),
}

impl ComponentLocation {
    /// Returns the file, if the component is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Registry(_) | Self::Web(_) => None,
        }
    }

    /// Returns a name for the plugin: the last part of the location, without its extension.
    #[must_use]
    pub fn plugin_name(&self) -> Option<String> {
        let path = match self {
            Self::File(path) => path.clone(),
            Self::Registry(reference) => PathBuf::from(reference.repository()),
            Self::Web(url) => PathBuf::from(url.path()),
        };
        let stem = match self {
            Self::Registry(_) => path.file_name(),
            _ => path.file_stem(),
        };
        Some(stem?.to_str()?.replace('.', "-"))
    }
}

impl FromStr for ComponentLocation {
    type Err = InvalidLocation;

    fn from_str(string: &str) -> Result<Self, InvalidLocation> {
        let Some((scheme, _)) = string.split_once("://") else {
            return Ok(Self::File(PathBuf::from(string)));
        };
        let invalid = || InvalidLocation::Address(string.to_owned());
        match scheme {
            "oci" => Ok(Self::Registry(string.parse()?)),
            "https" => {
                let url = Url::parse(string).map_err(|_| invalid())?;
                // The lock file must identify the component by the address, and contain no secret.
                let is_plain = url.username().is_empty()
                    && url.password().is_none()
                    && url.fragment().is_none();
                if is_plain && url.has_host() { Ok(Self::Web(url)) } else { Err(invalid()) }
            }
            _ => Err(invalid()),
        }
    }
}

impl fmt::Display for ComponentLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Registry(reference) => reference.fmt(f),
            Self::Web(url) => url.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for ComponentLocation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let string = String::deserialize(deserializer)?;
        string.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_files_references_and_https_addresses() {
        let parse = |string: &str| string.parse::<ComponentLocation>();
        assert_eq!(parse("a/b.wasm"), Ok(ComponentLocation::File(PathBuf::from("a/b.wasm"))));
        for string in ["oci://ghcr.io/acme/csv:1.0", "https://example.com/csv.wasm?v=1"] {
            let location = parse(string).unwrap();
            assert_eq!(location.to_string(), string);
            assert_eq!(location.plugin_name().as_deref(), Some("csv"));
            assert_eq!(location.file(), None);
        }
        for string in [
            "http://example.com/csv.wasm",
            "ftp://example.com/csv.wasm",
            "https://user:pw@example.com/csv.wasm",
            "https://example.com/csv.wasm#x",
            "oci://acme/csv",
        ] {
            parse(string).unwrap_err();
        }
    }
}
