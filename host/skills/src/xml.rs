//! Escaping and lists for the markup that a model reads (`SKILL-12`, `SKILL-16`).

/// Escapes `text` for an attribute or an element.
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

/// Escapes `text` for an element only. Quotes stay, because they make JSON readable.
pub(super) fn escaped_in_element(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Returns `entries` between the tags of `element`, on separate lines; the empty element if there
/// are none.
pub(super) fn list(element: &str, entries: &[String]) -> String {
    if entries.is_empty() {
        return format!("<{element} />");
    }
    format!("<{element}>\n{}\n</{element}>", entries.join("\n"))
}
