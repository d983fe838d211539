//! Store that records what is read from it.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use cofferdam_tool::recording::{RecordedBytes, RecordedLookup, RecordedPiece, RecordedStore};
use parking_lot::Mutex;

use super::{error_name, error_named, lookup, recorded_listing, recorded_room, recorded_stat};
use crate::{
    Changes, FileError, FileLocation, FileReader, FileStore, Listing, MadeDirectory, NameRules,
    PreparedCommit, Room, Scope, Stat, StorePath, WriteMode,
};

/// Maximum bytes of one file that are recorded.
const FILE_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum bytes of a call that are recorded.
const CALL_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Maximum bytes of all running calls of the process that are recorded.
const PROCESS_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes that an entry counts with besides names and contents.
const ENTRY_BYTES: usize = 64;

/// Bytes of all running calls that are recorded.
static PROCESS_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Recordings of all stores of one call, and its share of the memory for recordings.
#[derive(Default)]
pub struct StoreRecordings {
    state: Mutex<RecordingState>,
}

#[derive(Default)]
struct RecordingState {
    stores: BTreeMap<String, StoreState>,
    bytes: usize,
    gap: Option<String>,
}

/// What was read from one store. Contents are bytes until the call ends.
#[derive(Default)]
struct StoreState {
    recorded: RecordedStore,
    pieces: BTreeMap<String, FilePieces>,
}

/// Pieces of a file by position, which do not overlap.
#[derive(Default)]
struct FilePieces {
    pieces: BTreeMap<u64, Piece>,
    bytes: usize,
}

struct Piece {
    content: Vec<u8>,
    is_last: bool,
}

/// Recording of one store.
#[derive(Clone)]
struct Tape {
    name: Arc<str>,
    is_read_only: bool,
    has_native_names: bool,
    recordings: Arc<StoreRecordings>,
}

/// Store that forwards everything to another one and records what is read. Changes are not
/// recorded.
pub struct StoreRecorder {
    store: Arc<dyn FileStore>,
    tape: Tape,
}

/// Reader that records what is read.
struct RecordedReader {
    reader: Arc<dyn FileReader>,
    path: StorePath,
    tape: Tape,
}

impl StoreRecordings {
    /// Takes the recordings, by the name of the store, and the reason why they are incomplete, if
    /// they are.
    #[must_use]
    pub fn take(&self) -> (BTreeMap<String, RecordedStore>, Option<String>) {
        let RecordingState { stores, gap, bytes } = std::mem::take(&mut *self.state.lock());
        PROCESS_BYTES.fetch_sub(bytes, Ordering::Relaxed);
        let stores = stores.into_iter().map(|(name, state)| (name, state.into_recorded()));
        (stores.collect(), gap)
    }

    /// Reserves memory for something else that is recorded of the call. Returns false, and records
    /// the gap, if it is used up.
    pub fn reserve(&self, bytes: usize) -> bool {
        self.state.lock().reserve(bytes)
    }
}

impl Drop for StoreRecordings {
    fn drop(&mut self) {
        PROCESS_BYTES.fetch_sub(self.state.lock().bytes, Ordering::Relaxed);
    }
}

impl RecordingState {
    /// Reserves memory for `bytes`. Returns false, and records the gap, if it is used up.
    fn reserve(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_add(ENTRY_BYTES);
        if self.bytes.saturating_add(bytes) > CALL_BYTES_MAX {
            self.gap.get_or_insert_with(|| {
                format!("the call received more than {CALL_BYTES_MAX} bytes")
            });
            return false;
        }
        if PROCESS_BYTES.fetch_add(bytes, Ordering::Relaxed) > PROCESS_BYTES_MAX {
            PROCESS_BYTES.fetch_sub(bytes, Ordering::Relaxed);
            self.gap.get_or_insert_with(|| {
                format!("all calls together received more than {PROCESS_BYTES_MAX} bytes")
            });
            return false;
        }
        self.bytes += bytes;
        true
    }
}

