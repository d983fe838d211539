//! Errors of files of cases.

use std::fmt;

use super::{CASES_MAX, FILE_BYTES_MAX};

/// Error of a file of cases.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CasesError {
    /// The file cannot be read.
    #[error("{name} cannot be read: {source}")]
    Unreadable {
        /// Name of the file.
        name: String,
        /// Cause; `InvalidData` for bytes that are not UTF-8.
        source: std::io::Error,
    },
    /// The file is too large.
    #[error("{name}: expected at most {FILE_BYTES_MAX} bytes, found more; split the file")]
    TooLarge {
        /// Name of the file.
        name: String,
    },
    /// The file has too many cases.
    #[error("{name}: expected at most {CASES_MAX} cases, found more; split the file")]
    TooMany {
        /// Name of the file.
        name: String,
    },
    /// The file has no case.
    #[error("{name}: expected a case per line, found none; add {{\"name\": …, \"prompt\": …}}")]
    Empty {
        /// Name of the file.
        name: String,
    },
    /// Lines that are not a case, in the order of the file.
    #[error("{}", joined(.0))]
    Lines(Vec<InvalidLine>),
}

/// Line that is not a case.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {error}")]
pub struct InvalidLine {
    /// Name of the file.
    pub file: String,
    /// Number of the line, from 1.
    pub line: usize,
    /// Description of the error.
    pub error: InvalidCase,
}

/// Error of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidCase {
    /// Path of the field, such as `calls[0].min`; empty for the case as a whole.
    pub field: String,
    /// Description of the expected value.
    pub expected: String,
    /// Description of the value that was found.
    pub found: String,
}

impl fmt::Display for InvalidCase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.field.is_empty() {
            write!(f, "`{}`: ", self.field)?;
        }
        write!(f, "expected {}, found {}", self.expected, self.found)
    }
}

impl std::error::Error for InvalidCase {}

fn joined(lines: &[InvalidLine]) -> String {
    let lines: Vec<_> = lines.iter().map(ToString::to_string).collect();
    lines.join("\n")
}
