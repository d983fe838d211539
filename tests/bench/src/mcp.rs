//! `mcp`: a small tool call over MCP, against servers that do nothing else.
//!
//! Ours is `cofferdam serve` with a plugin: each call has a sandbox of its own. The reference is this program with
//! `--native-echo`: the same SDK, the same protocol, and a tool that is a function; and a server with the official SDK for Python.
//! All answer the same text, one call after another and sixteen at a time. What ends in `one CPU` ran with client and
//! server on one processor.

mod http;
pub(crate) mod native;
pub(crate) mod request;
pub(crate) mod stdio;

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;
use cofferdam_tests::{guest, root};
use tempfile::TempDir;

use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::one_cpu::OneCpu;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "mcp";
const ROUNDS: usize = 25;
/// Calls in one round.
const CALLS: u32 = 160;
/// Calls in a round with the server in Python.
const PYTHON_CALLS: u32 = 48;
const AT_ONCE: [usize; 2] = [1, 16];
/// More than is measured, so that nothing is refused.
const CONFIGURATION: &str = "serve.rate = { per-second = 1000000, burst = 1000000 }\n";

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let mut rows = stdio_rows(effort, "").await?;
    rows.extend(http_rows(effort, "").await?);
    rows.extend(python_rows(effort).await?);
    let _one = OneCpu::take()?;
    rows.extend(stdio_rows(effort, ", one CPU").await?);
    rows.extend(http_rows(effort, ", one CPU").await?);
    Ok(rows)
}

async fn stdio_rows(effort: Effort, where_: &str) -> anyhow::Result<Vec<Measure>> {
    let calls = usize::try_from(effort.times(CALLS))?;
    let (mut ours, mut native) = (ours_on_stdio()?, stdio::Server::start(itself("--native-echo")?)?);
    let mut rows = Vec::new();
    for at_once in AT_ONCE {
        let ratio =
            Ratio::new(format!("{NAME}, stdio, {at_once} at once{where_}")).with_goal(Goal::AtMost(1.2));
        let ours = async || ours.calls(calls, at_once);
        let reference = async || native.calls(calls, at_once);
        rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(rows)
}

async fn http_rows(effort: Effort, where_: &str) -> anyhow::Result<Vec<Measure>> {
    let calls = usize::try_from(effort.times(CALLS))?;
    let folder = tempfile::tempdir()?;
    let (mut ours, mut native) =
        (ours_on_http(&folder)?, http::Server::start(itself("--native-http")?, "", 16)?);
    let mut rows = Vec::new();
    for at_once in AT_ONCE {
        let ratio =
            Ratio::new(format!("{NAME}, HTTP, {at_once} at once{where_}")).with_goal(Goal::AtMost(1.2));
        let ours = async || ours.calls(calls, at_once);
        let reference = async || native.calls(calls, at_once);
        rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(rows)
}

/// How many calls there are in a second, against the official server for Python.
async fn python_rows(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let python = root().join("target/mcp/venv/bin/python");
    if !python.is_file() {
        super::note(
            "the server in Python is not measured: it is not installed (`cargo xtask mcp clients` does that)",
        );
        return Ok(Vec::new());
    }
    let mut command = Command::new(python);
    command.arg(root().join("tests/bench/echo_server.py"));
    let (mut ours, mut python) = (ours_on_stdio()?, stdio::Server::start(command)?);
    let mut rows = Vec::new();
    for at_once in AT_ONCE {
        let ratio = Ratio::of_rates(format!("{NAME}, stdio, {at_once} at once, against Python"));
        let ratio = ratio.with_goal(Goal::AtLeast(5.0));
        let (our_calls, calls) = (effort.times(CALLS), effort.times(PYTHON_CALLS));
        let ours = async || ours.calls(usize::try_from(our_calls)?, at_once);
        let reference = async || python.calls(usize::try_from(calls)?, at_once);
        rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(rows)
}

fn ours_on_stdio() -> anyhow::Result<stdio::Server> {
    let mut command = serve()?;
    command.arg("--plugin").arg(guest("served"));
    stdio::Server::start(command)
}

fn ours_on_http(folder: &TempDir) -> anyhow::Result<http::Server> {
    let [token, configuration] = ["token", "cofferdam.toml"].map(|name| folder.path().join(name));
    std::fs::write(&configuration, CONFIGURATION)?;
    let secret = new_token(&token)?;
    let mut command = serve()?;
    command.arg("--plugin").arg(guest("served")).arg("--config").arg(configuration);
    command.args(["--http", "127.0.0.1:0", "--token-file"]).arg(token);
    http::Server::start(command, &secret, 16)
}

/// A token that protects nothing but this measurement.
fn new_token(path: &Path) -> anyhow::Result<String> {
    let token = format!("benchmark-{}-0123456789", std::process::id());
    std::fs::write(path, &token)?;
    let only_for_me = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, only_for_me)?;
    Ok(token)
}

/// `cofferdam serve` with the cache of all benchmarks.
pub(crate) fn serve() -> anyhow::Result<Command> {
    serve_with_cache(&root().join("target/test-cache"))
}

/// `cofferdam serve`.
pub(crate) fn serve_with_cache(cache: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?.with_file_name("cofferdam"));
    command.arg("serve").arg("--no-watch").arg("--cache-dir").arg(cache);
    Ok(command)
}

/// This program as a server.
pub(crate) fn itself(flag: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe().context("a running program has a path")?);
    command.arg(flag);
    Ok(command)
}
