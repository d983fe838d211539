//! Store in the memory of one gateway.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{KeyedResults, StoreUnavailable, StoredEntry};

/// Maximum size of all entries together in bytes. The oldest ones are forgotten first.
const STORE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Maximum size of one entry in bytes, so that a few results do not replace all others.
const VALUE_BYTES_MAX: usize = 512 * 1024;
/// Bytes that an entry takes in addition to its content.
const ENTRY_BYTES: usize = 256;
/// Time after which an entry is forgotten: callers repeat a call within a day or not at all.
const AGE_MAX: Duration = Duration::from_hours(24);

/// Results in the memory of one gateway, which are lost with it.
#[derive(Debug, Default)]
pub struct MemoryResults {
    state: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    entries: BTreeMap<String, (StoredEntry, Instant)>,
    /// Names by revision, which is the order in which they were written.
    names: BTreeMap<u64, String>,
    revision: u64,
    bytes: usize,
}

impl MemoryResults {}

impl MemoryState {
    fn remove(&mut self, name: &str) {
        if let Some((entry, _)) = self.entries.remove(name) {
            self.names.remove(&entry.revision);
            self.bytes = self.bytes.saturating_sub(entry_bytes(&entry.value));
        }
    }

    /// Forgets what is old, and the oldest of too much.
    fn forget_old(&mut self) {
        while let Some(name) = self.names.values().next().cloned() {
            let is_old =
                self.entries.get(&name).is_none_or(|(_, written)| written.elapsed() >= AGE_MAX);
            if !is_old && self.bytes <= STORE_BYTES_MAX {
                break;
            }
            self.remove(&name);
        }
    }
}

#[async_trait]
impl KeyedResults for MemoryResults {
    async fn read(&self, name: &str) -> Result<Option<StoredEntry>, StoreUnavailable> {
        let mut state = self.state.lock();
        state.forget_old();
        Ok(state.entries.get(name).map(|(entry, _)| entry.clone()))
    }

    async fn write(
        &self,
        name: &str,
        expected: Option<u64>,
        value: Bytes,
    ) -> Result<Option<u64>, StoreUnavailable> {
        let mut state = self.state.lock();
        state.forget_old();
        if state.entries.get(name).map(|(entry, _)| entry.revision) != expected {
            return Ok(None);
        }
        state.remove(name);
        state.revision += 1;
        let revision = state.revision;
        state.bytes = state.bytes.saturating_add(entry_bytes(&value));
        state.names.insert(revision, name.to_owned());
        state.entries.insert(name.to_owned(), (StoredEntry { value, revision }, Instant::now()));
        state.forget_old();
        Ok(Some(revision))
    }

    fn value_bytes_max(&self) -> usize {
        VALUE_BYTES_MAX
    }

    fn is_shared(&self) -> bool {
        false
    }
}

fn entry_bytes(value: &Bytes) -> usize {
    value.len().saturating_add(ENTRY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn entries_change_by_their_revision_and_are_forgotten_in_time() {
        let store = MemoryResults::default();
        let value = Bytes::from_static(b"a");
        let first = store.write("k", None, value.clone()).await.unwrap().unwrap();
        assert_eq!(store.write("k", None, value.clone()).await, Ok(None));
        let second = store.write("k", Some(first), value.clone()).await.unwrap().unwrap();
        assert_eq!(store.write("k", Some(first), value.clone()).await, Ok(None));
        assert_eq!(store.read("k").await.unwrap().unwrap().revision, second);
        assert_eq!(store.write("other", Some(second), value).await, Ok(None));
        tokio::time::advance(AGE_MAX).await;
        assert_eq!(store.read("k").await, Ok(None));
        assert_eq!(store.state.lock().bytes, 0);
    }

    #[tokio::test]
    async fn the_oldest_of_too_much_is_forgotten() {
        let store = MemoryResults::default();
        let large = Bytes::from(vec![0; VALUE_BYTES_MAX]);
        for number in 0..200 {
            store.write(&number.to_string(), None, large.clone()).await.unwrap().unwrap();
        }
        assert!(store.state.lock().bytes <= STORE_BYTES_MAX);
        assert_eq!(store.read("0").await, Ok(None));
        assert!(store.read("199").await.unwrap().is_some());
    }
}
