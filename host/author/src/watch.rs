//! Files whose changes lead to a new build.

use std::path::Path;

/// Folders that toolchains write into, and that change with every build.
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

/// Returns whether a change of this file, relative to a project, is a reason to build it again.
#[must_use]
pub fn is_source(path: &Path) -> bool {
    let is_written = path
        .components()
        .any(|part| part.as_os_str().to_str().is_some_and(|part| WRITTEN.contains(&part)));
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    // What editors write beside a file while they save it.
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