impl StoreState {
    fn into_recorded(self) -> RecordedStore {
        let Self { mut recorded, pieces } = self;
        for (path, file) in pieces {
            let pieces = file.pieces.into_iter().map(|(offset, piece)| RecordedPiece {
                offset,
                content: RecordedBytes::new(piece.content),
                is_last: piece.is_last,
            });
            recorded.files.entry(path).or_insert(RecordedLookup::Found(pieces.collect()));
        }
        recorded
    }
}

impl FilePieces {
    /// Adds what was read at `offset`. Bytes that were read before stay as they were.
    fn add(&mut self, offset: u64, content: &[u8], is_last: bool) {
        let (mut at, mut rest) = (offset, content);
        loop {
            // Skips what earlier pieces cover, of which one can begin where another ends.
            while let Some((start, piece)) = self.pieces.range(..=at).next_back()
                && let end = start.saturating_add(length(&piece.content))
                && end > at
            {
                let covered = usize::try_from(end - at).unwrap_or(usize::MAX);
                rest = rest.get(covered..).unwrap_or_default();
                at = end;
            }
            let next = self.pieces.range(at.saturating_add(1)..).next().map(|(start, _)| *start);
            let room = next.map_or(u64::MAX, |next| next - at);
            let taken = rest.len().min(usize::try_from(room).unwrap_or(usize::MAX));
            let Some((piece, after)) = rest.split_at_checked(taken) else { return };
            self.push(at, piece, is_last && after.is_empty());
            if after.is_empty() {
                return;
            }
            (at, rest) = (at.saturating_add(length(piece)), after);
        }
    }

    fn push(&mut self, at: u64, content: &[u8], is_last: bool) {
        self.bytes = self.bytes.saturating_add(content.len());
        let previous = self.pieces.range_mut(..=at).next_back();
        if let Some((start, piece)) = previous
            && start.saturating_add(length(&piece.content)) == at
        {
            piece.content.extend_from_slice(content);
            piece.is_last |= is_last;
        } else if !content.is_empty() || is_last {
            self.pieces.insert(at, Piece { content: content.to_vec(), is_last });
        }
    }
}

impl Tape {
    /// Changes the recording of the store if there is room for `bytes` and the path.
    fn record(&self, path: &StorePath, bytes: usize, change: impl FnOnce(&mut StoreState, String)) {
        let mut state = self.recordings.state.lock();
        if state.reserve(path.as_str().len().saturating_add(bytes)) {
            change(self.store(&mut state), path.as_str().to_owned());
        }
    }

