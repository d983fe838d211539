//! Converts Markdown to HTML.

use cofferdam_sdk::{ToolFailure, tool};
use pulldown_cmark::{Event, LinkType, Tag, TagEnd, html};

use crate::source;

/// Schemes of the addresses that cannot run scripts or carry a document of their own.
const SCHEMES: [&str; 3] = ["http", "https", "mailto"];

/// Renders a Markdown document as an HTML fragment. Links and images keep only relative addresses
/// and those that begin with `http:`, `https:` or `mailto:`; of others, the text is shown.
#[tool(title = "Markdown to HTML", read_only, idempotent, open_world = false)]
pub fn to_html(
    /// The Markdown itself. Either this or `file`.
    text: Option<String>,
    /// The path of a file that holds the Markdown, for example `/docs/README.md`.
    file: Option<String>,
    /// Whether HTML inside the Markdown and all addresses are kept. Otherwise HTML is shown as
    /// text, and links and images with an address such as `javascript:` or `data:` too.
    #[tool(default = false)]
    keep_html: bool,
) -> Result<String, ToolFailure> {
    let markdown = source::read(text, file)?;
    let mut addresses = Addresses::default();
    let events = source::parser(&markdown).filter_map(|event| match event {
        // Untrusted Markdown must not contribute scripts unless the caller keeps HTML.
        event if keep_html => Some(event),
        Event::Html(html) | Event::InlineHtml(html) => Some(Event::Text(html)),
        event => addresses.checked(event),
    });
    let mut output = String::new();
    html::push_html(&mut output, events);
    Ok(output)
}

/// Leaves out the links and images with an address that is not allowed, but not their text.
#[derive(Default)]
struct Addresses {
    /// For each open link and image, whether it is kept. Images can be inside of links.
    open: Vec<bool>,
}

impl Addresses {
    /// Returns the event unless it begins or ends a link or image that is left out.
    fn checked<'m>(&mut self, event: Event<'m>) -> Option<Event<'m>> {
        let is_kept = match &event {
            Event::Start(
                Tag::Link { link_type, dest_url, .. } | Tag::Image { link_type, dest_url, .. },
            ) => {
                // The address of `<name@example.com>` gets its scheme later.
                let is_kept = *link_type == LinkType::Email || is_allowed(dest_url);
                self.open.push(is_kept);
                is_kept
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.open.pop().unwrap_or(true),
            _ => true,
        };
        is_kept.then_some(event)
    }
}

/// Returns whether an address is relative or has an allowed scheme. Browsers ignore tabs, line
/// breaks and leading control characters in a scheme, so everything before the colon counts.
fn is_allowed(address: &str) -> bool {
    let start = address.split(['/', '?', '#']).next().unwrap_or_default();
    match start.split_once(':') {
        Some((scheme, _)) => SCHEMES.iter().any(|allowed| scheme.eq_ignore_ascii_case(allowed)),
        None => true,
    }
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
    fn addresses_that_run_scripts_are_left_out() {
        for address in [
            "javascript:alert(1)",
            "JavaScript:alert(1)",
            "vbscript:x",
            "data:text/html;base64,PHNjcmlwdD4=",
            "file:///etc/passwd",
            "javascript&colon;alert(1)",
            "javascript&#58;alert(1)",
            "&#106;avascript:alert(1)",
            "java&Tab;script:alert(1)",
            "java&NewLine;script:alert(1)",
            "&#1;javascript:alert(1)",
            "&#32;javascript:alert(1)",
            "<&#9;java script:alert(1)>",
            "<\u{1}javascript:alert(1)>",
            "\\javascript:alert(1)",
        ] {
            check(&format!("[*a*]({address})"), false, "<p><em>a</em></p>\n");
            check(&format!("![a]({address} \"t\")"), false, "<p>a</p>\n");
            check(&format!("[a][b]\n\n[b]: {address}"), false, "<p>a</p>\n");
        }
        check("<javascript:a>", false, "<p>javascript:a</p>\n");
        check("[![a](b.png)](data:c) d", false, "<p><img src=\"b.png\" alt=\"a\" /> d</p>\n");
        check("[![a](data:b)](c)", false, "<p><a href=\"c\">a</a></p>\n");
        check("[a](javascript:b)", true, "<p><a href=\"javascript:b\">a</a></p>\n");
    }

    #[test]
    fn other_addresses_are_kept() {
        for address in [
            "http://a.b",
            "HTTPS://a.b:80/c",
            "mailto:a@b.c",
            "//a.b/c",
            "/a:b",
            "a/b:c",
            "#a:b",
            "?a=b:c",
            "a.md",
            "",
        ] {
            let expected = format!("<p><a href=\"{address}\">a</a></p>\n");
            check(&format!("[a]({address})"), false, &expected);
        }
        check("<a@b.c>", false, "<p><a href=\"mailto:a@b.c\">a@b.c</a></p>\n");
    }

    #[test]
    fn through_json() {
        assert_eq!(
            testing::call::<to_html>(json!({"text": "*a*"})),
            Ok(json!("<p><em>a</em></p>\n"))
        );
    }
}
