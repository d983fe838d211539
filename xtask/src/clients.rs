//! The client packages for other languages: checks, and tests against the host.
//!
//! CI always installs the packages that this needs. On other machines, `cargo xtask clients`
//! installs them, and `cargo xtask test` uses those that are installed.

mod node;
mod python;

use crate::run::{has_python, is_ci, section};

/// Installs missing packages, and checks and tests the clients. Guests and host must be built.
pub(crate) fn run() -> anyhow::Result<()> {
    // Node is installed as a Python package.
    if !is_ci() && !has_python() {
        section("the tests of the client packages are skipped: python3 is missing");
        return Ok(());
    }
    python::run()?;
    node::run()
}

/// Installs missing packages.
pub(crate) fn install() -> anyhow::Result<()> {
    python::install()?;
    node::install()
}

/// Checks and tests the clients in a run of all tests. Skips those whose packages are not installed
/// with a note, except in CI.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if is_ci() || is_usable("Python", python::is_installed()?) {
        python::run()?;
    }
    if is_ci() || is_usable("Node.js", node::is_installed()?) {
        node::run()?;
    }
    Ok(())
}

/// Returns whether what a client needs is installed, and prints a note if not.
fn is_usable(language: &str, is_installed: bool) -> bool {
    if !is_installed {
        section(&format!(
            "the tests of the client package for {language} are skipped: what they need is not \
             installed (`cargo xtask clients` does that)"
        ));
    }
    is_installed
}
