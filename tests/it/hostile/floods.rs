//! Guests that send too much: results, logs, progress, and call stacks.

use super::{Arena, End, Ended, Launch, attacks};
use crate::module::Module;

attacks! {
    /// The log fills the disk or the memory.
    print_a_mebibyte: Launch::Tool("floods", "floods", "{}") => End::Succeeds,
    /// The log never ends.
    print_for_ever: Launch::Named => End::Error("Timeout"),
    /// Every byte of the log is a call into the host.
    print_a_byte_at_a_time: Launch::Named => End::Says("came back"),
    /// More is written than the stream accepts.
    write_more_than_was_allowed: Launch::Named => End::Says("came back"),
    /// Zeros cost the guest nothing and the host a buffer.
    write_zeroes_without_bound: Launch::Named => End::Error("Trap.Other"),
    /// One stream is copied into another forever.
    splice_for_ever: Launch::Named => End::Says("Err(\"closed\")"),
    /// A result is one byte too long.
    a_result_that_is_a_byte_too_long: Launch::Tool("crash", "huge_output", r#"{"bytes":1048577}"#)
        => End::Error("OutputLimit"),
    /// A result that is larger than every limit.
    a_result_of_forty_megabytes: Launch::Tool("crash", "huge_output", r#"{"bytes":40000000}"#)
        => End::Error("OutputLimit"),
    /// Items without bytes still fill a model's context.
    half_a_million_empty_texts: Launch::Named => End::Error("OutputLimit"),
    /// So do items of one byte.
    two_hundred_thousand_numbers: Launch::Named => End::Error("OutputLimit"),
    /// A blob without data has a media type of two mebibytes.
    a_media_type_of_two_mebibytes: Launch::Named => End::Error("OutputLimit"),
    /// A panic message of nearly the maximum length of an argument.
    a_panic_message_of_a_megabyte: Launch::Steps(|arena| Box::pin(async move {
        let message = "x".repeat(900_000);
        let arguments = serde_json::json!({ "message": message }).to_string();
        arena.call("crash", "panic", &arguments).await
    })) => End::Error("Trap.Unreachable"),
    /// Progress is reported in a loop, with a total that is NaN.
    report_progress_without_pause: Launch::Steps(|arena| Box::pin(floods_progress(arena)))
        => End::Says("came back"),
    /// A call stack repeats the name of a function, which has the maximum length of the format.
    a_call_stack_of_long_names: Launch::Module(|| recursive("n".repeat(99_000)))
        => End::Error("Trap.StackOverflow"),
    /// A short mangled name demangles to a long one.
    a_call_stack_of_names_that_unfold: Launch::Module(|| recursive(unfolding_name()))
        => End::Error("Trap.StackOverflow"),
}

/// Checks that the listener receives few of the reports.
async fn floods_progress(arena: &mut Arena) -> Ended {
    let started = std::time::Instant::now();
    let ended = arena
        .call("hostile", "attack", &super::arena::named("report_progress_without_pause"))
        .await;
    let periods = started.elapsed().as_millis() / 50 + 2;
    let heard = arena.progress.0.lock().unwrap().len();
    assert!(heard >= 1 && heard as u128 <= periods, "{heard} reports in {periods} periods");
    ended
}

/// Returns a module whose function `name` calls itself.
fn recursive(name: String) -> Module<'static> {
    let fields = format!(
        r#"(func $"{name}" (param i32) (result i32)
            (i32.add (call $"{name}" (i32.add (local.get 0) (i32.const 1))) (local.get 0)))"#
    );
    let body = format!(r#"(drop (call $"{name}" (i32.const 0)))"#);
    Module { fields: fields.leak(), body: body.leak(), ..Module::default() }
}

/// Returns a Rust symbol whose types refer back to earlier ones, each twice: every level doubles
/// the demangled length.
fn unfolding_name() -> String {
    // `_RI` path, then a tuple of (previous, previous) by back references in base 62.
    let mut name = String::from("_RINvC1a1fTuuE");
    let mut previous = name.len() - 4 - 2;
    for _ in 0..24 {
        let at = name.len() - 2;
        let reference = format!("B{}_", base_62(previous));
        name.push_str(&format!("T{reference}{reference}E"));
        previous = at;
    }
    name.push('E');
    name
}

/// Encodes a number as in Rust's symbols: nothing for 0, else one less in base 62.
fn base_62(number: usize) -> String {
    const DIGITS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let Some(mut rest) = number.checked_sub(1) else { return String::new() };
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[rest % 62]));
        rest /= 62;
        if rest == 0 {
            break;
        }
    }
    digits.iter().rev().collect()
}
