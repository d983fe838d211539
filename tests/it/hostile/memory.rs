//! Guests that grow: memories, tables, stacks, instances.

use super::{End, Launch, attacks};
use crate::module::Module;

attacks! {
    /// Memory is allocated and filled until allocation fails.
    allocate_without_end: Launch::Tool("crash", "allocate", "{}") => End::Error("MemoryLimit"),
    /// Two gibibytes in one step.
    grow_in_one_step: Launch::Tool("crash", "grow_handled", "{}") => End::Says("ok"),
    /// Memory grows page by page, and the refusal is ignored.
    grow_by_pages_and_insist: Launch::Module(|| Module {
        body: "(loop $again (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1)))) \
            unreachable",
        ..Module::default()
    }) => End::Error("MemoryLimit"),
    /// Tables take memory of the host and not of the guest.
    grow_tables: Launch::Module(|| Module {
        fields: "(table $table 0 funcref)",
        body: "(if (i32.ne (table.grow $table (ref.null func) (i32.const 10000000)) (i32.const -1))
              (then unreachable))
            (loop $again
              (br_if $again (i32.ne (table.grow $table (ref.null func) (i32.const 1)) (i32.const -1))))",
        ..Module::default()
    }) => End::Says("ok"),
    /// One module has two tables, which honest modules have as well.
    two_tables_in_a_module: Launch::Module(|| Module {
        fields: "(table 0 funcref) (table 0 funcref)",
        ..Module::default()
    }) => End::Says("ok"),
    /// Each of four memories stays below the limit.
    four_memories_that_are_too_large_together: Launch::Text(|| instances("(memory 400)", 4))
        => End::Error("MemoryLimit"),
    /// More memories than the screen allows.
    nine_memories: Launch::Text(|| instances("(memory 1)", 9)) => End::Refused("memories; the \
        limit is 8"),
    /// As many memories as the screen allows, more than the pool has.
    eight_memories: Launch::Text(|| instances("(memory 1)", 8)) => End::Refused("interface"),
    /// A memory that begins with 4 GiB.
    four_gibibytes_from_the_start: Launch::Text(|| instances("(memory 65536)", 1))
        => End::Refused("bytes of initial memory"),
    /// A memory of 64 bits has no end.
    a_memory_of_64_bits: Launch::Text(|| instances("(memory i64 1)", 1))
        => End::Refused("proposal that is switched off"),
    /// A memory that threads share outlives the call.
    a_shared_memory: Launch::Text(|| instances("(memory 1 2 shared)", 1)) => End::Refused("shared memory"),
    /// Collected objects are not counted by any limit.
    collected_objects: Launch::Text(|| instances("(type (array i8))", 1))
        => End::Refused("proposal that is switched off"),
    /// More instances than the screen allows.
    a_thousand_instances: Launch::Text(|| instances("", 1_001)) => End::Refused("instances; the limit is 1000"),
    /// More instances than one call may create.
    nine_hundred_instances: Launch::Text(|| instances("", 900)) => End::Refused("interface"),
    /// Recursion overflows the host's stack.
    recursion_without_end: Launch::Tool("crash", "stack_overflow", "{}") => End::Error("Trap.StackOverflow"),
    /// Recursion with a thousand locals in each frame jumps over a guard page.
    recursion_with_large_frames: Launch::Module(|| Module {
        fields: LARGE_FRAMES,
        body: "(drop (call $deep (i64.const 0)))",
        ..Module::default()
    }) => End::Error("Trap.StackOverflow"),
    /// Recursion in the allocator, on the stack of the host function that called it.
    recursion_in_realloc: Launch::Module(|| Module {
        fields: "(func $deep (param i32) (result i32)
            (i32.add (call $deep (i32.add (local.get 0) (i32.const 1))) (local.get 0)))",
        realloc: "(drop (call $deep (i32.const 0)))",
        ..Module::default()
    }) => End::Error("Trap.StackOverflow"),
    /// Every exception takes memory that is never released.
    exceptions_that_stay_referenced: Launch::Module(|| Module {
        fields: LARGE_EXCEPTION,
        body: "(loop $again (block $caught
                (try_table (catch_all $caught) (call $throw (v128.const i64x2 1 2))) unreachable)
              (br $again))",
        ..Module::default()
    }) => End::Error("MemoryLimit"),
}

/// Exceptions of 512 bytes: small ones would fill the memory only after a million throws.
const LARGE_EXCEPTION: &str = "(tag $tag (param v128 v128 v128 v128 v128 v128 v128 v128
      v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128 v128
      v128 v128 v128 v128 v128 v128 v128 v128))
    (func $throw (param v128)
      local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
      local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
      local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
      local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0 local.get 0
      throw $tag)";

/// Each frame keeps many values alive across the call.
const LARGE_FRAMES: &str = "(func $deep (param i64) (result i64) (local i64 i64 i64 i64 i64 i64 i64 i64)
    (local.set 1 (i64.mul (local.get 0) (i64.const 3))) (local.set 2 (i64.mul (local.get 1) (i64.const 5)))
    (local.set 3 (i64.mul (local.get 2) (i64.const 7))) (local.set 4 (i64.mul (local.get 3) (i64.const 9)))
    (local.set 5 (i64.mul (local.get 4) (i64.const 11))) (local.set 6 (i64.mul (local.get 5) (i64.const 13)))
    (local.set 7 (i64.mul (local.get 6) (i64.const 15))) (local.set 8 (i64.mul (local.get 7) (i64.const 17)))
    (i64.add (call $deep (local.get 8)) (i64.xor (local.get 1) (i64.xor (local.get 2) (i64.xor (local.get 3)
    (i64.xor (local.get 4) (i64.xor (local.get 5) (i64.xor (local.get 6) (local.get 7)))))))))";

/// Returns a component with a function, and a module of `fields` that is instantiated `count`
/// times.
fn instances(fields: &str, count: usize) -> String {
    let instances = "(core instance (instantiate $n))".repeat(count);
    format!(
        r#"(component
          (core module $n {fields})
          {instances}
          (core module $m (func (export "f") (result i32) (i32.const 1)))
          (core instance $i (instantiate $m))
          (func (export "f") (result u32) (canon lift (core func $i "f"))))"#
    )
}
