//! Guests that wait in a host function, where no guest instruction can be stopped.

use super::{End, Launch, attacks};
use crate::module::Module;

attacks! {
    /// A sleep of a year holds a thread.
    sleep_for_a_year: Launch::Named => End::Error("Timeout"),
    /// A time that cannot be added to now overflows the clock.
    wait_for_the_end_of_time: Launch::Named => End::Error("Timeout"),
    /// Polling an empty list is never ready.
    poll_nothing: Launch::Named => End::Error("Trap.Other"),
    /// Polling many handles at once takes the executor's time.
    poll_many_that_are_never_ready: Launch::Named => End::Error("Timeout"),
    /// Very short sleeps keep the host's timer busy and the guest's clock still.
    sleep_a_nanosecond_at_a_time: Launch::Named => End::Error("Timeout"),
    /// Reading standard input waits for a user.
    read_what_never_comes: Launch::Named => End::Says("Err(\"closed\")"),
    /// Standard input is read to its end, which does not come.
    read_standard_input: Launch::Tool("crash", "read_stdin", "{}") => End::Says(""),
    /// Waiting for another thread, which does not exist, blocks forever.
    wait_for_another_thread: Launch::Module(|| Module {
        body: "(drop (memory.atomic.wait32 (i32.const 0) (i32.const 0) (i64.const -1)))",
        ..Module::default()
    }) => End::Error("Trap.Other"),
    /// Sleeping in the allocator, which the host calls, re-enters the host.
    sleep_in_realloc: Launch::Module(|| Module {
        realloc: "(call $block (call $subscribe (i64.const 1000000000000)))",
        ..timers()
    }) => End::Error("Trap.Other"),
    /// Sleeping after the result was returned keeps the call running.
    sleep_in_post_return: Launch::Module(|| Module {
        fields: r#"(func (export "cabi_post_cofferdam:plugin/tools@0.1.0#call-tool") (param i32)
            (call $block (call $subscribe (i64.const 1000000000000))))"#,
        ..timers()
    }) => End::Error("Trap.Other"),
    /// Sleeping instead of listing the tools blocks the installation of the plugin.
    sleep_in_list_tools: Launch::Module(|| Module {
        list: "(call $block (call $subscribe (i64.const 1000000000000)))",
        ..timers()
    }) => End::Refused("did not list its tools: Timeout"),
}

const CLOCKS: &str = "
    package test:clocks;
    package wasi:io@0.2.0 { interface poll { resource pollable { block: func(); } } }
    package wasi:clocks@0.2.0 {
        interface monotonic-clock {
            use wasi:io/poll@0.2.0.{pollable};
            subscribe-duration: func(when: u64) -> pollable;
        }
    }";

/// Returns a module that can sleep.
pub(super) fn timers() -> Module<'static> {
    Module {
        wit: CLOCKS,
        world: "import wasi:clocks/monotonic-clock@0.2.0;",
        imports: r#"
            (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration"
              (func $subscribe (param i64) (result i32)))
            (import "wasi:io/poll@0.2.0" "[method]pollable.block" (func $block (param i32)))
            (import "wasi:io/poll@0.2.0" "[resource-drop]pollable" (func $drop (param i32)))"#,
        ..Module::default()
    }
}