    fn store<'s>(&self, state: &'s mut RecordingState) -> &'s mut StoreState {
        state.stores.entry(self.name.to_string()).or_insert_with(|| StoreState {
            recorded: RecordedStore {
                is_read_only: self.is_read_only,
                has_native_names: self.has_native_names,
                ..RecordedStore::default()
            },
            ..StoreState::default()
        })
    }

    fn stat(&self, path: &StorePath, stat: &Result<Stat, FileError>) {
        self.record(path, 0, |store, path| {
            store.recorded.stats.entry(path).or_insert_with(|| lookup(stat, recorded_stat));
        });
    }

    /// Records a read at `offset`. `asked` is the number of bytes that the caller asked for, or
    /// `None` if it asked for the whole file.
    fn read(
        &self,
        path: &StorePath,
        offset: u64,
        asked: Option<u64>,
        read: &Result<Vec<u8>, FileError>,
    ) {
        match read {
            Ok(content) => {
                let is_last = asked.is_none_or(|asked| length(content) < asked);
                let mut state = self.recordings.state.lock();
                let file = self.store(&mut state).pieces.get(path.as_str());
                let before = file.map_or(0, |file| file.bytes);
                if before.saturating_add(content.len()) > FILE_BYTES_MAX {
                    state.gap.get_or_insert_with(|| {
                        format!("the call read more than {FILE_BYTES_MAX} bytes of one file")
                    });
                } else if state.reserve(path.as_str().len().saturating_add(content.len())) {
                    let pieces = &mut self.store(&mut state).pieces;
                    let file = pieces.entry(path.as_str().to_owned()).or_default();
                    file.add(offset, content, is_last);
                }
            }
            // The caller may read parts of it.
            Err(FileError::TooLarge { .. }) => {}
            Err(error) => self.record(path, 0, |store, path| {
                let failed = RecordedLookup::Failed(error_name(error).to_owned());
                store.recorded.files.entry(path).or_insert(failed);
            }),
        }
    }

    fn list(&self, directory: &StorePath, scope: Scope, listing: &Result<Listing, FileError>) {
        let entries = listing.as_ref().map(|listing| &*listing.entries).unwrap_or_default();
        let bytes = entries.iter().map(|entry| entry.name.len().saturating_add(ENTRY_BYTES)).sum();
        self.record(directory, bytes, |store, path| {
            let listings = match scope {
                Scope::Children => &mut store.recorded.listings,
                Scope::Recursive => &mut store.recorded.trees,
            };
            listings.entry(path).or_insert_with(|| lookup(listing, recorded_listing));
        });
    }

    fn room(&self, room: &Result<Room, FileError>) {
        if let Ok(room) = room {
            self.record(&StorePath::ROOT, 0, |store, _| {
                store.recorded.room.get_or_insert_with(|| recorded_room(room));
            });
        }
    }
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

impl StoreRecorder {
    /// Creates a store that records what is read from `store` under `name`.
    pub fn new(
        name: impl Into<Arc<str>>,
        store: Arc<dyn FileStore>,
        recordings: Arc<StoreRecordings>,
    ) -> Self {
        let tape = Tape {
            name: name.into(),
            is_read_only: store.is_read_only(),
            has_native_names: store.names() == NameRules::Native,
            recordings,
        };
        Self { store, tape }
    }
}

#[async_trait]
impl FileStore for StoreRecorder {
    fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.store.root_ambient()
    }

    fn locate(&self, path: &StorePath) -> FileLocation {
        self.store.locate(path)
    }

    fn names(&self) -> NameRules {
        self.store.names()
    }

    fn anonymous_file(&self) -> Option<File> {
        self.store.anonymous_file()
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        let stat = self.store.stat(path).await;
        self.tape.stat(path, &stat);
        stat
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        let probed = self.store.probe(path).await;
        match &probed {
            Ok(Some(stat)) => self.tape.stat(path, &Ok(stat.clone())),
            Ok(None) => self.tape.stat(path, &Err(FileError::NotFound)),
            Err(error) => self.tape.stat(path, &Err(error_named(error_name(error)))),
        }
        probed
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let read = self.store.read(path, bytes_max).await;
        self.tape.read(path, 0, None, &read);
        read
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        let read = self.store.read_range(path, offset, length).await;
        self.tape.read(path, offset, Some(length), &read);
        read
    }

    fn reader(&self, path: &StorePath) -> Option<Arc<dyn FileReader>> {
        let reader = self.store.reader(path)?;
        Some(Arc::new(RecordedReader { reader, path: path.clone(), tape: self.tape.clone() }))
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        self.store.write(path, content, mode).await
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        self.store.delete(path).await
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        let listing = self.store.list(directory, scope).await;
        self.tape.list(directory, scope, &listing);
        listing
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        self.store.create_directory(path).await
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        self.store.remove_directory(path).await
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        self.store.rename(from, to).await
    }

    async fn room(&self) -> Result<Room, FileError> {
        let room = self.store.room().await;
        self.tape.room(&room);
        room
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        self.store.prepare(changes).await
    }
}

#[async_trait]
impl FileReader for RecordedReader {
    async fn read_at(&self, offset: u64, length: u64) -> Result<Vec<u8>, FileError> {
        let read = self.reader.read_at(offset, length).await;
        self.tape.read(&self.path, offset, Some(length), &read);
        read
    }
}
