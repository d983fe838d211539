//! Operations on memory files and their index (`LOOP-61`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use cofferdam_files::{
    Budget, EntryKind, FileError, FileStore, Glob, Overlay, Scope, SearchCaps, SearchQuery,
    StorePath, WriteMode, search,
};
use cofferdam_tool::text::is_hostile_char;
use serde_json::{Value, json};

/// File with the descriptions of the others.
const INDEX: &str = "memories.md";
/// End of the names of files in which other programs keep descriptions.
const DESCRIPTION_SUFFIX: &str = "_description.md";
/// First line of the index.
const HEADING: &str = "# Memory Index";
/// Maximum number of files in the announced index.
const INDEX_ENTRIES_MAX: usize = 50;
/// Maximum number of files.
const FILES_MAX: usize = 500;
/// Maximum length of a file, in bytes. Notes are short; longer files belong in a file store of
/// their own.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Maximum length of the index file, in bytes: enough for all descriptions.
const INDEX_BYTES_MAX: u64 = 512 * 1024;
/// Longest description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 200;
/// Maximum number of attempts of a change, if others change the files at the same time.
const TRIES_MAX: u32 = 16;
/// Limits of the results of a search.
const SEARCH_CAPS: SearchCaps = SearchCaps { matches_max: 200, line_bytes_max: 500 };

/// Memory files of one session.
pub(super) struct Files {
    store: Arc<dyn FileStore>,
}

/// Files with their descriptions.
pub(super) struct Index {
    entries: BTreeMap<String, Option<String>>,
}

/// Change of one file.
#[derive(Clone, Copy)]
enum Change<'a> {
    Write { content: &'a str, description: Option<&'a str> },
    Replace { old: &'a str, new: &'a str, replaces_all: bool },
    Delete,
}

