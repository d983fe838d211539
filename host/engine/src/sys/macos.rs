//! Calls of macOS that no library of this workspace wraps.
//!
//! Written from the headers of the system and never run on it.

#![expect(unsafe_code, reason = "system calls without a safe wrapper")]

use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::ptr;

unsafe extern "C" {
    /// Confines the process by a profile; part of the C library.
    fn sandbox_init(profile: *const c_char, flags: u64, error: *mut *mut c_char) -> c_int;
}

/// Profile without files, network, processes and services. Descriptors that are open stay usable.
/// The C library reads the number of processors and the size of pages with `sysctl`.
const PROFILE: &CStr = c"(version 1)(deny default)(allow sysctl-read)";

/// Removes all rights from this process that [`PROFILE`] does not list. Cannot be undone.
pub(super) fn confine_process() -> io::Result<()> {
    let mut message = ptr::null_mut();
    // SAFETY: the profile ends with a zero byte, and `message` is writable storage for a pointer.
    // The message is not freed: it exists only after an error, once per process.
    match unsafe { sandbox_init(PROFILE.as_ptr(), 0, &raw mut message) } {
        0 => Ok(()),
        _ => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Returns the memory that a child uses, in bytes, compressed and swapped pages included.
pub(super) fn footprint_bytes(process: c_int) -> io::Result<u64> {
    // SAFETY: the structure consists of integers, for which zeros are valid.
    let mut usage: libc::rusage_info_v2 = unsafe { std::mem::zeroed() };
    let buffer = ptr::from_mut(&mut usage).cast();
    // SAFETY: the flavor is that of the structure, which outlives the call.
    match unsafe { libc::proc_pid_rusage(process, libc::RUSAGE_INFO_V2, buffer) } {
        0 => Ok(usage.ri_phys_footprint),
        _ => Err(io::Error::last_os_error()),
    }
}
