//! What is known of the components of a configuration from the last time that they were loaded, so that a start reads none of
//! them: it asks the system whether the files are the same, and no more.
//!
//! All of it is one entry of the cache, proven as a whole before any of it is read, and found by the list of the components'
//! paths. What it says of a component counts if the files have the identity that they had: device, inode, size, and the times
//! of the last changes, of which one is set by the system alone. What was changed too short a time ago is not remembered.
//!
//! What stands to lose is small. The code of a component is read, and its digest compared, when it is first called: a file that
//! was changed unseen is refused there ([`LoadError::Changed`](crate::LoadError::Changed)). What could be old are the words about
//! its tools, and what it asks for, which grants nothing.
//!
//! Nobody needs this. An entry that is damaged, foreign, old, or not there costs the time of reading the files.

mod approval;
mod identity;
mod record;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_tool::ToolDefinition;
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, CacheKey, EntryKind, Lookup};

pub use self::approval::Approval;
pub(crate) use self::identity::FileIdentity;
pub use self::record::ComponentFiles;
pub(crate) use self::record::Record;

/// The version of what is kept. Raised when the layout or the meaning changes.
const FORMAT: &[u8] = b"cofferdam known 1";

/// What is known of some components, by their place in a list. Made by [`Engine::known`](crate::Engine::known), used by
/// [`Engine::recall`](crate::Engine::recall), and written by [`Known::save`].
pub struct Known {
    kept: Option<Kept>,
    slots: Mutex<Slots>,
}

/// Where it is kept.
struct Kept {
    cache: Cache,
    key: CacheKey,
    /// What was read.
    contents: Vec<u8>,
}

#[derive(Default)]
struct Slots {
    before: Ranges,
    now: Vec<Slot>,
    /// What was read.
    seal: Option<[u8; 32]>,
    /// What is to be written.
    seal_now: Option<[u8; 32]>,
}

/// What there is about one component.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Slot {
    /// It was not loaded, or what is known of it is not to be kept.
    Empty,
    /// The same as before.
    Same,
    New(Vec<u8>),
}

/// What an entry holds.
#[derive(Serialize, Deserialize)]
struct Contents<'a> {
    seal: Option<[u8; 32]>,
    #[serde(borrow)]
    records: Vec<&'a [u8]>,
}

impl Known {
    /// Nothing is known, and nothing will be.
    pub(crate) fn nothing() -> Self {
        Self { kept: None, slots: Mutex::default() }
    }

    /// What the cache knows about the components at `paths`. `made_by` is everything else that it depends on.
    pub(crate) fn read(cache: &Cache, made_by: &[&[u8]], paths: &[PathBuf]) -> Self {
        let mut parts = vec![FORMAT];
        parts.extend_from_slice(made_by);
        parts.extend(paths.iter().map(|path| path.as_os_str().as_encoded_bytes()));
        let key = CacheKey::new(&parts);
        let contents = match cache.get(&key, EntryKind::Known) {
            Lookup::Hit(contents) => contents,
            Lookup::Miss => Vec::new(),
            Lookup::Rejected(reason) => {
                tracing::warn!(%reason, "what was known of components was rejected and removed");
                Vec::new()
            }
        };
        let mut slots = Slots { now: vec![Slot::Empty; paths.len()], ..Slots::default() };
        if let Some((seal, records)) = ranges(&contents).filter(|(_, records)| records.len() == paths.len()) {
            (slots.before, slots.seal, slots.seal_now) = (records, seal, seal);
        }
        Self { kept: Some(Kept { cache: cache.clone(), key, contents }), slots: slots.into() }
    }

    /// What is known of the component at `place`.
    pub(crate) fn record(&self, place: usize) -> Option<Record> {
        let range = self.slots().before.get(place)?.clone();
        Record::read(self.kept.as_ref()?.contents.get(range)?)
    }

