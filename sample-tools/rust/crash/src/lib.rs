//! One tool for each way in which a call can end, for demonstrations and for tests of hosts. After
//! any of these calls, the next one has to work.
//!
//! Natively, tools that would end the test process report a failure instead.

mod answers;
mod limits;
mod traps;

pub use answers::{fail, fail_transiently, huge_output, invalid_json, ok, print, read_stdin};
pub use limits::{allocate, exit, grow_handled, sleep, spin};
pub use traps::{abort, divide_by_zero, out_of_bounds, panic, stack_overflow, unreachable};

cofferdam_sdk::plugin!(
    ok,
    fail,
    fail_transiently,
    invalid_json,
    huge_output,
    print,
    read_stdin,
    panic,
    abort,
    unreachable,
    divide_by_zero,
    out_of_bounds,
    stack_overflow,
    spin,
    sleep,
    allocate,
    grow_handled,
    exit,
);

/// Returns the failure of a tool that would end the test process, not only a sandbox.
#[cfg(not(target_arch = "wasm32"))]
fn only_in_a_sandbox() -> cofferdam_sdk::ToolFailure {
    cofferdam_sdk::ToolFailure::new("this tool only crashes in a sandbox").permanent()
}
