//! `mcp`: a small tool call over MCP, against servers that do nothing else.
//!
//! Ours is `cofferdam serve` with a plugin: each call has a sandbox of its own. The references are
//! this program as a native server, with the same SDK, the same protocol, and a function as the
//! tool; and a server with the official SDK for Python. All answer the same text, one call after
//! another and sixteen at a time. Rows that end in `one CPU` ran with client and server on one
//! processor; `without a sandbox` is the server of this project with the function as its tool.

pub(crate) mod http;
mod native;
pub(crate) mod request;
pub(crate) mod stdio;
mod unsandboxed;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum as _;
use cofferdam_tests::{guest, root};
use tempfile::TempDir;
use tokio::net::TcpListener;

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
pub(crate) const AT_ONCE: [usize; 2] = [1, CONNECTIONS];
const CONNECTIONS: usize = 16;
/// More than is measured, so that no call is refused.
const CONFIGURATION: &str = "serve.rate = { per-second = 1000000, burst = 1000000 }\n";

/// A server that this program is, to be compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Served {
    /// The same SDK and a tool that is a function, on standard input and output
    Native,
    /// The same on HTTP
    NativeHttp,
    /// The server of this project and the same tool, on standard input and output
    Unsandboxed,
    /// The same on HTTP
    UnsandboxedHttp,
}

impl Served {
    /// Serves until the input ends, or on HTTP until it is killed. Servers on HTTP have a thread
    /// for each core, which is the default of such a server; one thread is enough for the others.
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let one = || tokio::runtime::Builder::new_current_thread().enable_all().build();
        let several = || tokio::runtime::Builder::new_multi_thread().enable_all().build();
        match self {
            Self::Native => one()?.block_on(native::stdio()),
            Self::NativeHttp => several()?.block_on(native::http()),
            Self::Unsandboxed => one()?.block_on(unsandboxed::stdio()),
            Self::UnsandboxedHttp => several()?.block_on(unsandboxed::http()),
        }
    }

    /// Returns the command that runs this program as that server.
    pub(crate) fn command(self) -> anyhow::Result<Command> {
        let mut command = this_program()?;
        let name = self.to_possible_value().context("every server has a name")?;
        command.arg("--serve").arg(name.get_name());
        Ok(command)
    }
}

/// Returns the command that runs this program.
pub(crate) fn this_program() -> anyhow::Result<Command> {
    Ok(Command::new(std::env::current_exe().context("a running program has a path")?))
}

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let mut rows = against_native(effort, "").await?;
    rows.extend(python_rows(effort).await?);
    let _one = OneCpu::take()?;
    rows.extend(against_native(effort, ", one CPU").await?);
    rows.extend(without_sandbox(effort, ", one CPU, without a sandbox").await?);
    Ok(rows)
}

/// Listens on a free local port, and prints its address like `cofferdam serve`.
#[expect(clippy::print_stderr, reason = "where ours says it")]
async fn listen() -> anyhow::Result<TcpListener> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}/mcp", listener.local_addr()?);
    Ok(listener)
}

/// A running server, and a client that calls its tool.
pub(crate) trait Called {
    /// Returns the time per call of `calls` calls, `at_once` of them concurrent.
    fn calls(&mut self, calls: usize, at_once: usize) -> anyhow::Result<Duration>;
}

/// Measures `cofferdam serve` against the native server.
async fn against_native(effort: Effort, where_: &str) -> anyhow::Result<Vec<Measure>> {
    let goal = Some(Goal::AtMost(1.2));
    let mut rows =
        compare(effort, "stdio", where_, goal, ours_on_stdio()?, on_stdio(Served::Native)?).await?;
    let folder = tempfile::tempdir()?;
    let (ours, native) = (ours_on_http(&folder)?, on_http(Served::NativeHttp)?);
    rows.extend(compare(effort, "HTTP", where_, goal, ours, native).await?);
    Ok(rows)
}

