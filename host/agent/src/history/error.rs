//! Errors of history files.

/// Error when reading or writing a history (`SES-9`, `SES-13`). Messages name files without their
/// directories, and do not quote their content.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A line is not JSON, or not a message.
    #[error("Failed to deserialize history line {line} from '{file}'.")]
    Line {
        /// Line number, counted from 1.
        line: usize,
        /// Name of the file.
        file: String,
    },
    /// A line is JSON but not an object.
    #[error("History record {line} in '{file}' did not deserialize to a mapping.")]
    NotMapping {
        /// Line number, counted from 1.
        line: usize,
        /// Name of the file.
        file: String,
    },
    /// The file is not UTF-8.
    #[error("History file '{file}' is not valid UTF-8.")]
    NotUtf8 {
        /// Name of the file.
        file: String,
    },
    /// A link, a directory, a pipe or a device has the name of the file.
    #[error("History file '{file}' is not a regular file.")]
    NotRegular {
        /// Name of the file.
        file: String,
    },
    /// The file is too large, or would be after appending.
    #[error("History file '{file}' is larger than {bytes_max} bytes.")]
    FileTooLarge {
        /// Name of the file.
        file: String,
        /// Maximum size:
        /// [`FileHistoryOptions::file_bytes_max`](super::FileHistoryOptions::file_bytes_max).
        bytes_max: u64,
    },
    /// A line is too long.
    #[error("History record {line} in '{file}' is larger than {bytes_max} bytes.")]
    RecordTooLarge {
        /// Line number, counted from 1; when appending, the number of the new record.
        line: usize,
        /// Name of the file.
        file: String,
        /// Maximum length:
        /// [`FileHistoryOptions::record_bytes_max`](super::FileHistoryOptions::record_bytes_max).
        bytes_max: usize,
    },
    /// The serialized message could not be read back: it is nested too deeply, or has a field
    /// twice.
    #[error("message {number} cannot be stored in '{file}': its record could not be read again")]
    Unwritable {
        /// Number of the message, counted from 1 among those to append.
        number: usize,
        /// Name of the file.
        file: String,
    },
    /// Another process held the lock of the file for too long.
    #[error("history file '{file}' is in use by another process")]
    Busy {
        /// Name of the file.
        file: String,
    },
    /// The system refused to read or write the file.
    #[error("history file '{file}' cannot be used: {}", .error.kind())]
    Io {
        /// Name of the file.
        file: String,
        /// Error of the system.
        #[source]
        error: std::io::Error,
    },
    /// The history's part of the session's state contains something else.
    #[error("the state of the history does not hold messages")]
    State,
}
