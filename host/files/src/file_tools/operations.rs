//! Operations of the file tools, and their messages.

use cofferdam_tool::record::{FileChange, FileChangeKind};
use serde_json::{Value, json};

use super::edit::{self, EditResult};
use super::lines::{self, LineRange};
use super::requests::{
    CreateDirectory, FileToolRequest, ListFiles, OneFile, ReadFile, ReadLines, Replace,
    ReplaceLines, SaveFile, SearchFiles,
};
use super::stores::{SearchRoot, StoreAddress, View};
use super::{CallWork, ToolResult};
use crate::path::quoted;
use crate::{
    EntryKind, FileError, Glob, Listing, ListingEntry, MadeDirectory, OmittedNames, RefusedName,
    Scope, SearchQuery, SearchResults, StorePath, Truncation, WriteMode, search,
};

/// Reason why a tool changed nothing.
pub(super) enum OperationRefusal {
    /// `File '<f>' not found.`
    NotFound,
    /// Message after the words that name the operation (`FILE-43`).
    Reason(String),
}

impl OperationRefusal {
    pub(super) fn reason(reason: impl ToString) -> Self {
        Self::Reason(reason.to_string())
    }
}

impl From<FileError> for OperationRefusal {
    fn from(error: FileError) -> Self {
        match error {
            FileError::NotFound => Self::NotFound,
            error => Self::reason(error),
        }
    }
}

/// Maximum number of names that an answer lists of the entries that it leaves out.
const NOT_SHOWN_LISTED_MAX: usize = 5;
/// Maximum length of such a name, in characters.
const NOT_SHOWN_CHARS_MAX: usize = 80;

type ToolAnswer = Result<ToolResult, OperationRefusal>;

