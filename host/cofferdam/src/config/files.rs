//! `[files.NAME]`: stores of the file-access tools.

use std::path::PathBuf;

use cofferdam_files::{ApprovalRule, PathPatterns, Quota};
use cofferdam_tool::FileAccess;
use serde::Deserialize;
use toml::Spanned;

use super::StoreConfig;

/// `[files.NAME]`: one of `store`, `directory`, `url` and `memory`, and the access of the tools.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct FilesTable {
    /// Name of a store of `[stores]`.
    pub(crate) store: Option<Spanned<String>>,
    /// Directory of the store.
    pub directory: Option<Spanned<PathBuf>>,
    /// Bucket of the store. A bucket that needs a key has to be a store of `[stores]`.
    url: Option<Spanned<String>>,
    /// True if the store is in memory.
    memory: Option<bool>,
    /// Quota of a store that is not one of `[stores]`.
    quota: Option<Quota>,
    /// True if each session has its own directory, in a store that is not one of `[stores]`.
    per_session: bool,
    /// Access of the tools; read-write by default.
    pub(crate) access: Option<Spanned<FileAccess>>,
    /// True if deleting a file needs approval.
    pub(crate) delete_approval: Option<bool>,
    /// True if every other change needs approval.
    pub(crate) write_approval: Option<bool>,
    /// Exceptions by tool and path.
    pub(crate) approvals: Vec<ApprovalRule>,
    /// Paths that are hidden from the tools, in addition to the default ones.
    pub(crate) hidden: Option<PathPatterns>,
    /// Paths that the tools cannot change.
    pub(crate) read_only: PathPatterns,
}

impl FilesTable {
    /// Returns the store that the table defines; `None` if it names only one of `[stores]`.
    pub(crate) fn own_store(&self) -> Option<StoreConfig> {
        let is_empty = self.directory.is_none() && self.url.is_none() && self.memory.is_none();
        if is_empty && self.quota.is_none() && !self.per_session {
            return None;
        }
        Some(StoreConfig {
            directory: self.directory.clone(),
            url: self.url.clone(),
            memory: self.memory,
            quota: self.quota,
            per_session: self.per_session,
            ..StoreConfig::default()
        })
    }

    /// Returns whether the tools may change something.
    pub(crate) fn may_write(&self) -> bool {
        self.access.as_ref().is_none_or(|access| *access.get_ref() != FileAccess::ReadOnly)
    }
}
