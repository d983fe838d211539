//! Guests that hoard handles, or use handles that they do not own.

use super::{Arena, End, Ended, Launch, attacks};
use crate::module::Module;

attacks! {
    /// Timers without limit.
    hoard_pollables: Launch::Named => End::Error("HandleLimit"),
    /// Output streams.
    hoard_output_streams: Launch::Named => End::Error("HandleLimit"),
    /// Error streams.
    hoard_error_streams: Launch::Named => End::Error("HandleLimit"),
    /// Input streams.
    hoard_input_streams: Launch::Named => End::Error("HandleLimit"),
    /// Open files take descriptors of the host.
    hoard_files: Launch::Steps(|arena| Box::pin(hoards_descriptors(arena, "hoard_files")))
        => End::Error("HandleLimit"),
    /// Listings of a directory take descriptors as well.
    hoard_listings: Launch::Steps(|arena| Box::pin(hoards_descriptors(arena, "hoard_listings")))
        => End::Error("HandleLimit"),
    /// The granted directories are requested again and again.
    hoard_directories: Launch::Named => End::Error("HandleLimit"),
    /// The guest's own resources take memory of the host.
    hoard_resources_of_its_own: Launch::Text(|| own_resources("(loop $l (drop (call $new \
        (i32.const 1))) (br $l))"))
        => End::Error("Trap.Other"),
    /// A handle is dropped twice.
    drop_a_handle_twice: Launch::Text(|| own_resources(
        "(local $h i32) (local.set $h (call $new (i32.const 1))) (call $drop (local.get $h)) \
         (call $drop (local.get $h))"
    )) => End::Error("Trap.Other"),
    /// A handle is used that was never created.
    use_a_handle_that_is_none: Launch::Module(|| Module {
        body: "(call $block (i32.const 7))",
        ..super::blocking::timers()
    }) => End::Error("Trap.Other"),
    /// A handle is used after it was dropped.
    use_a_handle_that_was_dropped: Launch::Module(|| Module {
        body: "(local $h i32) (local.set $h (call $subscribe (i64.const 0)))
            (call $drop (local.get $h)) (call $block (local.get $h))",
        ..super::blocking::timers()
    }) => End::Error("Trap.Other"),
    /// The handle of one type is passed as that of another.
    use_a_handle_of_another_type: Launch::Text(|| own_resources("(call $drop-other (call $new \
        (i32.const 1)))"))
        => End::Error("Trap.Other"),
    /// Every number is tried as a handle.
    guess_handles: Launch::Module(|| Module {
        body: "(local $h i32) (loop $next (call $drop (local.get $h))
            (local.set $h (i32.add (local.get $h) (i32.const 1))) (br $next))",
        ..super::blocking::timers()
    }) => End::Error("Trap.Other"),
}

/// Checks that the host does not have more descriptors than before. Other tests of this process
/// open some too, so only a hoard shows here; `resources` counts exactly.
async fn hoards_descriptors(arena: &mut Arena, name: &str) -> Ended {
    let ended = arena.call("hostile", "attack", &super::arena::named(name)).await;
    let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
    assert!(open < 400, "{open} descriptors are open");
    ended
}

/// Returns a typed component with two resource types of its own.
fn own_resources(body: &str) -> String {
    format!(
        r#"(component
          (type $r (resource (rep i32)))
          (type $other (resource (rep i32)))
          (core func $new (canon resource.new $r))
          (core func $drop (canon resource.drop $r))
          (core func $drop-other (canon resource.drop $other))
          (core module $m
            (import "" "new" (func $new (param i32) (result i32)))
            (import "" "drop" (func $drop (param i32)))
            (import "" "drop-other" (func $drop-other (param i32)))
            (func (export "f") (result i32) {body} (i32.const 1)))
          (core instance $i (instantiate $m (with "" (instance
            (export "new" (func $new)) (export "drop" (func $drop)) (export "drop-other" (func $drop-other))))))
          (func (export "f") (result u32) (canon lift (core func $i "f"))))"#
    )
}