impl Files {
    pub(super) fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store }
    }

    /// Returns the files with their descriptions.
    pub(super) async fn index(&self) -> Result<Index, FileError> {
        let descriptions = descriptions(&*self.store).await?;
        let listing = self.store.list(&StorePath::ROOT, Scope::Children).await?;
        let files = listing.entries.into_iter().filter(|entry| entry.kind == EntryKind::File);
        let files = files.filter(|entry| !is_reserved(&entry.name));
        let entries = files.map(|entry| {
            let description = descriptions.get(&entry.name).cloned();
            (entry.name, description)
        });
        Ok(Index { entries: entries.collect() })
    }

    pub(super) async fn list(&self, glob: Option<&str>) -> Result<Value, String> {
        let glob = Glob::new(glob).map_err(|error| error.to_string())?;
        let index = self.index().await.map_err(|error| error.to_string())?;
        let files = index.entries.into_iter().filter(|(name, _)| glob.matches(name));
        let files = files.map(|(name, description)| match description {
            Some(description) => json!({"file_name": name, "description": description}),
            None => json!({"file_name": name}),
        });
        Ok(files.collect())
    }

    pub(super) async fn read(&self, name: &str) -> Result<Value, String> {
        let path = path(name)?;
        Ok(self.content(&*self.store, &path).await?.into())
    }

    pub(super) async fn search(&self, pattern: &str, glob: Option<&str>) -> Result<Value, String> {
        let query = SearchQuery::new(pattern, false).and_then(|query| query.with_glob(glob));
        let query = query.map_err(|error| error.to_string())?;
        let query = query.with_scope(Scope::Children).with_caps(SEARCH_CAPS);
        let found = search(&self.store, &StorePath::ROOT, &query).await;
        let mut files = found.map_err(|error| error.to_string())?.files;
        files.retain(|file| !is_reserved(&file.file_name));
        serde_json::to_value(files).map_err(|error| error.to_string())
    }

    pub(super) async fn write(
        &self,
        name: &str,
        content: &str,
        description: Option<&str>,
    ) -> Result<Value, String> {
        let description = description.map(line).transpose()?.filter(|line| !line.is_empty());
        let description = description.as_deref();
        let path = path(name)?;
        self.change(&path, Change::Write { content, description }).await?;
        Ok(format!("File '{path}' written.").into())
    }

    pub(super) async fn replace(
        &self,
        name: &str,
        old: &str,
        new: &str,
        replaces_all: bool,
    ) -> Result<Value, String> {
        let path = path(name)?;
        self.change(&path, Change::Replace { old, new, replaces_all }).await?;
        Ok(format!("File '{path}' written.").into())
    }

    pub(super) async fn delete(&self, name: &str) -> Result<Value, String> {
        let path = path(name)?;
        self.change(&path, Change::Delete).await?;
        Ok(format!("File '{path}' deleted.").into())
    }

    /// Changes a file and the index in one step. Begins again if others have changed one of them.
    async fn change(&self, path: &StorePath, change: Change<'_>) -> Result<(), String> {
        for _ in 0..TRIES_MAX {
            let overlay = Overlay::new(Arc::clone(&self.store), &Budget::new(u64::MAX));
            self.prepare(&overlay, path, change).await?;
            match overlay.commit_changes().await {
                Ok(_) => return Ok(()),
                Err(FileError::Conflict { .. }) => {}
                Err(error) => return Err(error.to_string()),
            }
            // A store in memory never yields by itself.
            tokio::task::yield_now().await;
        }
        Err("The memory files are being changed by others; try again.".to_owned())
    }

    async fn prepare(
        &self,
        overlay: &Overlay,
        path: &StorePath,
        change: Change<'_>,
    ) -> Result<(), String> {
        let (content, description) = match change {
            Change::Delete => {
                overlay.delete(path).await.map_err(|error| shown(path, &error))?;
                return describe(overlay, path.as_str(), None).await;
            }
            Change::Write { content, description } => (content.to_owned(), description),
            Change::Replace { old, new, replaces_all } => {
                (replaced(&self.content(overlay, path).await?, old, new, replaces_all)?, None)
            }
        };
        check_bytes(content.len())?;
        if overlay.probe(path).await.map_err(|error| shown(path, &error))?.is_none() {
            check_count(overlay).await?;
        }
        let written = overlay.write(path, content.into_bytes(), WriteMode::Replace).await;
        written.map_err(|error| shown(path, &error))?;
        match description {
            Some(description) => describe(overlay, path.as_str(), Some(description)).await,
            None => Ok(()),
        }
    }

    async fn content(&self, store: &dyn FileStore, path: &StorePath) -> Result<String, String> {
        let bytes = store.read(path, FILE_BYTES_MAX).await.map_err(|error| shown(path, &error))?;
        String::from_utf8(bytes).map_err(|_| FileError::not_text(path).to_string())
    }
}

impl Index {
    /// Returns whether there are no files.
    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns the index as the model reads it, or the number of files if names and descriptions,
    /// which other sessions may have written, must be hidden.
    pub(super) fn announced(&self, hides_untrusted: bool) -> String {
        if !hides_untrusted {
            return self.described();
        }
        let files = self.entries.len();
        format!("{HEADING}\n- files: {files}; list them with file_memory_ls.")
    }

    /// Returns the index as the model reads it.
    fn described(&self) -> String {
        let mut text = HEADING.to_owned();
        for (name, description) in self.entries.iter().take(INDEX_ENTRIES_MAX) {
            // Writing to a string cannot fail.
            let _ = match description {
                Some(description) => write!(text, "\n- {name}: {description}"),
                None => write!(text, "\n- {name}"),
            };
        }
        let more = self.entries.len().saturating_sub(INDEX_ENTRIES_MAX);
        if more > 0 {
            let _ = write!(text, "\n… and {more} more; list them with file_memory_ls.");
        }
        if self.is_empty() {
            text.push_str("\n- no files");
        }
        text
    }
}

