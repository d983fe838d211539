//! Conversion of paths from a guest's C library to paths of a store.
//!
//! `.` and `..` are resolved lexically, which is correct without links: the path never leaves the
//! directory that it starts from. [`StorePath`] checks the rest, segment by segment, so that a name
//! that a model could not write does not exist for a guest either.

use cofferdam_files::{NameRules, StorePath};
use wasmtime_wasi::p2::bindings::filesystem::types::ErrorCode;

/// Maximum length of a guest's path, in bytes: the same as a store's.
const PATH_BYTES_MAX: usize = 4096;
/// Maximum length of a name, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Path below a directory, and whether it must denote a directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) path: StorePath,
    /// True if the path ends in a separator or a dot segment.
    pub(super) must_be_directory: bool,
}

/// Resolves `text` relative to `directory`, in a store with `rules`.
pub(super) fn resolve(
    directory: &StorePath,
    text: &str,
    rules: NameRules,
) -> Result<Target, ErrorCode> {
    if text.is_empty() {
        return Err(ErrorCode::NoEntry);
    }
    if text.len() > PATH_BYTES_MAX {
        return Err(ErrorCode::NameTooLong);
    }
    if text.starts_with('/') {
        return Err(ErrorCode::NotPermitted);
    }
    let mut names = Vec::new();
    for segment in text.split('/') {
        match segment {
            "" | "." => {}
            ".." => drop(names.pop().ok_or(ErrorCode::NotPermitted)?),
            name if name.len() > NAME_BYTES_MAX => return Err(ErrorCode::NameTooLong),
            name => names.push(name),
        }
    }
    let path = names
        .into_iter()
        .try_fold(directory.clone(), |path, name| path.child_under(name, rules))
        .map_err(|_| ErrorCode::Invalid)?;
    let last = text.rsplit('/').next().unwrap_or_default();
    Ok(Target { path, must_be_directory: matches!(last, "" | "." | "..") })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Resolves a path in a store with portable names.
    fn resolve(directory: &StorePath, text: &str) -> Result<Target, ErrorCode> {
        super::resolve(directory, text, NameRules::Portable)
    }

    #[track_caller]
    fn check(text: &str, expected: Result<&str, ErrorCode>) {
        let found = resolve(&StorePath::directory("d").unwrap(), text);
        assert_eq!(
            found.map(|target| target.path.as_str().to_owned()),
            expected.map(str::to_owned),
            "{text:?}"
        );
    }

    #[test]
    fn dots_are_worked_out_within_the_directory() {
        for (text, expected) in [
            ("a", "d/a"),
            ("./a", "d/a"),
            (".", "d"),
            ("a/..", "d"),
            ("a/../b", "d/b"),
            ("a//b/", "d/a/b"),
            ("a/b/../../c/.", "d/c"),
        ] {
            check(text, Ok(expected));
        }
        for text in ["..", "../d", "a/../..", "./..", "a/../../d/a", "/a", "/"] {
            check(text, Err(ErrorCode::NotPermitted));
        }
    }

    #[test]
    fn names_are_those_of_stores() {
        for text in
            ["CON", "a:b", "end.", "a\\b", "..\\a", "a\nb", "a\0b", ".~cofferdam-x", "...", "C:"]
        {
            check(text, Err(ErrorCode::Invalid));
        }
        check("", Err(ErrorCode::NoEntry));
        check(&"x".repeat(256), Err(ErrorCode::NameTooLong));
        check(&"x/".repeat(3000), Err(ErrorCode::NameTooLong));
    }

    #[test]
    fn white_space_is_not_trimmed_away() {
        let found = resolve(&StorePath::ROOT, " a");
        assert_eq!(found, Err(ErrorCode::Invalid));
        assert_eq!(resolve(&StorePath::ROOT, "a b").unwrap().path.as_str(), "a b");
    }

    #[test]
    fn an_end_that_only_directories_have_is_noticed() {
        for (text, expected) in
            [("a", false), ("a/", true), ("a/.", true), ("a/..", true), (".", true)]
        {
            assert_eq!(
                resolve(&StorePath::ROOT, text).unwrap().must_be_directory,
                expected,
                "{text}"
            );
        }
    }
}
