//! Quota of a file store (`FILE-19`).
//!
//! A quota covers either everything in the store, whatever its origin, or the growth that this host
//! causes ([`QuotaCounts`]). A change is checked only for the quantities that it enlarges, so a
//! store that is over its quota still accepts smaller content and deletions.

use serde::{Deserialize, Serialize};

/// Limits of one store. Each limit is the largest permitted value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Quota {
    /// Maximum content of all files together, in bytes.
    pub bytes_max: u64,
    /// Maximum number of files and directories, without the root.
    pub entries_max: u64,
    /// Maximum content of one file, in bytes.
    pub file_bytes_max: u64,
    /// Maximum number of segments of one path.
    pub depth_max: u64,
    /// Content that counts towards `bytes_max` and `entries_max`.
    pub counts: QuotaCounts,
}

/// Content that counts towards the limits of bytes and of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuotaCounts {
    /// Everything in the store, whatever its origin.
    #[default]
    Total,
    /// Net growth that this store object has caused since it was opened. Content that was there
    /// before and changes by other programs do not count, so opening the store counts nothing.
    Growth,
}

/// Initial usage of a store that counts growth. Deletions can lower the usage below it.
const GROWTH_START: u64 = 1 << 62;

impl Default for Quota {
    fn default() -> Self {
        Self {
            bytes_max: 67_108_864,
            entries_max: 10_000,
            file_bytes_max: 8_388_608,
            depth_max: 32,
            counts: QuotaCounts::Total,
        }
    }
}

/// Limit that a change would exceed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuotaExceeded {
    /// [`Quota::depth_max`].
    #[error("the path is nested deeper than the limit of {limit} levels.")]
    Depth {
        /// Maximum depth.
        limit: u64,
    },
    /// [`Quota::file_bytes_max`].
    #[error("the file would be larger than the limit of {limit} bytes.")]
    FileBytes {
        /// Maximum number of bytes.
        limit: u64,
    },
    /// [`Quota::entries_max`].
    #[error("the store's limit of {limit} files and directories would be exceeded.")]
    Entries {
        /// Maximum number of entries.
        limit: u64,
    },
    /// [`Quota::bytes_max`].
    #[error("the store's limit of {limit} bytes would be exceeded.")]
    Bytes {
        /// Maximum number of bytes.
        limit: u64,
    },
    /// [`Quota::entries_max`] of a store that counts growth.
    #[error(
        "the limit of {limit} files and directories that may be added to this store would be \
         exceeded."
    )]
    EntriesGrowth {
        /// Maximum number of added entries.
        limit: u64,
    },
    /// [`Quota::bytes_max`] of a store that counts growth.
    #[error("the limit of {limit} bytes that may be added to this store would be exceeded.")]
    BytesGrowth {
        /// Maximum number of added bytes.
        limit: u64,
    },
}

/// Quantities that count towards the quota of a store. For [`QuotaCounts::Growth`] they start at an
/// unspecified value, and only the difference between two values is meaningful.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// Content of all files together, in bytes.
    pub bytes: u64,
    /// Number of files and directories, without the root.
    pub entries: u64,
}

/// Effect of a change on the usage.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct UsageChange {
    /// Number of files and directories that the change creates.
    pub(crate) entries_added: u64,
    /// Bytes of content that the change removes.
    pub(crate) bytes_removed: u64,
    /// Bytes of content that the change adds.
    pub(crate) bytes_added: u64,
}

impl Quota {
    /// Admits everything. For changes that have already been checked together.
    pub(crate) const UNLIMITED: Self = Self {
        bytes_max: u64::MAX,
        entries_max: u64::MAX,
        file_bytes_max: u64::MAX,
        depth_max: u64::MAX,
        counts: QuotaCounts::Total,
    };

    /// Returns the quota for a directory or bucket that the operator already works with: growth is
    /// limited, and the maximum size of a file is the one that the file tools can edit.
    #[must_use]
    pub fn growth() -> Self {
        Self { file_bytes_max: 67_108_864, counts: QuotaCounts::Growth, ..Self::default() }
    }