impl CallWork<'_> {
    /// Runs one request.
    pub(super) async fn run(&self, request: FileToolRequest) -> ToolResult {
        match request {
            FileToolRequest::SaveFile(request) => {
                tool_result(self.save(&request).await, "save file", Some(&request.file_name))
            }
            FileToolRequest::ReadFile(request) => {
                tool_result(self.read(&request).await, "read file", Some(&request.file_name))
            }
            FileToolRequest::DeleteFile(request) => {
                tool_result(self.delete(&request).await, "delete file", Some(&request.file_name))
            }
            FileToolRequest::ListFiles(request) => {
                let directory = request.directory.as_deref().unwrap_or_default();
                tool_result(self.list(&request).await, "list directory", Some(directory))
            }
            FileToolRequest::SearchFiles(request) => {
                tool_result(self.search(&request).await, "search files", None)
            }
            FileToolRequest::ReadLines(request) => tool_result(
                self.read_lines(&request).await,
                "read lines from file",
                Some(&request.file_name),
            ),
            FileToolRequest::Replace(request) => tool_result(
                self.replace(&request).await,
                "replace in file",
                Some(&request.file_name),
            ),
            FileToolRequest::ReplaceLines(request) => tool_result(
                self.replace_lines(&request).await,
                "edit file",
                Some(&request.file_name),
            ),
            FileToolRequest::CreateDirectory(request) => tool_result(
                self.create_directory(&request).await,
                "create directory",
                Some(&request.directory),
            ),
        }
    }

    /// Saves a file (`FILE-34`).
    async fn save(&self, request: &SaveFile) -> ToolAnswer {
        let StoreAddress { view, path } = self.views.file(&request.file_name)?;
        let shown = quoted(&request.file_name);
        if request.append {
            return self.append(request, view, &path).await;
        }
        let (mode, what) = if request.overwrite {
            // Only for the record. If another call creates or deletes the file in between, the
            // write decides.
            let is_there = view.store.stat(&path).await.is_ok();
            (
                WriteMode::Replace,
                if is_there { FileChangeKind::Changed } else { FileChangeKind::Created },
            )
        } else {
            (WriteMode::Create, FileChangeKind::Created)
        };
        match view.store.write(&path, request.content.clone().into_bytes(), mode).await {
            Ok(()) => Ok(ToolResult {
                value: format!("File '{shown}' saved.").into(),
                changed: vec![change(view, &path, what, request.content.len())],
                failures: Vec::new(),
            }),
            Err(FileError::AlreadyExists) => Ok(text(format!(
                "File '{shown}' already exists. To replace it, save again with overwrite set to \
                 true."
            ))),
            // A store can lose its directory during a write. That must not read as a missing file.
            Err(error) => Err(OperationRefusal::reason(error)),
        }
    }

    /// Appends a string to a file, which is created if it is missing.
    async fn append(&self, request: &SaveFile, view: &View<'_>, path: &StorePath) -> ToolAnswer {
        if request.overwrite {
            return Err(OperationRefusal::reason("overwrite and append must not both be true."));
        }
        let text_added = &request.content;
        let created =
            view.store.write(path, text_added.clone().into_bytes(), WriteMode::Create).await;
        let (what, bytes) = match created {
            Ok(()) => (FileChangeKind::Created, text_added.len()),
            Err(FileError::AlreadyExists) => {
                let appended =
                    edit::edit(&view.store, path, |content| edit::appended(content, text_added));
                (FileChangeKind::Changed, appended.await?.bytes)
            }
            Err(error) => return Err(OperationRefusal::reason(error)),
        };
        Ok(ToolResult {
            value: format!(
                "Added {} bytes to '{}', which has {bytes} bytes now.",
                text_added.len(),
                quoted(&request.file_name)
            )
            .into(),
            changed: vec![change(view, path, what, bytes)],
            failures: Vec::new(),
        })
    }

    /// Reads a file (`FILE-35`).
    async fn read(&self, request: &ReadFile) -> ToolAnswer {
        let StoreAddress { view, path } = self.views.file(&request.file_name)?;
        if let Some(given) = &request.offset {
            let offset = given.offset().ok_or_else(|| {
                OperationRefusal::Reason(format!("offset must not be negative, got {given}."))
            })?;
            let part =
                lines::read_part(&*view.store, &path, offset, view.options.read_bytes_max).await?;
            return Ok(ToolResult {
                value: json!(part),
                changed: Vec::new(),
                failures: Vec::new(),
            });
        }
        match view.store.read(&path, view.options.read_bytes_max).await {
            Ok(content) => Ok(text(utf8(content, &path)?)),
            Err(error @ FileError::TooLarge { .. }) => {
                Err(OperationRefusal::Reason(format!("{error} Use file_access_read_lines.")))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Deletes a file (`FILE-36`).
    async fn delete(&self, request: &OneFile) -> ToolAnswer {
        let StoreAddress { view, path } = self.views.file(&request.file_name)?;
        view.store.delete(&path).await?;
        Ok(ToolResult {
            value: format!("File '{}' deleted.", quoted(&request.file_name)).into(),
            changed: vec![change(view, &path, FileChangeKind::Deleted, 0)],
            failures: Vec::new(),
        })
    }

    /// Lists a directory (`FILE-37`).
    async fn list(&self, request: &ListFiles) -> ToolAnswer {
        let directory = self.views.directory(request.directory.as_deref())?;
        let pattern = request.glob_pattern.as_deref().or(request.file_pattern.as_deref());
        let glob = Glob::new(pattern).map_err(OperationRefusal::reason)?;
        let scope = scope(request.recursive);
        let (listing, entries_max) = match directory {
            SearchRoot::In(StoreAddress { view, path }) => {
                let listing =
                    view.store.list(&path, scope).await.map_err(OperationRefusal::reason)?;
                (listing, view.options.entries_max)
            }
            SearchRoot::AboveAll => (
                self.list_all(scope).await?,
                self.views.options().map_or(usize::MAX, |options| options.entries_max),
            ),
        };
        let mut entries = listing.entries.iter().filter(|entry| glob.matches(&entry.name));
        let mut shown: Vec<Value> =
            entries.by_ref().take(entries_max).map(|entry| json!(entry)).collect();
        if entries.next().is_some() || listing.is_truncated {
            shown.push(truncated(Truncation::Entries));
        }
        shown.extend(omission_note(&listing.not_shown));
        Ok(ToolResult { value: shown.into(), changed: Vec::new(), failures: Vec::new() })
    }

    /// Lists the root above several stores.
    async fn list_all(&self, scope: Scope) -> Result<Listing, OperationRefusal> {
        let mut whole = Listing::default();
        for view in &self.views.0 {
            whole.entries.push(ListingEntry::new(view.name, EntryKind::Directory));
            if scope == Scope::Recursive {
                let below = view
                    .store
                    .list(&StorePath::ROOT, scope)
                    .await
                    .map_err(OperationRefusal::reason)?;
                let entries = below.entries.into_iter();
                whole.entries.extend(entries.map(|entry| {
                    ListingEntry::new(format!("{}/{}", view.name, entry.name), entry.kind)
                }));
                whole.is_truncated |= below.is_truncated;
                whole.not_shown.add_below(view.name, below.not_shown);
            }
        }
        let Listing { entries, is_truncated, not_shown, .. } = whole;
        Ok(Listing { not_shown, ..Listing::sorted(entries, is_truncated) })
    }

    /// Searches files (`FILE-38`).
    async fn search(&self, request: &SearchFiles) -> ToolAnswer {
        let directory = self.views.directory(request.directory.as_deref())?;
        let pattern = request.glob_pattern.as_deref().or(request.file_pattern.as_deref());
        let query = SearchQuery::new(&request.regex_pattern, request.case_sensitive)
            .and_then(|query| query.with_glob(pattern))
            .map_err(OperationRefusal::reason)?
            .with_scope(scope(request.recursive));
        let addresses = match directory {
            SearchRoot::In(address) => vec![address],
            // The root above several stores has no files.
            SearchRoot::AboveAll if !request.recursive => Vec::new(),
            SearchRoot::AboveAll => self
                .views
                .0
                .iter()
                .map(|view| StoreAddress { view, path: StorePath::ROOT })
                .collect(),
        };
        let (mut shown, mut left_out, mut hidden) =
            (Vec::<Value>::new(), None, OmittedNames::default());
        let mut lines = 0_u64;
        for StoreAddress { view, path } in addresses {
            let mut caps = view.options.search;
            caps.matches_max = caps.matches_max.saturating_sub(lines);
            let found = search(&view.store, &path, &query.clone().with_caps(caps)).await;
            let SearchResults { files, truncated, not_shown, .. } =
                found.map_err(OperationRefusal::reason)?;
            let prefix = self.views.prefix(view);
            for mut file in files {
                lines = lines
                    .saturating_add(u64::try_from(file.matching_lines.len()).unwrap_or(u64::MAX));
                file.file_name.insert_str(0, &prefix);
                shown.push(json!(file));
            }
            hidden.add_below(prefix.trim_end_matches('/'), not_shown);
            left_out = left_out.or(truncated);
        }
        shown.extend(left_out.map(truncated));
        shown.extend(omission_note(&hidden));
        Ok(ToolResult { value: shown.into(), changed: Vec::new(), failures: Vec::new() })
    }

    /// Reads lines of a file (`FILE-39`).
    async fn read_lines(&self, request: &ReadLines) -> ToolAnswer {
        let StoreAddress { view, path } = self.views.file(&request.file_name)?;
        let range = LineRange::new(&request.start_line, request.end_line.as_ref())?;
        lines::read(&*view.store, &path, range, view.options.read_bytes_max).await.map(text)
    }

    /// Replaces a string in a file (`FILE-40`).
    async fn replace(&self, request: &Replace) -> ToolAnswer {
        let StoreAddress { view, path } = self.views.file(&request.file_name)?;
        if request.old_string.is_empty() {
            return Err(OperationRefusal::reason("old_string must not be empty."));
        }
        let edited = edit::edit(&view.store, &path, |content| {
            edit::replaced(content, &request.old_string, &request.new_string, request.replace_all)
        });
        let EditResult { count, bytes } = edited.await?;
        Ok(ToolResult {
            value: format!("Replaced {count} occurrence(s) in '{}'.", quoted(&request.file_name))
                .into(),
            changed: vec![change(view, &path, FileChangeKind::Changed, bytes)],
            failures: Vec::new(),
        })
    }

    /// Replaces lines of a file (`FILE-41`).
    async fn replace_lines(&self, request: &ReplaceLines) -> ToolAnswer {
        let StoreAddress { view, path } = self.views.file(&request.file_name)?;
        if request.edits.is_empty() {
            return Err(OperationRefusal::reason("At least one line edit must be provided."));
        }
        let edited =
            edit::edit(&view.store, &path, |content| edit::lines_replaced(content, &request.edits));
        let EditResult { count, bytes } = edited.await?;
        Ok(ToolResult {
            value: format!("Replaced {count} line(s) in '{}'.", quoted(&request.file_name)).into(),
            changed: vec![change(view, &path, FileChangeKind::Changed, bytes)],
            failures: Vec::new(),
        })
    }

    /// Creates a directory (`FILE-42`).
    async fn create_directory(&self, request: &CreateDirectory) -> ToolAnswer {
        let shown = quoted(&request.directory);
        let SearchRoot::In(StoreAddress { view, path }) =
            self.views.directory(Some(&request.directory))?
        else {
            return Ok(text(format!("Directory '{shown}' already exists.")));
        };
        match view.store.create_directory(&path).await.map_err(OperationRefusal::reason)? {
            MadeDirectory::Existed => Ok(text(format!("Directory '{shown}' already exists."))),
            MadeDirectory::Created => {
                let mut change = change(view, &path, FileChangeKind::Created, 0);
                change.path.push('/');
                Ok(ToolResult {
                    value: format!("Directory '{shown}' created.").into(),
                    changed: vec![change],
                    failures: Vec::new(),
                })
            }
        }
    }
}

fn change(view: &View<'_>, path: &StorePath, what: FileChangeKind, bytes: usize) -> FileChange {
    FileChange {
        mount: view.name.to_owned(),
        path: path.to_string(),
        what,
        bytes: u64::try_from(bytes).unwrap_or(u64::MAX),
        diff: None,
    }
}

/// Returns the answer as a result. Turns a refusal into its message (`FILE-43`).
fn tool_result(answered: ToolAnswer, what: &str, argument: Option<&str>) -> ToolResult {
    let quotes = argument.map(|argument| format!(" '{}'", quoted(argument))).unwrap_or_default();
    match answered {
        Ok(answer) => answer,
        Err(OperationRefusal::NotFound) => text(format!("File{quotes} not found.")),
        Err(OperationRefusal::Reason(reason)) => {
            text(format!("Could not {what}{quotes}: {reason}"))
        }
    }
}

fn text(text: String) -> ToolResult {
    ToolResult { value: text.into(), changed: Vec::new(), failures: Vec::new() }
}

/// Returns the note at the end of a truncated answer (`FILE-33`).
fn truncated(reason: Truncation) -> Value {
    json!({ "truncated": true, "reason": reason })
}

/// Describes the files and directories that an answer leaves out because of their names.
fn omission_note(left_out: &OmittedNames) -> Option<Value> {
    let OmittedNames { count, names, .. } = left_out;
    if *count == 0 {
        return None;
    }
    let words = if *count == 1 { "entry is" } else { "entries are" };
    let listed = names.iter().take(NOT_SHOWN_LISTED_MAX).map(
        |RefusedName { directory, name, reason, .. }| {
            let directory = if directory.is_empty() {
                String::new()
            } else {
                format!("{}/", quoted(directory))
            };
            let name = quoted_name(name);
            format!("'{directory}{name}' ({})", reason.trim_end_matches('.'))
        },
    );
    let mut listed = listed.collect::<Vec<_>>().join(", ");
    if *count > u64::try_from(NOT_SHOWN_LISTED_MAX).unwrap_or(u64::MAX) {
        listed.push_str(", …");
    }
    Some(json!({ "not_shown": count, "reason": format!("{count} {words} not shown: {listed}.") }))
}

/// Returns a name, which is escaped already, cut to [`NOT_SHOWN_CHARS_MAX`] characters.
fn quoted_name(name: &str) -> String {
    let mut shown: String = name.chars().take(NOT_SHOWN_CHARS_MAX).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    shown
}

fn scope(is_recursive: bool) -> Scope {
    if is_recursive { Scope::Recursive } else { Scope::Children }
}

/// Converts content to a string, or returns an error if it is not UTF-8 (`FILE-15`).
pub(super) fn utf8(content: Vec<u8>, path: &StorePath) -> Result<String, OperationRefusal> {
    String::from_utf8(content).map_err(|_| OperationRefusal::reason(FileError::not_text(path)))
}
