//! Checks licenses, bans, sources and known vulnerabilities of dependencies, with `cargo deny` and
//! `deny.toml`.

use std::path::Path;
use std::process::{Command, ExitStatus};

use anyhow::{Context, bail};

use crate::packages::text;
use crate::run::{command, root, section};
use crate::tools;

/// Checks the dependencies.
pub(crate) fn run() -> anyhow::Result<()> {
    let Some(program) = tools::find("cargo-deny")? else { return Ok(()) };
    section("dependencies: licenses, bans, sources");
    let check = ["--all-features", "check", "licenses", "bans", "sources"];
    command(text(&program)?, &check).run(&root())?;
    advisories(&program)
}

/// Checks for known vulnerabilities. Fetches the advisory database over the network; a network
/// error skips the check with a note, a vulnerability is an error.
fn advisories(program: &Path) -> anyhow::Result<()> {
    section("dependencies: known vulnerabilities");
    if !deny(program, &["fetch", "db"])?.success() {
        section(
            "known vulnerabilities are NOT checked: the database of advisories cannot be reached",
        );
        return Ok(());
    }
    if !deny(program, &["--all-features", "--offline", "check", "advisories"])?.success() {
        bail!("a dependency has a known vulnerability");
    }
    Ok(())
}

fn deny(program: &Path, arguments: &[&str]) -> anyhow::Result<ExitStatus> {
    let mut deny = Command::new(program);
    deny.args(arguments).current_dir(root());
    deny.status().with_context(|| format!("cannot run {}", program.display()))
}
