//! The file stores that are granted to the plugin, without a file system in between.
//!
//! The standard library sees the same stores: the store `data` is the directory `/data`. For most
//! tools `std::fs` is the better choice. This module adds a search that the host runs, globs,
//! atomic creation and replacement of whole files, and errors that name the limit that was reached.
//!
//! The changes of a call become visible to others together when the tool has succeeded. If it
//! fails, the host drops them all.
//!
//! A component that does not use this module does not import `cofferdam:plugin/files`. In a unit
//! test the stores are those of a [`testing::Host`](crate::testing::Host).
//!
//! ```
//! use cofferdam_sdk::files::{Query, Store};
//! # fn tool() -> Result<String, cofferdam_sdk::ToolFailure> {
//! let store = Store::named("data");
//! let found = store.search("", &Query::new("TODO|FIXME").glob("*.rs"))?;
//! store.create("todo.txt", format!("{} files", found.matches.len()))?;
//! # Ok(store.read_to_string("todo.txt")?)
//! # }
//! ```

use std::fmt;

/// Store with a given name. The name is not checked until the store is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    name: String,
}

/// Granted store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GrantedStore {
    /// Name of the store.
    pub name: String,
    /// True if the plugin may change files.
    pub writable: bool,
}

/// Type of an entry in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// Metadata of a file or directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// File or directory.
    pub kind: Kind,
    /// Length in bytes; 0 for a directory.
    pub bytes: u64,
}

/// Entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name. Below the listed directory, the path relative to it.
    pub name: String,
    /// File or directory.
    pub kind: Kind,
}

/// Parameters of a search. By default it ignores case and includes subdirectories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    pattern: String,
    glob: Option<String>,
    is_case_sensitive: bool,
    is_recursive: bool,
}

/// Result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SearchMatches {
    /// The matching files, sorted bytewise by path.
    pub matches: Vec<Match>,
    /// True if matches were dropped because there were too many.
    pub is_truncated: bool,
}

/// A file with at least one matching line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Match {
    /// Path of the file in the store.
    pub path: String,
    /// The text around the first match.
    pub snippet: String,
    /// The matching lines, each with its number, from 1.
    pub lines: Vec<(u64, String)>,
}

/// Error of an operation. A failed operation has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// No store of this name is granted.
    UnknownStore,
    /// There is no regular file, or no directory, at the path.
    NotFound,
    /// The path exists already.
    AlreadyExists,
    /// The path, or one of its parents, is an entry of another type.
    WrongType(String),
    /// The path breaks a rule.
    InvalidPath(String),
    /// The store is read-only.
    ReadOnly,
    /// The grant does not allow the operation.
    Denied(String),
    /// A limit of the store or of the call is reached.
    Limit(String),
    /// A glob or a regex is invalid.
    InvalidPattern(String),
    /// The content is not UTF-8.
    NotText,
    /// The store cannot be reached, or another writer has changed the file in the meantime. A retry
    /// may help.
    Unavailable,
}

/// Returns the granted stores, sorted by name.
#[must_use]
pub fn granted() -> Vec<GrantedStore> {
    host::granted()
}

impl Store {
    /// Returns the store called `name`.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// Returns the metadata of the entry at `path`; `""` is the root.
    ///
    /// # Errors
    /// [`Error::NotFound`] if nothing is there.
    pub fn stat(&self, path: &str) -> Result<Stat, Error> {
        host::stat(&self.name, path)
    }

    /// Returns the whole content of a file.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for a directory; [`Error::Limit`] if the content is larger than a
    /// call may hold.
    pub fn read(&self, path: &str) -> Result<Vec<u8>, Error> {
        self.read_range(path, 0, u64::MAX)
    }

    /// Returns the whole content of a text file.
    ///
    /// # Errors
    /// Like [`read`](Self::read), and [`Error::NotText`].
    pub fn read_to_string(&self, path: &str) -> Result<String, Error> {
        String::from_utf8(self.read(path)?).map_err(|_| Error::NotText)
    }

    /// Reads at most `length` bytes from `offset`; fewer at the end of the file.
    ///
    /// # Errors
    /// Like [`read`](Self::read).
    pub fn read_range(&self, path: &str, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
        host::read(&self.name, path, offset, length)
    }

