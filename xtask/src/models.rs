//! Servers that speak the interfaces of model providers and were not written here, for the tests of
//! the clients.
//!
//! They are programs for Node, installed into `target/models`; the tests start them. In CI always;
//! anywhere else by `cargo xtask models`, and `cargo xtask test` uses them if that was done.

use crate::packages::{Installed, Packages, text};
use crate::run::{command, has_python, is_ci, root, section};

/// What is installed.
const PACKAGES: Packages = Packages {
    what: "servers that stand for model providers",
    folder: "target/models",
    python: "tests/models/requirements.txt",
    node: ["tests/models/package.json", "tests/models/package-lock.json"],
};
/// How the tests learn of them.
const FOLDER: &str = "COFFERDAM_MODELS";

/// Installs what is missing and runs the tests that need it.
pub(crate) fn run() -> anyhow::Result<()> {
    if !is_ci() && PACKAGES.installed()?.is_none() && !has_python() {
        section(
            "the tests with servers of others are skipped: python3, which Node is installed by, \
             is missing",
        );
        return Ok(());
    }
    let (name, value) = variable(&PACKAGES.install()?)?;
    section("models: the clients and servers of others");
    command("cargo", &["test", "--workspace", "--test", "providers"]).env(name, &value).run(&root())
}

/// The variable for a run of all tests: always in CI, elsewhere if everything is installed.
pub(crate) fn for_tests() -> anyhow::Result<Option<(&'static str, String)>> {
    if is_ci() {
        return variable(&PACKAGES.install()?).map(Some);
    }
    let installed = PACKAGES.installed()?;
    if installed.is_none() {
        section(
            "the tests of model clients with servers of others are skipped: not installed (`cargo \
             xtask models` does that)",
        );
    }
    installed.map(|installed| variable(&installed)).transpose()
}

fn variable(installed: &Installed) -> anyhow::Result<(&'static str, String)> {
    Ok((FOLDER, text(&installed.folder)?.to_owned()))
}
