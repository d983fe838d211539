//! Identities of the sources of tools.

use serde::{Deserialize, Serialize};

use crate::record::PluginIdentity;

/// Origin of a tool: the digest of a plugin, the address of a server together with the tool's
/// definition, or a source of the embedding program, with a digest of the file stores that it
/// accesses.
///
/// A user's decision about a tool, such as "always allow it", holds for one origin. Another
/// component, server, definition or file store under the same name has another origin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolOrigin(String);

impl ToolOrigin {
    /// Returns the origin of tools of the embedding program, by the name of their source.
    #[must_use]
    pub fn program(source: &str) -> Self {
        Self(format!("program:{source}"))
    }

    /// Returns the origin of tools of the embedding program that access something, such as file
    /// stores, by the name of their source and a digest of what they access.
    #[must_use]
    pub fn program_over(source: &str, digest: &str) -> Self {
        Self(format!("program:{source}@{digest}"))
    }

    /// Returns the origin of a plugin's tools, by its configured name and the digest of its
    /// component.
    #[must_use]
    pub fn plugin(identity: &PluginIdentity) -> Self {
        Self(format!("plugin:{}@{}", identity.name, identity.digest))
    }

    /// Returns the origin of a remote server's tool, by the server's configured name and a digest
    /// over its address and the tool's definition.
    #[must_use]
    pub fn server(name: &str, digest: &str) -> Self {
        Self(format!("server:{name}@{digest}"))
    }
}

impl std::fmt::Display for ToolOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
