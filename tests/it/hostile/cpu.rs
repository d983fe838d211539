//! Guests that take the CPU and do not yield it.

use super::{End, Launch, attacks};
use crate::module::{Answer, Item, Module};

const LOOP: &str = "(loop $again (br $again))";
/// Imports the remaining time, which differs between a call and listing the tools.
const TIME_LEFT: &str =
    r#"(import "cofferdam:plugin/call@0.1.0" "time-left-ms" (func $left (result i64)))"#;

attacks! {
    /// A loop in an export never ends.
    loop_in_an_export: Launch::Tool("crash", "spin", "{}") => End::Error("Timeout"),
    /// The start function of a module runs before any call.
    loop_in_the_start_function: Launch::Module(|| Module {
        world: "import cofferdam:plugin/call@0.1.0;",
        imports: TIME_LEFT,
        fields: "(func $start (if (i64.lt_u (call $left) (i64.const 2000)) (then (loop $again (br $again)))))
            (start $start)",
        ..Module::default()
    }) => End::Error("Timeout"),
    /// The host calls the guest's allocator for the arguments.
    loop_in_realloc: Launch::Module(|| Module { realloc: LOOP, ..Module::default() })
        => End::Error("Timeout"),
    /// The guest runs once more after its result was read.
    loop_in_post_return: Launch::Module(|| Module {
        fields: r#"(func (export "cabi_post_cofferdam:plugin/tools@0.1.0#call-tool") (param i32)
            (loop $again (br $again)))"#,
        ..Module::default()
    }) => End::Error("Timeout"),
    /// Listing the tools takes forever.
    loop_in_list_tools: Launch::Tool("list_spins", "t", "{}")
        => End::Refused("did not list its tools: Timeout"),
    /// Every instruction of a loop copies the whole memory.
    loop_of_bulk_copies: Launch::Module(|| Module {
        body: "(drop (memory.grow (i32.const 800)))
            (loop $again (memory.copy (i32.const 0) (i32.const 4096) (i32.const 52000000)) (br $again))",
        ..Module::default()
    }) => End::Error("Timeout"),
    /// Recursion that branches takes time without taking stack.
    recursion_that_branches: Launch::Module(|| Module {
        fields: "(func $fib (param i32) (result i32)
            (if (result i32) (i32.lt_u (local.get 0) (i32.const 2)) (then (i32.const 1))
              (else (i32.add (call $fib (i32.sub (local.get 0) (i32.const 1)))
                (call $fib (i32.sub (local.get 0) (i32.const 2)))))))",
        body: "(drop (call $fib (i32.const 90)))",
        ..Module::default()
    }) => End::Error("Timeout"),
    /// Tail calls loop without a loop.
    loop_of_tail_calls: Launch::Module(|| Module {
        fields: "(func $again (return_call $again))",
        body: "(call $again)",
        ..Module::default()
    }) => End::Refused("proposal that is switched off"),
    /// Exceptions that are thrown and caught loop through the unwinder.
    loop_of_exceptions: Launch::Module(|| Module {
        fields: "(tag $tag)",
        body: "(loop $again (block $caught (try_table (catch_all $caught) (throw $tag))) (br \
            $again))",
        ..Module::default()
    }) => End::Error("Timeout"),
    /// A loop of host functions is in the host most of the time.
    loop_of_host_calls: Launch::Module(|| Module {
        world: "import cofferdam:plugin/call@0.1.0;",
        imports: TIME_LEFT,
        body: "(loop $again (drop (call $left)) (br $again))",
        ..Module::default()
    }) => End::Error("Timeout"),
    /// A million terms have to be added up before the first instruction of every instance.
    initialisers_that_compute: Launch::Text(|| {
        let sum = format!("(i32.const 0) {}", "(i32.const 1) (i32.add) ".repeat(100_000));
        let globals = format!("(global i32 {sum})").repeat(3);
        typed(&globals, "(i32.const 1)")
    }) => End::Succeeds,
    /// A hundred thousand segments have to be copied before the first instruction of every
    /// instance.
    initialisers_that_copy: Launch::Text(|| {
        typed(&r#"(data (i32.const 0) "0123456789abcdef")"#.repeat(100_000), "(i32.const 1)")
    }) => End::Succeeds,
    /// A result that takes long to check.
    json_that_is_slow_to_read: Launch::Module(|| Module {
        answer: Answer::Contents(vec![Item::Json(DEEP_AND_WRONG)]),
        ..Module::default()
    }) => End::Error("InvalidResult"),
}

/// Opens 200 levels; only 128 are read.
const DEEP_AND_WRONG: &str = concat!(
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
);

/// Returns a component whose one function returns a number.
fn typed(fields: &str, result: &str) -> String {
    format!(
        r#"(component
          (core module $m (memory 1) {fields} (func (export "f") (result i32) {result}))
          (core instance $i (instantiate $m))
          (func (export "f") (result u32) (canon lift (core func $i "f"))))"#
    )
}
