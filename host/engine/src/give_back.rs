//! Gives memory that calls have freed back to the system.
//!
//! The C library keeps what was freed for the next allocation: one result that is large as a tree pins a hundred MiB for as
//! long as the process lives. That is not lost, but it looks as if it were, and others could use it. So an engine that has
//! been idle for a moment gives it back. On systems with another C library nothing happens, and little in programs that have
//! another allocator, as `cofferdam` has: mimalloc gives back by itself, but only while it is used.

/// Gives back what is free. Takes some milliseconds for each hundred MiB, so not while calls run.
#[cfg(all(target_os = "linux", target_env = "gnu", any(target_arch = "x86_64", target_arch = "aarch64")))]
#[expect(unsafe_code, reason = "the allocator has no other interface")]
pub(crate) fn give_back_free_memory() {
    // SAFETY: takes the allocator's own locks and touches free memory alone. May be called by any thread at any time.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(not(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
pub(crate) fn give_back_free_memory() {}
