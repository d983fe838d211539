//! MCP by the measure of others: the official conformance suite, and the official clients, against
//! this server.
//!
//! Both are programs for Node and Python, installed into `target/mcp`. In CI always; anywhere else
//! by `cargo xtask mcp`, and `cargo xtask test` runs them if that was done.

mod clients;
mod conformance;
mod server;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::packages::{Installed as Tools, Packages, text};
use crate::run::{is_ci, root, section};

/// What to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    /// The official conformance suite, against the server and with the client
    Conformance,
    /// The official clients
    Clients,
}

/// What is installed.
const PACKAGES: Packages = Packages {
    what: "clients of MCP and its conformance suite",
    folder: "target/mcp",
    python: "tests/clients/requirements.txt",
    node: ["tests/clients/package.json", "tests/clients/package-lock.json"],
};

/// Installs what is missing and runs one part, or both. Guests and host have been built.
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

/// The same for a run of all tests: always in CI, elsewhere if everything is installed.
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

/// The binary that was built.
fn binary() -> PathBuf {
    root().join("target/debug/cofferdam")
}

/// Puts a guest in the place of a file that a server watches, in one step.
fn put_plugin(name: &str, file: &Path) -> anyhow::Result<()> {
    let fresh = file.with_extension("fresh");
    let guest = root().join("target/plugins").join(format!("{name}.wasm"));
    fs::copy(&guest, &fresh).with_context(|| format!("cannot copy {}", guest.display()))?;
    fs::rename(&fresh, file).with_context(|| format!("cannot write {}", file.display()))
}
