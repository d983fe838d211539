//! S3 server for the tests of bucket stores: moto, a Python program, on a free local port.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, bail};

use crate::run::{command, has_python, is_ci, root, section};
use crate::server::{LocalServer, free_port};

/// Version of moto to install.
const MOTO: &str = "moto[server]==5.2.5";
/// Environment variable through which the tests find the server.
const ENDPOINT: &str = "COFFERDAM_S3_ENDPOINT";

/// S3 server that runs until it is dropped.
pub(crate) struct Server {
    process: LocalServer,
    endpoint: String,
}

/// Runs the tests that need a server, or if `serve` is set, only the server until it exits.
pub(crate) fn run(serve: bool) -> anyhow::Result<()> {
    if installed().is_none() && !has_python() {
        if is_ci() {
            bail!("the tests of S3 need python3");
        }
        section("the tests of S3 are skipped: python3 is missing");
        return Ok(());
    }
    let mut server = start(&install()?)?;
    if serve {
        section(&format!("export {ENDPOINT}={}", server.endpoint));
        server.process.wait()?;
        return Ok(());
    }
    let (name, value) = server.variable();
    command("cargo", &["test", "--workspace", "--test", "s3"]).env(name, value).run(&root())
}

/// Starts the server for a run of all tests: always in CI, elsewhere only if it is installed.
pub(crate) fn for_tests() -> anyhow::Result<Option<Server>> {
    if is_ci() {
        return Ok(Some(start(&install()?)?));
    }
    let Some(program) = installed() else {
        section(
            "the tests of S3 are skipped: no server is installed (`cargo xtask s3` installs one \
             and runs them)",
        );
        return Ok(None);
    };
    Ok(Some(start(&program)?))
}

impl Server {
    /// Returns the environment variable for the tests.
    pub(crate) fn variable(&self) -> (&'static str, &str) {
        (ENDPOINT, &self.endpoint)
    }
}

fn start(program: &PathBuf) -> anyhow::Result<Server> {
    section("starting a server that speaks S3");
    let port = free_port()?;
    let mut command = Command::new(program);
    command.args(["-H", "127.0.0.1", "-p", &port.to_string()]).current_dir(root());
    let process = LocalServer::start(command, port)?;
    Ok(Server { process, endpoint: format!("http://127.0.0.1:{port}") })
}

fn folder() -> PathBuf {
    root().join("target/s3")
}

/// Returns the server if an earlier run has installed the current version.
fn installed() -> Option<PathBuf> {
    let is_wanted =
        fs::read_to_string(folder().join("installed")).is_ok_and(|version| version == MOTO);
    is_wanted.then(|| folder().join("bin/moto_server"))
}

fn install() -> anyhow::Result<PathBuf> {
    if let Some(program) = installed() {
        return Ok(program);
    }
    section(&format!("installing {MOTO} into target/s3"));
    fs::create_dir_all(root().join("target"))?;
    command("python3", &["-m", "venv", "--clear", "target/s3"]).run(&root())?;
    command("target/s3/bin/pip", &["install", "--quiet", "--disable-pip-version-check", MOTO])
        .run(&root())?;
    fs::write(folder().join("installed"), MOTO)?;
    installed().context("the server was installed and is not there")
}