    /// Tools of the component at `place` when it was last loaded, for a component that cannot be loaded now. They are kept for
    /// the next start.
    #[must_use]
    pub fn tools(&self, place: usize) -> Option<Vec<Arc<ToolDefinition>>> {
        let tools = self.record(place)?.tools.into_iter().map(|tool| tool.into_definition().map(Arc::new));
        let tools = tools.collect::<Option<Vec<_>>>()?;
        self.keep_same(place);
        Some(tools)
    }

    /// Keeps what is known of the component at `place`.
    pub(crate) fn keep_same(&self, place: usize) {
        self.set(place, Slot::Same);
    }

    /// Replaces what is known of the component at `place`.
    pub(crate) fn keep(&self, place: usize, record: &Record) {
        if let Some(bytes) = record.bytes().filter(|_| self.kept.is_some()) {
            self.set(place, Slot::New(bytes));
        }
    }

    fn set(&self, place: usize, slot: Slot) {
        if let Some(found) = self.slots().now.get_mut(place) {
            *found = slot;
        }
    }

    /// Whether anything is kept at all.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// How many components it is about.
    pub(crate) fn places(&self) -> usize {
        self.slots().now.len()
    }

    /// What [`Known::set_seal`] was told when this was written: whoever has looked at all of these components can see that
    /// they are the ones. It says something of those that were [recalled](crate::Engine::recall) alone.
    #[must_use]
    pub fn seal(&self) -> Option<[u8; 32]> {
        self.slots().seal
    }

    /// Keeps 32 bytes together with what is known by now.
    pub fn set_seal(&self, seal: Option<[u8; 32]>) {
        self.slots().seal_now = seal;
    }

    /// Writes what is known now, if that is more than it was. Takes some milliseconds for a thousand components.
    pub fn save(&self) {
        let Some(kept) = &self.kept else { return };
        let bytes = {
            let slots = self.slots();
            let is_new = slots.now.iter().any(|slot| matches!(slot, Slot::New(_)));
            if !is_new && slots.seal_now == slots.seal {
                return;
            }
            let before = |place: usize| kept.contents.get(slots.before.get(place)?.clone());
            let record = |(place, slot)| match slot {
                &Slot::Empty => &[],
                &Slot::Same => before(place).unwrap_or_default(),
                Slot::New(bytes) => bytes.as_slice(),
            };
            let records = slots.now.iter().enumerate().map(record).collect();
            let Ok(bytes) = postcard::to_allocvec(&Contents { seal: slots.seal_now, records }) else {
                return;
            };
            bytes
        };
        if let Err(error) = kept.cache.keep(&kept.key, EntryKind::Known, &bytes) {
            tracing::warn!(%error, "what is known of components cannot be written");
        }
    }

    fn slots(&self) -> std::sync::MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where records are.
type Ranges = Vec<std::ops::Range<usize>>;

/// The seal, and where each record is.
fn ranges(contents: &[u8]) -> Option<(Option<[u8; 32]>, Ranges)> {
    let (Contents { seal, records }, []) = postcard::take_from_bytes(contents).ok()? else { return None };
    let range = |record: &[u8]| {
        let start = (record.as_ptr() as usize).checked_sub(contents.as_ptr() as usize)?;
        Some(start..start.checked_add(record.len())?)
    };
    Some((seal, records.into_iter().map(range).collect::<Option<_>>()?))
}

/// A seal over `parts`, and over the version of a file that they are about: `None` as long as a change of that file might not
/// show, or if there is none.
#[must_use]
pub fn seal_with_file(file: &Path, parts: &[&[u8]]) -> Option<[u8; 32]> {
    let identity = FileIdentity::of_ambient(file).filter(FileIdentity::is_settled)?;
    let identity = identity.to_bytes();
    let mut all = vec![identity.as_slice(), file.as_os_str().as_encoded_bytes()];
    all.extend_from_slice(parts);
    Some(CacheKey::new(&all).into_bytes())
}
