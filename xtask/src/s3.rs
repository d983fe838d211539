//! S3 server for the tests of bucket stores: moto, a Python program, on a free local port.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};

use crate::run::{command, has_python, is_ci, root, section};

/// Version of moto to install.
const MOTO: &str = "moto[server]==5.2.5";
/// Environment variable through which the tests find the server.
const ENDPOINT: &str = "COFFERDAM_S3_ENDPOINT";
/// Maximum time until the server listens, on a busy machine.
const START_MAX: Duration = Duration::from_secs(120);

/// S3 server that runs until it is dropped.
pub(crate) struct Server {
    child: Child,
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
        server.child.wait()?;
        return Ok(());
    }
    let (name, value) = server.variable();
    command("cargo", &["test", "--workspace", "--test", "s3"]).env(name, &value).run(&root())
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
    pub(crate) fn variable(&self) -> (&'static str, String) {
        (ENDPOINT, self.endpoint.clone())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if the server has exited.
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}

fn start(program: &PathBuf) -> anyhow::Result<Server> {
    section("starting a server that speaks S3");
    let port = free_port()?;
    let child = Command::new(program)
        .args(["-H", "127.0.0.1", "-p", &port.to_string()])
        .current_dir(root())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("cannot run {}", program.display()))?;
    let mut server = Server { child, endpoint: format!("http://127.0.0.1:{port}") };
    let started = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if let Some(status) = server.child.try_wait()? {
            bail!("{} ended with {status}", program.display());
        }
        if started.elapsed() > START_MAX {
            bail!("{} does not listen after {START_MAX:?}", program.display());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(server)
}

/// Returns a free port. If another process takes it first, the server exits with an error.
fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
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
