//! Characters that a person is not shown as they are.

/// Returns true for a character that is escaped wherever a person reads words of a plugin, a model,
/// a server or a file: one that drives a terminal, reorders a line, or is there without being seen.
/// Line feeds and tabs are not among them.
///
/// Joiners (U+200C, U+200D) and U+FE0F are not either: scripts and emoji are written with them, and
/// the one bit that they can carry shows.
#[must_use]
pub const fn is_hostile_char(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // C0 and C1 controls and U+007F: escape sequences move the cursor, rename the window, and
        // paste.
        '\u{00}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Marks, embeddings, overrides and isolates of direction: they turn a line around.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
            true
        }
        // Separators of lines and paragraphs: a new line for some readers and nothing for others.
        '\u{2028}' | '\u{2029}' => true,
        // Soft hyphen, grapheme joiner, zero-width space, word joiner and invisible operators,
        // deprecated format characters, and the byte order mark: they have no width.
        '\u{ad}'
        | '\u{34f}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{feff}' => true,
        // Fillers of Hangul, inherent vowels of Khmer and the blank Braille pattern: letters that
        // look like a space, or like nothing.
        '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{2800}' | '\u{3164}'
        | '\u{ffa0}' => true,
        // Variation selectors: a row of them carries hidden bytes.
        '\u{180b}'..='\u{180f}' | '\u{fe00}'..='\u{fe0e}' => true,
        // Specials: anchors of annotations, and code points of the same block that are to be
        // ignored.
        '\u{fff0}'..='\u{fffb}' => true,
        // Format characters of shorthand and of music: they have no shape of their own.
        '\u{1bca0}'..='\u{1bca3}' | '\u{1d159}' | '\u{1d173}'..='\u{1d17a}' => true,
        // Tags and the other variation selectors: whole sentences in invisible ASCII.
        '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
