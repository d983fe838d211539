//! Text that stands in the markup which a model is shown (`SKILL-12`, `SKILL-16`). There is no
//! other writer of markup here.

/// `text` where an attribute or an element can hold it: nothing in it can be taken for markup.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#x27;"),
            other => escaped.push(other),
        }
    }
    escaped
}

/// The same for an element alone, where quotes may stay: JSON is unreadable without them.
pub(super) fn escaped_in_element(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// `entries` between the tags of `element`, on lines of their own; the empty element if there are
/// none.
pub(super) fn list(element: &str, entries: &[String]) -> String {
    if entries.is_empty() {
        return format!("<{element} />");
    }
    format!("<{element}>\n{}\n</{element}>", entries.join("\n"))
}
