//! The script of the skill `release-notes`. It reads the skill's own list of words and changes
//! nothing.

use cofferdam_sdk::{ToolFailure, tool};
use serde::Serialize;

/// Path of the skill's list of words, one per line. A script finds the directory of its skill at
/// `/skill`.
const WORDS: &str = "/skill/references/words.txt";

/// Word that should not be in release notes.
#[derive(Serialize)]
pub struct Finding {
    /// Number of the line, from 1.
    line: usize,
    /// The word as in the list.
    word: String,
}

/// Finds words in release notes that say nothing to their readers.
#[tool(read_only)]
pub fn run(
    /// The release notes.
    text: String,
) -> Result<Vec<Finding>, ToolFailure> {
    let words = std::fs::read_to_string(WORDS)
        .map_err(|error| ToolFailure::new(format!("the list of words cannot be read: {error}")))?;
    let words: Vec<_> = words.lines().map(str::trim).filter(|word| !word.is_empty()).collect();
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.to_lowercase();
        let has = |word: &&&str| {
            line.split(|c: char| !c.is_alphanumeric()).any(|part| part == word.to_lowercase())
        };
        let found = words.iter().filter(has);
        findings.extend(found.map(|word| Finding { line: number, word: (*word).to_owned() }));
    }
    Ok(findings)
}

cofferdam_sdk::plugin!(run);
