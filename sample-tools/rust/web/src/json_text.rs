//! Indents JSON. Numbers and the order of keys stay as they are.

use serde::de::IgnoredAny;

/// Returns JSON with an indentation of two spaces, or none if the text is not JSON.
pub(crate) fn indent(text: &str) -> Option<String> {
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    let mut result = String::with_capacity(text.len());
    let mut depth = 0usize;
    let mut rest = text.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '"' => {
                result.push('"');
                while let Some(next) = rest.next() {
                    result.push(next);
                    match next {
                        '\\' => result.extend(rest.next()),
                        '"' => break,
                        _ => {}
                    }
                }
            }
            '{' | '[' => {
                result.push(next);
                while rest.next_if(char::is_ascii_whitespace).is_some() {}
                match rest.next_if(|it| matches!(it, '}' | ']')) {
                    Some(close) => result.push(close),
                    None => {
                        depth += 1;
                        new_line(&mut result, depth);
                    }
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut result, depth);
                result.push(next);
            }
            ',' => {
                result.push(',');
                new_line(&mut result, depth);
            }
            ':' => result.push_str(": "),
            _ if next.is_ascii_whitespace() => {}
            _ => result.push(next),
        }
    }
    Some(result)
}

fn new_line(result: &mut String, depth: usize) {
    result.push('\n');
    result.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::indent;

    #[test]
    fn json_is_indented() {
        let expected =
            "{\n  \"b\": [\n    1.50,\n    \"a,\\\"{\"\n  ],\n  \"a\": {},\n  \"c\": []\n}";
        assert_eq!(indent(r#"{"b":[1.50,"a,\"{"], "a" : { },"c":[]}"#).unwrap(), expected);
        assert_eq!(indent(expected).unwrap(), expected);
        assert_eq!(indent("12").unwrap(), "12");
        for text in ["", "{", "{\"a\"}", "[1] x"] {
            assert_eq!(indent(text), None);
        }
    }
}