    /// Returns these limits, applied to everything in the store.
    pub(crate) fn of_total(self) -> Self {
        Self { counts: QuotaCounts::Total, ..self }
    }

    /// Checks many changes together, from the usage before and after them.
    pub(crate) fn check_difference(
        &self,
        usage: Usage,
        before: Usage,
        after: Usage,
    ) -> Result<(), QuotaExceeded> {
        let bytes = usage.bytes.saturating_sub(before.bytes).saturating_add(after.bytes);
        if after.entries > before.entries {
            let entries_added = after.entries.saturating_sub(before.entries);
            self.admit(usage, UsageChange { entries_added, ..UsageChange::default() })?;
        }
        if after.bytes > before.bytes {
            self.admit(
                usage,
                UsageChange {
                    bytes_removed: usage.bytes,
                    bytes_added: bytes,
                    ..UsageChange::default()
                },
            )?;
        }
        Ok(())
    }

    /// Checks the limits that depend on one file only: depth, then file size.
    pub(crate) fn check_file(&self, depth: u64, bytes: u64) -> Result<(), QuotaExceeded> {
        self.check_depth(depth)?;
        let limit = self.file_bytes_max;
        if bytes > limit { Err(QuotaExceeded::FileBytes { limit }) } else { Ok(()) }
    }

    /// Checks the depth, which is the only limit of a directory by itself.
    pub(crate) fn check_depth(&self, depth: u64) -> Result<(), QuotaExceeded> {
        let limit = self.depth_max;
        if depth > limit { Err(QuotaExceeded::Depth { limit }) } else { Ok(()) }
    }

    /// Checks the limits that depend on the store: entries, then bytes. Returns the usage after the
    /// change.
    pub(crate) fn admit(&self, usage: Usage, change: UsageChange) -> Result<Usage, QuotaExceeded> {
        let after = usage.after(change);
        let start = self.counts.start();
        let (entries_max, bytes_max) = (
            start.entries.saturating_add(self.entries_max),
            start.bytes.saturating_add(self.bytes_max),
        );
        if after.entries > entries_max.max(usage.entries) {
            let limit = self.entries_max;
            return Err(match self.counts {
                QuotaCounts::Total => QuotaExceeded::Entries { limit },
                QuotaCounts::Growth => QuotaExceeded::EntriesGrowth { limit },
            });
        }
        if after.bytes > bytes_max.max(usage.bytes) {
            let limit = self.bytes_max;
            return Err(match self.counts {
                QuotaCounts::Total => QuotaExceeded::Bytes { limit },
                QuotaCounts::Growth => QuotaExceeded::BytesGrowth { limit },
            });
        }
        Ok(after)
    }
}

impl QuotaCounts {
    /// Returns the usage of a store in which nothing counts yet.
    pub(crate) fn start(self) -> Usage {
        match self {
            Self::Total => Usage::default(),
            Self::Growth => Usage { bytes: GROWTH_START, entries: GROWTH_START },
        }
    }
}

impl Usage {
    fn after(self, change: UsageChange) -> Self {
        Self {
            bytes: self
                .bytes
                .saturating_sub(change.bytes_removed)
                .saturating_add(change.bytes_added),
            entries: self.entries.saturating_add(change.entries_added),
        }
    }

    /// Returns this usage with the difference between `before` and `after` applied.
    pub(crate) fn exchanged(self, before: Self, after: Self) -> Self {
        let exchange =
            |now: u64, before: u64, after: u64| now.saturating_sub(before).saturating_add(after);
        Self {
            bytes: exchange(self.bytes, before.bytes, after.bytes),
            entries: exchange(self.entries, before.entries, after.entries),
        }
    }

    /// Returns this usage without one directory.
    pub(crate) fn without_directory(self) -> Self {
        Self { entries: self.entries.saturating_sub(1), ..self }
    }

