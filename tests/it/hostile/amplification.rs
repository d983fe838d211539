//! Guests that make the host copy, decode or build far more than they hold themselves.
//!
//! A list in a result is an address and a length: all items of a list may be the same bytes.

use super::{End, Launch, attacks};
use crate::module::Module;

attacks! {
    /// Half a million items share one string of a mebibyte: the copy limit ends the call before any
    /// string is read.
    overlapping_texts: Launch::Module(|| overlapping("i32.const 1048576")) => End::Error("OutputLimit"),
    /// Half a million items share one empty string: no bytes, but many items for the model.
    overlapping_empty_texts: Launch::Module(|| overlapping("i32.const 0")) => End::Error("OutputLimit"),
    /// A string as long as the memory.
    a_text_as_long_as_the_memory: Launch::Module(|| Module {
        body: "(drop (memory.grow (i32.const 900)))
            (i32.store (i32.const 4) (i32.const 16)) (i32.store (i32.const 8) (i32.const 1))
            (i32.store (i32.const 16) (i32.const 0)) (i32.store (i32.const 20) (i32.const 131072))
            (i32.store (i32.const 24) (i32.const 50000000))
            (i32.store (i32.const 0) (i32.const 0)) (return (i32.const 0))",
        ..Module::default()
    }) => End::Error("OutputLimit"),
    /// A list whose length times its item size overflows 32 bits.
    a_list_that_wraps_around: Launch::Module(|| Module {
        body: "(i32.store (i32.const 4) (i32.const 16)) (i32.store (i32.const 8) (i32.const 0x40000001))
            (i32.store (i32.const 0) (i32.const 0)) (return (i32.const 0))",
        ..Module::default()
    }) => End::Error("InvalidResult"),
    /// A string of 4 GiB.
    a_text_of_four_gibibytes: Launch::Module(|| Module {
        body: "(i32.store (i32.const 4) (i32.const 16)) (i32.store (i32.const 8) (i32.const 1))
            (i32.store (i32.const 16) (i32.const 0)) (i32.store (i32.const 20) (i32.const 1024))
            (i32.store (i32.const 24) (i32.const -1))
            (i32.store (i32.const 0) (i32.const 0)) (return (i32.const 0))",
        ..Module::default()
    }) => End::Error("InvalidResult"),
    /// A result outside the memory.
    a_result_outside_of_memory: Launch::Module(|| Module {
        body: "(return (i32.const -16))",
        ..Module::default()
    }) => End::Error("InvalidResult"),
    /// A result at an odd address.
    a_result_at_an_odd_address: Launch::Module(|| Module {
        body: "(return (i32.const 1021))",
        ..Module::default()
    }) => End::Error("InvalidResult"),
    /// An item of an unknown kind.
    an_item_of_no_kind: Launch::Module(|| Module {
        body: "(i32.store (i32.const 4) (i32.const 16)) (i32.store (i32.const 8) (i32.const 1))
            (i32.store (i32.const 16) (i32.const 77)) (i32.store (i32.const 0) (i32.const 0)) (return (i32.const 0))",
        ..Module::default()
    }) => End::Error("InvalidResult"),
    /// The allocator returns an address outside the memory, and the host writes arguments there.
    realloc_outside_of_memory: Launch::Module(|| Module {
        realloc: "(return (i32.const -8))",
        ..Module::default()
    }) => End::Error("InvalidResult"),
    /// The allocator returns the last byte of memory for every request.
    realloc_at_the_last_byte: Launch::Module(|| Module {
        realloc: "(return (i32.sub (i32.mul (memory.size) (i32.const 65536)) (i32.const 1)))",
        ..Module::default()
    }) => End::Error("InvalidResult"),
    /// Short JSON that is large as a tree.
    json_that_is_86_times_as_large_in_memory: Launch::Named => End::Succeeds,
    /// Sixty million booleans become sixty million values of the host.
    a_list_of_booleans: Launch::Text(|| typed_list("bool", 60_000_000)) => End::Error("OutputLimit"),
    /// A list of lists of lists that share their items.
    lists_that_are_all_the_same: Launch::Text(nested_lists) => End::Error("OutputLimit"),
    /// A megabyte of one-byte values is within every copy limit, but becomes much more than a
    /// megabyte.
    a_million_small_numbers: Launch::Text(|| typed_list("u8", 1_000_000)) => End::Error("OutputLimit"),
    /// A type nested to the limit of the screen is lifted on the host's stack.
    a_value_of_many_levels: Launch::Text(deep_value) => End::Succeeds,
    /// An argument of a host function is a string of 16 MiB, again and again.
    report_progress_of_sixteen_mebibytes: Launch::Named => End::Says("came back"),
    /// Bytes for the log are copied before their number is checked.
    write_sixteen_mebibytes_at_once: Launch::Named => End::Says("came back"),
    /// Polling a list of ten million copies of one handle.
    poll_one_handle_ten_million_times: Launch::Module(|| Module {
        imports: r#"
            (import "wasi:clocks/monotonic-clock@0.2.0" "subscribe-duration"
              (func $subscribe (param i64) (result i32)))
            (import "wasi:io/poll@0.2.0" "poll" (func $poll (param i32 i32 i32)))"#,
        wit: POLL,
        body: "(drop (memory.grow (i32.const 700)))
            (drop (call $subscribe (i64.const 1000000000000)))
            (memory.fill (i32.const 4096) (i32.const 1) (i32.const 40000000))
            (call $poll (i32.const 4096) (i32.const 10000000) (i32.const 16))",
        ..super::blocking::timers()
    }) => End::Error("Trap.Other"),
}

