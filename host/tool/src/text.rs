//! Characters that are escaped before a user sees them, and the mark that editors put before text.

/// Returns true for a character that must be escaped wherever a user reads output of a plugin, a
/// model, a server or a file: one that controls a terminal, reorders a line, or is invisible. Line
/// feeds and tabs are not among them.
///
/// Joiners (U+200C, U+200D) and U+FE0F are not either: scripts and emoji need them, and the one bit
/// that they can carry is visible.
#[must_use]
pub const fn is_hostile_char(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // C0 and C1 controls and U+007F: escape sequences move the cursor, rename the window, and
        // paste.
        '\u{00}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Directional marks, embeddings, overrides and isolates: they reorder a line.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        // Line and paragraph separators: a new line for some readers and nothing for others.
        '\u{2028}' | '\u{2029}' => true,
        // Soft hyphen, grapheme joiner, zero-width space, word joiner and invisible operators,
        // deprecated format characters, and the byte order mark: they have no width.
        '\u{ad}'
        | '\u{34f}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}' => true,
        // Hangul fillers, inherent vowels of Khmer and the blank Braille pattern: letters that look
        // like a space, or like nothing.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}'
        | '\u{ffa0}' => true,
        // Variation selectors: a sequence of them carries hidden bytes.
        '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0e}' => true,
        // Specials: interlinear annotation characters, and ignorable code points of the same block.
        '\u{fff0}'..='\u{fffb}' => true,
        // Format characters of shorthand and music: they have no glyph of their own.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' => true,
        // Tags and the other variation selectors: whole sentences in invisible ASCII.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Returns text without the byte order mark that some editors and shells write before UTF-8.
#[must_use]
pub fn without_byte_order_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_byte_order_mark_is_removed_from_the_beginning() {
        assert_eq!(without_byte_order_mark("\u{feff}\u{feff}a\u{feff}"), "\u{feff}a\u{feff}");
        assert_eq!(without_byte_order_mark("a"), "a");
    }

    #[test]
    fn what_steers_a_terminal_turns_a_line_or_is_not_seen_is_hostile() {
        for c in [
            '\0',
            '\r',
            '\u{1b}',
            '\u{7f}',
            '\u{9b}',
            '\u{202e}',
            '\u{2066}',
            '\u{200b}',
            '\u{2028}',
            '\u{115f}',
            '\u{3164}',
            '\u{ffa0}',
            '\u{34f}',
            '\u{2800}',
            '\u{fe01}',
            '\u{e0041}',
            '\u{e0100}',
            '\u{e01ef}',
            '\u{1d173}',
            '\u{feff}',
            '\u{ad}',
            '\u{180e}',
            '\u{fff9}',
        ] {
            assert!(is_hostile_char(c), "{}", c.escape_unicode());
        }
    }

    #[test]
    fn ordinary_text_is_not() {
        for c in "naïve\ttext\n❤\u{fe0f} 👩\u{200d}🚀 می\u{200c}خواهم שלום \u{fffd}".chars()
        {
            assert!(!is_hostile_char(c), "{}", c.escape_unicode());
        }
    }
}
