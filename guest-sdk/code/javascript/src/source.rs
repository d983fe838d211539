//! Changes of a program's text before it runs, and the way back from positions of the changed text.

/// Replacement of a part of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

/// Replacements in a program's text. They must not overlap; where they would, the outer one counts.
#[derive(Debug, Default)]
pub struct Edits(Vec<Edit>);

impl Edits {
    /// Overwrites a part with spaces. Line ends stay.
    pub fn blank(&mut self, source: &str, start: u32, end: u32) {
        let (start, end) = (start as usize, end as usize);
        let text = blanks(source.get(start..end).unwrap_or_default());
        self.0.push(Edit { start, end, text });
    }

    /// Overwrites a statement with an empty statement.
    pub fn blank_statement(&mut self, source: &str, start: u32, end: u32) {
        let (start, end) = (start as usize, end as usize);
        let mut text = blanks(source.get(start..end).unwrap_or_default());
        if text.starts_with(' ') {
            text.replace_range(..1, ";");
        }
        self.0.push(Edit { start, end, text });
    }

    /// Overwrites a part on one line, line ends included.
    pub fn blank_flat(&mut self, source: &str, start: u32, end: u32) {
        let (start, end) = (start as usize, end as usize);
        let length = source.get(start..end).map_or(0, str::len);
        self.0.push(Edit { start, end, text: " ".repeat(length) });
    }

    /// Replaces a part.
    pub fn replace(&mut self, start: u32, end: u32, text: String) {
        self.0.push(Edit { start: start as usize, end: end as usize, text });
    }

    /// Inserts a text.
    pub fn insert(&mut self, at: u32, text: &str) {
        self.replace(at, at, text.to_owned());
    }

    /// Applies the changes between `before` and `after`.
    #[must_use]
    pub fn apply(mut self, source: &str, before: &str, after: &str) -> Changed {
        // An insertion comes before a replacement at the same offset.
        let is_replacement = |edit: &Edit| edit.end > edit.start;
        self.0.sort_by_key(|edit| (edit.start, is_replacement(edit), std::cmp::Reverse(edit.end)));
        let mut text = String::with_capacity(source.len() + before.len() + after.len() + 64);
        text.push_str(before);
        let mut pieces = vec![Piece { changed: text.len(), original: 0, is_copy: true }];
        let mut done = 0;
        for edit in &self.0 {
            if edit.start < done {
                continue;
            }
            text.push_str(source.get(done..edit.start).unwrap_or_default());
            if edit.text.len() != edit.end - edit.start {
                pieces.push(Piece { changed: text.len(), original: edit.start, is_copy: false });
                text.push_str(&edit.text);
                pieces.push(Piece { changed: text.len(), original: edit.end, is_copy: true });
            } else {
                text.push_str(&edit.text);
            }
            done = edit.end;
        }
        text.push_str(source.get(done..).unwrap_or_default());
        text.push_str(after);
        Changed { text, pieces }
    }
}

fn blanks(text: &str) -> String {
    // Spaces for bytes, not characters, so that offsets stay.
    let blank = |byte: u8| if matches!(byte, b'\n' | b'\r') { byte as char } else { ' ' };
    text.bytes().map(blank).collect()
}

/// A program's text after the changes.
#[derive(Debug)]
pub struct Changed {
    /// The text.
    pub text: String,
    pieces: Vec<Piece>,
}

/// Start of a part that was copied or replaced.
#[derive(Debug)]
struct Piece {
    changed: usize,
    original: usize,
    is_copy: bool,
}

impl Changed {
    /// Returns the offset in the original text for a line and column of the changed text. The
    /// engine counts both from 1, and columns in bytes.
    #[must_use]
    pub fn original(&self, line: usize, column: usize) -> usize {
        let changed = offset(&self.text, line, column);
        let after = self.pieces.partition_point(|piece| piece.changed <= changed);
        match after.checked_sub(1).and_then(|last| self.pieces.get(last)) {
            None => 0,
            Some(piece) if piece.is_copy => piece.original + (changed - piece.changed),
            Some(piece) => piece.original,
        }
    }
}

/// Returns the offset of a line and column.
fn offset(text: &str, line: usize, column: usize) -> usize {
    let start = match line.checked_sub(2) {
        None => 0,
        Some(ends) => text.match_indices('\n').nth(ends).map_or(text.len(), |(at, _)| at + 1),
    };
    (start + column.saturating_sub(1)).min(text.len())
}

/// Position in a program, with the text of its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Position {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Text of the line, shortened.
    pub source: String,
}

impl Position {
    /// Returns the position of an offset. An offset after the end becomes the end.
    #[must_use]
    pub fn of(source: &str, offset: usize) -> Self {
        let mut offset = offset.min(source.trim_end().len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let before = source.get(..offset).unwrap_or_default();
        let start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|&byte| byte == b'\n').count() + 1;
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        let text = source.get(start..).unwrap_or_default().lines().next().unwrap_or_default();
        Self { line, column, source: shortened(text.trim_end()) }
    }
}

/// Maximum number of characters of a source line in a message.
const SOURCE_CHARACTERS_MAX: usize = 160;

fn shortened(line: &str) -> String {
    match line.char_indices().nth(SOURCE_CHARACTERS_MAX) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_go_back_through_insertions_and_blanks() {
        let source = "const a: number = 1;\na + b";
        let mut edits = Edits::default();
        edits.blank(source, 7, 15);
        edits.insert(21, "return ");
        let changed = edits.apply(source, "(async () => {\n", "\n})()");
        assert_eq!(changed.text, "(async () => {\nconst a         = 1;\nreturn a + b\n})()");
        assert_eq!(changed.original(2, 1), 0);
        assert_eq!(changed.original(2, 19), 18);
        assert_eq!(changed.original(3, 12), 25);
        assert_eq!(changed.original(3, 3), 21);
    }

    #[test]
    fn a_position_counts_characters() {
        let position = Position::of("let ä = 1;\n  ö.x", 16);
        assert_eq!(position, Position { line: 2, column: 4, source: "  ö.x".to_owned() });
        assert_eq!(Position::of("a\n\n", 99).line, 1);
        assert_eq!(Position::of("", 0), Position { line: 1, column: 1, source: String::new() });
    }

    #[test]
    fn an_outer_change_wins() {
        let mut edits = Edits::default();
        edits.blank("abcdef", 2, 3);
        edits.blank_statement("abcdef", 1, 5);
        assert_eq!(edits.apply("abcdef", "", "").text, "a;   f");
    }
}
