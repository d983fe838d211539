//! Places that calls have left, kept for the next call of the same plugin on the same core.
//!
//! The books are one for all cores: a lock, and memory that each core has to fetch from the other with every call. A core on
//! which one call of a plugin follows the other needs them no more than once: the place, and the memory that came with it, stay
//! booked for the plugin.
//!
//! Nobody goes without for that. Whoever does not find what it needs in the books collects all that is kept before it is refused
//! or waits, and while anybody waits nothing is kept.

use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cofferdam_tool::PluginName;

/// A place as it stands in the books.
pub(super) struct Held {
    pub(super) plugin: PluginName,
    /// What is reserved with it.
    pub(super) memory_bytes: u64,
}

/// What is kept, at most one place for each core.
pub(super) struct KeptPlaces {
    /// Whether somebody needs places that may be kept. Written under the lock of the books.
    closed: AtomicBool,
    cores: Box<[Slot]>,
}

/// On memory of its own: what another core writes beside it would slow this one down. Processors fetch two lines at a time.
#[repr(align(128))]
struct Slot(Mutex<Option<Held>>);

impl KeptPlaces {
    pub(super) fn new(cores: usize) -> Self {
        Self { closed: AtomicBool::new(false), cores: (0..cores).map(|_| Slot(Mutex::default())).collect() }
    }

    /// What is kept for `core`.
    pub(super) fn take(&self, core: usize) -> Option<Held> {
        self.cores.get(core)?.lock().take()
    }

    /// Keeps a place for `core`. What cannot be kept comes back.
    pub(super) fn keep(&self, core: usize, held: Held) -> Option<Held> {
        let Some(slot) = self.cores.get(core) else { return Some(held) };
        if self.closed.load(Ordering::Relaxed) {
            return Some(held);
        }
        {
            let mut slot = slot.lock();
            if slot.is_some() {
                return Some(held);
            }
            *slot = Some(held);
        }
        // Whoever closes looks into the slots afterwards: either it finds the place there, or its closing is seen here.
        fence(Ordering::SeqCst);
        if self.closed.load(Ordering::Relaxed) { slot.lock().take() } else { None }
    }

    /// Nothing is kept from here on, but by those who have looked already; their places are in the slots, or come back to them.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Everything that is kept.
    pub(super) fn all(&self) -> impl Iterator<Item = Held> {
        self.cores.iter().filter_map(|slot| slot.lock().take())
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.cores.iter().filter(|slot| slot.lock().is_some()).count()
    }

    /// Places are kept again, unless somebody waits.
    pub(super) fn open_unless(&self, is_waited_for: bool) {
        // It is read with every call, on all cores: it is written when it changes.
        if self.closed.load(Ordering::Relaxed) != is_waited_for {
            self.closed.store(is_waited_for, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
    }
}

impl Slot {
    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
