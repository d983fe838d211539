//! Searches a text.

use cofferdam_sdk::{ToolFailure, tool};
use regex::RegexBuilder;
use serde::Serialize;

/// Maximum bytes of a compiled pattern, far above any readable pattern and far below the memory of
/// a call.
const PATTERN_BYTES_MAX: usize = 1 << 20;

/// Matching lines.
#[derive(Debug, PartialEq, Serialize)]
pub struct Matches {
    lines: Vec<Line>,
    /// Number of matching lines, including lines over the limit.
    total: usize,
    /// True if lines were dropped because of the limit.
    truncated: bool,
}

/// Matching line.
#[derive(Debug, PartialEq, Serialize)]
pub struct Line {
    /// Number of the line, from 1.
    number: usize,
    text: String,
}

/// Finds the lines of a text that match a regular expression, with their numbers.
#[tool(title = "Find lines", read_only, idempotent, open_world = false)]
pub fn lines_matching(
    /// The text to search.
    text: String,
    /// A regular expression in the syntax of the Rust `regex` crate, without look-around and
    /// back-references. It may match anywhere in a line.
    pattern: String,
    /// Whether `a` also matches `A`.
    #[tool(default = false)]
    ignore_case: bool,
    /// At most this many lines are returned; all are counted.
    #[tool(default = 100)]
    limit: usize,
) -> Result<Matches, ToolFailure> {
    let pattern = RegexBuilder::new(&pattern)
        .case_insensitive(ignore_case)
        .size_limit(PATTERN_BYTES_MAX)
        .build()
        .map_err(|error| unusable(&pattern, &error))?;
    let mut matches = Matches { lines: Vec::new(), total: 0, truncated: false };
    for (index, line) in text.lines().enumerate().filter(|(_, line)| pattern.is_match(line)) {
        matches.total += 1;
        match matches.lines.len() < limit {
            true => matches.lines.push(Line { number: index + 1, text: line.to_owned() }),
            false => matches.truncated = true,
        }
    }
    Ok(matches)
}

fn unusable(pattern: &str, error: &regex::Error) -> ToolFailure {
    // The last line of the crate's message is the reason; the lines above repeat the pattern.
    let text = error.to_string();
    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
    ToolFailure::new(format!("`{pattern}` is not a usable regular expression: {reason}"))
        .suggestion("escape characters that are meant literally with `\\`, for example `\\(`")
        .permanent()
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::lines_matching;

    const TEXT: &str = "# Fruit\napple (red)\nBanana\n\napple (green)\r\n";

    fn check(pattern: &str, ignore_case: bool, limit: usize, expected: &str) {
        let found = match lines_matching(TEXT.into(), pattern.into(), ignore_case, limit) {
            Ok(matches) => {
                let lines: Vec<_> = matches
                    .lines
                    .iter()
                    .map(|line| format!("{}:{}", line.number, line.text))
                    .collect();
                format!("{} of {} {}", lines.join("|"), matches.total, matches.truncated)
            }
            Err(failure) => failure.to_string(),
        };
        assert_eq!(found, expected, "{pattern}");
    }

    #[test]
    fn finds() {
        check("^apple", false, 10, "2:apple (red)|5:apple (green) of 2 false");
        check("^apple", false, 1, "2:apple (red) of 2 true");
        check("banana", false, 10, " of 0 false");
        check("BANANA", true, 10, "3:Banana of 1 false");
        check("^$", false, 10, "4: of 1 false");
        check("apple", false, 0, " of 2 true");
    }

    #[test]
    fn says_what_is_wrong_with_a_pattern() {
        check(
            "apple (",
            false,
            10,
            "`apple (` is not a usable regular expression: unclosed group; escape characters that are meant \
             literally with `\\`, for example `\\(`",
        );
        check(
            r"\w{1000}{1000}",
            false,
            10,
            "`\\w{1000}{1000}` is not a usable regular expression: Compiled regex exceeds size limit of 1048576 \
             bytes.; escape characters that are meant literally with `\\`, for example `\\(`",
        );
    }

    #[test]
    fn through_json() {
        let value = testing::call::<lines_matching>(json!({"text": "a\nb", "pattern": "b"}));
        let expected =
            json!({"lines": [{"number": 2, "text": "b"}], "total": 1, "truncated": false});
        assert_eq!(value, Ok(expected));
    }
}
