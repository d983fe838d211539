//! Compares two texts.

use cofferdam_sdk::tool;
use similar::TextDiff;

/// Compares two texts line by line and shows the differences as a unified diff (`-` lines are only
/// before, `+` lines only after).
#[tool(title = "Compare texts", read_only, idempotent, open_world = false)]
pub fn diff(
    /// The text as it was.
    before: String,
    /// The text as it is.
    after: String,
    /// How many unchanged lines to show around a change.
    #[tool(default = 3)]
    context: usize,
) -> String {
    if before == after {
        return "The texts are equal.".to_owned();
    }
    TextDiff::from_lines(&before, &after)
        .unified_diff()
        .context_radius(context)
        .header("before", "after")
        .to_string()
}

#[cfg(test)]
mod tests {
    use cofferdam_sdk::{json, testing};

    use super::diff;

    #[track_caller]
    fn check(before: &str, after: &str, context: usize, expected: &str) {
        assert_eq!(diff(before.into(), after.into(), context), expected);
    }

    #[test]
    fn shows_what_changed() {
        check("a\nb\n", "a\nb\n", 3, "The texts are equal.");
        check(
            "a\nb\nc\n",
            "a\nx\nc\n",
            3,
            "--- before\n+++ after\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n \
            c\n",
        );
        check("a\nb\nc\n", "a\nx\nc\n", 0, "--- before\n+++ after\n@@ -2 +2 @@\n-b\n+x\n");
        check(
            "",
            "a",
            3,
            "--- before\n+++ after\n@@ -0,0 +1 @@\n+a\n\\ No newline at end of \
            file\n",
        );
    }

    #[test]
    fn through_json() {
        let value = testing::call::<diff>(json!({"before": "a", "after": "a"}));
        assert_eq!(value, Ok(json!("The texts are equal.")));
    }
}
