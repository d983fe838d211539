//! `cofferdam:plugin/files`: the native operations of file stores, with search at the host's speed.
//!
//! It provides the same mounts as `wasi:filesystem`, through the same overlays: each of the two
//! sees the changes made through the other, and all changes are committed together when the call
//! succeeds (`FILE-21`). Data that is returned to a guest counts as memory of the call before it is
//! allocated.

use std::sync::Arc;

use cofferdam_files::{
    Charge, EntryKind, FileError, FileStore, Glob, MadeDirectory, Overlay, Scope, SearchQuery,
    StorePath, WriteMode, search,
};
use cofferdam_tool::{FileAccess, MountName, Permission};

use super::CallState;
use crate::Capability;
use crate::guest::cofferdam::plugin::files::{
    Entry, EntryStat, EntryType, Error, Host, Line, Query, SearchMatch, SearchResult, Store,
    WriteMode as Mode,
};

/// Memory of a listing entry besides its name, in bytes.
const ENTRY_BYTES: u64 = 64;

impl CallState {
    /// Returns the mount called `name`. Records a refusal if the plugin was not granted it and the
    /// name is valid.
    fn store(&mut self, name: &str) -> Result<Overlay, Error> {
        if let Some(overlay) = self.mounts().mounted(name) {
            return Ok(overlay);
        }
        if let Ok(name) = MountName::new(name) {
            let wanted = Permission::Files(Some(name), FileAccess::ReadOnly);
            self.refuse(Capability::FileStores, &wanted.to_string());
        }
        Err(Error::UnknownStore)
    }

    /// Returns a file of a mount.
    fn file(&mut self, store: &str, path: &str) -> Result<(Overlay, StorePath), Error> {
        let overlay = self.store(store)?;
        let path = StorePath::file_under(path, overlay.names());
        Ok((overlay, path.map_err(|error| Error::InvalidPath(error.to_string()))?))
    }

    /// Returns a directory of a mount.
    fn directory(&mut self, store: &str, path: &str) -> Result<(Overlay, StorePath), Error> {
        let overlay = self.store(store)?;
        let path = StorePath::directory_under(path, overlay.names());
        Ok((overlay, path.map_err(|error| Error::InvalidPath(error.to_string()))?))
    }
}

impl Host for CallState {
    async fn stores(&mut self) -> Vec<Store> {
        self.mounts()
            .names()
            .map(|(name, writable)| Store { name: name.to_string(), writable })
            .collect()
    }

    async fn stat(&mut self, store: String, path: String) -> Result<EntryStat, Error> {
        let (overlay, path) = self.directory(&store, &path)?;
        let stat = overlay.stat(&path).await.map_err(to_guest_error)?;
        Ok(EntryStat { type_: entry_type(stat.kind), size: stat.bytes })
    }

