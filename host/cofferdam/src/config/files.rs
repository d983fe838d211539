//! `[files.NAME]`: stores that the file-access tools work on.

use std::path::PathBuf;

use cofferdam_files::{ApprovalRule, PathPatterns, Quota};
use cofferdam_tool::FileAccess;
use serde::Deserialize;
use toml::Spanned;

use super::StoreConfig;

/// `[files.NAME]`: one of `store`, `directory`, `url` and `memory`, and what the tools may do
/// there.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct FilesTable {
    /// The store of `[stores]`.
    pub(crate) store: Option<Spanned<String>>,
    /// The directory behind the store.
    pub directory: Option<Spanned<PathBuf>>,
    /// The bucket behind the store. One that needs a key is a store of `[stores]`.
    url: Option<Spanned<String>>,
    /// True if the store is in memory.
    memory: Option<bool>,
    /// The limits of a store that is not one of `[stores]`.
    quota: Option<Quota>,
    /// True if each session has a directory of its own, in a store that is not one of `[stores]`.
    per_session: bool,
    /// True if the tools may change anything.
    pub(crate) access: Option<Spanned<FileAccess>>,
    /// True if deleting needs approval.
    pub(crate) delete_approval: Option<bool>,
    /// True if every other change needs approval.
    pub(crate) write_approval: Option<bool>,
    /// Exceptions by tool and path.
    pub(crate) approvals: Vec<ApprovalRule>,
    /// Paths that the tools do not see, instead of the default ones.
    pub(crate) hidden: Option<PathPatterns>,
    /// Paths that the tools do not change.
    pub(crate) read_only: PathPatterns,
}

impl FilesTable {
    /// The store that the table describes itself; `None` if it names one of `[stores]` and nothing
    /// else.
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
