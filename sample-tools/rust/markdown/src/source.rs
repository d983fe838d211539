//! Reads and parses Markdown.

use std::fs;
use std::io::ErrorKind;

use cofferdam_sdk::ToolFailure;
use pulldown_cmark::{Options, Parser};

/// Returns the text, or the content of the file.
pub(crate) fn read(text: Option<String>, file: Option<String>) -> Result<String, ToolFailure> {
    match (text, file) {
        (Some(text), None) => Ok(text),
        (None, Some(file)) => fs::read_to_string(&file).map_err(|error| unreadable(&file, &error)),
        (given, _) => {
            let found = if given.is_some() { "both" } else { "neither" };
            Err(ToolFailure::new(format!("expected one of `text` and `file`, got {found}"))
                .suggestion("pass the Markdown as `text` or the path of a file as `file`")
                .permanent())
        }
    }
}

fn unreadable(file: &str, error: &std::io::Error) -> ToolFailure {
    match error.kind() {
        ErrorKind::NotFound => ToolFailure::new(format!("there is no file `{file}`"))
            .suggestion(
                "pass a path that begins with the name of a mount, for example \
                `/docs/README.md`",
            )
            .permanent(),
        ErrorKind::InvalidData => ToolFailure::new(format!("`{file}` is not UTF-8 text"))
            .suggestion("pass a Markdown file")
            .permanent(),
        _ => ToolFailure::new(format!("`{file}` cannot be read: {error}")),
    }
}

/// Parses CommonMark with GitHub's extensions.
pub(crate) fn parser(markdown: &str) -> Parser<'_> {
    let extensions = Options::ENABLE_TABLES
        | Options::ENABLE_FOOTNOTES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_GFM;
    Parser::new_ext(markdown, extensions)
}

/// Converts byte offsets to line numbers. Offsets must not decrease, so that each byte is read
/// once.
pub(crate) struct Lines<'a> {
    rest: &'a [u8],
    offset: usize,
    line: usize,
}

impl<'a> Lines<'a> {
    pub(crate) fn of(text: &'a str) -> Self {
        Self { rest: text.as_bytes(), offset: 0, line: 1 }
    }

    /// Returns the number of the line, from 1, with the byte at `offset`.
    pub(crate) fn at(&mut self, offset: usize) -> usize {
        if let Some((passed, rest)) = self.rest.split_at_checked(offset.saturating_sub(self.offset))
        {
            self.line += passed.iter().filter(|byte| **byte == b'\n').count();
            self.rest = rest;
            self.offset += passed.len();
        }
        self.line
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, read};

    fn check(text: Option<&str>, file: Option<&str>, expected: &str) {
        let found = match read(text.map(Into::into), file.map(Into::into)) {
            Ok(text) => text,
            Err(failure) => failure.to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn takes_exactly_one_source() {
        let pass = "pass the Markdown as `text` or the path of a file as `file`";
        check(Some("# A"), None, "# A");
        check(Some(""), None, "");
        check(None, None, &format!("expected one of `text` and `file`, got neither; {pass}"));
        check(
            Some("a"),
            Some("b"),
            &format!("expected one of `text` and `file`, got both; {pass}"),
        );
    }

    #[test]
    fn reads_files() {
        check(
            None,
            Some(concat!(env!("CARGO_MANIFEST_DIR"), "/src/source.rs")),
            include_str!("source.rs"),
        );
        check(
            None,
            Some("/missing/a.md"),
            "there is no file `/missing/a.md`; pass a path that begins with the name of a mount, for example \
             `/docs/README.md`",
        );
    }

    #[test]
    fn counts_lines() {
        let mut lines = Lines::of("a\nb\r\n\nc");
        let found: Vec<_> = [0, 1, 2, 5, 6, 99].map(|offset| lines.at(offset)).into();
        assert_eq!(found, [1, 1, 2, 3, 4, 4]);
    }
}
