//! Scripts for the guest `stores`: steps of words that can hold anything, and their answers.

use serde_json::json;

/// Returns the arguments of a call that takes `steps`.
pub(crate) fn arguments(steps: &[&[&str]]) -> String {
    json!({ "script": steps.iter().map(|words| step(words)).collect::<Vec<_>>().join(";") })
        .to_string()
}

/// Encodes one step.
pub(crate) fn step(words: &[&str]) -> String {
    words.iter().map(|word| hex(word)).collect::<Vec<_>>().join(" ")
}

/// Returns the answers of a call, in the order of its steps.
pub(crate) fn answers(text: &str) -> Vec<String> {
    text.split('\n').map(unhex).collect()
}

/// Encodes a word of a script.
pub(crate) fn hex(word: &str) -> String {
    word.bytes().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(line: &str) -> String {
    let pair = |at: usize| u8::from_str_radix(&line[at..at + 2], 16).expect("hexadecimal digits");
    String::from_utf8((0..line.len()).step_by(2).map(pair).collect()).expect("a text")
}
