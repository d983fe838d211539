//! Counts the words of a text.

use cofferdam_sdk::tool;
use schemars::JsonSchema;
use serde::Serialize;

/// The size of a text.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub struct WordCount {
    /// Words, as separated by white space.
    words: usize,
    /// Lines; a line break at the end does not begin another one.
    lines: usize,
    /// Unicode characters, white space included.
    characters: usize,
    /// The longest word, the first of several.
    longest: Option<String>,
}

/// Counts the words, lines and characters of a text.
#[tool(title = "Count words", read_only, idempotent, open_world = false, output_schema)]
pub fn word_count(
    /// The text to count.
    text: String,
    /// Count only words of at least this many characters. Lines and characters are counted in full.
    #[tool(default = 1)]
    min_length: usize,
) -> WordCount {
    let length = |word: &str| word.chars().count();
    let mut count = WordCount {
        words: 0,
        lines: text.lines().count(),
        characters: length(&text),
        longest: None,
    };
    for word in text.split_whitespace().filter(|word| length(word) >= min_length) {
        count.words += 1;
        if count.longest.as_deref().is_none_or(|longest| length(word) > length(longest)) {
            count.longest = Some(word.to_owned());
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::word_count;

    fn check(text: &str, min_length: usize, expected: (usize, usize, usize, Option<&str>)) {
        let count = word_count(text.to_owned(), min_length);
        let found = (count.words, count.lines, count.characters, count.longest.as_deref());
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn counts() {
        check("", 1, (0, 0, 0, None));
        check("one two\nthree\n", 1, (3, 2, 14, Some("three")));
        check("a bb\tccc  dd", 2, (3, 1, 12, Some("ccc")));
        check("größer über\r\n", 6, (1, 1, 13, Some("größer")));
    }

    #[test]
    fn through_json() {
        let value = testing::call::<word_count>(json!({"text": "one two"}));
        assert_eq!(value, Ok(json!({"words": 2, "lines": 1, "characters": 7, "longest": "one"})));
        let definition = testing::definition::<word_count>();
        assert_eq!(definition.input_schema["required"], json!(["text"]));
        assert_eq!(
            definition.output_schema.unwrap()["required"],
            json!(["words", "lines", "characters", "longest"])
        );
    }
}
