//! Text of untrusted parties: escaped, with hostile characters as marks, and cut at a limit.

use std::fmt::Write as _;

use cofferdam_tool::text::is_hostile_char;
use maud::{Markup, Render, html};

/// Maximum bytes of a name, a path or another value in one line.
const LINE_BYTES_MAX: usize = 512;
/// Maximum bytes of a payload on a page. The whole can be downloaded.
pub(crate) const PAYLOAD_BYTES_MAX: usize = 64 * 1024;

/// Text of an untrusted party for a page. Its direction does not affect the text around it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UntrustedText<'t> {
    shown: &'t str,
    /// Number of bytes that are left out.
    left_out: usize,
}

/// Returns a value in one line.
pub(crate) fn line(text: &str) -> UntrustedText<'_> {
    UntrustedText::new(text, LINE_BYTES_MAX)
}

/// Returns a value in one line as plain text, for scripts that set it as text.
pub(crate) fn plain_line(text: &str) -> String {
    plain(text, LINE_BYTES_MAX)
}

/// Returns text of several lines as plain text, for scripts that set it as text.
pub(crate) fn plain(text: &str, bytes_max: usize) -> String {
    let UntrustedText { shown, left_out } = UntrustedText::new(text, bytes_max);
    let mut plain = String::with_capacity(shown.len());
    for c in shown.chars() {
        if is_hostile_char(c) {
            plain.extend(c.escape_unicode());
        } else {
            plain.push(c);
        }
    }
    if left_out > 0 {
        // Writing to a string cannot fail.
        let _ = write!(plain, "… {left_out} more bytes");
    }
    plain
}

/// Returns JSON with its hostile characters as escapes, so that it has the same meaning and hides
/// nothing. Outside of strings, JSON has none.
pub(crate) fn visible_json(json: &str) -> String {
    let mut visible = String::with_capacity(json.len());
    for c in json.chars() {
        if is_hostile_char(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(visible, "\\u{unit:04x}");
            }
        } else {
            visible.push(c);
        }
    }
    visible
}

/// Returns text of several lines as a block that can be scrolled with the keyboard. `name` labels
/// it.
pub(crate) fn block(text: &str, name: &str) -> Markup {
    let text = UntrustedText::new(text, PAYLOAD_BYTES_MAX);
    html! { pre tabindex="0" role="region" aria-label=(name) { (text) } }
}

impl<'t> UntrustedText<'t> {
    pub(crate) fn new(text: &'t str, bytes_max: usize) -> Self {
        let shown = text.get(..text.floor_char_boundary(bytes_max)).unwrap_or_default();
        Self { shown, left_out: text.len() - shown.len() }
    }
}

impl Render for UntrustedText<'_> {
    fn render_to(&self, buffer: &mut String) {
        buffer.push_str("<bdi>");
        let mut rest = self.shown;
        while let Some((at, c)) = rest.char_indices().find(|(_, c)| is_hostile_char(*c)) {
            let (before, after) = rest.split_at(at);
            before.render_to(buffer);
            // Writing to a string cannot fail.
            let _ = write!(buffer, "<span class=\"mark\">{}</span>", c.escape_unicode());
            rest = after.get(c.len_utf8()..).unwrap_or_default();
        }
        rest.render_to(buffer);
        buffer.push_str("</bdi>");
        if self.left_out > 0 {
            let left_out = self.left_out;
            html! { span.more { "… " (left_out) " more bytes" } }.render_to(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_is_escaped_and_hostile_characters_are_marks() {
        let text = "<img src=x onerror=\"alert('&')\">\u{202e}gpj\u{1b}[2J";
        assert_eq!(
            line(text).render().into_string(),
            "<bdi>&lt;img src=x onerror=&quot;alert('&amp;')&quot;&gt;\
             <span class=\"mark\">\\u{202e}</span>gpj<span class=\"mark\">\\u{1b}</span>[2J</bdi>"
        );
        assert_eq!(plain_line("a\u{202e}b"), "a\\u{202e}b");
    }

    #[test]
    fn json_keeps_its_meaning_and_hides_nothing() {
        let json = serde_json::json!({"a\u{202e}": "\u{200b}\u{e0041}\u{7f}ü\n"}).to_string();
        let visible = visible_json(&json);
        assert_eq!(visible, r#"{"a\u202e":"\u200b\udb40\udc41\u007fü\n"}"#);
        let (a, b): (serde_json::Value, serde_json::Value) =
            (serde_json::from_str(&json).unwrap(), serde_json::from_str(&visible).unwrap());
        assert_eq!(a, b);
    }

    #[test]
    fn long_text_is_cut_at_a_character() {
        let text = "ü".repeat(600);
        let shown = line(&text).render().into_string();
        assert!(shown.ends_with("</bdi><span class=\"more\">… 688 more bytes</span>"), "{shown}");
        assert!(plain_line(&text).ends_with("… 688 more bytes"));
    }
}