    /// Writes a new file atomically and creates missing parent directories.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if the file exists. Of several concurrent creators exactly one
    /// succeeds.
    pub fn create(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        host::create(&self.name, path, content.as_ref())
    }

    /// Writes a whole file atomically, whether it exists or not, and creates missing parent
    /// directories.
    ///
    /// # Errors
    /// [`Error::WrongType`], [`Error::Limit`], [`Error::ReadOnly`].
    pub fn replace(&self, path: &str, content: impl AsRef<[u8]>) -> Result<(), Error> {
        host::replace(&self.name, path, content.as_ref())
    }

    /// Deletes a file.
    ///
    /// # Errors
    /// [`Error::NotFound`], also for a directory.
    pub fn delete(&self, path: &str) -> Result<(), Error> {
        host::delete(&self.name, path)
    }

    /// Creates a directory and its missing parents.
    ///
    /// # Errors
    /// [`Error::AlreadyExists`] if it exists.
    pub fn create_directory(&self, path: &str) -> Result<(), Error> {
        host::create_directory(&self.name, path)
    }

    /// Returns the entries of a directory: directories first, then files, each sorted bytewise by
    /// name. A missing directory has none.
    ///
    /// # Errors
    /// [`Error::InvalidPath`], [`Error::Limit`].
    pub fn list(&self, directory: &str) -> Result<Vec<Entry>, Error> {
        host::list(&self.name, directory, None, false)
    }

    /// Returns all entries below a directory whose path matches `glob`: `*`, `?`, `**`, `[ab]`,
    /// `{a,b}`, case ignored. A pattern without `/` is matched against the last segment of the
    /// path.
    ///
    /// # Errors
    /// Like [`list`](Self::list), and [`Error::InvalidPattern`].
    pub fn find(&self, directory: &str, glob: &str) -> Result<Vec<Entry>, Error> {
        host::list(&self.name, directory, Some(glob), true)
    }

    /// Searches the text files below a directory.
    ///
    /// # Errors
    /// [`Error::InvalidPattern`], [`Error::InvalidPath`].
    pub fn search(&self, directory: &str, query: &Query) -> Result<SearchMatches, Error> {
        host::search(&self.name, directory, query)
    }
}

impl Query {
    /// Creates a query for `pattern`, in the syntax of the Rust `regex` crate, matched per line; at
    /// most 256 characters.
    pub fn new(pattern: impl Into<String>) -> Self {
        Self { pattern: pattern.into(), glob: None, is_case_sensitive: false, is_recursive: true }
    }

    /// Searches only files whose path matches the glob.
    #[must_use]
    pub fn glob(mut self, glob: impl Into<String>) -> Self {
        self.glob = Some(glob.into());
        self
    }

    /// Makes the search case-sensitive.
    #[must_use]
    pub fn case_sensitive(mut self) -> Self {
        self.is_case_sensitive = true;
        self
    }

    /// Searches only the files of the directory itself, not of its subdirectories.
    #[must_use]
    pub fn direct(mut self) -> Self {
        self.is_recursive = false;
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnknownStore => "no store of that name was granted",
            Self::NotFound => "not found",
            Self::AlreadyExists => "it exists already",
            Self::ReadOnly => "the store may only be read",
            Self::NotText => "the content is not UTF-8 text",
            Self::Unavailable => "the store cannot be reached at the moment",
            Self::WrongType(text)
            | Self::InvalidPath(text)
            | Self::Denied(text)
            | Self::Limit(text)
            | Self::InvalidPattern(text) => text,
        })
    }
}

impl std::error::Error for Error {}

#[cfg(target_arch = "wasm32")]
mod host {
    use super::{Entry, Error, GrantedStore, Kind, Match, Query, SearchMatches, Stat};
    use crate::guest::bindings::cofferdam::plugin::files::{self, EntryType, WriteMode};

    pub(super) fn granted() -> Vec<GrantedStore> {
        let stores = files::stores().into_iter();
        stores.map(|store| GrantedStore { name: store.name, writable: store.writable }).collect()
    }

    pub(super) fn stat(store: &str, path: &str) -> Result<Stat, Error> {
        let stat = files::stat(store, path)?;
        Ok(Stat { kind: stat.type_.into(), bytes: stat.size })
    }

