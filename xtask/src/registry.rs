//! Third-party programs that read and write artifacts and verify signatures, for the tests of
//! registries.
//!
//! CI always installs them. On other machines, `cargo xtask registry` installs them, and
//! `cargo xtask test` uses them if they are installed.

use crate::packages::Packages;
use crate::run::{command, has_python, is_ci, root, section};

/// Packages to install.
const PACKAGES: Packages = Packages {
    what: "clients of registries and a verifier of signatures",
    folder: "target/registry",
    python: "tests/registry/requirements.txt",
    node: ["tests/registry/package.json", "tests/registry/package-lock.json"],
};
/// Environment variable through which the tests find them.
const FOLDER: &str = "COFFERDAM_REGISTRY_CLIENTS";

/// Installs missing packages and runs the tests of registries.
pub(crate) fn run() -> anyhow::Result<()> {
    if !is_ci() && PACKAGES.installed()?.is_none() && !has_python() {
        section("the tests with clients of registries are skipped: python3 is missing");
        return Ok(());
    }
    let (name, value) = PACKAGES.install()?.variable(FOLDER)?;
    section("registry: third-party clients and verifiers");
    let tests = ["test", "--workspace", "--test", "it", "--", "cli_registry"];
    command("cargo", &tests).env(name, &value).run(&root())
}

/// Returns the environment variable for a run of all tests, or `None` if the packages are not
/// installed. In CI, installs them.
pub(crate) fn for_tests() -> anyhow::Result<Option<(&'static str, String)>> {
    PACKAGES.for_tests(FOLDER, "registry")
}
