//! What may be done with files.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a plugin may do in a file store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAccess {
    /// Read and list.
    ReadOnly,
    /// Create files and directories, and nothing else: what is there can be neither seen nor
    /// changed. A call may go on with what it has created itself.
    CreateOnly,
    /// Read, list, create, change and delete.
    ReadWrite,
}

impl FileAccess {
    /// Every kind of access.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::CreateOnly, Self::ReadWrite];

    /// What both sides allow. Reading alone and creating alone have nothing in common.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::ReadWrite, narrower) | (narrower, Self::ReadWrite) => Some(narrower),
            (one, another) if one == another => Some(one),
            _ => None,
        }
    }

    /// The word for it in a configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::CreateOnly => "create-only",
            Self::ReadWrite => "read-write",
        }
    }

    /// What it allows, as a verb.
    #[must_use]
    pub fn in_plain_words(self) -> &'static str {
        match self {
            Self::ReadOnly => "read",
            Self::CreateOnly => "create new files in",
            Self::ReadWrite => "read and write",
        }
    }
}

impl fmt::Display for FileAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::FileAccess::{self, CreateOnly, ReadOnly, ReadWrite};

    /// Access as the set of what it allows: reading, creating, changing.
    fn allows(access: FileAccess) -> [bool; 3] {
        match access {
            ReadOnly => [true, false, false],
            CreateOnly => [false, true, false],
            ReadWrite => [true, true, true],
        }
    }

    #[test]
    fn an_intersection_allows_what_both_allow() {
        for a in [ReadOnly, CreateOnly, ReadWrite] {
            for b in [ReadOnly, CreateOnly, ReadWrite] {
                let both = [0, 1, 2].map(|i| allows(a)[i] && allows(b)[i]);
                let found = a.intersect(b).map_or([false; 3], allows);
                assert_eq!(found, both, "{a} and {b}");
            }
        }
    }
}
