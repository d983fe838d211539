//! Errors of the log.

use std::io;
use std::path::PathBuf;

use cofferdam_tool::recording::InvalidRecording;

/// Error returned when a log cannot be opened, written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The directory does not exist or cannot be opened.
    #[error("cannot open the log directory `{}`: {error}", .directory.display())]
    Directory {
        /// Directory of the log.
        directory: PathBuf,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
    /// Other users may read or change the directory.
    #[error(
        "the log directory `{}` has mode {mode:o}, so other users can access it; run `chmod 700 {}`",
        .directory.display(), .directory.display()
    )]
    OpenToOthers {
        /// Directory of the log.
        directory: PathBuf,
        /// Permission bits that it has.
        mode: u32,
    },
    /// The directory belongs to another user.
    #[error(
        "the log directory `{}` belongs to user {owner}, and this process runs as user {user}; \
         choose another directory",
        .directory.display()
    )]
    OtherOwner {
        /// Directory of the log.
        directory: PathBuf,
        /// User that owns the directory.
        owner: u32,
        /// User that the process runs as.
        user: u32,
    },
    /// The key of the payload digests is unusable.
    #[error("the file `key` of the log has {bytes} bytes instead of 32; move the log away")]
    Key {
        /// Length of the file.
        bytes: usize,
    },
    /// The system has no random bytes.
    #[error("cannot get random bytes from the system: {0}")]
    Random(String),
    /// A pattern of the redaction is invalid.
    #[error("cannot compile the patterns of redaction: {0}")]
    Pattern(String),
    /// A file of the log cannot be read or written.
    #[error("cannot access `{name}` of the log: {error}")]
    File {
        /// Name of the file in the directory.
        name: String,
        /// Error of the system.
        #[source]
        error: io::Error,
    },
    /// The writer's thread cannot be started.
    #[error("cannot start the thread that writes the log: {0}")]
    Thread(#[source] io::Error),
    /// The writer's thread has panicked.
    #[error("the thread that writes the log has panicked; nothing is recorded until a restart")]
    Panic,
    /// An option has a value that it cannot have.
    #[error("`{option}` is {found}, but must be at least {min}")]
    TooSmall {
        /// Name of the option.
        option: &'static str,
        /// Value that was given.
        found: u64,
        /// Smallest value.
        min: u64,
    },
    /// A stored recording cannot be read.
    #[error("the stored payload {0}")]
    Recording(#[from] InvalidRecording),
    /// A stored exchange with a model has another version of the format.
    #[error("the stored conversation has version {found} of the format; this build reads {known}")]
    ExchangeVersion {
        /// Version of the exchange.
        found: u32,
        /// Version that can be read.
        known: u32,
    },
    /// No call has this id.
    #[error(
        "no call in the log has the id `{id}`{}; `cofferdam log` lists ids",
        .losses.iter().map(|loss| format!("; {loss}")).collect::<String>()
    )]
    UnknownId {
        /// Id that was given.
        id: String,
        /// Sentences about damage that may keep the call from being found.
        losses: Vec<String>,
    },
    /// Several calls have ids that start like this.
    #[error("`{id}` is the start of several ids, such as `{first}` and `{second}`; add digits")]
    AmbiguousId {
        /// Start of an id that was given.
        id: String,
        /// Id of one call.
        first: String,
        /// Id of another call.
        second: String,
    },
}

impl RecordError {
    pub(crate) fn file(name: &str, error: impl Into<io::Error>) -> Self {
        Self::File { name: name.to_owned(), error: error.into() }
    }

    /// Returns whether a file does not exist, such as one that another process has pruned.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        match self {
            Self::File { error, .. } | Self::Directory { error, .. } => {
                error.kind() == io::ErrorKind::NotFound
            }
            _ => false,
        }
    }
}
