//! Access to file stores.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Access that a plugin has to a file store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileAccess {
    /// Read files and list directories.
    ReadOnly,
    /// Create files and directories, without reading or changing existing ones. A call may continue
    /// to use what it has created itself.
    CreateOnly,
    /// Read, list, create, change and delete.
    ReadWrite,
}

impl FileAccess {
    /// All kinds of access.
    pub const ALL: [Self; 3] = [Self::ReadOnly, Self::CreateOnly, Self::ReadWrite];

    /// Returns the access that both sides allow. [`ReadOnly`](Self::ReadOnly) and
    /// [`CreateOnly`](Self::CreateOnly) have nothing in common.
    #[must_use]
    pub fn intersect(self, other: Self) -> Option<Self> {
        match (self, other) {
            (Self::ReadWrite, narrower) | (narrower, Self::ReadWrite) => Some(narrower),
            (one, another) if one == another => Some(one),
            _ => None,
        }
    }

    /// Returns the name used in configurations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::CreateOnly => "create-only",
            Self::ReadWrite => "read-write",
        }
    }

    /// Describes the access as a verb phrase.
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

    /// Represents access as the set of operations it allows: reading, creating, changing.
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
