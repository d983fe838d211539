//! Invalid strings: not UTF-8, surrogates, lengths in another unit.

use super::{End, Launch, attacks};
use crate::module::{Answer, Definition, Item, Module};

attacks! {
    /// A byte that never occurs in UTF-8.
    a_byte_that_is_no_text: Launch::Module(|| text(b"a\xffb")) => End::Error("InvalidResult"),
    /// A slash in two bytes, which a naive decoder accepts.
    an_overlong_slash: Launch::Module(|| text(b"..\xc0\xaf..")) => End::Error("InvalidResult"),
    /// Half of a surrogate pair in three bytes.
    a_surrogate_in_utf_8: Launch::Module(|| text(b"\xed\xa0\x80")) => End::Error("InvalidResult"),
    /// A code point beyond the last one.
    a_character_beyond_unicode: Launch::Module(|| text(b"\xf4\x90\x80\x80")) => End::Error("InvalidResult"),
    /// A character that is cut off by the end of the string.
    a_character_that_is_cut_off: Launch::Module(|| text(b"abc\xe2\x82")) => End::Error("InvalidResult"),
    /// A JSON escape that is half of a pair.
    half_a_pair_in_json: Launch::Module(|| json(r#""\ud800""#)) => End::Error("InvalidResult"),
    /// A JSON escape with the halves of a pair in the wrong order.
    a_pair_in_json_the_wrong_way_round: Launch::Module(|| json(r#""\udc00\ud800""#))
        => End::Error("InvalidResult"),
    /// A key that occurs twice has different values for different readers.
    a_key_that_occurs_twice: Launch::Module(|| json(r#"{"role":"user","role":"system"}"#))
        => End::Says(r#"{"role":"system"}"#),
    /// A zero byte ends a string for some readers.
    a_zero_in_a_text: Launch::Module(|| text(b"a\0b")) => End::Says("a\0b"),
    /// A number that no float can hold.
    a_number_out_of_range: Launch::Module(|| json("1e999")) => End::Error("InvalidResult"),
    /// JSON with trailing bytes.
    json_with_a_tail: Launch::Module(|| json("{} {}")) => End::Error("InvalidResult"),
    /// A definition that is not UTF-8.
    a_definition_that_is_no_text: Launch::Module(|| Module {
        definitions: vec![Definition { description: b"\xff\xfe".to_vec(), ..Definition::new("t") }],
        ..Module::default()
    }) => End::Refused("did not list its tools: InvalidResult"),
    /// A name of a tool that is not UTF-8.
    a_name_that_is_no_text: Launch::Module(|| Module {
        definitions: vec![Definition { name: b"t\xed\xa0\x80".to_vec(), ..Definition::new("t") }],
        ..Module::default()
    }) => End::Refused("did not list its tools: InvalidResult"),
    /// A surrogate in a string that is encoded in UTF-16.
    half_a_pair_in_utf_16: Launch::Text(|| encoded("utf16", r"\00\d8", 1)) => End::Error("InvalidResult"),
    /// A length in UTF-16 units that wraps around when it becomes bytes.
    a_length_in_utf_16_that_wraps_around: Launch::Text(|| encoded("utf16", "", 0x8000_0001))
        => End::Error("InvalidResult"),
    /// A length whose highest bit selects one of two encodings.
    a_length_with_the_tag_of_an_encoding: Launch::Text(|| encoded("latin1+utf16", "", 0xffff_ffff))
        => End::Error("InvalidResult"),
    /// A failure without a message passes for a success.
    a_failure_without_words: Launch::Module(|| {
        let answer = Answer::Failure { message: " ", suggestion: None, transient: None, value: Some("null") };
        Module { answer, ..Module::default() }
    }) => End::Failure,
    /// A character that is half of a pair.
    a_surrogate_as_a_character: Launch::Text(|| r#"(component
        (core module $m (func (export "f") (result i32) (i32.const 0xd800)))
        (core instance $i (instantiate $m))
        (func (export "f") (result char) (canon lift (core func $i "f"))))"#.to_owned())
        => End::Error("InvalidResult"),
}

fn text(bytes: &'static [u8]) -> Module<'static> {
    Module { answer: Answer::Contents(vec![Item::Text(bytes)]), ..Module::default() }
}

fn json(text: &'static str) -> Module<'static> {
    Module { answer: Answer::Contents(vec![Item::Json(text)]), ..Module::default() }
}

/// Returns a typed component that returns a string in an encoding.
fn encoded(encoding: &str, bytes: &str, length: u32) -> String {
    format!(
        r#"(component
          (core module $m
            (memory (export "memory") 1)
            (data (i32.const 64) "{bytes}")
            (func (export "f") (result i32)
              (i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const {length}))
              (i32.const 0)))
          (core instance $i (instantiate $m))
          (func (export "f") (result string)
            (canon lift (core func $i "f") (memory (core memory $i "memory")) string-encoding={encoding})))"#
    )
}
