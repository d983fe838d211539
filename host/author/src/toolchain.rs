//! Finds the toolchain of a language in the way that builds find it.

use std::path::Path;

use crate::languages::{c, go, javascript, python, rust, zig};
use crate::{Language, MissingTool};

/// Finds the toolchain that builds projects of a language in `directory`, and returns its programs
/// with their versions. Starts the programs that it finds, also those in `directory` and, for
/// JavaScript, above it: name an empty directory unless you trust its contents.
///
/// `wasi_sdk` is the directory of the WASI SDK, as in [`BuildOptions`](crate::BuildOptions).
///
/// # Errors
/// [`MissingTool`] with the first part of the toolchain that is not installed.
pub fn find_toolchain(
    language: Language,
    directory: &Path,
    wasi_sdk: Option<&Path>,
) -> Result<String, MissingTool> {
    match language {
        Language::Rust => rust::find(directory),
        Language::Python => python::find(directory),
        Language::JavaScript | Language::TypeScript => javascript::find(directory),
        Language::Go => go::find(directory),
        Language::C => c::find(wasi_sdk, false),
        Language::Cpp => c::find(wasi_sdk, true),
        Language::Zig => {
            zig::find().map(|(program, version)| format!("{} {version}", program.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rust is installed wherever this test runs, and its target is that of the test's own plugins.
    #[test]
    fn a_toolchain_is_found_in_an_empty_directory() {
        let directory = tempfile::tempdir().unwrap();
        let found = find_toolchain(Language::Rust, directory.path(), None).unwrap();
        assert!(found.starts_with("cargo 1.") && found.ends_with("wasm32-wasip2"), "{found}");
    }

    #[cfg(unix)]
    #[test]
    fn a_directory_is_searched_for_programs_of_its_own() {
        let directory = tempfile::tempdir().unwrap();
        let folder = directory.path().join(".venv/bin");
        std::fs::create_dir_all(&folder).unwrap();
        // Another process writes the program: Linux runs no file that is open for writing, and a
        // process that a test starts beside this one holds our open files until it runs its own.
        let script = "printf '#!/bin/sh\\necho componentize-py 0.1.0\\n' > componentize-py && chmod 755 \
                      componentize-py";
        let written =
            std::process::Command::new("sh").args(["-c", script]).current_dir(&folder).status();
        assert!(written.unwrap().success());
        let found = find_toolchain(Language::Python, directory.path(), None);
        assert_eq!(found.as_deref(), Ok("componentize-py 0.1.0"));
    }
}
