//! Paths of a repository that a call selects.

use cofferdam_sdk::ToolFailure;
use regex::Regex;

/// Maximum length of a pattern in bytes.
const PATTERN_BYTES_MAX: usize = 500;

/// Selection of paths.
pub(crate) struct Paths {
    /// Directory or file; empty for all.
    below: String,
    glob: Option<Glob>,
}

struct Glob {
    regex: Regex,
    /// False if the pattern is about names of files, not about paths.
    is_path: bool,
}

impl Paths {
    /// Selects all files.
    pub(crate) fn all() -> Self {
        Self { below: String::new(), glob: None }
    }

    /// Selects the file `path`, or the files below it.
    pub(crate) fn below(path: Option<&str>) -> Result<Self, ToolFailure> {
        Ok(Self { below: path.map(clean).transpose()?.unwrap_or_default(), glob: None })
    }

    /// Selects the files that match a glob: `*` and `?` stop at `/`, `**` does not. A pattern
    /// without `/` is about the names of files in any directory.
    pub(crate) fn matching(glob: Option<&str>) -> Result<Self, ToolFailure> {
        let Some(glob) = glob.filter(|glob| !glob.is_empty()) else { return Ok(Self::all()) };
        let invalid = || {
            ToolFailure::new(format!("invalid glob `{glob}`"))
                .suggestion("pass a glob such as `*.rs`, `src/**` or `docs/**/*.md`")
                .permanent()
        };
        if glob.len() > PATTERN_BYTES_MAX {
            return Err(invalid());
        }
        let regex = Regex::new(&to_regex(glob.trim_start_matches('/'))).map_err(|_| invalid())?;
        Ok(Self { below: String::new(), glob: Some(Glob { regex, is_path: glob.contains('/') }) })
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        let is_below = match path.strip_prefix(&self.below) {
            Some(rest) => self.below.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        };
        is_below
            && self.glob.as_ref().is_none_or(|glob| {
                let name = path.rsplit('/').next().unwrap_or(path);
                glob.regex.is_match(if glob.is_path { path } else { name })
            })
    }

    /// Returns true if files below a directory can be selected.
    pub(crate) fn enters(&self, directory: &str) -> bool {
        self.contains_below(directory)
            || self.below.strip_prefix(directory).is_some_and(|rest| rest.starts_with('/'))
    }

    fn contains_below(&self, directory: &str) -> bool {
        match directory.strip_prefix(&self.below) {
            Some(rest) => self.below.is_empty() || rest.is_empty() || rest.starts_with('/'),
            None => false,
        }
    }
}

/// Normalizes a path in a repository: no `/` at its ends, no `.` and `..`.
pub(crate) fn clean(path: &str) -> Result<String, ToolFailure> {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(ToolFailure::new(format!("`{path}` contains `..`"))
            .suggestion("pass a path from the root of the repository, such as `src/main.rs`")
            .permanent());
    }
    Ok(parts.join("/"))
}

fn to_regex(glob: &str) -> String {
    let mut regex = String::from("^");
    let mut rest = glob;
    while let Some(next) = rest.chars().next() {
        let (part, length) = if rest.starts_with("**/") {
            ("(?:.*/)?".to_owned(), 3)
        } else if rest.starts_with("**") {
            (".*".to_owned(), 2)
        } else if next == '*' {
            ("[^/]*".to_owned(), 1)
        } else if next == '?' {
            ("[^/]".to_owned(), 1)
        } else {
            (regex::escape(next.encode_utf8(&mut [0; 4])), next.len_utf8())
        };
        regex.push_str(&part);
        rest = rest.get(length..).unwrap_or_default();
    }
    regex + "$"
}

#[cfg(test)]
mod tests {
    use super::Paths;

    #[test]
    fn globs_select_paths() {
        let check = |glob, path, expected| {
            let found = Paths::matching(Some(glob)).unwrap().contains(path);
            assert_eq!(found, expected, "{glob} {path}");
        };
        check("*.rs", "src/a.rs", true);
        check("*.rs", "src/a.rst", false);
        check("src/*", "src/a.rs", true);
        check("src/*", "src/b/a.rs", false);
        check("src/**", "src/b/a.rs", true);
        check("**/a.rs", "a.rs", true);
        check("/a?.r(s", "ab.r(s", true);
        check("src/**/[x]", "src/q/[x]", true);
    }

    #[test]
    fn paths_select_files_and_directories() {
        let paths = Paths::below(Some("/src/a/")).unwrap();
        let selected = ["src/a", "src/a/b.rs", "src/ab", "src"].map(|path| paths.contains(path));
        assert_eq!(selected, [true, true, false, false]);
        let entered = ["src", "src/a", "src/a/b", "sr", "docs"].map(|path| paths.enters(path));
        assert_eq!(entered, [true, true, true, false, false]);
        assert!(Paths::below(Some("a/../b")).is_err());
        assert!(Paths::all().enters("x"));
    }
}
