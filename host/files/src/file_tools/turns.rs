//! A queue for each file, so that concurrent calls change a file one after another.
//!
//! Detecting a concurrent change is not enough under load: of many edits that begin together one
//! succeeds, and each of the others starts over and mostly fails again. In a queue no call fails
//! because of another call of this process. Plugins and other processes do not queue, so a call
//! that has the turn still has to detect their changes.
//!
//! Queues belong to files, not to toolsets: several toolsets over one store share them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedMutexGuard;

use crate::FileLocation;

type Queue = Arc<tokio::sync::Mutex<()>>;

/// All queues that have an entry.
static QUEUES: LazyLock<Mutex<HashMap<FileLocation, Queue>>> = LazyLock::new(Mutex::default);

fn queues() -> MutexGuard<'static, HashMap<FileLocation, Queue>> {
    QUEUES.lock()
}

/// Exclusive right to change one file, released on drop.
pub(super) struct FilePermit {
    // Dropped first: the entry has to be the last to hold the queue.
    _turn: OwnedMutexGuard<()>,
    _entry: QueuedCall,
}

/// A call in the queue of a file, whether it waits or has its turn.
struct QueuedCall {
    location: FileLocation,
    queue: Option<Queue>,
}

impl FilePermit {
    /// Waits until all earlier calls are done with the file. Dropping the future leaves the queue.
    pub(super) async fn wait(location: FileLocation) -> Self {
        let queue = Arc::clone(queues().entry(location.clone()).or_default());
        let entry = QueuedCall { location, queue: Some(Arc::clone(&queue)) };
        let turn = queue.lock_owned().await;
        Self { _turn: turn, _entry: entry }
    }
}

impl Drop for QueuedCall {
    fn drop(&mut self) {
        // A queue is looked up and left under this lock, and an entry is dropped after its call's
        // other references to the queue. So when the last entry is dropped, only the map refers to
        // the queue.
        let mut queues = queues();
        drop(self.queue.take());
        if queues.get(&self.location).is_some_and(|queue| Arc::strong_count(queue) == 1) {
            queues.remove(&self.location);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{FileStore as _, MemoryStore, Quota, StorePath};

    #[tokio::test]
    async fn a_queue_is_fair_and_is_dropped_with_its_last_waiter() {
        let store = MemoryStore::new(Quota::default());
        let location = |name| store.locate(&StorePath::file(name).unwrap());
        let is_known = |name| queues().contains_key(&location(name));
        let first = FilePermit::wait(location("a")).await;
        // Another file has another queue.
        drop(FilePermit::wait(location("b")).await);
        assert!(is_known("a") && !is_known("b"));

        // One of three waiting calls gives up; the others still get their turn.
        let [mut second, mut third, mut fourth] =
            [(); 3].map(|()| Box::pin(FilePermit::wait(location("a"))));
        for waiting in [&mut second, &mut third, &mut fourth] {
            tokio::time::timeout(Duration::ZERO, waiting).await.map(|_| ()).unwrap_err();
        }
        drop(third);
        drop(first);
        tokio::time::timeout(Duration::ZERO, &mut fourth).await.map(|_| ()).unwrap_err();
        drop(second.await);
        drop(fourth.await);
        assert!(!is_known("a"));

        // A waiter that has been given the turn without being polled again gives it up as well.
        let turn = FilePermit::wait(location("a")).await;
        let mut waiting = Box::pin(FilePermit::wait(location("a")));
        tokio::time::timeout(Duration::ZERO, &mut waiting).await.map(|_| ()).unwrap_err();
        drop(turn);
        drop(waiting);
        assert!(!is_known("a"));
    }
}