    /// Returns this usage without one file of `bytes`.
    pub(crate) fn without_file(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes), entries: self.entries.saturating_sub(1) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Quota = Quota {
        bytes_max: 10,
        entries_max: 2,
        file_bytes_max: 8,
        depth_max: 3,
        counts: QuotaCounts::Total,
    };

    #[test]
    fn defaults_are_pinned() {
        let quota = Quota::default();
        assert_eq!((quota.bytes_max, quota.entries_max), (67_108_864, 10_000));
        assert_eq!((quota.file_bytes_max, quota.depth_max), (8_388_608, 32));
    }

    #[test]
    fn texts_are_those_of_file_19() {
        let text = |result: Result<(), QuotaExceeded>| result.unwrap_err().to_string();
        assert_eq!(
            text(SMALL.check_depth(4)),
            "the path is nested deeper than the limit of 3 levels."
        );
        assert_eq!(
            text(SMALL.check_file(3, 9)),
            "the file would be larger than the limit of 8 bytes."
        );
        let change = UsageChange { entries_added: 3, bytes_added: 11, ..UsageChange::default() };
        let admit = |change| SMALL.admit(Usage::default(), change).map(drop);
        assert_eq!(
            text(admit(change)),
            "the store's limit of 2 files and directories would be exceeded."
        );
        let change = UsageChange { entries_added: 2, ..change };
        assert_eq!(text(admit(change)), "the store's limit of 10 bytes would be exceeded.");
    }

    #[test]
    fn depth_comes_before_file_size() {
        assert_eq!(SMALL.check_file(4, 9), Err(QuotaExceeded::Depth { limit: 3 }));
        assert_eq!(SMALL.check_file(3, 8), Ok(()));
    }

    #[test]
    fn replacing_gives_the_old_bytes_back_first() {
        let full = Usage { bytes: 10, entries: 2 };
        let replace = |bytes_added| {
            SMALL.admit(full, UsageChange { entries_added: 0, bytes_removed: 4, bytes_added })
        };
        assert_eq!(replace(4), Ok(full));
        assert_eq!(replace(5), Err(QuotaExceeded::Bytes { limit: 10 }));
    }

    #[test]
    fn a_store_that_is_too_full_takes_what_does_not_enlarge_it() {
        let overfull = Usage { bytes: 20, entries: 5 };
        let replace = |bytes_added| {
            SMALL.admit(overfull, UsageChange { entries_added: 0, bytes_removed: 6, bytes_added })
        };
        assert!(replace(5).is_ok());
        assert!(replace(7).is_err());
        assert!(
            SMALL
                .admit(overfull, UsageChange { entries_added: 1, ..UsageChange::default() })
                .is_err()
        );
    }

    #[test]
    fn growth_is_compared_with_where_the_store_began() {
        let quota = Quota { counts: QuotaCounts::Growth, ..SMALL };
        let start = quota.counts.start();
        let replace = |usage, bytes_removed, bytes_added| {
            quota.admit(usage, UsageChange { entries_added: 0, bytes_removed, bytes_added })
        };
        let smaller = replace(start, 1_000_000, 0).unwrap();
        assert!(replace(smaller, 0, 1_000_010).is_ok());
        assert_eq!(replace(smaller, 0, 1_000_011), Err(QuotaExceeded::BytesGrowth { limit: 10 }));
        let added = |entries_added| {
            quota.admit(start, UsageChange { entries_added, ..UsageChange::default() })
        };
        assert!(added(2).is_ok());
        assert_eq!(added(3), Err(QuotaExceeded::EntriesGrowth { limit: 2 }));
    }

    #[test]
    fn a_quota_reads_as_kebab_case_and_refuses_unknown_keys() {
        let quota: Quota = serde_json::from_str(r#"{"file-bytes-max": 5}"#).unwrap();
        assert_eq!(quota, Quota { file_bytes_max: 5, ..Quota::default() });
        assert!(serde_json::from_str::<Quota>(r#"{"file_bytes_max": 5}"#).is_err());
    }
}
