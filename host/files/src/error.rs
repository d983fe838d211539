//! Why an operation of a file store failed.

use std::{fmt, io};

use crate::path::quoted;
use crate::{PathError, QuotaExceeded, StorePath};

/// Why an operation failed. It displays as the reason that the contract prescribes, for the model
/// to read; that text never holds a path of the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// A text is not a path (`FILE-2` to `FILE-6`).
    #[error(transparent)]
    Path(#[from] PathError),
    /// There is nothing at this path that the operation works on (`FILE-15`, `FILE-16`).
    #[error("not found")]
    NotFound,
    /// A segment of the path is a link (`FILE-18`).
    #[error("Invalid path: the resolved path contains a symbolic link or reparse point.")]
    Link,
    /// A file was to be created where one is (`FILE-13`).
    #[error("this file already exists.")]
    AlreadyExists,
    /// A file was to be written where a directory is (`FILE-11`).
    #[error("this path is already a directory. Choose a different file name.")]
    IsDirectory,
    /// A directory was to be created where a file is (`FILE-42`).
    #[error("this path is already a file. Choose a different name.")]
    IsFile,
    /// Something was to be created below a file (`FILE-11`).
    #[error("a parent path is already a file. Choose a different path.")]
    ParentIsFile,
    /// A file was to be written where the host has a pipe, a socket or a device.
    #[error("this path is not a regular file. Choose a different file name.")]
    Special,
    /// A directory was expected where a file is.
    #[error("this path is a file and not a directory.")]
    NotDirectory,
    /// A directory was to be removed or replaced that is not empty.
    #[error("this directory is not empty.")]
    NotEmpty,
    /// The root directory was to be moved, replaced or removed.
    #[error("the root directory cannot be moved, replaced or removed.")]
    Root,
    /// A directory was to be moved to a place inside of itself.
    #[error("a directory cannot be moved into itself.")]
    IntoItself,
    /// A quota of the store (`FILE-19`).
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    /// The store takes no changes (`FILE-20`).
    #[error("the store is read-only.")]
    ReadOnly,
    /// The path is in a part of the store that takes no changes.
    #[error("this path is read-only.")]
    ReadOnlyPath,
    /// The path is one that is hidden, where nothing can be created.
    #[error("this path is not available.")]
    HiddenPath,
    /// The store takes new files and directories and gives nothing out.
    #[error("the store only takes new files; what is there can be neither read nor changed.")]
    CreateOnly,
    /// Another call has committed a change to a path that this call changed (`FILE-23`).
    #[error("another call has changed this path.")]
    Conflict {
        /// The path, as it was when the call began.
        path: StorePath,
    },
    /// Another program was changing the directory of the store for all the time that a change waits
    /// for its turn.
    #[error("the file store is being changed by another program.")]
    Busy,
    /// A commit of several changes would have to move something into or out of a file system that
    /// is mounted inside the store, which cannot be done in one step.
    #[error("several changes cannot be made together across a mount point inside the file store.")]
    MountPoint,
    /// The changes that a call holds in memory would take more than they may.
    #[error("the changes of one call may take {bytes_max} bytes of memory at most.")]
    Memory {
        /// The limit.
        bytes_max: u64,
    },
    /// The changes that a call keeps on disk, because they are too large for memory, would take
    /// more than they may.
    #[error("the changes of one call may take {bytes_max} bytes of disk at most.")]
    Disk {
        /// The limit.
        bytes_max: u64,
    },
    /// The file is larger than the reader asked for. Nothing was read.
    #[error("it is {bytes} bytes long; one read returns at most {bytes_max} bytes.")]
    TooLarge {
        /// How large the file is.
        bytes: u64,
        /// How much the reader asked for.
        bytes_max: u64,
    },
    /// The content is not UTF-8 (`FILE-15`).
    #[error("File '{name}' is not UTF-8 text and cannot be read.")]
    NotText {
        /// The last segment of the path, as it stands in texts.
        name: String,
    },
    /// The system below the store failed.
    #[error(transparent)]
    Host(#[from] HostFailure),
}

/// A failure of the system below a store: its kind for the model, all of it as `source` for logs.
#[derive(Debug, thiserror::Error)]
pub struct HostFailure {
    #[source]
    source: io::Error,
}

impl fmt::Display for HostFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.service() {
            Some(failure) => write!(f, "the file store failed: {}.", failure.problem.for_model()),
            None => write!(f, "the file store failed: {}.", self.source.kind()),
        }
    }
}

