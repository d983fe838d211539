//! The line that is being typed: its text, its cursor and its drawing.

use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar as _;

use super::keys::Key;
use crate::printable;

/// Maximum length of the text in bytes.
const TEXT_BYTES_MAX: usize = 1024 * 1024;
/// Prompt of each line after the first.
const MORE_PROMPT: &str = "...> ";
const BOLD: &str = "\u{1b}[1m";
const PLAIN: &str = "\u{1b}[0m";

/// Text with a cursor.
#[derive(Debug, Default)]
pub(super) struct Editor {
    prompt: String,
    text: String,
    /// Byte index of the cursor in `text`.
    at: usize,
    /// Earlier texts, and the index of the one that is shown.
    history: Vec<String>,
    history_at: usize,
    /// Number of screen rows between the first row and the cursor's.
    row: usize,
    /// Column of the cursor on the screen.
    column: usize,
    /// Number of columns of the screen that the text was drawn for.
    columns: usize,
    /// Escape sequence before the prompt, or nothing.
    style: &'static str,
}

impl Editor {
    pub(super) fn new(prompt: &str, history: Vec<String>) -> Self {
        let history_at = history.len();
        Self { prompt: prompt.to_owned(), history, history_at, ..Self::default() }
    }

    /// Draws the prompt in bold.
    pub(super) fn embolden_prompt(&mut self) {
        self.style = BOLD;
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Deletes the text.
    pub(super) fn clear(&mut self) {
        self.text.clear();
        self.at = 0;
    }

    /// Inserts a character at the cursor. Returns false if the text is too long.
    pub(super) fn insert(&mut self, c: char) -> bool {
        if self.text.len() + c.len_utf8() > TEXT_BYTES_MAX {
            return false;
        }
        self.text.insert(self.at, c);
        self.at += c.len_utf8();
        true
    }

    /// Applies an editing key.
    pub(super) fn press(&mut self, key: Key) {
        match key {
            Key::Backspace => self.delete(self.before(), self.at),
            Key::Delete => self.delete(self.at, self.after()),
            Key::Left => self.at = self.before(),
            Key::Right => self.at = self.after(),
            Key::WordLeft => self.at = self.word_before(),
            Key::WordRight => self.at = self.word_after(),
            Key::Home => self.at = self.line_start(),
            Key::End => self.at = self.line_end(),
            Key::KillEnd => self.delete(self.at, self.line_end()),
            Key::KillStart => self.delete(self.line_start(), self.at),
            Key::KillWord => self.delete(self.word_before(), self.at),
            Key::Up => self.show_history(self.history_at.checked_sub(1)),
            Key::Down => self.show_history(self.history_at.checked_add(1)),
            _ => {}
        }
    }

    fn show_history(&mut self, index: Option<usize>) {
        let Some(index) = index.filter(|index| *index <= self.history.len()) else { return };
        self.history_at = index;
        self.text = self.history.get(index).cloned().unwrap_or_default();
        self.at = self.text.len();
    }

    fn delete(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    fn left(&self) -> &str {
        self.text.get(..self.at).unwrap_or_default()
    }

    fn right(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn before(&self) -> usize {
        self.left().char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.at + self.right().chars().next().map_or(0, char::len_utf8)
    }

    fn line_start(&self) -> usize {
        self.left().rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.at + self.right().find('\n').unwrap_or(self.right().len())
    }

    fn word_before(&self) -> usize {
        let word_end = self.left().trim_end().len();
        let words = self.left().get(..word_end).unwrap_or_default();
        words
            .char_indices()
            .rev()
            .find(|(_, c)| c.is_whitespace())
            .map_or(0, |(at, c)| at + c.len_utf8())
    }

    fn word_after(&self) -> usize {
        let right = self.right();
        let word_start = right.len() - right.trim_start().len();
        let word = right.get(word_start..).unwrap_or_default();
        self.at + word_start + word.find(char::is_whitespace).unwrap_or(word.len())
    }

    /// Returns the output for a character that was just inserted. Returns `None` if the whole text
    /// has to be drawn.
    pub(super) fn drawn_at_the_end(&mut self, c: char, columns: usize) -> Option<String> {
        let shown = shown(c);
        let column = self.column + width(&shown);
        (self.at == self.text.len() && c != '\n' && column <= columns).then(|| {
            self.column = column;
            shown
        })
    }

    /// Returns the output that draws the whole text over the previous drawing.
    pub(super) fn render(&mut self, columns: usize) -> String {
        let mut out = String::new();
        if self.row > 0 {
            let _ = write!(out, "\u{1b}[{}A", self.row);
        }
        if self.row > 0 || self.column > 0 {
            out.push_str("\r\u{1b}[J");
        }
        let Layout { pen, cursor } = self.lay_out(columns);
        out.push_str(&pen.out);
        if self.at < self.text.len() {
            if pen.row > cursor.0 {
                let _ = write!(out, "\u{1b}[{}A", pen.row - cursor.0);
            }
            out.push('\r');
            if cursor.1 > 0 {
                let _ = write!(out, "\u{1b}[{}C", cursor.1);
            }
        }
        (self.row, self.column) = cursor;
        self.columns = columns;
        out
    }

    /// Finds the cursor again if the screen has another width than at the last drawing. The
    /// terminal has then wrapped the text anew.
    pub(super) fn follow_resize(&mut self, columns: usize) {
        let is_drawn = self.row > 0 || self.column > 0;
        if is_drawn && self.columns != columns {
            (self.row, self.column) = self.lay_out(columns).cursor;
            self.columns = columns;
        }
    }

    fn lay_out(&self, columns: usize) -> Layout {
        let mut pen = Pen { columns: columns.max(2), ..Pen::default() };
        pen.out.push_str(self.style);
        self.prompt.chars().for_each(|c| pen.put(c));
        if !self.style.is_empty() {
            pen.out.push_str(PLAIN);
        }
        let mut cursor = None;
        for (at, c) in self.text.char_indices() {
            if at == self.at {
                cursor = Some((pen.row, pen.column));
            }
            pen.put(c);
            if c == '\n' {
                MORE_PROMPT.chars().for_each(|c| pen.put(c));
            }
        }
        let cursor = cursor.unwrap_or((pen.row, pen.column));
        Layout { pen, cursor }
    }

    /// Returns the output that moves the cursor below the text, after the line is complete.
    pub(super) fn closed(&mut self, columns: usize) -> String {
        let is_behind = self.at == self.text.len();
        self.at = self.text.len();
        let mut out = if is_behind { String::new() } else { self.render(columns) };
        out.push('\n');
        (self.row, self.column) = (0, 0);
        out
    }

    /// Forgets the position of the cursor, after other output was written.
    pub(super) fn restart(&mut self) {
        (self.row, self.column) = (0, 0);
    }
}

/// Whole text on the screen, and the row and column of the cursor in it.
struct Layout {
    pen: Pen,
    cursor: (usize, usize),
}

/// Output, and the position of its next character.
#[derive(Default)]
struct Pen {
    out: String,
    columns: usize,
    row: usize,
    column: usize,
}

impl Pen {
    fn put(&mut self, c: char) {
        if c == '\n' {
            return self.feed();
        }
        let shown = shown(c);
        let width = width(&shown);
        if self.column + width > self.columns && self.column > 0 {
            self.feed();
        }
        self.out.push_str(&shown);
        self.column += width;
    }

    fn feed(&mut self) {
        self.out.push_str("\r\n");
        (self.row, self.column) = (self.row + 1, 0);
    }
}

/// Returns the printable form of a character: one that controls a terminal or is invisible becomes
/// an escape.
fn shown(c: char) -> String {
    if c == '\t' { "    ".to_owned() } else { printable(c.encode_utf8(&mut [0; 4])).into_owned() }
}

fn width(text: &str) -> usize {
    text.chars().map(|c| c.width().unwrap_or(0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(text: &str, keys: &[Key]) -> Editor {
        let mut editor = Editor::new("> ", vec!["first".to_owned(), "second".to_owned()]);
        text.chars().for_each(|c| assert!(editor.insert(c)));
        keys.iter().for_each(|key| editor.press(*key));
        editor
    }

    #[test]
    fn keys_edit_the_text() {
        for (text, keys, expected, at) in [
            ("añb", &[Key::Left, Key::Backspace][..], "ab", 1),
            ("one two", &[Key::KillWord], "one ", 4),
            ("one two", &[Key::WordLeft, Key::KillStart], "two", 0),
            ("one two", &[Key::Home, Key::WordRight, Key::KillEnd], "one", 3),
            ("a\nbc", &[Key::Home, Key::Delete, Key::End], "a\nc", 3),
            ("x", &[Key::Up, Key::Up, Key::Up], "first", 5),
            ("x", &[Key::Up, Key::Up, Key::Down], "second", 6),
            ("x", &[Key::Up, Key::Down, Key::Down], "", 0),
            ("", &[Key::Backspace, Key::Delete, Key::Left, Key::Right, Key::KillWord], "", 0),
        ] {
            let editor = typed(text, keys);
            assert_eq!((editor.text(), editor.at), (expected, at), "{text:?} {keys:?}");
        }
    }

    #[test]
    fn long_lines_wrap_where_the_screen_ends() {
        let mut editor = typed("abcdef", &[]);
        assert_eq!(editor.render(5), "> abc\r\ndef");
        assert_eq!((editor.row, editor.column), (1, 3));
        editor.press(Key::Home);
        assert_eq!(editor.render(5), "\u{1b}[1A\r\u{1b}[J> abc\r\ndef\u{1b}[1A\r\u{1b}[2C");
        assert_eq!(editor.closed(5), "\r\u{1b}[J> abc\r\ndef\n");
        // A wide character does not fit in the last column.
        assert_eq!(typed("ab語", &[]).render(5), "> ab\r\n語");
        assert_eq!(typed("a\nb", &[]).render(20), "> a\r\n...> b");
    }

    #[test]
    fn a_narrower_screen_moves_the_cursor_down() {
        let mut editor = typed("abcdef", &[]);
        editor.render(80);
        editor.follow_resize(4);
        assert_eq!((editor.row, editor.column), (1, 4));
        assert_eq!(editor.render(4), "\u{1b}[1A\r\u{1b}[J> ab\r\ncdef");
        // Nothing was drawn yet.
        let mut editor = typed("abcdef", &[]);
        editor.follow_resize(4);
        assert_eq!((editor.row, editor.column), (0, 0));
    }

    #[test]
    fn a_bold_prompt_is_as_wide_as_a_plain_one() {
        let mut editor = typed("abc", &[]);
        editor.embolden_prompt();
        assert_eq!(editor.render(5), "\u{1b}[1m> \u{1b}[0mabc");
        assert_eq!((editor.row, editor.column), (0, 5));
    }

    #[test]
    fn nothing_that_was_pasted_drives_the_terminal() {
        assert_eq!(typed("a\u{202e}\u{1b}", &[]).render(80), "> a\\u{202e}\\u{1b}");
    }

    #[test]
    fn a_text_has_an_end() {
        let mut editor = Editor::new("", Vec::new());
        editor.text = "x".repeat(TEXT_BYTES_MAX);
        assert!(!editor.insert('y'));
    }
}
