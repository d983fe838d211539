//! Index of plugins: a registry that speaks the API of the MCP registry, or an index file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};
use url::{Host, Url};

/// End of the address of an index file.
const FILE_END: &str = ".json";

/// Index of plugins that is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PluginIndex {
    /// Index file, relative to the configuration.
    File(PathBuf),
    /// Index file on the web: an address that ends in `.json`.
    Web(Url),
    /// Base address of a registry.
    Registry(Url),
}

/// Error returned for a string that is not an index.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an index of plugins: expected the https address of an MCP registry, or an index \
     file"
)]
pub struct InvalidIndex(String);

impl PluginIndex {
    /// Returns the index with the path of its file resolved.
    #[must_use]
    pub(crate) fn resolved(self, resolve: impl FnOnce(&Path) -> PathBuf) -> Self {
        match self {
            Self::File(path) => Self::File(resolve(&path)),
            other => other,
        }
    }
}

impl FromStr for PluginIndex {
    type Err = InvalidIndex;

    fn from_str(string: &str) -> Result<Self, InvalidIndex> {
        if !string.contains("://") {
            return Ok(Self::File(PathBuf::from(string)));
        }
        let url = Url::parse(string).ok();
        // No credentials are sent, and none may be in an address that messages show.
        let is_plain = |url: &Url| {
            url.username().is_empty() && url.password().is_none() && url.fragment().is_none()
        };
        let is_private = |url: &Url| {
            url.scheme() == "https" || url.scheme() == "http" && is_loopback(url.host())
        };
        let url = url.filter(|url| url.has_host() && is_plain(url) && is_private(url));
        let url = url.ok_or_else(|| InvalidIndex(string.to_owned()))?;
        let is_file = url.path().ends_with(FILE_END);
        Ok(if is_file { Self::Web(url) } else { Self::Registry(url) })
    }
}

impl fmt::Display for PluginIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Web(url) | Self::Registry(url) => url.fmt(f),
        }
    }
}

impl<'de> Deserialize<'de> for PluginIndex {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let string = String::deserialize(deserializer)?;
        string.parse().map_err(serde::de::Error::custom)
    }
}

fn is_loopback(host: Option<Host<&str>>) -> bool {
    match host {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_files_and_encrypted_or_local_addresses() {
        let parse = |string: &str| string.parse::<PluginIndex>();
        assert_eq!(parse("a/plugins.json"), Ok(PluginIndex::File(PathBuf::from("a/plugins.json"))));
        for string in ["https://registry.example/mcp", "http://127.0.0.1:80/x", "http://[::1]/"] {
            assert!(matches!(parse(string), Ok(PluginIndex::Registry(_))), "{string}");
        }
        for string in ["https://acme.example/plugins.json", "http://localhost/x.json"] {
            assert!(matches!(parse(string), Ok(PluginIndex::Web(_))), "{string}");
        }
        for string in [
            "http://registry.example/",
            "http://127.0.0.1.example/",
            "https://user:pw@registry.example/",
            "https://registry.example/#x",
            "ftp://registry.example/",
            "https://",
        ] {
            assert_eq!(parse(string), Err(InvalidIndex(string.to_owned())));
        }
    }
}
