//! The client packages for other languages: checks, and tests against the host.
//!
//! CI always installs the packages that this needs. On other machines, `cargo xtask clients`
//! installs them, and `cargo xtask test` uses them if they are installed.

use std::fs;

use anyhow::Context;

use crate::packages::create_venv;
use crate::run::{Step, command, has_python, is_ci, root, section};

/// Folder of the Python package.
const PYTHON: &str = "host/clients/python";
/// Checkers, pytest and the frameworks of the adapters, in exact versions.
const REQUIREMENTS: &str = "host/clients/python/requirements.txt";
/// Folder to install into.
const FOLDER: &str = "target/clients";

/// Installs missing packages, and checks and tests the clients. Guests and host must be built.
pub(crate) fn run() -> anyhow::Result<()> {
    if !is_ci() && !is_installed()? && !has_python() {
        section("the tests of the client packages are skipped: python3 is missing");
        return Ok(());
    }
    install()?;
    section("clients: the package for Python");
    python("ruff", &["format", "--check", "."]).run(&root().join(PYTHON))?;
    python("ruff", &["check", "."]).run(&root().join(PYTHON))?;
    python("mypy", &[]).run(&root().join(PYTHON))?;
    python("pytest", &["--quiet", "-p", "no:cacheprovider"]).run(&root().join(PYTHON))
}

/// Checks and tests the clients in a run of all tests. Skips them with a note if the packages are
/// not installed, except in CI.
pub(crate) fn for_tests() -> anyhow::Result<()> {
    if !is_ci() && !is_installed()? {
        section(
            "the tests of the client packages are skipped: not installed (`cargo xtask clients` \
             does that)",
        );
        return Ok(());
    }
    run()
}

/// Returns whether an earlier run has installed the packages of the requirements file.
fn is_installed() -> anyhow::Result<bool> {
    let installed = fs::read_to_string(root().join(FOLDER).join("installed"));
    Ok(installed.is_ok_and(|text| Some(text) == wanted().ok()))
}

fn install() -> anyhow::Result<()> {
    if is_installed()? {
        return Ok(());
    }
    section(&format!("installing what checks the client packages into {FOLDER}"));
    fs::create_dir_all(root().join(FOLDER))?;
    create_venv(&format!("{FOLDER}/venv"), REQUIREMENTS)?;
    fs::write(root().join(FOLDER).join("installed"), wanted()?)?;
    Ok(())
}

fn wanted() -> anyhow::Result<String> {
    fs::read_to_string(root().join(REQUIREMENTS))
        .with_context(|| format!("cannot read {REQUIREMENTS}"))
}

/// Returns a step that runs an installed module. Caches are in the target folder.
fn python(module: &str, arguments: &[&str]) -> Step {
    let path = |relative: &str| root().join(relative).display().to_string();
    let interpreter = path(&format!("{FOLDER}/venv/bin/python"));
    command(&interpreter, &[&["-m", module], arguments].concat())
        .env("COFFERDAM", &path("target/debug/cofferdam"))
        .env("COFFERDAM_CACHE_DIR", &path("target/test-cache"))
        .env("COFFERDAM_PLUGINS", &path("target/plugins"))
        .env("MYPY_CACHE_DIR", &path(&format!("{FOLDER}/mypy")))
        .env("RUFF_CACHE_DIR", &path(&format!("{FOLDER}/ruff")))
}
