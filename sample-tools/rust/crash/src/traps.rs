//! Calls that end in a trap.

use cofferdam_sdk::{ToolFailure, tool};

/// Panics with a message. The message goes to standard error; the model learns that the guest
/// trapped.
#[tool(read_only)]
#[expect(clippy::panic, reason = "this is what the tool is for")]
pub fn panic(
    /// What to panic with.
    #[tool(default = "the tool was asked to panic")]
    message: String,
) {
    panic!("{message}");
}

/// Aborts, without a message.
#[tool(read_only)]
pub fn abort() {
    std::process::abort();
}

/// Executes the `unreachable` instruction.
#[tool(read_only)]
pub fn unreachable() -> Result<(), ToolFailure> {
    #[cfg(target_arch = "wasm32")]
    core::arch::wasm32::unreachable();
    #[cfg(not(target_arch = "wasm32"))]
    Err(crate::only_in_a_sandbox())
}

/// Divides by zero with the machine's instruction, not with Rust's operator, which panics.
#[tool(read_only)]
pub fn divide_by_zero() -> Result<u32, ToolFailure> {
    #[cfg(target_arch = "wasm32")]
    return Ok(instructions::divide(core::hint::black_box(7), core::hint::black_box(0)));
    #[cfg(not(target_arch = "wasm32"))]
    Err(crate::only_in_a_sandbox())
}

/// Reads an address that lies behind the end of the memory.
#[tool(read_only)]
pub fn out_of_bounds() -> Result<u8, ToolFailure> {
    #[cfg(target_arch = "wasm32")]
    return Ok(instructions::read(core::hint::black_box(0xffff_fff0)));
    #[cfg(not(target_arch = "wasm32"))]
    Err(crate::only_in_a_sandbox())
}

/// Calls itself without end.
#[tool(read_only)]
pub fn stack_overflow() -> Result<u32, ToolFailure> {
    #[cfg(target_arch = "wasm32")]
    return Ok(instructions::recurse(0));
    #[cfg(not(target_arch = "wasm32"))]
    Err(crate::only_in_a_sandbox())
}

/// Instructions that safe Rust prevents. The arguments come through `black_box`, so that the
/// compiler has to emit the instructions; the tests of the host check which traps they cause.
#[cfg(target_arch = "wasm32")]
mod instructions {
    use std::sync::atomic::{AtomicU32, Ordering};

    #[expect(
        unsafe_code,
        reason = "undefined for 0 in Rust, but `i32.div_u` is what it compiles to, and that traps"
    )]
    #[inline(never)]
    pub(super) fn divide(dividend: u32, divisor: u32) -> u32 {
        unsafe { dividend.checked_div(divisor).unwrap_unchecked() }
    }

    #[expect(
        unsafe_code,
        reason = "the address is not ours to read, and the sandbox has to \
        notice"
    )]
    #[inline(never)]
    pub(super) fn read(address: usize) -> u8 {
        unsafe { core::ptr::with_exposed_provenance::<u8>(address).read_volatile() }
    }

    /// Recurses, and works on its return, so that the compiler cannot turn the recursion into a
    /// loop. It keeps nothing in memory, so that the call stack overflows before the stack in
    /// memory.
    #[expect(unconditional_recursion, reason = "this is what the tool is for")]
    #[inline(never)]
    pub(super) fn recurse(depth: u32) -> u32 {
        static DEPTH: AtomicU32 = AtomicU32::new(0);
        let deepest = recurse(DEPTH.fetch_add(1, Ordering::Relaxed));
        DEPTH.fetch_xor(deepest ^ depth, Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{Tool, json, testing};

    use super::{divide_by_zero, out_of_bounds, stack_overflow, unreachable};

    fn check<T: Tool>() {
        let failure = testing::call::<T>(json!({})).unwrap_err();
        assert_eq!(failure.message(), "this tool only crashes in a sandbox", "{}", T::NAME);
    }

    #[test]
    fn leave_the_test_process_alone() {
        check::<unreachable>();
        check::<divide_by_zero>();
        check::<out_of_bounds>();
        check::<stack_overflow>();
    }
}
