//! Lists the links of a document.

use cofferdam_sdk::{ToolFailure, tool};
use pulldown_cmark::{Event, LinkType, Tag, TagEnd};
use serde::Serialize;

use crate::source;

/// Link or image.
#[derive(Debug, PartialEq, Serialize)]
pub struct Link {
    /// Text that a reader sees, without markup; for an image, its alternative text.
    text: String,
    /// Target of the link.
    url: String,
    image: bool,
    /// Number of the line, from 1.
    line: usize,
}

/// Lists the links and images of a Markdown document. Nothing is opened or checked.
#[tool(title = "Links of Markdown", read_only, idempotent, open_world = false)]
pub fn links(
    /// The Markdown itself. Either this or `file`.
    text: Option<String>,
    /// The path of a file that holds the Markdown, for example `/docs/README.md`.
    file: Option<String>,
) -> Result<Vec<Link>, ToolFailure> {
    Ok(found(&source::read(text, file)?))
}

fn found(markdown: &str) -> Vec<Link> {
    let mut lines = source::Lines::of(markdown);
    let mut found: Vec<Link> = Vec::new();
    // Images can be inside links: text belongs to all open ones. Contains indices into `found`.
    let mut open = Vec::new();
    for (event, range) in source::parser(markdown).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { link_type, dest_url, .. }) => {
                open.push(found.len());
                let url = match link_type {
                    LinkType::Email => format!("mailto:{dest_url}"),
                    _ => dest_url.into_string(),
                };
                found.push(Link {
                    text: String::new(),
                    url,
                    image: false,
                    line: lines.at(range.start),
                });
            }
            Event::Start(Tag::Image { dest_url, .. }) => {
                open.push(found.len());
                let url = dest_url.into_string();
                found.push(Link {
                    text: String::new(),
                    url,
                    image: true,
                    line: lines.at(range.start),
                });
            }
            Event::End(TagEnd::Link | TagEnd::Image) => drop(open.pop()),
            Event::Text(text) | Event::Code(text) => {
                for index in &open {
                    if let Some(link) = found.get_mut(*index) {
                        link.text.push_str(&text);
                    }
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::{found, links};

    fn check(markdown: &str, expected: &[&str]) {
        let shown: Vec<_> = found(markdown)
            .into_iter()
            .map(|link| {
                format!(
                    "{}:{}{}>{}",
                    link.line,
                    if link.image { "!" } else { "" },
                    link.text,
                    link.url
                )
            })
            .collect();
        assert_eq!(shown, expected, "{markdown}");
    }

    #[test]
    fn finds_every_kind() {
        check("a [b *c* `d`](e \"f\")", &["1:b c d>e"]);
        check("\n\n![alt](a.png)", &["3:!alt>a.png"]);
        check("[![alt](a.png) more](b)", &["1:alt more>b", "1:!alt>a.png"]);
        check("<https://a.b> <c@d.e>", &["1:https://a.b>https://a.b", "1:c@d.e>mailto:c@d.e"]);
        check("[a][b]\n\n[b]: c", &["1:a>c"]);
        check("`[a](b)` [c]", &[]);
    }

    #[test]
    fn through_json() {
        let value = testing::call::<links>(json!({"text": "[a](b)"}));
        assert_eq!(value, Ok(json!([{"text": "a", "url": "b", "image": false, "line": 1}])));
    }
}
