//! Third-party servers that implement the APIs of model providers, for the tests of our clients.
//!
//! The servers are Node programs in `target/models`; the tests start them. CI always installs them.
//! On other machines, `cargo xtask models` installs them, and `cargo xtask test` uses them if they
//! are installed.

use crate::packages::Packages;
use crate::run::{command, has_python, is_ci, root, section};

/// Packages to install.
const PACKAGES: Packages = Packages {
    what: "servers that stand for model providers",
    folder: "target/models",
    python: "tests/models/requirements.txt",
    node: ["tests/models/package.json", "tests/models/package-lock.json"],
};
/// Environment variable through which the tests find the servers.
const FOLDER: &str = "COFFERDAM_MODELS";

/// Installs missing packages and runs the tests that need them.
pub(crate) fn run() -> anyhow::Result<()> {
    if !is_ci() && PACKAGES.installed()?.is_none() && !has_python() {
        section(
            "the tests with servers of others are skipped: python3, which Node is installed by, \
             is missing",
        );
        return Ok(());
    }
    let (name, value) = PACKAGES.install()?.variable(FOLDER)?;
    section("models: third-party clients and servers");
    command("cargo", &["test", "--workspace", "--test", "providers"]).env(name, &value).run(&root())
}

/// Returns the environment variable for a run of all tests, or `None` if the packages are not
/// installed. In CI, installs them.
pub(crate) fn for_tests() -> anyhow::Result<Option<(&'static str, String)>> {
    PACKAGES.for_tests(FOLDER, "models")
}
