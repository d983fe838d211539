//! Arguments of the file-access tools, after decoding by the declared schema.

use serde::Deserialize;
use serde_json::{Number, Value};

use super::declarations::FileTool;

#[derive(Debug)]
pub(super) enum FileToolRequest {
    SaveFile(SaveFile),
    ReadFile(ReadFile),
    DeleteFile(OneFile),
    ListFiles(ListFiles),
    SearchFiles(SearchFiles),
    ReadLines(ReadLines),
    Replace(Replace),
    ReplaceLines(ReplaceLines),
    CreateDirectory(CreateDirectory),
}

#[derive(Debug, Deserialize)]
pub(super) struct SaveFile {
    pub(super) file_name: String,
    pub(super) content: String,
    pub(super) overwrite: bool,
    #[serde(default)]
    pub(super) append: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReadFile {
    pub(super) file_name: String,
    /// Offset in bytes.
    #[serde(default)]
    pub(super) offset: Option<LineNumber>,
}

#[derive(Debug, Deserialize)]
pub(super) struct OneFile {
    pub(super) file_name: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct ListFiles {
    #[serde(default)]
    pub(super) directory: Option<String>,
    #[serde(default)]
    pub(super) glob_pattern: Option<String>,
    /// Older name of `glob_pattern`.
    #[serde(default)]
    pub(super) file_pattern: Option<String>,
    pub(super) recursive: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct SearchFiles {
    pub(super) regex_pattern: String,
    #[serde(default)]
    pub(super) glob_pattern: Option<String>,
    /// Older name of `glob_pattern`.
    #[serde(default)]
    pub(super) file_pattern: Option<String>,
    #[serde(default)]
    pub(super) directory: Option<String>,
    pub(super) recursive: bool,
    pub(super) case_sensitive: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReadLines {
    pub(super) file_name: String,
    pub(super) start_line: LineNumber,
    #[serde(default)]
    pub(super) end_line: Option<LineNumber>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Replace {
    pub(super) file_name: String,
    pub(super) old_string: String,
    pub(super) new_string: String,
    pub(super) replace_all: bool,
}

#[derive(Debug, Deserialize)]
pub(super) struct ReplaceLines {
    pub(super) file_name: String,
    pub(super) edits: Vec<LineEdit>,
}

#[derive(Debug, Deserialize)]
pub(super) struct LineEdit {
    pub(super) line_number: LineNumber,
    pub(super) new_line: String,
    #[serde(default)]
    pub(super) expected_line: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CreateDirectory {
    pub(super) directory: String,
}

/// Any integer that a model may send. It is displayed as it was received.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub(super) struct LineNumber(Number);

impl LineNumber {
    /// Returns the number of a line, counted from 1, or `None` if it is zero or negative. A number
    /// too large for 64 bits becomes the maximum, which is beyond the end of any file.
    pub(super) fn positive(&self) -> Option<u64> {
        match self.0.as_u64() {
            Some(0) => None,
            Some(number) => Some(number),
            // The number does not fit in 64 bits.
            None => self.0.as_f64().filter(|number| *number >= 1.0).map(|_| u64::MAX),
        }
    }
}

impl LineNumber {
    /// Returns the number as an offset, counted from 0, or `None` if it cannot be one.
    pub(super) fn offset(&self) -> Option<u64> {
        self.0.as_u64()
    }
}

impl std::fmt::Display for LineNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl FileToolRequest {
    /// Returns the name of the one file that the request changes, if there is one.
    pub(super) fn changed_file(&self) -> Option<&str> {
        match self {
            Self::SaveFile(request) => Some(&request.file_name),
            Self::DeleteFile(request) => Some(&request.file_name),
            Self::Replace(request) => Some(&request.file_name),
            Self::ReplaceLines(request) => Some(&request.file_name),
            Self::ReadFile(_)
            | Self::ListFiles(_)
            | Self::SearchFiles(_)
            | Self::ReadLines(_)
            | Self::CreateDirectory(_) => None,
        }
    }
}

impl FileTool {
    pub(super) fn request(self, arguments: Value) -> serde_json::Result<FileToolRequest> {
        use serde_json::from_value as read;
        Ok(match self {
            Self::SaveFile => FileToolRequest::SaveFile(read(arguments)?),
            Self::ReadFile => FileToolRequest::ReadFile(read(arguments)?),
            Self::DeleteFile => FileToolRequest::DeleteFile(read(arguments)?),
            Self::ListFiles => FileToolRequest::ListFiles(read(arguments)?),
            Self::SearchFiles => FileToolRequest::SearchFiles(read(arguments)?),
            Self::ReadLines => FileToolRequest::ReadLines(read(arguments)?),
            Self::Replace => FileToolRequest::Replace(read(arguments)?),
            Self::ReplaceLines => FileToolRequest::ReplaceLines(read(arguments)?),
            Self::CreateDirectory => FileToolRequest::CreateDirectory(read(arguments)?),
        })
    }
}
