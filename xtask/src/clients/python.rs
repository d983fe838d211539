//! The package for Python: ruff, mypy and pytest, in a virtual environment. The tests run against
//! the host in a process of its own, and in the process of Python.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;

use anyhow::Context;

use crate::packages::create_venv;
use crate::run::{Step, cargo, command, root, section, target_folder};

/// Folder of the package.
const PACKAGE: &str = "host/clients/python";
/// Checkers, pytest and the frameworks of the adapters, in exact versions.
const REQUIREMENTS: &str = "host/clients/python/requirements.txt";
/// Folder to install into.
const FOLDER: &str = "target/clients";

/// Installs missing packages, and checks and tests the client.
pub(super) fn run() -> anyhow::Result<()> {
    install()?;
    section("clients: the package for Python");
    python("ruff", &["format", "--check", "."]).run(&root().join(PACKAGE))?;
    python("ruff", &["check", "."]).run(&root().join(PACKAGE))?;
    python("mypy", &[]).run(&root().join(PACKAGE))?;
    let pytest = ["--quiet", "-p", "no:cacheprovider"];
    python("pytest", &pytest).run(&root().join(PACKAGE))?;
    section("clients: the package for Python, with the host in its process");
    let module = build_module()?;
    python("pytest", &[&pytest[..], &["--ignore", "tests/adapters"]].concat())
        .env("COFFERDAM_NATIVE", &module)
        .run(&root().join(PACKAGE))
}

/// Builds the module of the host for Python, with the features of all tests, and returns its
/// folder.
fn build_module() -> anyhow::Result<String> {
    cargo(&["build", "--workspace", "--bins", "--tests", "--lib"])?;
    let folder = root().join(FOLDER).join("native");
    fs::create_dir_all(&folder)?;
    let library = format!("{DLL_PREFIX}cofferdam_native{DLL_SUFFIX}");
    fs::copy(target_folder().join("debug").join(&library), folder.join("cofferdam_native.abi3.so"))
        .with_context(|| format!("cannot copy {library}"))?;
    Ok(folder.display().to_string())
}

/// Returns whether an earlier run has installed the packages of the requirements file.
pub(super) fn is_installed() -> anyhow::Result<bool> {
    let installed = fs::read_to_string(root().join(FOLDER).join("installed"));
    Ok(installed.is_ok_and(|text| Some(text) == wanted().ok()))
}

/// Installs the packages if they are missing or outdated.
pub(super) fn install() -> anyhow::Result<()> {
    if is_installed()? {
        return Ok(());
    }
    section(&format!("installing what checks the client package for Python into {FOLDER}"));
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
