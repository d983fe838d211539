//! Comparison of the public interfaces of the published crates by cargo-semver-checks.

use std::process::Command;

use anyhow::bail;

use crate::dist::published;
use crate::run::{command, root, section};

/// Compares the libraries with those of `commit`.
///
/// # Errors
/// Returns an error if cargo-semver-checks is missing, or if a change needs a higher version than
/// that of the workspace.
pub(super) fn compare(commit: &str) -> anyhow::Result<()> {
    let version = Command::new("cargo").args(["semver-checks", "--version"]).output();
    if !version.is_ok_and(|output| output.status.success()) {
        bail!("cargo-semver-checks is missing; `cargo install cargo-semver-checks` installs it");
    }
    section(&format!("comparing the interfaces of the published crates with those of {commit}"));
    let mut arguments = vec!["semver-checks".to_owned()];
    arguments.extend(["--baseline-rev".to_owned(), commit.to_owned()]);
    for name in published()? {
        arguments.extend(["--package".to_owned(), name]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    command("cargo", &arguments).called("cargo semver-checks").run(&root())
}
