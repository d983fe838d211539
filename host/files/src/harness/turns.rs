//! A queue for each file, so that changes of one file by calls at the same time are made one after
//! another.
//!
//! Detecting that somebody else has changed a file is not enough under load: of many edits that
//! begin together one succeeds, and each of the others is made anew and mostly loses again. In a
//! queue nobody loses to a call of this process. Plugins and other processes do not queue, so
//! whoever has the turn still has to look for their changes.
//!
//! Queues belong to files and not to toolsets: several toolsets over one store share them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::FileLocation;

type Queue = Arc<tokio::sync::Mutex<()>>;

/// The queues that somebody is in.
static QUEUES: LazyLock<Mutex<HashMap<FileLocation, Queue>>> = LazyLock::new(Mutex::default);

fn queues() -> MutexGuard<'static, HashMap<FileLocation, Queue>> {
    QUEUES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The right to change one file, until it is dropped.
pub(super) struct Turn {
    // Dropped first: the entry has to be the last to hold the queue.
    _turn: OwnedMutexGuard<()>,
    _entry: Entry,
}

/// A call in the queue of a file, whether it waits or has its turn.
struct Entry {
    location: FileLocation,
    queue: Option<Queue>,
}

impl Turn {
    /// Waits until all who came before are done with the file. Dropping the future leaves the
    /// queue.
    pub(super) async fn wait(location: FileLocation) -> Self {
        let queue = Arc::clone(queues().entry(location.clone()).or_default());
        let entry = Entry { location, queue: Some(Arc::clone(&queue)) };
        let turn = queue.lock_owned().await;
        Self { _turn: turn, _entry: entry }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // A queue is found and left under this lock, and an entry goes after everything else that
        // its call has of the queue: the last entry finds the map alone.
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
    async fn a_queue_is_fair_and_is_gone_when_everybody_has_left() {
        let store = MemoryStore::new(Quota::default());
        let location = |name| store.locate(&StorePath::file(name).unwrap());
        let is_known = |name| queues().contains_key(&location(name));
        let first = Turn::wait(location("a")).await;
        // Another file has another queue.
        drop(Turn::wait(location("b")).await);
        assert!(is_known("a") && !is_known("b"));

        // Of three that wait the second gives up, and the third is not forgotten.
        let [mut second, mut third, mut fourth] =
            [(); 3].map(|()| Box::pin(Turn::wait(location("a"))));
        for waiting in [&mut second, &mut third, &mut fourth] {
            tokio::time::timeout(Duration::ZERO, waiting).await.map(|_| ()).unwrap_err();
        }
        drop(third);
        drop(first);
        tokio::time::timeout(Duration::ZERO, &mut fourth).await.map(|_| ()).unwrap_err();
        drop(second.await);
        drop(fourth.await);
        assert!(!is_known("a"));

        // One that has the turn without having noticed gives it up as well.
        let turn = Turn::wait(location("a")).await;
        let mut waiting = Box::pin(Turn::wait(location("a")));
        tokio::time::timeout(Duration::ZERO, &mut waiting).await.map(|_| ()).unwrap_err();
        drop(turn);
        drop(waiting);
        assert!(!is_known("a"));
    }
}
