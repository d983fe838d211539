//! Third-party tests of MCP: runs the official conformance suite and the official clients against
//! this server.
//!
//! Both are programs for Node and Python in `target/mcp`. CI always installs them. On other
//! machines, `cargo xtask mcp` installs them, and `cargo xtask test` runs them if they are
//! installed.

mod clients;
mod conformance;
mod server;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::packages::{Installed as Tools, Packages, text};
use crate::run::{is_ci, root, section};

/// Part of the third-party tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The official conformance suite, against the server and with the client
    Conformance,
    /// The official clients
    Clients,
}

/// Packages to install.
const PACKAGES: Packages = Packages {
    what: "clients of MCP and its conformance suite",
    folder: "target/mcp",
    python: "tests/clients/requirements.txt",
    node: ["tests/clients/package.json", "tests/clients/package-lock.json"],
};

/// Installs missing packages.
pub(crate) fn install() -> anyhow::Result<()> {
    PACKAGES.install().map(drop)
}

/// Installs missing packages and runs one part, or both. Guests and host must be built.
pub(crate) fn run(part: Option<Part>) -> anyhow::Result<()> {
    let tools = PACKAGES.install()?;
    if part != Some(Part::Conformance) {
        clients::run(&tools)?;
    }
    if part != Some(Part::Clients) {
        conformance::run(&tools)?;
    }
    Ok(())
}

/// Runs both parts in a run of all tests. Skips them with a note if the packages are not installed,
/// except in CI.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if !is_ci() && PACKAGES.installed()?.is_none() {
        section(
            "the clients of MCP and its conformance suite are skipped: not installed (`cargo \
             xtask mcp` does that)",
        );
        return Ok(());
    }
    run(None)
}

/// Returns the path of the debug binary.
fn binary() -> PathBuf {
    root().join("target/debug/cofferdam")
}

/// Atomically replaces a file that a server watches with a guest.
fn put_plugin(name: &str, file: &Path) -> anyhow::Result<()> {
    let fresh = file.with_extension("fresh");
    let guest = root().join("target/plugins").join(format!("{name}.wasm"));
    fs::copy(&guest, &fresh).with_context(|| format!("cannot copy {}", guest.display()))?;
    fs::rename(&fresh, file).with_context(|| format!("cannot write {}", file.display()))
}
