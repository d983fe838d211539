//! What each tool does, and what it says.

use cofferdam_tool::{FileChange, FileChangeKind};
use serde_json::{Value, json};

use super::edit::{self, Edited};
use super::lines::{self, LineRange};
use super::requests::{
    CreateDirectory, ListFiles, OneFile, ReadLines, Replace, ReplaceLines, Request, SaveFile, SearchFiles,
};
use super::{Answer, Work};
use crate::path::quoted;
use crate::{
    FileError, Glob, MadeDirectory, Scope, SearchQuery, SearchResults, StorePath, Truncation, WriteMode,
    search,
};

/// Why a tool did nothing.
pub(super) enum Refusal {
    /// `File '<f>' not found.`
    NotFound,
    /// What follows the words about what could not be done (`FILE-43`).
    Reason(String),
}

impl Refusal {
    pub(super) fn reason(reason: impl ToString) -> Self {
        Self::Reason(reason.to_string())
    }
}

impl From<FileError> for Refusal {
    fn from(error: FileError) -> Self {
        match error {
            FileError::NotFound => Self::NotFound,
            error => Self::reason(error),
        }
    }
}

type Answered = Result<Answer, Refusal>;

impl Work<'_> {
    /// Carries out one request.
    pub(super) async fn run(&self, request: Request) -> Answer {
        match request {
            Request::SaveFile(request) => {
                told(self.save(&request).await, "save file", Some(&request.file_name))
            }
            Request::ReadFile(request) => {
                told(self.read(&request).await, "read file", Some(&request.file_name))
            }
            Request::DeleteFile(request) => {
                told(self.delete(&request).await, "delete file", Some(&request.file_name))
            }
            Request::ListFiles(request) => {
                let directory = request.directory.as_deref().unwrap_or_default();
                told(self.list(&request).await, "list directory", Some(directory))
            }
            Request::SearchFiles(request) => told(self.search(&request).await, "search files", None),
            Request::ReadLines(request) => {
                told(self.read_lines(&request).await, "read lines from file", Some(&request.file_name))
            }
            Request::Replace(request) => {
                told(self.replace(&request).await, "replace in file", Some(&request.file_name))
            }
            Request::ReplaceLines(request) => {
                told(self.replace_lines(&request).await, "edit file", Some(&request.file_name))
            }
            Request::CreateDirectory(request) => {
                told(self.create_directory(&request).await, "create directory", Some(&request.directory))
            }
        }
    }

    /// `FILE-34`
    async fn save(&self, request: &SaveFile) -> Answered {
        let path = file(&request.file_name)?;
        let shown = quoted(&request.file_name);
        let (mode, what) = if request.overwrite {
            // For the record alone: what happens to a file that comes or goes meanwhile is up to the write.
            let is_there = self.store.stat(&path).await.is_ok();
            (WriteMode::Replace, if is_there { FileChangeKind::Changed } else { FileChangeKind::Created })
        } else {
            (WriteMode::Create, FileChangeKind::Created)
        };
        match self.store.write(&path, request.content.clone().into_bytes(), mode).await {
            Ok(()) => Ok(Answer {
                value: format!("File '{shown}' saved.").into(),
                changed: vec![self.change(&path, what, request.content.len())],
            }),
            Err(FileError::AlreadyExists) => Ok(text(format!(
                "File '{shown}' already exists. To replace it, save again with overwrite set to true."
            ))),
            // A store that loses its directory under a write is not a missing file.
            Err(error) => Err(Refusal::reason(error)),
        }
    }

    /// `FILE-35`
    async fn read(&self, request: &OneFile) -> Answered {
        let path = file(&request.file_name)?;
        match self.store.read(&path, self.options.read_bytes_max).await {
            Ok(content) => Ok(text(utf8(content, &path)?)),
            Err(error @ FileError::TooLarge { .. }) => {
                Err(Refusal::Reason(format!("{error} Use file_access_read_lines.")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// `FILE-36`
    async fn delete(&self, request: &OneFile) -> Answered {
        let path = file(&request.file_name)?;
        self.store.delete(&path).await?;
        Ok(Answer {
            value: format!("File '{}' deleted.", quoted(&request.file_name)).into(),
            changed: vec![self.change(&path, FileChangeKind::Deleted, 0)],
        })
    }

    /// `FILE-37`
    async fn list(&self, request: &ListFiles) -> Answered {
        let directory = directory(request.directory.as_deref())?;
        let glob = Glob::new(request.glob_pattern.as_deref()).map_err(Refusal::reason)?;
        let listing = self.store.list(&directory, scope(request.recursive)).await.map_err(Refusal::reason)?;
        let mut entries = listing.entries.iter().filter(|entry| glob.matches(&entry.name));
        let mut shown: Vec<Value> =
            entries.by_ref().take(self.options.entries_max).map(|entry| json!(entry)).collect();
        if entries.next().is_some() || listing.is_truncated {
            shown.push(truncated(Truncation::Entries));
        }
        Ok(Answer { value: shown.into(), changed: Vec::new() })
    }

    /// `FILE-38`
    async fn search(&self, request: &SearchFiles) -> Answered {
        let directory = directory(request.directory.as_deref())?;
        let query = SearchQuery::new(&request.regex_pattern, request.case_sensitive)
            .and_then(|query| query.with_glob(request.glob_pattern.as_deref()))
            .map_err(Refusal::reason)?
            .with_scope(scope(request.recursive))
            .with_caps(self.options.search);
        let SearchResults { files, truncated: left_out, .. } =
            search(self.store, &directory, &query).await.map_err(Refusal::reason)?;
        let mut shown: Vec<Value> = files.iter().map(|file| json!(file)).collect();
        shown.extend(left_out.map(truncated));
        Ok(Answer { value: shown.into(), changed: Vec::new() })
    }

    /// `FILE-39`
    async fn read_lines(&self, request: &ReadLines) -> Answered {
        let path = file(&request.file_name)?;
        let range = LineRange::new(&request.start_line, request.end_line.as_ref())?;
        lines::read(&**self.store, &path, range, self.options.read_bytes_max).await.map(text)
    }

    /// `FILE-40`
    async fn replace(&self, request: &Replace) -> Answered {
        let path = file(&request.file_name)?;
        if request.old_string.is_empty() {
            return Err(Refusal::reason("old_string must not be empty."));
        }
        let edited = edit::edit(self.store, &path, |content| {
            edit::replaced(content, &request.old_string, &request.new_string, request.replace_all)
        });
        let Edited { count, bytes } = edited.await?;
        Ok(Answer {
            value: format!("Replaced {count} occurrence(s) in '{}'.", quoted(&request.file_name)).into(),
            changed: vec![self.change(&path, FileChangeKind::Changed, bytes)],
        })
    }

    /// `FILE-41`
    async fn replace_lines(&self, request: &ReplaceLines) -> Answered {
        let path = file(&request.file_name)?;
        if request.edits.is_empty() {
            return Err(Refusal::reason("At least one line edit must be provided."));
        }
        let edited = edit::edit(self.store, &path, |content| edit::lines_replaced(content, &request.edits));
        let Edited { count, bytes } = edited.await?;
        Ok(Answer {
            value: format!("Replaced {count} line(s) in '{}'.", quoted(&request.file_name)).into(),
            changed: vec![self.change(&path, FileChangeKind::Changed, bytes)],
        })
    }

    /// `FILE-42`
    async fn create_directory(&self, request: &CreateDirectory) -> Answered {
        let path = directory(Some(&request.directory))?;
        let shown = quoted(&request.directory);
        match self.store.create_directory(&path).await.map_err(Refusal::reason)? {
            MadeDirectory::Existed => Ok(text(format!("Directory '{shown}' already exists."))),
            MadeDirectory::Created => {
                let mut change = self.change(&path, FileChangeKind::Created, 0);
                change.path.push('/');
                Ok(Answer { value: format!("Directory '{shown}' created.").into(), changed: vec![change] })
            }
        }
    }
}

impl Work<'_> {
    fn change(&self, path: &StorePath, what: FileChangeKind, bytes: usize) -> FileChange {
        FileChange {
            mount: self.name.to_owned(),
            path: path.to_string(),
            what,
            bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
            diff: None,
        }
    }
}

/// The answer, or why there is none (`FILE-43`).
fn told(answered: Answered, what: &str, argument: Option<&str>) -> Answer {
    let quotes = argument.map(|argument| format!(" '{}'", quoted(argument))).unwrap_or_default();
    match answered {
        Ok(answer) => answer,
        Err(Refusal::NotFound) => text(format!("File{quotes} not found.")),
        Err(Refusal::Reason(reason)) => text(format!("Could not {what}{quotes}: {reason}")),
    }
}

fn text(text: String) -> Answer {
    Answer { value: text.into(), changed: Vec::new() }
}

/// What ends an answer that leaves something out (`FILE-33`).
fn truncated(reason: Truncation) -> Value {
    json!({ "truncated": true, "reason": reason })
}

fn file(given: &str) -> Result<StorePath, Refusal> {
    StorePath::file(given).map_err(Refusal::reason)
}

fn directory(given: Option<&str>) -> Result<StorePath, Refusal> {
    StorePath::directory(given.unwrap_or_default()).map_err(Refusal::reason)
}

fn scope(is_recursive: bool) -> Scope {
    if is_recursive { Scope::Recursive } else { Scope::Children }
}

/// Content as text (`FILE-15`).
pub(super) fn utf8(content: Vec<u8>, path: &StorePath) -> Result<String, Refusal> {
    String::from_utf8(content).map_err(|_| Refusal::reason(FileError::not_text(path)))
}
