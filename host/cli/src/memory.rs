//! Gives memory that calls have freed back to the system while nothing runs.
//!
//! mimalloc has a heap for each thread, and gives free pages back only while their thread
//! allocates. So each thread that has worked for calls collects its own heap when the engine is
//! idle: those of the engine call [`release`] as the engine's idle hook, and those of the runtime
//! are asked to by a task for each of them.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

/// Runtime of the program.
static RUNTIME: OnceLock<Handle> = OnceLock::new();
/// True while threads of the runtime collect their heaps.
static IS_RELEASING: AtomicBool = AtomicBool::new(false);
/// Maximum time that a thread of the runtime waits for the others, so that none takes two of the
/// tasks.
const MEETING_MAX: Duration = Duration::from_millis(5);

/// Names the runtime whose threads collect their heaps as well.
pub(crate) fn watch(runtime: &Handle) {
    let _ = RUNTIME.set(runtime.clone());
}

/// Collects the heap of this thread, and those of the runtime's threads.
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

/// Collects the heap of this thread when as many threads as there are have arrived.
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
    // SAFETY: frees pages of the calling thread's heap that hold nothing, and may be called by any
    // thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
