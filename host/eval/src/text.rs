//! Reads files, and writes strings in messages.

use std::io::{self, Read};

use cofferdam_tool::text::without_byte_order_mark;

/// Maximum number of characters of a value in a message.
const VALUE_CHARS_MAX: usize = 200;

/// Reads a text of at most `bytes_max` bytes, without a byte order mark; `None` if there are more.
pub(crate) fn read_limited(reader: impl Read, bytes_max: u64) -> io::Result<Option<String>> {
    let mut text = String::new();
    let read = reader.take(bytes_max.saturating_add(1)).read_to_string(&mut text)?;
    Ok((read as u64 <= bytes_max).then(|| without_byte_order_mark(&text).to_owned()))
}

/// Returns the beginning of a string that is too long for a message, with an ellipsis.
pub(crate) fn shortened(text: &str) -> String {
    cut(text, VALUE_CHARS_MAX)
}

/// Returns at most `chars_max` characters of a string, with an ellipsis if there are more.
pub(crate) fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max).and_then(|(end, _)| text.get(..end)) {
        Some(beginning) => format!("{beginning}…"),
        None => text.to_owned(),
    }
}

/// Returns a number with its noun, such as `1 call` or `2 calls`.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}
