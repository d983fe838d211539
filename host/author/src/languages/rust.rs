//! Rust: cargo, for `wasm32-wasip2`, whose linker makes components.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Deserialize;

use crate::dependencies::{self, DependencyError};
use crate::{BuildError, MissingTool, Project, Steps, sections};

const TARGET: &str = "wasm32-wasip2";

/// Builds the component of a project.
pub(crate) fn build(project: &Project, steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    find(project.directory())?;
    let mut cargo = Command::new("cargo");
    cargo
        .args(["build", "--release", "--target", TARGET, "--lib"])
        .args(["--message-format", "json-render-diagnostics", "--color", "never"])
        .current_dir(project.directory());
    let built = steps
        .run(&format!("cargo build --release --target {TARGET}"), &mut cargo)
        .map_err(without_messages)?;
    steps.warn(&warnings(&built.stderr));
    let (package, path) = component(&built.stdout).ok_or_else(|| {
        let advice =
            "cargo has built no component; Cargo.toml needs `crate-type = [\"cdylib\"]` under \
             `[lib]`";
        BuildError::Project(advice.to_owned())
    })?;
    let mut component = fs::read(&path).map_err(|error| BuildError::read(&path, error))?;
    // `cargo auditable` has added them.
    if !sections::has_custom(&component, dependencies::SECTION) {
        match dependency_data(project, &package) {
            Ok(data) => sections::append_custom(&mut component, dependencies::SECTION, &data),
            Err(error) => {
                steps.note(&format!("note: the component has no dependency data: {error}"))
            }
        }
    }
    Ok(component)
}

/// Returns the names and versions of the packages that `package` is built of, for its component.
fn dependency_data(project: &Project, package: &str) -> Result<Vec<u8>, DependencyError> {
    let mut cargo = Command::new("cargo");
    // The build has written the lock file, which must not change.
    cargo
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", TARGET])
        .current_dir(project.directory())
        .stdin(Stdio::null());
    let output = cargo.output().map_err(|error| DependencyError::Cargo(error.to_string()))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        let line = message.lines().find(|line| line.starts_with("error"));
        return Err(DependencyError::Cargo(line.unwrap_or("it failed").to_owned()));
    }
    dependencies::dependency_data(&output.stdout, package)
}

/// Removes cargo's JSON messages from the output of a failure, so that users see only readable
/// ones.
fn without_messages(error: BuildError) -> BuildError {
    match error {
        BuildError::Failed { step, status, output } => {
            let lines: Vec<_> =
                output.lines().filter(|line| !line.starts_with("{\"reason\":")).collect();
            BuildError::Failed { step, status, output: lines.join("\n") }
        }
        other => other,
    }
}

/// Returns the warnings of what cargo has printed, without its progress.
fn warnings(printed: &str) -> String {
    let mut is_warning = false;
    let mut lines = Vec::new();
    for line in printed.lines() {
        // A warning of the compiler ends with an empty line, and one of a build script in its line.
        is_warning = line.starts_with("warning") || (is_warning && !is_progress(line));
        if is_warning {
            lines.push(line);
        }
        is_warning &= !line.is_empty();
    }
    lines.join("\n")
}

/// Returns whether a line is progress of cargo: a verb that ends in the twelfth column, such as
/// `   Compiling`.
fn is_progress(line: &str) -> bool {
    let Some((verb, rest)) = line.split_at_checked(12) else { return false };
    let verb = verb.trim_start();
    rest.starts_with(' ')
        && verb.starts_with(|first: char| first.is_ascii_uppercase())
        && verb.chars().all(|letter| letter.is_ascii_alphabetic())
}

/// One JSON message of cargo.
#[derive(Deserialize)]
struct Message {
    reason: String,
    #[serde(default)]
    package_id: String,
    #[serde(default)]
    filenames: Vec<PathBuf>,
}

/// Returns the last artifact that is a component, with the id of its package. Cargo reports
/// dependencies first.
fn component(messages: &str) -> Option<(String, PathBuf)> {
    let is_component = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "wasm");
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Message>(line).ok())
        .filter(|message| message.reason == "compiler-artifact")
        .filter_map(|Message { package_id, filenames, .. }| {
            Some((package_id, filenames.into_iter().rfind(is_component)?))
        })
        .next_back()
}

/// Finds the toolchain of a project in `directory`, and returns its version.
pub(crate) fn find(directory: &Path) -> Result<String, MissingTool> {
    let said = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        // A `rust-toolchain.toml` of the project can choose another toolchain.
        command.args(arguments).current_dir(directory).stdin(Stdio::null()).output().ok()
    };
    let Some(version) = said("cargo", &["--version"]) else {
        return Err(MissingTool {
            tool: "Rust's build tool cargo".to_owned(),
            looked_for: "cargo on the PATH".to_owned(),
            install: vec!["curl --proto '=https' -sSf https://sh.rustup.rs | sh".to_owned()],
        });
    };
    let libraries = said("rustc", &["--print", "target-libdir", "--target", TARGET])
        .map(|output| PathBuf::from(String::from_utf8_lossy(&output.stdout).trim()));
    if libraries.is_some_and(|folder| folder.is_dir()) {
        let version = String::from_utf8_lossy(&version.stdout);
        return Ok(format!("{} with {TARGET}", version.trim()));
    }
    Err(MissingTool {
        tool: format!("Rust's standard library for {TARGET}"),
        looked_for: "the folder that rustc names for it".to_owned(),
        install: vec![format!("rustup target add {TARGET}")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_what_cargo_prints_without_its_progress() {
        let unused = "warning: unused variable: `x`\n --> src/lib.rs:1:5\n  |\n1 |     let x = 1;\n  |         ^\n\n";
        let count = "warning: `tracker` (lib) generated 1 warning\n";
        let script = "warning: tracker@0.1.0: no tool for `GET /matrix`\n";
        let printed = format!(
            "   Compiling cfg-if v1.0.0\n{script}   Compiling tracker v0.1.0 (/tmp)\n{unused}{count}    \
             Finished `release` profile [optimized] target(s) in 3.57s\n"
        );
        assert_eq!(warnings(&printed), format!("{script}{unused}{count}").trim_end());
        assert_eq!(warnings("    Blocking waiting for file lock\n    Finished `release`\n"), "");
    }
}