/// A failure of the service behind a bucket. It displays as what the operator needs, with the
/// bucket, the endpoint and what to check, and without credentials. The service's own words are in
/// its `source`.
#[derive(Debug, thiserror::Error)]
#[error("the bucket `{bucket}` at {endpoint}: {}; check {}", problem.in_words(), problem.to_check())]
#[non_exhaustive]
pub struct ServiceFailure {
    /// The address of the bucket, without the prefix.
    pub bucket: String,
    /// The host that requests go to, and its port if that is not the usual one.
    pub endpoint: String,
    /// Kind of the failure.
    pub problem: ServiceProblem,
    #[source]
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// Kind of a failure of the service behind a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServiceProblem {
    /// There is no such bucket.
    NoBucket,
    /// The credentials are missing or not accepted, or do not allow the request.
    Denied,
    /// The bucket is in another region, or at another endpoint.
    Moved,
    /// No connection came about.
    Unreachable,
    /// There was no answer in time.
    Timeout,
    /// The service refused the request for another reason.
    Refused,
    /// The service failed, or something on the way to it.
    Failed,
}

impl ServiceProblem {
    /// Returns the sentence for a model.
    fn for_model(self) -> &'static str {
        match self {
            Self::NoBucket => {
                "its bucket was not found; the operator has to check the configuration"
            }
            Self::Denied => {
                "its service denied access; the operator has to check the configuration"
            }
            Self::Moved | Self::Refused => {
                "its service refused the request; the operator has to check the configuration"
            }
            Self::Unreachable => "its service cannot be reached",
            Self::Timeout => "its service did not answer in time",
            Self::Failed => "its service failed",
        }
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::NoBucket => "there is no such bucket",
            Self::Denied => "access was denied",
            Self::Moved => "the bucket is in another region or at another endpoint",
            Self::Unreachable => "no connection could be made",
            Self::Timeout => "there was no answer in time",
            Self::Refused => "the request was refused",
            Self::Failed => "the service failed",
        }
    }

    fn to_check(self) -> &'static str {
        match self {
            Self::NoBucket => "the bucket's name, the endpoint and the region",
            Self::Denied => {
                "the access key, its secret, and what they are allowed to do with this bucket"
            }
            Self::Moved => "the region and the endpoint",
            Self::Unreachable => "the endpoint and the network",
            Self::Timeout | Self::Failed => "the endpoint, and try again later",
            Self::Refused => "the endpoint, the region and the access key",
        }
    }
}

impl ServiceFailure {
    #[cfg(feature = "object")]
    pub(crate) fn new(
        bucket: &str,
        endpoint: &str,
        problem: ServiceProblem,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        let (bucket, endpoint) = (bucket.to_owned(), endpoint.to_owned());
        Self { bucket, endpoint, problem, source: source.into() }
    }
}

impl HostFailure {
    /// The failure of a service, if that is what it is.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceFailure> {
        self.source.get_ref()?.downcast_ref()
    }

    /// What kind of failure it was.
    pub(crate) fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl From<io::Error> for FileError {
    fn from(source: io::Error) -> Self {
        Self::Host(HostFailure { source })
    }
}

impl FileError {
    /// Returns the description of a service's failure for the operator. It must not reach a model.
    #[must_use]
    pub fn for_operator(&self) -> Option<String> {
        match self {
            Self::Host(failure) => failure.service().map(ToString::to_string),
            _ => None,
        }
    }

    /// The error for content of `path` that is not UTF-8 (`FILE-15`).
    #[must_use]
    pub fn not_text(path: &StorePath) -> Self {
        Self::NotText { name: quoted(path.name()) }
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn texts_are_those_of_the_contract() {
        let leaf = StorePath::file("d/a\u{9b}b").unwrap();
        let expected = [
            (
                FileError::Link,
                "Invalid path: the resolved path contains a symbolic link or reparse point.",
            ),
            (
                FileError::IsDirectory,
                "this path is already a directory. Choose a different file name.",
            ),
            (FileError::ParentIsFile, "a parent path is already a file. Choose a different path."),
            (FileError::IsFile, "this path is already a file. Choose a different name."),
            (FileError::ReadOnly, "the store is read-only."),
            (FileError::NotFound, "not found"),
            (FileError::not_text(&leaf), "File 'a\u{9b}b' is not UTF-8 text and cannot be read."),
        ];
        for (error, text) in expected {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn what_the_system_said_is_not_in_the_text() {
        let error = FileError::from(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "open /home/me/secret: denied",
        ));
        assert_eq!(error.to_string(), "the file store failed: permission denied.");
        assert!(error.source().unwrap().to_string().contains("/home/me/secret"));
    }
}