/// Returns the descriptions in the index file.
async fn descriptions(store: &dyn FileStore) -> Result<BTreeMap<String, String>, FileError> {
    let bytes = match store.read(&StorePath::file(INDEX)?, INDEX_BYTES_MAX).await {
        Ok(bytes) => bytes,
        // Without descriptions, the files are still there.
        Err(FileError::NotFound | FileError::TooLarge { .. }) => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let text = String::from_utf8_lossy(&bytes);
    let entries = text.lines().filter_map(|line| line.strip_prefix("- ")?.split_once(": "));
    // Another program may have written the file, so the descriptions are checked like new ones.
    let entries = entries.filter_map(|(name, text)| Some((name.to_owned(), line(text).ok()?)));
    Ok(entries.collect())
}

/// Sets or removes a description in the index file.
async fn describe(store: &Overlay, name: &str, description: Option<&str>) -> Result<(), String> {
    let mut entries = descriptions(store).await.map_err(|error| error.to_string())?;
    let earlier = match description {
        Some(description) => entries.insert(name.to_owned(), description.to_owned()),
        None => entries.remove(name),
    };
    if earlier.as_deref() == description {
        return Ok(());
    }
    let mut text = format!("{HEADING}\n\n");
    for (name, description) in entries {
        let _ = writeln!(text, "- {name}: {description}");
    }
    let index = StorePath::file(INDEX).map_err(|error| error.to_string())?;
    let written = store.write(&index, text.into_bytes(), WriteMode::Replace).await;
    written.map_err(|error| error.to_string())
}

/// Checks that there is room for another file.
async fn check_count(store: &dyn FileStore) -> Result<(), String> {
    let listing = store.list(&StorePath::ROOT, Scope::Children).await;
    let count = listing.map_err(|error| error.to_string())?.entries.len();
    if count < FILES_MAX {
        return Ok(());
    }
    Err(format!(
        "There are {count} memory files, and at most {FILES_MAX} are kept; delete some first."
    ))
}

/// Parses the name of a file: one segment that is not reserved.
fn path(name: &str) -> Result<StorePath, String> {
    let path = StorePath::file(name).map_err(|error| error.to_string())?;
    if path.depth() != 1 {
        let message = "memory files must not be written into a subdirectory; use a name without /.";
        return Err(message.to_owned());
    }
    if is_reserved(path.as_str()) {
        return Err(format!("The name '{path}' is reserved; use another one."));
    }
    Ok(path)
}

fn is_reserved(name: &str) -> bool {
    let name = name.to_lowercase();
    name == INDEX || name.ends_with(DESCRIPTION_SUFFIX)
}

/// Returns a description as one line without invisible characters.
fn line(text: &str) -> Result<String, String> {
    let text: String = text.chars().filter(|c| !is_hostile_char(*c)).collect();
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() > DESCRIPTION_CHARS_MAX {
        return Err(format!("description must have at most {DESCRIPTION_CHARS_MAX} characters."));
    }
    Ok(line)
}

fn check_bytes(bytes: usize) -> Result<(), String> {
    if u64::try_from(bytes).is_ok_and(|bytes| bytes <= FILE_BYTES_MAX) {
        return Ok(());
    }
    Err(format!("A memory file has at most {FILE_BYTES_MAX} bytes; keep notes short."))
}

/// Returns the message for the model about an error at a path.
fn shown(path: &StorePath, error: &FileError) -> String {
    match error {
        FileError::NotFound => format!("File '{path}' not found."),
        other => format!("File '{path}': {other}"),
    }
}

/// Returns content with a string replaced.
fn replaced(content: &str, old: &str, new: &str, replaces_all: bool) -> Result<String, String> {
    if old.is_empty() {
        return Err("old_string must not be empty.".to_owned());
    }
    let count = content.matches(old).count();
    if count == 0 {
        return Err("old_string was not found in the file.".to_owned());
    }
    if count > 1 && !replaces_all {
        return Err(format!(
            "old_string occurs {count} times; pass replace_all=true to replace all, or provide a \
             more specific old_string."
        ));
    }
    let rest = content.len().saturating_sub(old.len().saturating_mul(count));
    // Checked before the memory is allocated.
    check_bytes(rest.saturating_add(new.len().saturating_mul(count)))?;
    Ok(content.replace(old, new))
}
