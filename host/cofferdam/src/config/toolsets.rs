//! `[toolsets.NAME]`: subsets of the tools.

use serde::Deserialize;
use toml::Spanned;

/// `[toolsets.NAME]`: a subset of the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct ToolsetTable {
    /// Tools by name.
    pub(crate) tools: Vec<Spanned<String>>,
    /// All tools of these plugins.
    pub(crate) plugins: Vec<Spanned<String>>,
    /// Tools of plugins in these groups.
    pub(crate) groups: Vec<Spanned<String>>,
    /// All tools of these remote servers.
    pub(crate) servers: Vec<Spanned<String>>,
}
