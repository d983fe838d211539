//! Lists the headings of a document.

use cofferdam_sdk::{ToolFailure, tool};
use pulldown_cmark::{Event, Tag, TagEnd};
use serde::Serialize;

use crate::source;

/// Heading of a document.
#[derive(Debug, PartialEq, Serialize)]
pub struct Heading {
    /// Level from 1 (largest) to 6.
    level: u8,
    /// Title without markup.
    title: String,
    /// Number of the line, from 1.
    line: usize,
}

/// Lists the headings of a Markdown document with level and line: a cheap first look at a long
/// document.
#[tool(title = "Outline of Markdown", read_only, idempotent, open_world = false)]
pub fn outline(
    /// The Markdown itself. Either this or `file`.
    text: Option<String>,
    /// The path of a file that holds the Markdown, for example `/docs/README.md`.
    file: Option<String>,
) -> Result<Vec<Heading>, ToolFailure> {
    Ok(headings(&source::read(text, file)?))
}

fn headings(markdown: &str) -> Vec<Heading> {
    let mut lines = source::Lines::of(markdown);
    let mut found = Vec::new();
    let mut open: Option<Heading> = None;
    for (event, range) in source::parser(markdown).into_offset_iter() {
        match (event, &mut open) {
            (Event::Start(Tag::Heading { level, .. }), _) => {
                open = Some(Heading {
                    level: level as u8,
                    title: String::new(),
                    line: lines.at(range.start),
                });
            }
            (Event::End(TagEnd::Heading(_)), _) => found.extend(open.take()),
            (Event::Text(text) | Event::Code(text), Some(heading)) => heading.title.push_str(&text),
            (Event::SoftBreak | Event::HardBreak, Some(heading)) => heading.title.push(' '),
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::{headings, outline};

    #[test]
    fn finds_headings_and_nothing_else() {
        let markdown = "# One `code` and *more*\n\n```\n# no\n```\n\nTwo\nlines\n---\n\n> ### \
            Quoted\n";
        let found: Vec<_> = headings(markdown)
            .into_iter()
            .map(|it| format!("{}:{}:{}", it.line, it.level, it.title))
            .collect();
        assert_eq!(found, ["1:1:One code and more", "7:2:Two lines", "11:3:Quoted"]);
    }

    #[test]
    fn through_json() {
        let value = testing::call::<outline>(json!({"text": "# A"}));
        assert_eq!(value, Ok(json!([{"level": 1, "title": "A", "line": 1}])));
        assert_eq!(
            testing::call::<outline>(json!({"text": null})).unwrap_err().message(),
            "expected one of `text` and `file`, got neither"
        );
        assert_eq!(testing::definition::<outline>().input_schema["required"], json!(null));
    }
}
