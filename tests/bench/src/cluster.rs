//! `cluster`: a call through a gateway, NATS and a worker, against the same call without them.
//!
//! The worker is `cofferdam worker` and the server a real one, both on this machine: what is
//! measured is the cost of the way, without that of a network. The gateway of the first rows is in
//! this process, so that nothing but the way is added to a call of the library. What is added is
//! compared with a message that goes through the same server to another process and back. The rows
//! over HTTP compare `cofferdam serve --cluster` with `cofferdam serve`.

mod bus;

use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_cluster::{Dispatcher, DispatcherOptions};
use cofferdam_engine::{EngineConfig, PoolSize};
use cofferdam_tests::{Host, config, guest, root, shared_cache, unused_port};
use cofferdam_tool::{CallContext, Toolset};
use tokio::task::JoinSet;

use self::bus::Echo;
pub(crate) use self::bus::echo;
use crate::effort::Effort;
use crate::mcp::{self, Called as _};
use crate::measure::{Amount, Goal, Measure, Unit};
use crate::memory;
use crate::ratio::Ratio;
use crate::samples::Samples;

pub(crate) const NAME: &str = "cluster";

/// Name of a tool, and arguments.
type Call = (&'static str, &'static str);

/// Variable that names the program of the server; `cargo xtask bench` sets it.
const PROGRAM: &str = "COFFERDAM_NATS_SERVER";
const GUESTS: [&str; 2] = ["served", "text"];
/// A tool without declared effects, and its arguments.
const TOOL: Call = ("echo", r#"{"message":"to be or not to be"}"#);
/// A tool that is declared read-only.
const READ_ONLY_TOOL: Call = ("word_count", r#"{"text":"to be or not to be"}"#);
const ROUNDS: usize = 15;
/// Calls of one side in a round, one after another.
const CALLS: u32 = 1000;
/// Calls of one side in a round, of all callers.
const MANY_CALLS: u32 = 8192;
const CALLERS: u32 = 64;
/// Calls of one side in a round over HTTP.
const HTTP_CALLS: u32 = 320;
/// Goals for what is added to a call, as multiples of a message and its answer: 200 µs where such a
/// message takes 89 µs, and 500 µs where the slowest of a hundred takes 151 µs.
const ADDED_MAX: f64 = 2.25;
const SLOW_ADDED_MAX: f64 = 3.3;
const START_MAX: Duration = Duration::from_secs(60);

/// Measures on a thread of its own, because runtimes cannot be nested.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let Some(program) = std::env::var_os(PROGRAM) else {
        super::note(
            "the cluster is not measured: no NATS server is installed (`cargo xtask nats` installs \
             one)",
        );
        return Ok(Vec::new());
    };
    let measured = std::thread::spawn(move || rows(effort, Path::new(&program)));
    measured.join().map_err(|_| anyhow!("the benchmark has panicked"))?
}

/// Measures one caller on a runtime with one thread, so that no thread wakes another one, and
/// several on one with a thread for each core.
fn rows(effort: Effort, program: &Path) -> anyhow::Result<Vec<Measure>> {
    let server = Process::nats(program)?;
    let worker = Process::worker(&server.address, &GUESTS[..1])?;
    let idle = Samples::from_iter([memory::resident_bytes_of(&worker.child.id().to_string())?]);
    drop(worker);
    let _worker = Process::worker(&server.address, &GUESTS)?;
    let idle = Amount::new(format!("{NAME}, an idle worker with one plugin"), Unit::Bytes, idle)
        .with_goal(Goal::AtMost(40.0 * 1024.0 * 1024.0));
    let mut rows = vec![idle.into()];
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    rows.extend(one.block_on(one_caller(effort, &server.address))?);
    let several = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    rows.extend(several.block_on(several_callers(effort, &server.address))?);
    Ok(rows)
}

async fn one_caller(effort: Effort, address: &str) -> anyhow::Result<Vec<Measure>> {
    let (host, remote) = (host().await, remote(address).await?);
    let mut echo = Echo::start(address).await?;
    let mut rows = Vec::new();
    for (what, called) in [("a call", TOOL), ("a read-only call", READ_ONLY_TOOL)] {
        let mut sides = Sides { called, local: host.toolset(), remote: &remote, echo: &mut echo };
        rows.extend(added(effort, what, &mut sides).await?);
    }
    Ok(rows)
}

async fn several_callers(effort: Effort, address: &str) -> anyhow::Result<Vec<Measure>> {
    let (host, remote) = (host().await, remote(address).await?);
    let mut rows = vec![rate(effort, host.toolset(), &remote).await?];
    rows.extend(over_http(effort, address).await?);
    Ok(rows)
}

async fn host() -> Host {
    let pool = PoolSize { concurrent_calls_max: CALLERS, ..PoolSize::default() };
    let mut host =
        Host::with(EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() });
    for guest in GUESTS {
        host.load(guest).await;
    }
    host
}

/// Returns the tools of the worker, through a gateway in this process.
async fn remote(address: &str) -> anyhow::Result<Toolset> {
    let dispatcher =
        Dispatcher::start(bus::connect(address).await?, DispatcherOptions::default()).await?;
    let mut toolset = Toolset::new();
    for source in dispatcher.discover().await? {
        toolset.add(source)?;
    }
    Ok(toolset)
}

/// Ways of a call and of a message, which are measured in turn.
struct Sides<'a> {
    called: Call,
    local: &'a Toolset,
    remote: &'a Toolset,
    echo: &'a mut Echo,
}

