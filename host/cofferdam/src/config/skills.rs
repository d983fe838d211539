//! `[skills]`: where skills are, and what their tools and scripts may do.

use std::path::PathBuf;

use cofferdam_tool::permission::LimitsAsked;
use serde::Deserialize;
use toml::Spanned;

use super::GrantsTable;

/// `[skills]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct SkillsTable {
    /// Directories that skills are looked for in, before those of `stores`.
    pub(crate) directories: Vec<Spanned<PathBuf>>,
    /// Stores that skills are looked for in.
    pub(crate) stores: Vec<Spanned<String>>,
    /// Tools that a model uses without asking.
    pub(crate) free: Vec<Spanned<String>>,
    /// Grants of scripts in addition to the folder of their skill.
    pub(crate) grants: GrantsTable,
    /// Limits of a script; a key that is left out has the value of the file's `[limits]`.
    pub(crate) limits: LimitsAsked,
}

impl SkillsTable {
    /// Returns whether it names any place.
    pub(crate) fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.stores.is_empty()
    }
}
