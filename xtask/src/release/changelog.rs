//! Changelog in the form of Keep a Changelog.

use anyhow::{Context, bail};

/// Heading of the changes since the last release.
const UNRELEASED: &str = "## Unreleased\n";

/// Moves the changes under `Unreleased` below a heading for the version.
///
/// # Errors
/// Returns an error if there are no changes, or no such heading.
pub(super) fn close(text: &str, version: &str, date: &str) -> anyhow::Result<String> {
    let (before, after) = text
        .split_once(UNRELEASED)
        .with_context(|| format!("expected the heading `{}`, found none", UNRELEASED.trim_end()))?;
    let changes = after.split_once("\n## ").map_or(after, |(changes, _)| changes);
    if !changes.lines().any(|line| line.starts_with("- ")) {
        bail!("expected changes under `{}`, found none", UNRELEASED.trim_end());
    }
    // "Nothing is released yet" and the like stands in the introduction.
    let before = before.replace(" Nothing is released yet.", "");
    Ok(format!("{before}{UNRELEASED}\n## {version} - {date}\n{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_move_below_the_version() {
        let text = "# Changelog\n\nNotable. Nothing is released yet.\n\n## Unreleased\n\n### \
                    Added\n\n- one\n";
        let closed = close(text, "1.0.0", "2026-01-31").unwrap();
        let expected = "# Changelog\n\nNotable.\n\n## Unreleased\n\n## 1.0.0 - \
                        2026-01-31\n\n### Added\n\n- one\n";
        assert_eq!(closed, expected);
        let error = close(&closed, "1.0.1", "2026-02-01").unwrap_err().to_string();
        assert_eq!(error, "expected changes under `## Unreleased`, found none");
        assert!(close("# Changelog\n", "1.0.0", "2026-01-31").is_err());
    }
}
