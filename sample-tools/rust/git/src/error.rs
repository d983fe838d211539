//! Errors of reading a repository.

use std::io;

use cofferdam_sdk::ToolFailure;

use crate::id::Id;

/// Error of reading an object.
#[derive(Debug)]
pub(crate) enum Error {
    /// The object is in no pack and no file.
    Missing(Id),
    /// A file of the repository breaks the format.
    Damaged(&'static str),
    /// The object is larger than a call may hold.
    TooLarge {
        /// Size of the object.
        bytes: u64,
    },
    /// The object has another type.
    WrongKind { id: Id, expected: &'static str, found: &'static str },
    /// A file cannot be read.
    Io(io::Error),
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Error> for ToolFailure {
    fn from(error: Error) -> Self {
        match error {
            Error::Missing(id) => {
                Self::new(format!("the object {id} is missing in the repository")).suggestion(
                    "shallow and partial clones lack objects, and a repository may borrow them \
                     from one that is not mounted (objects/info/alternates): mount a full clone",
                )
            }
            Error::Damaged(what) => Self::new(format!("the repository is damaged: {what}"))
                .suggestion("ask for `git fsck` to be run on it"),
            Error::TooLarge { bytes } => {
                Self::new(format!("an object of {bytes} bytes is too large to read"))
                    .suggestion("name paths that exclude large files")
            }
            Error::WrongKind { id, expected, found } => {
                Self::new(format!("expected a {expected}, but {} is a {found}", id.short()))
            }
            Error::Io(error) => Self::new(format!("the repository cannot be read: {error}")),
        }
        .permanent()
    }
}
