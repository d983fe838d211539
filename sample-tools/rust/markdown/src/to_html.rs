//! Converts Markdown to HTML.

use cofferdam_sdk::{ToolFailure, tool};
use pulldown_cmark::{Event, html};

use crate::source;

/// Renders a Markdown document as an HTML fragment.
#[tool(title = "Markdown to HTML", read_only, idempotent, open_world = false)]
pub fn to_html(
    /// The Markdown itself. Either this or `file`.
    text: Option<String>,
    /// The path of a file that holds the Markdown, for example `/docs/README.md`.
    file: Option<String>,
    /// Whether HTML inside the Markdown is kept. Otherwise it is shown as text. Links are never
    /// checked.
    #[tool(default = false)]
    keep_html: bool,
) -> Result<String, ToolFailure> {
    let markdown = source::read(text, file)?;
    let events = source::parser(&markdown).map(|event| match event {
        // Untrusted Markdown must not contribute scripts unless the caller keeps HTML.
        Event::Html(html) | Event::InlineHtml(html) if !keep_html => Event::Text(html),
        event => event,
    });
    let mut output = String::new();
    html::push_html(&mut output, events);
    Ok(output)
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::to_html;

    fn check(markdown: &str, keep_html: bool, expected: &str) {
        let html = to_html(Some(markdown.to_owned()), None, keep_html);
        assert_eq!(html.as_deref(), Ok(expected), "{markdown}");
    }

    #[test]
    fn renders() {
        check(
            "# A\n\n- [x] ~~b~~",
            false,
            "<h1>A</h1>\n<ul>\n<li><input disabled=\"\" type=\"checkbox\" \
             checked=\"\"/>\n<del>b</del></li>\n</ul>\n",
        );
        check(
            "a | b\n--|--\n1 | 2",
            false,
            "<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td>1</td><td>2</td></tr>\n</tbody></table>\n",
        );
        check("a <b>c</b>", false, "<p>a &lt;b&gt;c&lt;/b&gt;</p>\n");
        check("a <b>c</b>", true, "<p>a <b>c</b></p>\n");
        check("<script>\nalert()\n</script>", false, "&lt;script&gt;\nalert()\n&lt;/script&gt;");
    }

    #[test]
    fn through_json() {
        assert_eq!(
            testing::call::<to_html>(json!({"text": "*a*"})),
            Ok(json!("<p><em>a</em></p>\n"))
        );
    }
}
