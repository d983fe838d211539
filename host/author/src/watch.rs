//! Decides which changed files lead to a new build.

use std::path::Path;

/// Directories that toolchains write to in every build.
const WRITTEN: [&str; 9] = [
    "dist",
    "target",
    "node_modules",
    "__pycache__",
    ".cofferdam",
    ".git",
    ".venv",
    "build",
    ".pytest_cache",
];

/// Returns whether a change of a file leads to a new build. `path` is relative to the project.
#[must_use]
pub fn is_source(path: &Path) -> bool {
    let is_written = path
        .components()
        .any(|part| part.as_os_str().to_str().is_some_and(|part| WRITTEN.contains(&part)));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // Temporary files that editors write while they save.
    let is_passing = name.is_empty()
        || name.starts_with('.')
        || name.ends_with('~')
        || name.starts_with('#')
        || name == "4913";
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    !is_written && !is_passing && !matches!(ending, "swp" | "tmp" | "wasm")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_toolchains_and_editors_write_is_no_source() {
        for source in [
            "src/lib.rs",
            "app.py",
            "plugin.toml",
            "sdk/index.js",
            "Makefile",
            "a/b.c",
            "builder.go",
        ] {
            assert!(is_source(Path::new(source)), "{source}");
        }
        for written in [
            "dist/x.wasm",
            "target/debug/x",
            "node_modules/x/index.js",
            ".cofferdam/wit/world.wit",
            "a/__pycache__/b.pyc",
            ".app.py.swp",
            "app.py~",
            "4913",
            ".git/index",
            "",
        ] {
            assert!(!is_source(Path::new(written)), "{written}");
        }
    }
}
