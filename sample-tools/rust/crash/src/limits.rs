//! Calls that exceed a limit.

use std::hint::black_box;
use std::thread;
use std::time::Duration;

use cofferdam_sdk::tool;

const MEBIBYTE: usize = 1 << 20;

/// Counts without end and without calling the host.
#[tool(read_only)]
pub fn spin() {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// Waits in the host, then answers `ok`.
#[tool(read_only)]
pub fn sleep(
    /// How long to wait, in milliseconds.
    #[tool(default = 60_000)]
    ms: u32,
) -> &'static str {
    thread::sleep(Duration::from_millis(ms.into()));
    "ok"
}

/// Allocates and fills memory, mebibyte by mebibyte, and does not survive a refusal; answers with
/// the number of mebibytes.
#[tool(read_only)]
pub fn allocate(
    /// How much to allocate; more than any address space by default.
    #[tool(default = 65_536)]
    mebibytes: u32,
) -> u32 {
    let mut held = Vec::new();
    for _ in 0..mebibytes {
        held.push(black_box(vec![1_u8; MEBIBYTE]));
    }
    mebibytes
}

/// Asks for a lot of memory at once and lives with a refusal: answers `ok` when it was refused and
/// `granted` when it was not.
#[tool(read_only)]
pub fn grow_handled(
    /// How much to ask for.
    #[tool(default = 2047)]
    mebibytes: u32,
) -> &'static str {
    let bytes = (mebibytes as usize).saturating_mul(MEBIBYTE);
    match black_box(Vec::<u8>::new()).try_reserve_exact(bytes) {
        Ok(()) => "granted",
        Err(_) => "ok",
    }
}

/// Asks to exit in the middle of the call.
#[tool(read_only)]
pub fn exit(
    /// The exit code. WASI 0.2 tells a host no more than whether it was 0.
    #[tool(default = 0)]
    code: i32,
) {
    std::process::exit(code);
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::{allocate, grow_handled, sleep};

    #[test]
    fn stay_within_small_limits() {
        assert_eq!(testing::call::<sleep>(json!({"ms": 1})), Ok(json!("ok")));
        assert_eq!(testing::call::<allocate>(json!({"mebibytes": 2})), Ok(json!(2)));
        assert_eq!(testing::call::<grow_handled>(json!({"mebibytes": 1})), Ok(json!("granted")));
    }
}
