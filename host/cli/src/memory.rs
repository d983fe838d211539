//! Returns freed memory to the system while no call runs.
//!
//! mimalloc has a heap for each thread, and returns free pages only while that thread allocates.
//! Therefore each thread that has worked for calls collects its own heap when the engine is idle.
//! The engine's threads call [`release`] as the engine's idle hook. For the runtime's threads,
//! [`release`] spawns one task for each of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Runtime of the program.
static RUNTIME: OnceLock<Handle> = OnceLock::new();
/// True from the start of a release until every task of it has started.
static IS_RELEASING: AtomicBool = AtomicBool::new(false);
/// Maximum time that a thread of the runtime waits for the others. Waiting keeps one thread from
/// running two of the tasks.
const MEETING_MAX: Duration = Duration::from_millis(5);

/// Sets the runtime whose threads collect their heaps too.
pub(crate) fn watch(runtime: &Handle) {
    let _ = RUNTIME.set(runtime.clone());
}

/// Collects the heaps of this thread and of the runtime's threads.
pub(crate) fn release() {
    collect();
    if let Some(runtime) = RUNTIME.get()
        && !IS_RELEASING.swap(true, Ordering::AcqRel)
    {
        let threads = runtime.metrics().num_workers();
        let arrived = Arc::new(AtomicUsize::new(0));
        for _ in 0..threads {
            let arrived = Arc::clone(&arrived);
            runtime.spawn(async move { collect_on_each(&arrived, threads) });
        }
    }
}

/// Waits until `threads` tasks have arrived, for at most [`MEETING_MAX`], and then collects the
/// heap of this thread.
fn collect_on_each(arrived: &AtomicUsize, threads: usize) {
    let started = Instant::now();
    if arrived.fetch_add(1, Ordering::AcqRel) + 1 == threads {
        IS_RELEASING.store(false, Ordering::Release);
    }
    while arrived.load(Ordering::Acquire) < threads && started.elapsed() < MEETING_MAX {
        thread::yield_now();
    }
    collect();
}

#[expect(unsafe_code, reason = "the allocator has no other interface")]
fn collect() {
    // SAFETY: `mi_collect` frees unused pages of the calling thread's heap. Any thread may call it
    // at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
