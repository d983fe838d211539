//! Leaves traces for the next call, and looks for traces of an earlier one.

use std::sync::atomic::{AtomicU64, Ordering};

use cofferdam_test_programs::Content;

static CALLS: AtomicU64 = AtomicU64::new(0);
const MARK: u64 = 0x5ec2_e75e_c2e7_5ec2;
const BYTES: usize = 48 << 20;

pub fn attack(name: &str) -> Option<Vec<Content>> {
    match name {
        "leave_traces" => {
            CALLS.store(MARK, Ordering::Relaxed);
            std::hint::black_box(vec![MARK; BYTES / 8]);
            // A handle that is still open when the call ends.
            std::mem::forget(wasip2::cli::stdout::get_stdout());
            let _ = std::fs::write("/tmp/trace", "left");
            super::text("left")
        }
        "find_traces" => super::text(found().to_string()),
        _ => None,
    }
}

/// Returns the number of words of new memory that are not zero, plus other traces.
fn found() -> usize {
    let pages = BYTES >> 16;
    let first = core::arch::wasm32::memory_grow(0, pages);
    assert_ne!(first, usize::MAX, "the memory grows");
    let start = (first << 16) as *const u64;
    // SAFETY: these pages were added above, and nothing else uses them.
    let fresh = unsafe { std::slice::from_raw_parts(start, BYTES / 8) };
    let marks = fresh.iter().filter(|&&word| word != 0).count();
    let file = usize::from(std::fs::metadata("/tmp/trace").is_ok());
    marks + file + usize::from(CALLS.load(Ordering::Relaxed) == MARK)
}