/// Times of calls or messages, one after another.
struct Times {
    median: Duration,
    /// 99th percentile.
    slow: Duration,
}

/// Measures what gateway, bus and worker add to the median call and to the slowest of a hundred,
/// against a message and its answer.
async fn added(effort: Effort, what: &str, sides: &mut Sides<'_>) -> anyhow::Result<Vec<Measure>> {
    let ratio = |name: &str, most: f64| {
        Ratio::new(format!("{NAME}, added to {what}, against a message and back, {name}"))
            .with_goal(Goal::AtMost(most))
    };
    let mut median = ratio("median", ADDED_MAX);
    let mut slow = ratio("99th percentile", SLOW_ADDED_MAX);
    let calls = effort.times(CALLS);
    let warming = effort.warming();
    for round in 0..warming + effort.rounds(ROUNDS) {
        let local = times(calls, async || call(sides.local, sides.called).await).await?;
        let remote = times(calls, async || call(sides.remote, sides.called).await).await?;
        let message = times(calls, async || sides.echo.send().await.map(drop)).await?;
        if round >= warming {
            median.add(remote.median.saturating_sub(local.median), message.median);
            slow.add(remote.slow.saturating_sub(local.slow), message.slow);
        }
    }
    Ok(vec![median.into(), slow.into()])
}

async fn times(
    count: u32,
    mut action: impl AsyncFnMut() -> anyhow::Result<()>,
) -> anyhow::Result<Times> {
    let mut times = Vec::new();
    for _ in 0..count {
        let started = Instant::now();
        action().await?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let at = |percent: usize| times.get((times.len() - 1) * percent / 100).copied();
    let (median, slow) = (at(50).context("a call")?, at(99).context("a call")?);
    Ok(Times { median, slow })
}

async fn call(toolset: &Toolset, (tool, arguments): Call) -> anyhow::Result<()> {
    let completion = toolset.call(tool, Some(arguments.as_bytes()), &CallContext::new("c")).await?;
    let outcome = completion.record.outcome;
    ensure!(outcome == "ok", "a measured call ended as {outcome}");
    Ok(())
}

/// Measures calls per second of several callers.
async fn rate(effort: Effort, local: &Toolset, remote: &Toolset) -> anyhow::Result<Measure> {
    let ratio = Ratio::of_rates(format!("{NAME}, {CALLERS} callers against {CALLERS} of a host"));
    let (ours, reference) =
        (async || many(effort, remote).await, async || many(effort, local).await);
    Ok(ratio.alternate(effort, ROUNDS, ours, reference).await?.into())
}

/// Returns the time per call of all callers together.
async fn many(effort: Effort, toolset: &Toolset) -> anyhow::Result<Duration> {
    let calls = effort.times(MANY_CALLS / CALLERS);
    let started = Instant::now();
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        let toolset = toolset.clone();
        callers.spawn(async move {
            for _ in 0..calls {
                call(&toolset, TOOL).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = callers.join_next().await {
        ended??;
    }
    Ok(started.elapsed() / (calls * CALLERS))
}

/// Measures MCP over HTTP through a gateway against a server with the plugin.
async fn over_http(effort: Effort, address: &str) -> anyhow::Result<Vec<Measure>> {
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    let mut gateway = mcp::serve()?;
    gateway.arg("--cluster").arg(format!("nats://{address}"));
    let mut gateway = mcp::on_http_with(gateway, &folders[0])?;
    let mut straight = mcp::ours_on_http(&folders[1])?;
    let calls = usize::try_from(effort.times(HTTP_CALLS))?;
    let mut rows = Vec::new();
    for at_once in mcp::AT_ONCE {
        let ratio = Ratio::new(format!("{NAME}, HTTP, {at_once} at once against a server"))
            .with_goal(Goal::AtMost(2.0));
        let ours = async || gateway.calls(calls, at_once);
        let reference = async || straight.calls(calls, at_once);
        rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(rows)
}

/// A process that is killed on drop.
struct Process {
    child: Child,
    /// Address of a server.
    address: String,
    /// Stays open: a worker that cannot write to it may end.
    _said: Option<BufReader<ChildStderr>>,
}

impl Process {
    /// Starts a process without input.
    fn of(command: &mut Command) -> anyhow::Result<Self> {
        let child = command.stdin(Stdio::null()).spawn()?;
        Ok(Self { child, address: String::new(), _said: None })
    }

    fn nats(program: &Path) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, unused_port()));
        let port = address.port().to_string();
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &port]).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server = Self::of(&mut command)?;
        server.address = address.to_string();
        let started = Instant::now();
        while TcpStream::connect(address).is_err() {
            ensure!(started.elapsed() < START_MAX, "the NATS server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    fn worker(address: &str, plugins: &[&str]) -> anyhow::Result<Self> {
        let mut command = mcp::cofferdam("worker", &root().join("target/test-cache"))?;
        command.args(["--no-record", "--cluster", &format!("nats://{address}")]);
        command.args(["--calls", &(2 * CALLERS).to_string()]);
        for plugin in plugins {
            command.arg("--plugin").arg(guest(plugin));
        }
        let mut worker = Self::of(command.stdout(Stdio::null()).stderr(Stdio::piped()))?;
        let mut said = BufReader::new(worker.child.stderr.take().context("a pipe")?);
        let mut line = String::new();
        while !line.contains("is ready with") {
            line.clear();
            ensure!(said.read_line(&mut line)? > 0, "the worker has ended");
        }
        worker._said = Some(said);
        Ok(worker)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ended = self.child.kill().and_then(|()| self.child.wait());
    }
}
