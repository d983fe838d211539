//! `extism`: a call in a sandbox of its own, against the same tool with extism.
//!
//! Extism runs in a program of its own (`tests/bench/extism`), since it depends on another
//! wasmtime. It is measured twice: with a fresh plugin for each call, from compiled code, which
//! isolates calls like ours does; and with one plugin for all calls, which is the common use and
//! keeps the state of earlier calls.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use cofferdam_tests::{Host, root};

use crate::call_floor;
use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "extism";
const GUEST: &str = "served";
const TOOL: &str = "echo";
const ARGUMENTS: &str = r#"{"message":"to be or not to be"}"#;
const ROUNDS: usize = 40;
const CALLS_PER_ROUND: u32 = 300;
/// Fresh plugins take longer.
const FRESH_CALLS_PER_ROUND: u32 = 50;

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let Some(driver) = Driver::start()? else {
        super::note(
            "extism is not measured: it is not built (`cargo xtask bench --only extism` does that)",
        );
        return Ok(Vec::new());
    };
    let mut host = call_floor::empty_host();
    host.load(GUEST).await;
    let mut driver = driver;
    let mut rows = Vec::new();
    for (kind, calls, goal) in [
        ("fresh", FRESH_CALLS_PER_ROUND, Goal::AtMost(0.1)),
        ("reused", CALLS_PER_ROUND, Goal::AtMost(3.0)),
    ] {
        let ratio = Ratio::new(format!("{NAME}, ours against a {kind} plugin")).with_goal(goal);
        let ours = async || time_ours(&host, effort.times(CALLS_PER_ROUND)).await;
        let reference = async || driver.time(kind, effort.times(calls));
        rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    }
    Ok(rows)
}

async fn time_ours(host: &Host, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let completion = host.call(TOOL, ARGUMENTS).await;
        ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}

/// The program that calls extism. It ends with its input.
struct Driver {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Driver {
    /// Returns `None` if it has not been built.
    fn start() -> anyhow::Result<Option<Self>> {
        let built = |path: &str| {
            Some(root().join("target/extism").join(path)).filter(|path| path.is_file())
        };
        let program: Option<PathBuf> = built("release/extism-driver");
        let plugin = built("wasm32-unknown-unknown/release/echo.wasm");
        let Some((program, plugin)) = program.zip(plugin) else { return Ok(None) };
        let mut command = Command::new(program);
        command.arg(plugin).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("a pipe")?);
        Ok(Some(Self { child, input, output }))
    }

    /// Returns the time of one call.
    fn time(&mut self, kind: &str, calls: u32) -> anyhow::Result<Duration> {
        writeln!(self.input.as_mut().context("a pipe")?, "{kind} {calls}")?;
        let mut line = String::new();
        ensure!(self.output.read_line(&mut line)? > 0, "the program that calls extism has ended");
        Ok(Duration::from_nanos(line.trim().parse()?))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ended = self.child.wait();
    }
}
