//! `[skills]`: locations of skills, and grants of their tools and scripts.

use std::path::PathBuf;

use cofferdam_tool::permission::RequestedLimits;
use serde::Deserialize;
use toml::Spanned;

use super::GrantsTable;

/// `[skills]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct SkillsTable {
    /// Directories to search for skills, before `stores`.
    pub(crate) directories: Vec<Spanned<PathBuf>>,
    /// Stores to search for skills.
    pub(crate) stores: Vec<Spanned<String>>,
    /// Tools that a model may use without approval.
    pub(crate) free: Vec<Spanned<String>>,
    /// Grants of scripts in addition to the folder of their skill.
    pub(crate) grants: GrantsTable,
    /// Limits of a script. Omitted keys have the value of the file's `[limits]`.
    pub(crate) limits: RequestedLimits,
}

impl SkillsTable {
    /// Returns whether the table names no location.
    pub(crate) fn is_empty(&self) -> bool {
        self.directories.is_empty() && self.stores.is_empty()
    }
}