    pub(super) fn read(
        store: &str,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Error> {
        Ok(files::read(store, path, offset, length)?)
    }

    pub(super) fn create(store: &str, path: &str, content: &[u8]) -> Result<(), Error> {
        Ok(files::write(store, path, content, WriteMode::Create)?)
    }

    pub(super) fn replace(store: &str, path: &str, content: &[u8]) -> Result<(), Error> {
        Ok(files::write(store, path, content, WriteMode::Replace)?)
    }

    pub(super) fn delete(store: &str, path: &str) -> Result<(), Error> {
        Ok(files::delete(store, path)?)
    }

    pub(super) fn create_directory(store: &str, path: &str) -> Result<(), Error> {
        Ok(files::create_directory(store, path)?)
    }

    pub(super) fn list(
        store: &str,
        directory: &str,
        glob: Option<&str>,
        is_recursive: bool,
    ) -> Result<Vec<Entry>, Error> {
        let entries = files::list(store, directory, glob, is_recursive)?.into_iter();
        Ok(entries.map(|entry| Entry { kind: entry.type_.into(), name: entry.name }).collect())
    }

    pub(super) fn search(
        store: &str,
        directory: &str,
        query: &Query,
    ) -> Result<SearchMatches, Error> {
        let asked = files::Query {
            pattern: query.pattern.clone(),
            case_sensitive: query.is_case_sensitive,
            glob: query.glob.clone(),
            recursive: query.is_recursive,
        };
        let found = files::search(store, directory, &asked)?;
        let matches = found.matches.into_iter().map(|file| Match {
            path: file.path,
            snippet: file.snippet,
            lines: file.lines.into_iter().map(|line| (line.number, line.text)).collect(),
        });
        Ok(SearchMatches { matches: matches.collect(), is_truncated: found.truncated })
    }

    impl From<EntryType> for Kind {
        fn from(kind: EntryType) -> Self {
            match kind {
                EntryType::File => Self::File,
                EntryType::Directory => Self::Directory,
            }
        }
    }

    impl From<files::Error> for Error {
        fn from(error: files::Error) -> Self {
            match error {
                files::Error::UnknownStore => Self::UnknownStore,
                files::Error::NotFound => Self::NotFound,
                files::Error::AlreadyExists => Self::AlreadyExists,
                files::Error::WrongType(text) => Self::WrongType(text),
                files::Error::InvalidPath(text) => Self::InvalidPath(text),
                files::Error::ReadOnly => Self::ReadOnly,
                files::Error::Denied(text) => Self::Denied(text),
                files::Error::Limit(text) => Self::Limit(text),
                files::Error::InvalidPattern(text) => Self::InvalidPattern(text),
                files::Error::Unavailable => Self::Unavailable,
            }
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod host {
    use super::{Entry, Error, GrantedStore, Query, SearchMatches, Stat};
    use crate::testing::host::stores;
    use crate::testing::stores::pattern;

    pub(super) fn granted() -> Vec<GrantedStore> {
        stores(|stores| stores.granted())
    }

    pub(super) fn stat(store: &str, path: &str) -> Result<Stat, Error> {
        stores(|stores| stores.stat(store, path))
    }

    pub(super) fn read(
        store: &str,
        path: &str,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Error> {
        stores(|stores| stores.read(store, path, offset, length))
    }

    pub(super) fn create(store: &str, path: &str, content: &[u8]) -> Result<(), Error> {
        stores(|stores| stores.write(store, path, content, false))
    }

    pub(super) fn replace(store: &str, path: &str, content: &[u8]) -> Result<(), Error> {
        stores(|stores| stores.write(store, path, content, true))
    }

    pub(super) fn delete(store: &str, path: &str) -> Result<(), Error> {
        stores(|stores| stores.delete(store, path))
    }

    pub(super) fn create_directory(store: &str, path: &str) -> Result<(), Error> {
        stores(|stores| stores.create_directory(store, path))
    }

    pub(super) fn list(
        store: &str,
        directory: &str,
        glob: Option<&str>,
        is_recursive: bool,
    ) -> Result<Vec<Entry>, Error> {
        stores(|stores| stores.list(store, directory, glob, is_recursive))
    }

    pub(super) fn search(
        store: &str,
        directory: &str,
        query: &Query,
    ) -> Result<SearchMatches, Error> {
        let regex = pattern(&query.pattern, query.is_case_sensitive)?;
        let glob = query.glob.as_deref();
        stores(|stores| stores.search(store, directory, &regex, glob, query.is_recursive))
    }
}
