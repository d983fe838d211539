//! Styles Markdown for a terminal while it arrives.
//!
//! The text is not changed, marks included, so that it can be copied; headings and strong text are
//! bold, and code has a color.

const RESET: &str = "\u{1b}[0m";
const BOLD: &str = "\u{1b}[1m";
const CODE: &str = "\u{1b}[36m";
/// Number of backticks that begin and end a block of code.
const FENCE: usize = 3;
/// Maximum number of hashes of a heading.
const HASHES_MAX: usize = 6;

/// Styles of a stream of Markdown, which may be cut anywhere.
#[derive(Debug, Default)]
pub struct MarkdownStyler {
    is_heading: bool,
    is_strong: bool,
    is_code: bool,
    is_fenced: bool,
    /// Character that is repeated at the end of the text so far, and how often.
    run: (char, usize),
    /// True if the line has text before the run.
    has_text: bool,
}

impl MarkdownStyler {
    /// Returns the next piece of text with styles. The text has no control characters except line
    /// feeds and tabs.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.put(c, &mut out);
        }
        out
    }

    /// Ends the text. Returns the end of its styles.
    pub fn finish(&mut self) -> &'static str {
        let is_styled = self.is_styled();
        *self = Self::default();
        if is_styled { RESET } else { "" }
    }

    fn put(&mut self, c: char, out: &mut String) {
        if c == '\n' {
            if self.is_styled() {
                out.push_str(RESET);
            }
            out.push(c);
            // Styles other than a block's end with their line, so that a missing mark does no harm.
            *self = Self { is_fenced: self.is_fenced, ..Self::default() };
            self.begin_style(out);
            return;
        }
        out.push(c);
        let before = self.run;
        self.run = if before.0 == c { (c, before.1 + 1) } else { (c, 1) };
        let is_literal = self.is_fenced || self.is_code;
        match self.run {
            ('`', FENCE) if !self.has_text => {
                self.is_fenced = !self.is_fenced;
                self.is_code = false;
                self.restyle(out);
            }
            ('`', _) if !self.is_fenced => {
                self.is_code = !self.is_code;
                self.restyle(out);
            }
            ('*', count) if count % 2 == 0 && !is_literal => {
                self.is_strong = !self.is_strong;
                self.restyle(out);
            }
            (' ', 1)
                if before.0 == '#' && before.1 <= HASHES_MAX && !self.has_text && !is_literal =>
            {
                self.is_heading = true;
                self.restyle(out);
            }
            _ => {}
        }
        self.has_text |= !matches!(c, '`' | '#' | ' ');
    }

    fn is_styled(&self) -> bool {
        self.is_heading || self.is_strong || self.is_code || self.is_fenced
    }

    fn restyle(&self, out: &mut String) {
        out.push_str(RESET);
        self.begin_style(out);
    }

    fn begin_style(&self, out: &mut String) {
        if self.is_heading || self.is_strong {
            out.push_str(BOLD);
        }
        if self.is_code || self.is_fenced {
            out.push_str(CODE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns text with `<` for bold, `{` for code and `>` for the end of styles.
    fn styled(text: &str) -> String {
        let mut styler = MarkdownStyler::default();
        let mut out = styler.push(text);
        out.push_str(styler.finish());
        out.replace(BOLD, "<").replace(CODE, "{").replace(RESET, ">")
    }

    #[test]
    fn marks_style_the_text_between_them() {
        assert_eq!(styled("a **b** c"), "a **><b**> c");
        assert_eq!(styled("a `b` c"), "a `>{b`> c");
        assert_eq!(styled("## T\nx"), "## ><T>\nx");
        assert_eq!(styled("#tag and 2 * 3 * 4"), "#tag and 2 * 3 * 4");
        assert_eq!(styled("`a ** b`"), "`>{a ** b`>");
    }

    #[test]
    fn a_block_of_code_has_no_other_marks_and_a_line_ends_a_missing_mark() {
        let block = styled("```rust\n# a **b**\n```\nend");
        assert!(block.ends_with("{# a **b**>\n{```>\nend"), "{block}");
        assert_eq!(styled("**a\nb"), "**><a>\nb");
    }

    #[test]
    fn pieces_are_styled_like_the_whole() {
        let text = "# A `b` **c**\n```\nd\n```\n";
        let mut styler = MarkdownStyler::default();
        let mut pieces: String = text.chars().map(|c| styler.push(&c.to_string())).collect();
        pieces.push_str(styler.finish());
        let mut whole = MarkdownStyler::default();
        assert_eq!(pieces, whole.push(text) + whole.finish());
    }
}
