//! Results of calls with idempotency keys, and of tasks.
//!
//! An entry of a key belongs to one caller. It says which call the key stands for, and whether that
//! call runs or has ended. Entries change only by compare-and-swap on their revision, so that of
//! several gateways one runs the call and one result is stored.

mod entry;
mod memory;

use async_trait::async_trait;
use bytes::Bytes;

pub(crate) use self::entry::{EntryHeader, EntryState, KeyedCall, task_entry, value_entry};
pub use self::memory::MemoryResults;

/// Store of the results of calls with idempotency keys.
#[async_trait]
pub trait KeyedResults: Send + Sync + 'static {
    /// Returns an entry; `None` if the key has no entry.
    ///
    /// # Errors
    /// If the store does not answer.
    async fn read(&self, name: &str) -> Result<Option<StoredEntry>, StoreUnavailable>;

    /// Writes an entry if its revision is still `expected`, or if there is none and `expected` is
    /// `None`. Returns the new revision; `None` if the entry has changed.
    ///
    /// # Errors
    /// If the store does not answer. The entry may have been written nevertheless.
    async fn write(
        &self,
        name: &str,
        expected: Option<u64>,
        value: Bytes,
    ) -> Result<Option<u64>, StoreUnavailable>;

    /// Returns the maximum size of an entry in bytes.
    fn value_bytes_max(&self) -> usize;

    /// Returns whether other gateways have the same store.
    fn is_shared(&self) -> bool;
}

/// Entry of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEntry {
    /// Content, which only gateways read.
    pub value: Bytes,
    /// Number that is different after each change.
    pub revision: u64,
}

/// Error of a store that does not answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the store of results does not answer: {0}")]
pub struct StoreUnavailable(pub String);
