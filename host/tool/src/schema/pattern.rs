//! Patterns, matched in linear time for every pattern and every string (`ARG-38`).
//!
//! JSON Schema patterns use the dialect of ECMA-262. This engine has no look-around and no back
//! references, and a pattern that uses them is rejected. Syntax that both dialects have but
//! interpret differently is translated: `\d`, `\w` and `\b` are ASCII, and `[` or `&&` within a
//! class are plain characters.

use std::collections::HashMap;

use regex::{Regex, RegexBuilder};

/// Maximum total size of the compiled patterns of one declaration. A declaration of 64 KiB could
/// otherwise request gigabytes, a few characters at a time.
const SIZE_ALL_MAX: usize = 8 * 1024 * 1024;
/// Size limits to try, smallest first. The first that suffices is charged.
const SIZES: [usize; 3] = [8 * 1024, 64 * 1024, 1024 * 1024];

/// Compiles the patterns of one declaration, each distinct pattern once.
#[derive(Debug)]
pub(super) struct Patterns {
    compiled: HashMap<String, Regex>,
    size_left: usize,
}

impl Patterns {
    pub(super) fn new() -> Self {
        Self { compiled: HashMap::new(), size_left: SIZE_ALL_MAX }
    }

    /// Compiles a pattern, or returns the reason why it is not supported.
    pub(super) fn compile(&mut self, pattern: &str) -> Result<Regex, String> {
        if let Some(regex) = self.compiled.get(pattern) {
            return Ok(regex.clone());
        }
        let translated = translate(pattern);
        let mut problem = "the patterns of the declaration are too large together".to_owned();
        for size in SIZES.into_iter().filter(|size| *size <= self.size_left) {
            match RegexBuilder::new(&translated).size_limit(size).dfa_size_limit(size).build() {
                Ok(regex) => {
                    self.size_left -= size;
                    self.compiled.insert(pattern.to_owned(), regex.clone());
                    return Ok(regex);
                }
                Err(regex::Error::CompiledTooBig(_)) => {
                    problem = "the compiled pattern is too large".to_owned()
                }
                Err(error) => return Err(last_line(&error.to_string())),
            }
        }
        Err(problem)
    }
}

/// Returns the reason of an error. The engine shows the pattern with a marker on several lines and
/// the reason on the last one.
fn last_line(message: &str) -> String {
    message.lines().next_back().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Rewrites syntax that ECMA-262 and the engine interpret differently.
fn translate(pattern: &str) -> String {
    let mut translated = String::with_capacity(pattern.len());
    let mut characters = pattern.chars().peekable();
    let mut in_class = false;
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped) => push_escape(&mut translated, escaped, in_class),
                None => translated.push('\\'),
            },
            '[' if in_class => translated.push_str("\\["),
            '[' => {
                in_class = true;
                translated.push('[');
                push_class_start(&mut translated, &mut characters, &mut in_class);
            }
            ']' => {
                in_class = false;
                translated.push(']');
            }
            // Doubled, these are set operations within a class of the engine.
            '&' | '~' if in_class => translated.extend(['\\', character]),
            '-' if in_class && characters.peek() == Some(&'-') => translated.push_str("\\-"),
            _ => translated.push(character),
        }
    }
    translated
}

/// Translates `[]`, which matches nothing, and `[^]`, which matches everything; the engine would
/// take the bracket as a member.
fn push_class_start(
    translated: &mut String,
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
    in_class: &mut bool,
) {
    let negated = characters.next_if_eq(&'^').is_some();
    if characters.next_if_eq(&']').is_some() {
        translated.push_str(if negated { "\\s\\S]" } else { "^\\s\\S]" });
        *in_class = false;
    } else if negated {
        translated.push('^');
    }
}

fn push_escape(translated: &mut String, escaped: char, in_class: bool) {
    match escaped {
        'd' => translated.push_str(if in_class { "0-9" } else { "[0-9]" }),
        'D' => translated.push_str("[^0-9]"),
        'w' => translated.push_str(if in_class { "A-Za-z0-9_" } else { "[A-Za-z0-9_]" }),
        'W' => translated.push_str("[^A-Za-z0-9_]"),
        'b' if in_class => translated.push_str("\\x08"),
        'b' => translated.push_str("(?-u:\\b)"),
        '0' => translated.push_str("\\x00"),
        _ => translated.extend(['\\', escaped]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, text: &str) -> bool {
        Patterns::new().compile(pattern).unwrap().is_match(text)
    }

    #[test]
    fn classes_are_about_ascii_as_in_ecma_262() {
        assert!(matches(r"^\d+$", "42") && !matches(r"^\d+$", "٣"));
        assert!(matches(r"^[\w-]+$", "a-b_c") && !matches(r"^[\w-]+$", "é"));
        assert!(matches(r"^[^\D]$", "7") && matches(r"^[[]$", "[") && matches(r"^[a&&b]+$", "&a"));
        assert!(
            matches(r"^a\/b$", "a/b") && matches(r"\bcat\b", "a cat.") && matches("^[^]$", "x")
        );
        assert!(!matches("[]", "x"));
    }

    #[test]
    fn what_needs_back_tracking_is_refused() {
        for pattern in ["(?=a)", "(?<!a)b", r"(a)\1", "(", "(a{1000}){1000}"] {
            assert!(Patterns::new().compile(pattern).is_err(), "{pattern}");
        }
        assert_eq!(Patterns::new().compile("(").unwrap_err(), "unclosed group");
    }

    #[test]
    fn the_size_of_all_patterns_is_limited() {
        let mut patterns = Patterns::new();
        let refused =
            (0..1000).find(|n| patterns.compile(&format!("(a{{200}}){{20}}{n}")).is_err());
        assert!(refused.is_some_and(|n| n >= 8), "{refused:?}");
    }
}