    async fn read(
        &mut self,
        store: String,
        path: String,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, Error> {
        let (overlay, path) = self.file(&store, &path)?;
        let stat = overlay.stat(&path).await.map_err(to_guest_error)?;
        let length = length.min(stat.bytes.saturating_sub(offset));
        let _charge = overlay.budget().take(length).map_err(to_guest_error)?;
        overlay.read_range(&path, offset, length).await.map_err(to_guest_error)
    }

    async fn write(
        &mut self,
        store: String,
        path: String,
        content: Vec<u8>,
        mode: Mode,
    ) -> Result<(), Error> {
        let (overlay, path) = self.file(&store, &path)?;
        let mode = match mode {
            Mode::Create => WriteMode::Create,
            Mode::Replace => WriteMode::Replace,
        };
        overlay.write(&path, content, mode).await.map_err(to_guest_error)
    }

    async fn delete(&mut self, store: String, path: String) -> Result<(), Error> {
        let (overlay, path) = self.file(&store, &path)?;
        overlay.delete(&path).await.map_err(to_guest_error)
    }

    async fn create_directory(&mut self, store: String, path: String) -> Result<(), Error> {
        let (overlay, path) = self.directory(&store, &path)?;
        match overlay.create_directory(&path).await.map_err(to_guest_error)? {
            MadeDirectory::Created => Ok(()),
            MadeDirectory::Existed => Err(Error::AlreadyExists),
        }
    }

    async fn list(
        &mut self,
        store: String,
        directory: String,
        glob: Option<String>,
        recursive: bool,
    ) -> Result<Vec<Entry>, Error> {
        let (overlay, directory) = self.directory(&store, &directory)?;
        let glob =
            Glob::new(glob.as_deref()).map_err(|error| Error::InvalidPattern(error.to_string()))?;
        let listing = overlay.list(&directory, scope(recursive)).await.map_err(to_guest_error)?;
        if listing.is_truncated {
            // An error is better than a partial listing that the guest takes for complete.
            return Err(Error::Limit(
                "the directory holds more than one listing goes through.".to_owned(),
            ));
        }
        let wanted: Vec<_> =
            listing.entries.into_iter().filter(|entry| glob.matches(&entry.name)).collect();
        let _charge = charge(&overlay, wanted.iter().map(|entry| entry.name.len()))?;
        let entry = |entry: cofferdam_files::ListingEntry| Entry {
            type_: entry_type(entry.kind),
            name: entry.name,
        };
        Ok(wanted.into_iter().map(entry).collect())
    }

    async fn search(
        &mut self,
        store: String,
        directory: String,
        query: Query,
    ) -> Result<SearchResult, Error> {
        let (overlay, directory) = self.directory(&store, &directory)?;
        let query = SearchQuery::new(&query.pattern, query.case_sensitive)
            .and_then(|built| built.with_glob(query.glob.as_deref()))
            .map_err(|error| Error::InvalidPattern(error.to_string()))?
            .with_scope(scope(query.recursive));
        let store: Arc<dyn FileStore> = Arc::new(overlay);
        let found = search(&store, &directory, &query).await.map_err(to_guest_error)?;
        let matches = found.files.into_iter().map(|file| SearchMatch {
            path: file.file_name,
            snippet: file.snippet,
            lines: file
                .matching_lines
                .into_iter()
                .map(|line| Line { number: line.line_number, text: line.line })
                .collect(),
        });
        Ok(SearchResult { matches: matches.collect(), truncated: found.truncated.is_some() })
    }
}

/// Reserves the memory of a listing from that of the call.
fn charge(overlay: &Overlay, names: impl Iterator<Item = usize>) -> Result<Charge, Error> {
    let bytes = names
        .map(|length| ENTRY_BYTES.saturating_add(u64::try_from(length).unwrap_or(u64::MAX)))
        .sum();
    overlay.budget().take(bytes).map_err(to_guest_error)
}

fn scope(is_recursive: bool) -> Scope {
    if is_recursive { Scope::Recursive } else { Scope::Children }
}

fn entry_type(kind: EntryKind) -> EntryType {
    match kind {
        EntryKind::File => EntryType::File,
        EntryKind::Directory => EntryType::Directory,
    }
}

/// Converts an error of a store to the guest's error type, with the messages of
/// `docs/rules/files.md` and without details of the host.
fn to_guest_error(error: FileError) -> Error {
    let text = error.to_string();
    match error {
        FileError::NotFound => Error::NotFound,
        FileError::AlreadyExists => Error::AlreadyExists,
        FileError::Path(_) | FileError::Link => Error::InvalidPath(text),
        FileError::ReadOnly => Error::ReadOnly,
        FileError::CreateOnly => Error::Denied(text),
        FileError::Quota(_)
        | FileError::Memory { .. }
        | FileError::Disk { .. }
        | FileError::TooLarge { .. } => Error::Limit(text),
        FileError::Host(_) | FileError::Conflict { .. } | FileError::Busy => Error::Unavailable,
        _ => Error::WrongType(text),
    }
}
