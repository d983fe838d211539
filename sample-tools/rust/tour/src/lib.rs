//! Four tools for a first look: one that works, one that reads a file, one that crashes, and one
//! that never ends.

use cofferdam_sdk::{ToolFailure, tool};

cofferdam_sdk::plugin!(count_words, headings, divide, count_forever; manifest = "plugin.toml");

/// Counts the words of a text.
#[tool(read_only, idempotent, open_world = false)]
pub fn count_words(
    /// The text to count.
    text: String,
) -> usize {
    text.split_whitespace().count()
}

/// Returns the headings of a Markdown file.
#[tool(read_only, idempotent, open_world = false)]
pub fn headings(
    /// Path of the file, such as /notes/plan.md.
    file: String,
) -> Result<Vec<String>, ToolFailure> {
    let text = std::fs::read_to_string(&file)
        .map_err(|error| ToolFailure::new(format!("{file} cannot be read: {error}")))?;
    Ok(text.lines().filter(|line| line.starts_with('#')).map(str::to_owned).collect())
}

/// Divides two integers. Panics if the divisor is zero.
#[tool(read_only, idempotent, open_world = false)]
pub fn divide(
    /// The number to divide.
    dividend: i64,
    /// The number to divide by.
    divisor: i64,
) -> i64 {
    dividend / divisor
}

/// Counts upwards and never ends.
#[tool(read_only, open_world = false)]
pub fn count_forever() -> u64 {
    let mut count = 0_u64;
    loop {
        count = std::hint::black_box(count.wrapping_add(1));
    }
}