const POLL: &str = "
    package test:clocks;
    package wasi:io@0.2.0 {
        interface poll {
            resource pollable { block: func(); }
            poll: func(in: list<borrow<pollable>>) -> list<u32>;
        }
    }
    package wasi:clocks@0.2.0 {
        interface monotonic-clock {
            use wasi:io/poll@0.2.0.{pollable};
            subscribe-duration: func(when: u64) -> pollable;
        }
    }";

/// Returns a module that answers half a million strings, each at address 0 and of the given length.
fn overlapping(length: &'static str) -> Module<'static> {
    let body = format!(
        "(local $at i32)
        (drop (memory.grow (i32.const 400)))
        (local.set $at (i32.const 1114112))
        (loop $item
          (i32.store (local.get $at) (i32.const 0))
          (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 0))
          (i32.store (i32.add (local.get $at) (i32.const 8)) ({length}))
          (local.set $at (i32.add (local.get $at) (i32.const 36)))
          (br_if $item (i32.lt_u (local.get $at) (i32.const 19114112))))
        (i32.store (i32.const 16) (i32.const 0))
        (i32.store (i32.const 20) (i32.const 1114112)) (i32.store (i32.const 24) (i32.const 500000))
        (memory.fill (i32.const 0) (i32.const 0) (i32.const 16))
        (return (i32.const 16))"
    );
    Module { body: body.leak(), ..Module::default() }
}

/// Returns a typed component that returns a list of zeros.
fn typed_list(item: &str, length: u32) -> String {
    format!(
        r#"(component
          (core module $m
            (memory (export "memory") 1000)
            (func (export "f") (result i32)
              (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const {length}))
              (i32.const 0)))
          (core instance $i (instantiate $m))
          (func (export "f") (result (list {item}))
            (canon lift (core func $i "f") (memory (core memory $i "memory")))))"#
    )
}

/// Returns a component with three levels of ten thousand items each, in ten thousand items of
/// memory.
fn nested_lists() -> String {
    r#"(component
      (core module $m
        (memory (export "memory") 20)
        (func (export "f") (result i32) (local $at i32)
          (local.set $at (i32.const 64))
          (loop $item
            (i32.store (local.get $at) (i32.const 64))
            (i32.store (i32.add (local.get $at) (i32.const 4)) (i32.const 10000))
            (local.set $at (i32.add (local.get $at) (i32.const 8)))
            (br_if $item (i32.lt_u (local.get $at) (i32.const 80064))))
          (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 10000))
          (i32.const 0)))
      (core instance $i (instantiate $m))
      (func (export "f") (result (list (list (list (list u8)))))
        (canon lift (core func $i "f") (memory (core memory $i "memory")))))"#
        .to_owned()
}

/// Returns a component with nested options.
fn deep_value() -> String {
    let mut types = "(type $t0 u8)".to_owned();
    for level in 1..=45 {
        types.push_str(&format!("(type $t{level} (tuple $t{} u8))", level - 1));
    }
    format!(
        r#"(component
          {types}
          (core module $m (memory (export "memory") 1) (func (export "f") (result i32) (i32.const 0)))
          (core instance $i (instantiate $m))
          (func (export "f") (result $t45) (canon lift (core func $i "f") (memory (core memory $i "memory")))))"#
    )
}
