//! Escaping of text for a terminal.

use std::borrow::Cow;

use cofferdam_tool::text::is_hostile_char;

/// Returns `text` with an escape for every character that can control a terminal, reorder a line or
/// be invisible. Keeps line feeds and tabs.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile_char) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hostile_char(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_and_bidi_controls_are_shown() {
        assert_eq!(
            printable("a\u{1b}[2Jb\u{202e}c\r\u{9b}"),
            "a\\u{1b}[2Jb\\u{202e}c\\u{d}\\u{9b}"
        );
        assert_eq!(printable("a\u{200b}b\u{e0041}c\u{2028}"), "a\\u{200b}b\\u{e0041}c\\u{2028}");
        assert!(matches!(printable("naïve\ttext ❤\u{fe0f}\n"), Cow::Borrowed(_)));
    }
}
