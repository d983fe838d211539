//! Patterns for names of tools, in configurations and settings.

use serde::Deserialize;

/// Pattern for tool names, in which `*` matches any characters.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ToolPattern(Box<str>);

/// Error for a pattern that can match no tool name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "write the name of a tool; `*` stands for any characters, and there are no other wildcards"
)]
pub struct InvalidToolPattern;

impl ToolPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// [`InvalidToolPattern`] for an empty pattern, white space and the wildcards of other pattern
    /// languages.
    pub fn new(pattern: &str) -> Result<Self, InvalidToolPattern> {
        let is_foreign = |c: char| c.is_whitespace() || c.is_control() || "?[]{}!,\\".contains(c);
        if pattern.is_empty() || pattern.contains(is_foreign) {
            return Err(InvalidToolPattern);
        }
        Ok(Self(pattern.into()))
    }

    /// Returns true if the pattern matches the whole name.
    #[must_use]
    pub fn matches(&self, name: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(mut rest) = parts.next().and_then(|first| name.strip_prefix(first)) else {
            return false;
        };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        for part in parts {
            // The earliest match leaves the most for the parts that follow.
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl TryFrom<String> for ToolPattern {
    type Error = InvalidToolPattern;

    fn try_from(pattern: String) -> Result<Self, InvalidToolPattern> {
        Self::new(&pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(pattern: &str) -> ToolPattern {
        ToolPattern::new(pattern).unwrap()
    }

    #[test]
    fn a_pattern_matches_the_whole_name() {
        for (text, yes, no) in [
            ("csv_filter", "csv_filter", "csv_filters"),
            ("csv_*", "csv_", "xcsv_a"),
            ("*_read", "a_read", "a_reads"),
            ("a*b*c", "abbcbc", "acb"),
            ("a*ba", "aba", "ba"),
            ("ab*ba", "abba", "aba"),
            ("*", "anything", ""),
        ] {
            assert!(pattern(text).matches(yes), "{text} {yes}");
            assert!(no.is_empty() || !pattern(text).matches(no), "{text} {no}");
        }
        for text in ["", "a b", "[ab]", "a?", "{a,b}"] {
            assert_eq!(ToolPattern::new(text), Err(InvalidToolPattern), "{text}");
        }
    }
}
