//! The clock of a program: the time that the host passes, which stands still.
//!
//! QuickJS asks the C library for the time. These functions replace those of the library, so that
//! `Date` needs no changes and the component imports no clock.

#![allow(unsafe_code, reason = "replaces functions of the C library")]

use std::ffi::{c_int, c_long, c_void};

use crate::run;

/// `struct timeval` of WASI's C library.
#[repr(C)]
struct Timeval {
    seconds: i64,
    microseconds: i64,
}

/// `struct timespec` of WASI's C library.
#[repr(C)]
struct Timespec {
    seconds: i64,
    nanoseconds: c_long,
}

/// Whole seconds and the milliseconds after them.
fn now() -> (i64, i64) {
    #[allow(clippy::cast_possible_truncation, reason = "saturates")]
    let milliseconds = run::now() as i64;
    (milliseconds.div_euclid(1000), milliseconds.rem_euclid(1000))
}

#[unsafe(no_mangle)]
extern "C" fn gettimeofday(time: *mut Timeval, _zone: *mut c_void) -> c_int {
    let (seconds, milliseconds) = now();
    // SAFETY: the caller passes memory for the time.
    unsafe { time.write(Timeval { seconds, microseconds: milliseconds * 1000 }) };
    0
}

#[unsafe(no_mangle)]
extern "C" fn clock_gettime(_clock: *const c_void, time: *mut Timespec) -> c_int {
    let (seconds, milliseconds) = now();
    #[allow(clippy::cast_possible_truncation, reason = "less than a second")]
    let nanoseconds = (milliseconds * 1_000_000) as c_long;
    // SAFETY: the caller passes memory for the time.
    unsafe { time.write(Timespec { seconds, nanoseconds }) };
    0
}
