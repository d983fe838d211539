//! Errors of file store operations.

use std::{fmt, io};

use crate::path::quoted;
use crate::{PathError, QuotaExceeded, StorePath};

/// Error returned by an operation of a file store. It displays as the reason that
/// `docs/rules/files.md` prescribes, for the model to read. That message never contains a path of
/// the host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The string is not a path (`FILE-2` to `FILE-6`).
    #[error(transparent)]
    Path(#[from] PathError),
    /// Nothing exists at this path that the operation applies to (`FILE-15`, `FILE-16`).
    #[error("not found")]
    NotFound,
    /// A segment of the path is a link (`FILE-18`).
    #[error("Invalid path: the resolved path contains a symbolic link or reparse point.")]
    Link,
    /// The file to create already exists (`FILE-13`).
    #[error("this file already exists.")]
    AlreadyExists,
    /// The path of the file to write is a directory (`FILE-11`).
    #[error("this path is already a directory. Choose a different file name.")]
    IsDirectory,
    /// The path of the directory to create is a file (`FILE-42`).
    #[error("this path is already a file. Choose a different name.")]
    IsFile,
    /// A parent of the path to create is a file (`FILE-11`).
    #[error("a parent path is already a file. Choose a different path.")]
    ParentIsFile,
    /// The path of the file to write is a pipe, a socket or a device of the host.
    #[error("this path is not a regular file. Choose a different file name.")]
    Special,
    /// The path is a file, but the operation needs a directory.
    #[error("this path is a file and not a directory.")]
    NotDirectory,
    /// The directory to remove or replace is not empty.
    #[error("this directory is not empty.")]
    NotEmpty,
    /// The root directory cannot be moved, replaced or removed.
    #[error("the root directory cannot be moved, replaced or removed.")]
    Root,
    /// A directory cannot be moved to a path inside of itself.
    #[error("a directory cannot be moved into itself.")]
    IntoItself,
    /// The operation exceeds a quota of the store (`FILE-19`).
    #[error(transparent)]
    Quota(#[from] QuotaExceeded),
    /// The store is read-only (`FILE-20`).
    #[error("the store is read-only.")]
    ReadOnly,
    /// The path is in a read-only part of the store.
    #[error("this path is read-only.")]
    ReadOnlyPath,
    /// The path is hidden, and nothing can be created there.
    #[error("this path is not available.")]
    HiddenPath,
    /// The store accepts new files and directories, but existing ones cannot be read or changed.
    #[error("the store only takes new files; what is there can be neither read nor changed.")]
    CreateOnly,
    /// Another call has committed a change to a path that this call changed (`FILE-23`).
    #[error("another call has changed this path.")]
    Conflict {
        /// Path of the conflict, as it was when the call began.
        path: StorePath,
    },
    /// Another program was changing the directory of the store for as long as a change may wait for
    /// the lock.
    #[error("the file store is being changed by another program.")]
    Busy,
    /// A commit of several changes would have to move something into or out of a file system that
    /// is mounted inside the store, which cannot be done in one step.
    #[error("several changes cannot be made together across a mount point inside the file store.")]
    MountPoint,
    /// The changes that a call holds in memory would exceed their limit.
    #[error("the changes of one call may take {bytes_max} bytes of memory at most.")]
    Memory {
        /// The limit.
        bytes_max: u64,
    },
    /// The changes that a call keeps on disk, because they are too large for memory, would exceed
    /// their limit.
    #[error("the changes of one call may take {bytes_max} bytes of disk at most.")]
    Disk {
        /// The limit.
        bytes_max: u64,
    },
    /// The file is larger than the caller's limit. Nothing was read.
    #[error("it is {bytes} bytes long; one read returns at most {bytes_max} bytes.")]
    TooLarge {
        /// Length of the file.
        bytes: u64,
        /// Limit given by the caller.
        bytes_max: u64,
    },
    /// The content is not UTF-8 (`FILE-15`).
    #[error("File '{name}' is not UTF-8 text and cannot be read.")]
    NotText {
        /// Last segment of the path, quoted for messages.
        name: String,
    },
    /// The system below the store failed.
    #[error(transparent)]
    Host(#[from] HostFailure),
}

/// Failure of the system below a store. It displays its kind, for the model; `source` has the
/// details, for logs.
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

/// Failure of the service behind a bucket. It displays as a message for the operator, with the
/// bucket, the endpoint and what to check, and without credentials. Its `source` holds the
/// service's own message.
#[derive(Debug, thiserror::Error)]
#[error("the bucket `{bucket}` at {endpoint}: {}; check {}", problem.in_words(), problem.to_check())]
#[non_exhaustive]
pub struct ServiceFailure {
    /// Address of the bucket, without the prefix.
    pub bucket: String,
    /// Host that requests go to, with its port unless that is the default.
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
    /// The bucket does not exist.
    NoBucket,
    /// The credentials are missing or not accepted, or do not permit the request.
    Denied,
    /// The bucket is in another region, or at another endpoint.
    Moved,
    /// No connection could be established.
    Unreachable,
    /// The service did not answer in time.
    Timeout,
    /// The service refused the request for another reason.
    Refused,
    /// The bucket has a key that is not a path, such as `a//b`, and cannot be listed.
    InvalidKey,
    /// The service failed, or a network device between host and service did.
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
            Self::InvalidKey => {
                "its bucket has a name that is not a path; the operator has to rename it"
            }
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
            Self::InvalidKey => "it has a key that is not a path, so that it cannot be listed",
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
            Self::InvalidKey => "keys with empty segments, `.` or `..`, and rename or delete them",
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
    /// Returns the failure of the service behind a bucket, if that is the cause.
    #[must_use]
    pub fn service(&self) -> Option<&ServiceFailure> {
        self.source.get_ref()?.downcast_ref()
    }

    /// Returns the kind of the system error.
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

    /// Returns the error for content of `path` that is not UTF-8 (`FILE-15`).
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
