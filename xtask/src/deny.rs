//! Dependencies: licences, bans, sources and known vulnerabilities, by `cargo deny` and
//! `deny.toml`.

use std::process::{Command, Stdio};

use anyhow::bail;

use crate::run::{cargo, is_ci, root, section};

/// The version that is installed where there is none.
const VERSION: &str = "0.20.2";

/// Checks the dependency tree. Where cargo-deny is missing, CI installs it, which takes some
/// minutes; anywhere else that is said and nothing is checked.
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
        // Without optimisation it is built in a third of the time, and still checks in seconds.
        cargo(&["install", "cargo-deny", "--locked", "--debug", "--version", VERSION])?;
    }
    section("dependencies: licences, bans, sources");
    cargo(&["deny", "--all-features", "check", "licenses", "bans", "sources"])?;
    advisories()
}

/// The database of advisories is fetched over the network. Not reaching it is no reason to stop a
/// build; finding something in it is.
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
