//! Checks licenses, bans, sources and known vulnerabilities of dependencies, with `cargo deny` and
//! `deny.toml`.

use std::process::{Command, Stdio};

use anyhow::bail;

use crate::run::{cargo, is_ci, root, section};

/// Version of cargo-deny to install if it is missing.
const VERSION: &str = "0.20.2";

/// Checks the dependencies. If cargo-deny is missing, CI installs it, which takes some minutes, and
/// other machines skip the check with a note.
pub(crate) fn run() -> anyhow::Result<()> {
    if !is_installed() {
        if !is_ci() {
            section(&format!(
                "dependencies are not checked: cargo-deny is not installed (cargo install \
                 cargo-deny --locked --version {VERSION})"
            ));
            return Ok(());
        }
        section("installing cargo-deny, which takes some minutes");
        // Without optimizations, building takes a third of the time, and a check still takes only
        // seconds.
        cargo(&["install", "cargo-deny", "--locked", "--debug", "--version", VERSION])?;
    }
    section("dependencies: licenses, bans, sources");
    cargo(&["deny", "--all-features", "check", "licenses", "bans", "sources"])?;
    advisories()
}

/// Checks for known vulnerabilities. Fetches the advisory database over the network; a network
/// error skips the check with a note, a vulnerability is an error.
fn advisories() -> anyhow::Result<()> {
    section("dependencies: known vulnerabilities");
    if !deny(&["fetch", "db"])?.success() {
        section(
            "known vulnerabilities are NOT checked: the database of advisories cannot be reached",
        );
        return Ok(());
    }
    if !deny(&["--all-features", "--offline", "check", "advisories"])?.success() {
        bail!("a dependency has a known vulnerability");
    }
    Ok(())
}

fn deny(arguments: &[&str]) -> anyhow::Result<std::process::ExitStatus> {
    Ok(Command::new("cargo").arg("deny").args(arguments).current_dir(root()).status()?)
}

fn is_installed() -> bool {
    let mut version = Command::new("cargo");
    version
        .args(["deny", "--version"])
        .current_dir(root())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}
