//! Index of the plugins of one start: what the next start needs to know about their components
//! without reading them.
//!
//! The index is one entry of the cache, verified as a whole before any of it is used, and keyed by
//! the list of the components' paths. The record of a component is valid if the files have the same
//! identity as when it was written: device, inode, size, and the times of the last changes, one of
//! which only the system can set. A file that was changed a moment ago is not recorded.
//!
//! A wrong record can do little harm. The code of a component is read, and its digest compared,
//! when it is first called: a file that was changed unnoticed is rejected there
//! ([`LoadError::Changed`](crate::LoadError::Changed)). Only the definitions of its tools could be
//! outdated, and the permissions that it asks for, which grant nothing.
//!
//! The index is never required. If it is damaged, foreign, old or missing, the files have to be
//! read.

mod approval;
mod identity;
mod record;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_tool::ToolDefinition;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::cache::{Cache, CacheKey, EntryKind, Lookup};

pub use self::approval::Approval;
pub(crate) use self::identity::FileIdentity;
pub(crate) use self::record::{ComponentFiles, ComponentRecord};

/// Version of the format of the index. Increased when the layout or the meaning of a record
/// changes.
const FORMAT: &[u8] = b"cofferdam startup index 3";

/// Index of plugins, by their position in the list of components.
pub(crate) struct StartupIndex {
    /// `None` without a cache.
    saved: Option<SavedIndex>,
    state: Mutex<IndexState>,
}

/// Index as it was read from the cache.
struct SavedIndex {
    cache: Cache,
    key: CacheKey,
    contents: Vec<u8>,
}

#[derive(Default)]
struct IndexState {
    /// Positions of the records in the contents of the saved index.
    saved_records: Ranges,
    records: Vec<RecordState>,
    saved_approval: Option<Approval>,
    next_approval: Option<Approval>,
}

/// Record of one component in the index that is saved next.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RecordState {
    /// No record: the component was not loaded, or its files may still change unnoticed.
    Absent,
    /// Record of the saved index.
    Unchanged,
    New(Vec<u8>),
}

/// Contents of the cache entry.
#[derive(Serialize, Deserialize)]
struct IndexContents<'a> {
    approval: Option<[u8; 32]>,
    #[serde(borrow)]
    records: Vec<&'a [u8]>,
}

impl StartupIndex {
    /// Creates an index that is empty and is never saved.
    pub(crate) fn disabled() -> Self {
        Self { saved: None, state: Mutex::default() }
    }

    /// Reads the index of the components at `paths` from the cache. `inputs` is everything else
    /// that it depends on.
    pub(crate) fn read(cache: &Cache, inputs: &[&[u8]], paths: &[PathBuf]) -> Self {
        let mut parts = vec![FORMAT];
        parts.extend_from_slice(inputs);
        parts.extend(paths.iter().map(|path| path.as_os_str().as_encoded_bytes()));
        let key = CacheKey::new(&parts);
        let contents = match cache.get(&key, EntryKind::Index) {
            Lookup::Hit(contents) => contents,
            Lookup::Miss => Vec::new(),
            Lookup::Rejected(reason) => {
                tracing::warn!(%reason, "the index of plugins was rejected and removed");
                Vec::new()
            }
        };
        let mut state =
            IndexState { records: vec![RecordState::Absent; paths.len()], ..IndexState::default() };
        if let Some((approval, records)) =
            parse(&contents).filter(|(_, records)| records.len() == paths.len())
        {
            (state.saved_records, state.saved_approval, state.next_approval) =
                (records, approval, approval);
        }
        Self {
            saved: Some(SavedIndex { cache: cache.clone(), key, contents }),
            state: state.into(),
        }
    }

    /// Returns the saved record of the component at `position`.
    pub(crate) fn record(&self, position: usize) -> Option<ComponentRecord> {
        let range = self.state.lock().saved_records.get(position)?.clone();
        ComponentRecord::read(self.saved.as_ref()?.contents.get(range)?)
    }

    /// Returns the tools of the saved record of a component that cannot be loaded now, and keeps
    /// the record.
    pub(crate) fn tools(&self, position: usize) -> Option<Vec<Arc<ToolDefinition>>> {
        let tools = self
            .record(position)?
            .tools
            .into_iter()
            .map(|tool| tool.into_definition().map(Arc::new));
        let tools = tools.collect::<Option<Vec<_>>>()?;
        self.retain(position);
        Some(tools)
    }

    /// Keeps the saved record of the component at `position`.
    pub(crate) fn retain(&self, position: usize) {
        self.set(position, RecordState::Unchanged);
    }

    /// Replaces the record of the component at `position`.
    pub(crate) fn replace(&self, position: usize, record: &ComponentRecord) {
        if let Some(bytes) = record.to_bytes().filter(|_| self.saved.is_some()) {
            self.set(position, RecordState::New(bytes));
        }
    }

    fn set(&self, position: usize, record: RecordState) {
        if let Some(state) = self.state.lock().records.get_mut(position) {
            *state = record;
        }
    }

    /// Returns true if the index can be saved.
    pub(crate) fn is_enabled(&self) -> bool {
        self.saved.is_some()
    }

    /// Returns the number of components.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().records.len()
    }

    /// Returns the approval of the saved index.
    pub(crate) fn saved_approval(&self) -> Option<Approval> {
        self.state.lock().saved_approval
    }

    /// Sets the approval that is saved next.
    pub(crate) fn set_approval(&self, approval: Option<Approval>) {
        self.state.lock().next_approval = approval;
    }

    /// Writes the index if a record is new or the approval has changed. Takes a few milliseconds
    /// for a thousand components.
    pub(crate) fn save(&self) {
        let Some(saved) = &self.saved else { return };
        let Some(bytes) = self.changed_contents(saved) else { return };
        if let Err(error) = saved.cache.insert(&saved.key, EntryKind::Index, &bytes) {
            tracing::warn!(%error, "the index of plugins cannot be written");
        }
    }

    /// Returns the contents to save; `None` if the saved index is up to date.
    fn changed_contents(&self, saved: &SavedIndex) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let has_new = state.records.iter().any(|record| matches!(record, RecordState::New(_)));
        if !has_new && state.next_approval == state.saved_approval {
            return None;
        }
        let before =
            |position: usize| saved.contents.get(state.saved_records.get(position)?.clone());
        let record = |(position, record)| match record {
            &RecordState::Absent => &[],
            &RecordState::Unchanged => before(position).unwrap_or_default(),
            RecordState::New(bytes) => bytes.as_slice(),
        };
        let records = state.records.iter().enumerate().map(record).collect();
        let approval = state.next_approval.map(Approval::to_bytes);
        postcard::to_allocvec(&IndexContents { approval, records }).ok()
    }
}

/// Positions of records in the contents.
type Ranges = Vec<std::ops::Range<usize>>;

/// Parses the approval and the positions of the records.
fn parse(contents: &[u8]) -> Option<(Option<Approval>, Ranges)> {
    let (IndexContents { approval, records }, []) = postcard::take_from_bytes(contents).ok()?
    else {
        return None;
    };
    let range = |record: &[u8]| {
        let start = (record.as_ptr() as usize).checked_sub(contents.as_ptr() as usize)?;
        Some(start..start.checked_add(record.len())?)
    };
    Some((
        approval.map(Approval::from_bytes),
        records.into_iter().map(range).collect::<Option<_>>()?,
    ))
}
