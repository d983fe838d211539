//! Errors of the cache, and reasons to reject an entry.

use std::io;
use std::path::{Path, PathBuf};

/// Error of opening or writing a cache. The messages contain paths of the host and are for the
/// operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Other users could read or change the directory or its key, or it has the wrong type.
    #[error("the cache {part} `{}` is {reason}; {remedy}", path.display())]
    Refused {
        /// Affected part: `directory` or `key`.
        part: &'static str,
        /// Path of that part.
        path: PathBuf,
        /// Problem with that part.
        reason: Rejection,
        /// Command or action that solves it.
        remedy: String,
    },
    /// A system call failed.
    #[error("cannot {action} the cache directory `{}`", path.display())]
    Io {
        /// Operation that failed, as a verb.
        action: &'static str,
        /// Path of the cache directory.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// There is no randomness for a key.
    #[error("cannot make a key for the cache: the system has no random bytes")]
    NoRandomness,
    /// The contents are longer than an entry may be.
    #[error("an entry of {length} bytes is too large for the cache; the limit is {limit}")]
    EntryTooLarge {
        /// Length of the contents.
        length: u64,
        /// Maximum length for contents of their kind.
        limit: u64,
    },
}

/// Reason to reject a file. The message continues `the entry is …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// A symbolic link.
    #[error("a link")]
    Link,
    /// A directory, a pipe, a device or a socket.
    #[error("not of the right file type")]
    FileType,
    /// A file of another user.
    #[error("owned by user {owner}")]
    Owner {
        /// User id of the owner.
        owner: u32,
    },
    /// A file with permissions for group or others.
    #[error("open to others (mode {mode:o})")]
    Mode {
        /// Permission bits.
        mode: u32,
    },
    /// A file of another user, on a system where users have no numbers.
    #[error("owned by another user")]
    ForeignOwner,
    /// A file whose access list names other users, or that has none.
    #[error("open to others (its access list)")]
    AccessList,
    /// A file that is longer than allowed.
    #[error("too large ({length} bytes)")]
    TooLarge {
        /// Length of the file.
        length: u64,
    },
    /// A file that is shorter than required.
    #[error("cut short ({length} bytes)")]
    CutShort {
        /// Length of the file.
        length: u64,
    },
    /// The file was written by another version, or not by a cache.
    #[error("of an unknown format")]
    Format,
    /// The MAC does not match: changed, moved from another entry, or written with another key.
    #[error("not authentic: its code does not match its contents, name and key")]
    NotAuthentic,
    /// A file that the system cannot read.
    #[error("unreadable ({0})")]
    Unreadable(io::ErrorKind),
}

impl CacheError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// Rejects the cache directory itself.
    pub(super) fn directory(path: &Path, reason: Rejection) -> Self {
        let remedy = match reason {
            Rejection::Mode { .. } => format!("run `chmod 700 '{}'`", path.display()),
            Rejection::AccessList => "name a directory that does not exist yet".to_owned(),
            Rejection::Link => "name the directory that it points to".to_owned(),
            _ => "name a directory of your own".to_owned(),
        };
        Self::Refused { part: "directory", path: path.to_owned(), reason, remedy }
    }

    /// Rejects the key file.
    pub(super) fn key(path: PathBuf, reason: Rejection) -> Self {
        let remedy = match reason {
            Rejection::Mode { .. } => {
                format!(
                    "delete it if others may have read it, else run `chmod 600 '{}'`",
                    path.display()
                )
            }
            _ => "delete it to get a new one".to_owned(),
        };
        Self::Refused { part: "key", path, reason, remedy }
    }
}
