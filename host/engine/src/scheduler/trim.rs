//! Gives the memory of an idle engine back to the system.
//!
//! After a call the pool keeps pages that its guest has written, so that the next call need not
//! fault them in again (`keep_pages` in `config.rs`). After many calls side by side that is much:
//! up to 64 places keep 1 MiB each. wasmtime has no function that gives those pages back. But the
//! slot of a memory belongs to the instance that is in it, and the host may write into the memory
//! of its own instances. So this puts an instance of an empty memory into each slot and drops the
//! pages behind it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use wasmtime::{Engine, Instance, Module, Store};

use crate::config::MEMORY_RESERVATION_BYTES;

/// Maximum bytes that the pool of an idle engine keeps: the pages that eight small tools side by
/// side write.
const KEPT_BYTES_MAX: usize = 8 << 20;

/// Set in the number of calls while memory is given back.
const TRIMMING: usize = 1 << (usize::BITS - 1);

/// `(module (memory (export "m") 0))`
const EMPTY_MEMORY: &[u8] = b"\0asm\x01\0\0\0\x05\x03\x01\0\0\x07\x05\x01\x01m\x02\0";

/// The number of calls of an engine, which keeps calls and trimming apart.
#[derive(Default)]
pub(crate) struct RunningCalls {
    calls: AtomicUsize,
    /// Held while memory is given back.
    trimming: Mutex<()>,
}

impl RunningCalls {
    /// Counts a call in, before it creates an instance. Returns whether it is the first. Waits if
    /// memory is being given back, which stops then: for as long as it takes to create one
    /// instance.
    pub(crate) fn begin(&self) -> bool {
        let before = self.calls.fetch_add(1, Ordering::AcqRel);
        if before & TRIMMING != 0 {
            drop(self.trimming.lock().unwrap_or_else(PoisonError::into_inner));
        }
        before == 0
    }

    /// Counts a call out.
    pub(crate) fn end(&self) {
        self.calls.fetch_sub(1, Ordering::AcqRel);
    }

    /// Returns whether there are calls.
    pub(crate) fn are_any(&self) -> bool {
        self.calls.load(Ordering::Acquire) & !TRIMMING > 0
    }

    /// Gives back what the pool of `engine` keeps, unless that is little or there are calls.
    pub(crate) fn trim(&self, engine: &Engine) {
        let kept = || {
            engine.pooling_allocator_metrics().map_or(0, |pool| pool.unused_memory_bytes_resident())
        };
        if kept() <= KEPT_BYTES_MAX {
            return;
        }
        let _trimming = self.trimming.lock().unwrap_or_else(PoisonError::into_inner);
        if self.calls.compare_exchange(0, TRIMMING, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            // What cannot be given back is kept.
            if let Err(error) = empty_slots(engine, || self.are_any()) {
                tracing::debug!(%error, "memory of an idle engine is kept");
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
    // An instance that is dropped would leave its slot to the next one, so all of them stay until
    // the end. Slots that were never used may come before those that were; when there are no more
    // of either, creating an instance fails.
    while warm_slots() > 0 && !is_wanted() {
        let instance = Instance::new(&mut store, &module, &[])?;
        if let Some(memory) = instance.get_memory(&mut store, "m") {
            drop_pages(memory.data_ptr(&store));
        }
    }
    Ok(())
}

/// Drops the pages of a slot whose memory is empty and begins at `base`.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the pool has no other interface")]
fn drop_pages(base: *mut u8) {
    let Ok(bytes) = usize::try_from(MEMORY_RESERVATION_BYTES) else { return };
    // SAFETY: the slot is as long as the reservation of a memory and belongs to an instance that
    // has no pages and no running code; what is in it is not seen again before it is replaced by
    // zeros or by the image of another memory.
    unsafe {
        libc::madvise(base.cast(), bytes, libc::MADV_DONTNEED);
    }
}

#[cfg(not(target_os = "linux"))]
fn drop_pages(_base: *mut u8) {}
