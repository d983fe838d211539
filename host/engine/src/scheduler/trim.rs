//! Returns the memory of an idle engine to the system.
//!
//! After a call the pool keeps pages that its guest has written, so that the next call need not
//! fault them in again (`keep_pages` in `config.rs`). After many concurrent calls that is a lot: up
//! to 64 slots keep 1 MiB each. wasmtime has no function that releases those pages. But the slot of
//! a memory belongs to the instance in it, and the host may write into the memory of its own
//! instances. So this module puts an instance with an empty memory into each slot and drops the
//! pages behind it.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use wasmtime::{Engine, Instance, Module, Store};

/// Maximum number of bytes that the pool of an idle engine keeps: the pages that eight concurrent
/// small tools write.
const UNUSED_BYTES_MAX: usize = 8 << 20;

/// Flag in the number of calls that is set while memory is being returned.
const TRIMMING: usize = 1 << (usize::BITS - 1);

/// Module `(module (memory (export "m") 0))`.
const EMPTY_MEMORY: &[u8] = b"\0asm\x01\0\0\0\x05\x03\x01\0\0\x07\x05\x01\x01m\x02\0";

/// Number of calls of an engine. It excludes trimming while calls run.
#[derive(Default)]
pub(crate) struct RunningCalls {
    calls: AtomicUsize,
    /// Held while memory is being returned.
    trimming: Mutex<()>,
}

impl RunningCalls {
    /// Counts a call, before it creates an instance. Returns whether it is the first. If memory is
    /// being returned, waits until that stops, which takes as long as creating one instance.
    pub(crate) fn begin(&self) -> bool {
        let before = self.calls.fetch_add(1, Ordering::AcqRel);
        if before & TRIMMING != 0 {
            drop(self.trimming.lock());
        }
        before == 0
    }

    /// Removes a call from the count.
    pub(crate) fn end(&self) {
        self.calls.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether calls are running.
    pub(crate) fn are_any(&self) -> bool {
        self.calls.load(Ordering::Acquire) & !TRIMMING > 0
    }

    /// Returns the pages that the pool of `engine` keeps, unless they are few or calls are running.
    pub(crate) fn trim(&self, engine: &Engine) {
        let unused = || {
            engine.pooling_allocator_metrics().map_or(0, |pool| pool.unused_memory_bytes_resident())
        };
        if unused() <= UNUSED_BYTES_MAX {
            return;
        }
        let _trimming = self.trimming.lock();
        if self.calls.compare_exchange(0, TRIMMING, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // Pages that cannot be returned stay.
            if let Err(error) = empty_slots(engine, || self.are_any()) {
                tracing::debug!(%error, "memory of an idle engine cannot be returned");
            }
            self.calls.fetch_and(!TRIMMING, Ordering::AcqRel);
        }
    }
}

/// Drops the pages of the slots that have been in use, until `is_wanted`. No other instance may be
/// created meanwhile.
fn empty_slots(engine: &Engine, is_wanted: impl Fn() -> bool) -> wasmtime::Result<()> {
    let module = Module::new(engine, EMPTY_MEMORY)?;
    let mut store = Store::new(engine, ());
    let warm_slots =
        || engine.pooling_allocator_metrics().map_or(0, |pool| pool.unused_warm_memories());
    // A dropped instance would leave its slot to the next one, so all of them stay until the end.
    // Unused slots may come before used ones; when there are no more of either, creating an
    // instance fails.
    while warm_slots() > 0 && !is_wanted() {
        let instance = Instance::new(&mut store, &module, &[])?;
        if let Some(memory) = instance.get_memory(&mut store, "m") {
            drop_pages(memory.data_ptr(&store));
        }
    }
    Ok(())
}

/// Drops the pages of a slot whose memory is empty and starts at `base`.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the pool has no other interface")]
fn drop_pages(base: *mut u8) {
    let Ok(bytes) = usize::try_from(crate::config::MEMORY_RESERVATION_BYTES) else { return };
    // SAFETY: the slot is as long as the reservation of a memory and belongs to an instance that
    // has no pages and no running code; its contents are not seen again before they are replaced by
    // zeros or by the image of another memory.
    unsafe {
        libc::madvise(base.cast(), bytes, libc::MADV_DONTNEED);
    }
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(_base: *mut u8) {}
