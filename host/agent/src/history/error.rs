//! Why a history cannot be read or written.

/// Why a history cannot be read or written (`SES-9`, `SES-13`). Files are named without their
/// directories, and what stands in them is not repeated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HistoryError {
    /// A line is no JSON, or no message.
    #[error("Failed to deserialize history line {line} from '{file}'.")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// The file.
        file: String,
    },
    /// A line is JSON and no object.
    #[error("History record {line} in '{file}' did not deserialize to a mapping.")]
    NotMapping {
        /// The line, counted from 1.
        line: usize,
        /// The file.
        file: String,
    },
    /// The file is not UTF-8.
    #[error("History file '{file}' is not valid UTF-8.")]
    NotUtf8 {
        /// The file.
        file: String,
    },
    /// There is a link, a directory, a pipe or a device in the place of the file.
    #[error("History file '{file}' is not a regular file.")]
    NotRegular {
        /// The file.
        file: String,
    },
    /// The file is larger than it may be, or would be after appending.
    #[error("History file '{file}' is larger than {bytes_max} bytes.")]
    FileTooLarge {
        /// The file.
        file: String,
        /// The limit:
        /// [`FileHistoryOptions::file_bytes_max`](crate::history::FileHistoryOptions::file_bytes_max).
        bytes_max: u64,
    },
    /// A line is longer than it may be.
    #[error("History record {line} in '{file}' is larger than {bytes_max} bytes.")]
    RecordTooLarge {
        /// The line, counted from 1; of records that are to be written, the number among them.
        line: usize,
        /// The file.
        file: String,
        /// The limit:
        /// [`FileHistoryOptions::record_bytes_max`](crate::history::FileHistoryOptions::record_bytes_max).
        bytes_max: usize,
    },
    /// A message cannot be written in a form that could be read again: it is nested too deeply, or
    /// has a field twice.
    #[error("message {number} cannot be stored in '{file}': its record could not be read again")]
    Unwritable {
        /// The message, counted from 1 among those that were to be appended.
        number: usize,
        /// The file.
        file: String,
    },
    /// Another process has kept the file locked for too long.
    #[error("history file '{file}' is in use by another process")]
    Busy {
        /// The file.
        file: String,
    },
    /// The system does not let the file be read or written.
    #[error("history file '{file}' cannot be used: {}", .error.kind())]
    Io {
        /// The file.
        file: String,
        /// What the system says.
        #[source]
        error: std::io::Error,
    },
    /// The part of a session's state that belongs to a history holds something else.
    #[error("the state of the history does not hold messages")]
    State,
}