/// Measures the cost of the server itself: the same tool behind it and behind the SDK only.
async fn without_sandbox(effort: Effort, where_: &str) -> anyhow::Result<Vec<Measure>> {
    let (ours, native) = (on_stdio(Served::Unsandboxed)?, on_stdio(Served::Native)?);
    let mut rows = compare(effort, "stdio", where_, None, ours, native).await?;
    let (ours, native) = (on_http(Served::UnsandboxedHttp)?, on_http(Served::NativeHttp)?);
    rows.extend(compare(effort, "HTTP", where_, None, ours, native).await?);
    Ok(rows)
}

async fn compare<S: Called>(
    effort: Effort,
    transport: &str,
    where_: &str,
    goal: Option<Goal>,
    mut ours: S,
    mut native: S,
) -> anyhow::Result<Vec<Measure>> {
    let calls = usize::try_from(effort.times(CALLS))?;
    let mut rows = Vec::new();
    for at_once in AT_ONCE {
        let ratio = Ratio::new(format!("{NAME}, {transport}, {at_once} at once{where_}"));
        let ratio = goal.into_iter().fold(ratio, Ratio::with_goal);
        let (ours, native) =
            (async || ours.calls(calls, at_once), async || native.calls(calls, at_once));
        rows.push(ratio.alternate(effort, ROUNDS, ours, native).await?.into());
    }
    Ok(rows)
}

fn on_stdio(served: Served) -> anyhow::Result<stdio::Server> {
    stdio::Server::start(served.command()?)
}

fn on_http(served: Served) -> anyhow::Result<http::Server> {
    http::Server::start(served.command()?, "", CONNECTIONS)
}

/// Measures calls per second against the official server for Python.
async fn python_rows(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let python = root().join("target/mcp/venv/bin/python");
    if !python.is_file() {
        super::note(
            "the server in Python is not measured: it is not installed (`cargo xtask mcp clients` \
             does that)",
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

pub(crate) fn ours_on_http(folder: &TempDir) -> anyhow::Result<http::Server> {
    let mut command = serve()?;
    command.arg("--plugin").arg(guest("served"));
    on_http_with(command, folder)
}

/// Starts `command` as a server on HTTP, with a token and a configuration in `folder`.
pub(crate) fn on_http_with(mut command: Command, folder: &TempDir) -> anyhow::Result<http::Server> {
    let [token, configuration] = ["token", "cofferdam.toml"].map(|name| folder.path().join(name));
    std::fs::write(&configuration, CONFIGURATION)?;
    let secret = new_token(&token)?;
    command.arg("--config").arg(configuration);
    command.args(["--http", "127.0.0.1:0", "--token-file"]).arg(token);
    http::Server::start(command, &secret, CONNECTIONS)
}

/// Writes a token that protects only this measurement.
fn new_token(path: &Path) -> anyhow::Result<String> {
    let token = format!("benchmark-{}-0123456789", std::process::id());
    std::fs::write(path, &token)?;
    let only_for_me = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(path, only_for_me)?;
    Ok(token)
}

/// Returns `cofferdam serve` with the cache of all benchmarks.
pub(crate) fn serve() -> anyhow::Result<Command> {
    serve_with_cache(&root().join("target/test-cache"))
}

/// Returns `cofferdam serve`.
pub(crate) fn serve_with_cache(cache: &Path) -> anyhow::Result<Command> {
    let mut command = cofferdam("serve", cache)?;
    command.arg("--no-watch");
    Ok(command)
}

/// Returns `cofferdam list`, which ends when every plugin is loaded.
pub(crate) fn list() -> anyhow::Result<Command> {
    cofferdam("list", &root().join("target/test-cache"))
}

/// Returns a command of the program beside this one.
pub(crate) fn cofferdam(name: &str, cache: &Path) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?.with_file_name("cofferdam"));
    command.arg(name).arg("--cache-dir").arg(cache);
    Ok(command)
}
