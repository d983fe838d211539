//! Errors of the cache, and reasons to reject an entry.

use std::io;
use std::path::{Path, PathBuf};

/// Error of opening or writing a cache. The messages name paths of the host: they are for the
/// operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The directory or its key could be read or changed by others, or is not what it should be.
    #[error("the cache {part} `{}` is {reason}; {remedy}", path.display())]
    Refused {
        /// `directory` or `key`.
        part: &'static str,
        /// The path.
        path: PathBuf,
        /// The problem.
        reason: Rejection,
        /// A command or action that solves it.
        remedy: String,
    },
    /// The system failed.
    #[error("cannot {action} the cache directory `{}`", path.display())]
    Io {
        /// The operation, as a verb.
        action: &'static str,
        /// The cache directory.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// There is no randomness for a key.
    #[error("cannot make a key for the cache: the system has no random bytes")]
    NoRandomness,
    /// Contents that are longer than an entry may be.
    #[error("an entry of {length} bytes is too large for the cache; the limit is {limit}")]
    EntryTooLarge {
        /// Length of the contents.
        length: u64,
        /// The longest contents of their kind.
        limit: u64,
    },
    /// The system has no owners and permissions of files that could protect a cache.
    #[error(
        "a cache of compiled code needs the file permissions of Unix; run without one on this \
         system"
    )]
    Unsupported,
}

/// Reason to reject a file. Reads on after `the entry is …`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Rejection {
    /// A symbolic link.
    #[error("a link")]
    Link,
    /// A directory, a pipe, a device or a socket.
    #[error("not of the right file type")]
    FileType,
    /// The file belongs to another user.
    #[error("owned by user {owner}")]
    Owner {
        /// The user id of the owner.
        owner: u32,
    },
    /// Group or others have permissions.
    #[error("open to others (mode {mode:o})")]
    Mode {
        /// The permission bits.
        mode: u32,
    },
    /// Longer than it may be.
    #[error("too large ({length} bytes)")]
    TooLarge {
        /// Length of the file.
        length: u64,
    },
    /// Shorter than it must be.
    #[error("cut short ({length} bytes)")]
    CutShort {
        /// Length of the file.
        length: u64,
    },
    /// Written by another version, or not by a cache at all.
    #[error("of an unknown format")]
    Format,
    /// The MAC does not match: changed, moved from another entry, or written with another key.
    #[error("not authentic: its code does not match its contents, name and key")]
    NotAuthentic,
    /// The system cannot read it.
    #[error("unreadable ({0})")]
    Unreadable(io::ErrorKind),
}

impl CacheError {
    pub(super) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), source }
    }

    /// Refuses the cache directory itself.
    #[cfg(unix)]
    pub(super) fn directory(path: &Path, reason: Rejection) -> Self {
        let remedy = match reason {
            Rejection::Mode { .. } => format!("run `chmod 700 '{}'`", path.display()),
            Rejection::Link => "name the directory that it points to".to_owned(),
            _ => "name a directory of your own".to_owned(),
        };
        Self::Refused { part: "directory", path: path.to_owned(), reason, remedy }
    }

    /// Refuses the key file.
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
