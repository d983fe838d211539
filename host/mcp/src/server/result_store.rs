//! Stores results that are too long for a client for an hour, under addresses that cannot be
//! guessed.

use data_encoding::HEXLOWER;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum total size of all stored results, in bytes. The oldest are evicted first.
const BYTES_MAX: usize = 64 << 20;
/// Lifetime of a stored result.
const AGE_MAX: Duration = Duration::from_secs(60 * 60);
/// Prefix of the addresses of stored results.
pub(super) const SCHEME: &str = "cofferdam://results/";

/// Long results by address.
#[derive(Default)]
pub(super) struct ResultStore {
    results: Mutex<VecDeque<StoredResult>>,
}

struct StoredResult {
    uri: String,
    owner: String,
    since: Instant,
    text: Arc<str>,
}

impl ResultStore {
    /// Stores a result for a principal and returns its address. Returns `None` if the system has no
    /// random numbers, or if the result exceeds the total limit.
    pub(super) fn put(&self, owner: &str, text: &str) -> Option<String> {
        if text.len() > BYTES_MAX {
            return None;
        }
        let mut id = [0; 16];
        getrandom::fill(&mut id).ok()?;
        let uri = format!("{SCHEME}{}", HEXLOWER.encode(&id));
        let stored = StoredResult {
            uri: uri.clone(),
            owner: owner.to_owned(),
            since: Instant::now(),
            text: text.into(),
        };
        let mut all = self.results.lock();
        all.push_back(stored);
        let mut bytes: usize = all.iter().map(|stored| stored.text.len()).sum();
        while bytes > BYTES_MAX
            || all.front().is_some_and(|oldest| oldest.since.elapsed() > AGE_MAX)
        {
            bytes -= all.pop_front().map_or(bytes, |oldest| oldest.text.len());
        }
        Some(uri)
    }

    /// Returns the result at an address if it exists and belongs to the principal.
    pub(super) fn get(&self, owner: &str, uri: &str) -> Option<Arc<str>> {
        let all = self.results.lock();
        let stored = all.iter().find(|stored| stored.uri == uri && stored.owner == owner)?;
        (stored.since.elapsed() <= AGE_MAX).then(|| Arc::clone(&stored.text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_of_a_result_can_read_it() {
        let keep = ResultStore::default();
        let uri = keep.put("a", "text").unwrap();
        assert_eq!(keep.get("a", &uri).as_deref(), Some("text"));
        assert_eq!(keep.get("b", &uri), None);
        assert_eq!(keep.get("a", "cofferdam://results/0"), None);
    }

    #[test]
    fn the_oldest_result_makes_room() {
        let keep = ResultStore::default();
        let half = "x".repeat(BYTES_MAX / 2);
        let uris: Vec<_> = (0..3).map(|_| keep.put("a", &half).unwrap()).collect();
        assert_eq!(keep.get("a", &uris[0]), None);
        assert!(keep.get("a", &uris[1]).is_some() && keep.get("a", &uris[2]).is_some());
        assert_eq!(keep.put("a", &"x".repeat(BYTES_MAX + 1)), None);
    }
}
