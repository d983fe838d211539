//! `clients`: a small call by the Python package, against the same lines without the package,
//! against a line to `cat` and back, and against the official MCP client with its own server; and
//! a call with the host in the process of Python, against a call from Rust and a call over the pipe.
//!
//! `tests/bench/clients.py` makes the calls in one Python process. The goals are those of the
//! project: at most 1.5 times the lines alone, less than MCP in Python, and in process at most 1.3
//! times a call from Rust and 5 µs. The row of MCP needs the package `mcp`, which `cargo xtask
//! clients` installs.

use std::cell::RefCell;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use cofferdam_tests::{guest, root};

use crate::call_floor;
use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "clients";
/// Plugin with the tool `ok`.
const GUEST: &str = "crash";
const ROUNDS: usize = 25;
const CALLS: u32 = 2000;
/// Calls through MCP in Python take ten times as long.
const MCP_CALLS: u32 = 300;

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let installed = root().join("target/clients/venv/bin/python");
    let has_packages = installed.is_file();
    let python = if has_packages { installed } else { PathBuf::from("python3") };
    let mut timer = PythonTimer::start(&python)?;
    let (calls, mcp_calls) = (effort.times(CALLS), effort.times(MCP_CALLS));
    let row = |name: &str| Ratio::new(format!("{NAME}, a call from Python against {name}"));
    let mut references = vec![
        (row("lines alone").with_goal(Goal::AtMost(1.5)), "lines", calls),
        (row("a line to `cat`"), "cat", calls),
    ];
    if has_packages {
        references.push((row("MCP").with_goal(Goal::AtMost(1.0)), "mcp", mcp_calls));
    }
    let mut rows = Vec::new();
    for (ratio, reference, reference_calls) in references {
        let timer = RefCell::new(&mut timer);
        let ours = async || timer.borrow_mut().time("cofferdam", calls);
        let others = async || timer.borrow_mut().time(reference, reference_calls);
        rows.push(ratio.alternate(effort, ROUNDS, ours, others).await?.into());
    }
    rows.extend(measure_in_process(effort, &mut timer).await?);
    Ok(rows)
}

/// Measures the host in the process of Python.
async fn measure_in_process(
    effort: Effort,
    timer: &mut PythonTimer,
) -> anyhow::Result<Vec<Measure>> {
    let calls = effort.times(CALLS);
    let mut host = call_floor::empty_host();
    host.load(GUEST).await;
    let timer = RefCell::new(timer);
    let row = |name: &str| Ratio::new(format!("{NAME}, a call from Python in process {name}"));
    let ours = async || timer.borrow_mut().time("native", calls);
    let from_rust = async || {
        let started = Instant::now();
        for _ in 0..calls {
            let completion = host.call("ok", "{}").await;
            ensure!(completion.record.outcome == "ok", "a measured call failed");
        }
        Ok(started.elapsed() / calls)
    };
    let over_pipe = async || timer.borrow_mut().time("cofferdam", calls);
    let against_rust = row("against Rust").alternate(effort, ROUNDS, ours, from_rust).await?;
    let allowed = async || Ok(from_rust().await?.mul_f64(1.3));
    let beyond = row("beyond 1.3 calls from Rust").alternate(effort, ROUNDS, ours, allowed).await?;
    let against_pipe = row("against the pipe").with_goal(Goal::AtMost(1.0));
    let against_pipe = against_pipe.alternate(effort, ROUNDS, ours, over_pipe).await?;
    Ok(vec![
        against_rust.into(),
        beyond.difference().with_goal(Goal::AtMost(5e-6)).into(),
        against_pipe.into(),
    ])
}

/// Returns a folder with the module of the host for Python.
fn module_folder() -> anyhow::Result<PathBuf> {
    let library = format!("{DLL_PREFIX}cofferdam_native{DLL_SUFFIX}");
    let built = std::env::current_exe()?.with_file_name(library);
    let folder = root().join("target/clients/bench");
    std::fs::create_dir_all(&folder)?;
    std::fs::copy(&built, folder.join("cofferdam_native.abi3.so"))
        .with_context(|| format!("cannot copy {}", built.display()))?;
    Ok(folder)
}

/// Python process that makes and times calls.
struct PythonTimer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl PythonTimer {
    fn start(python: &Path) -> anyhow::Result<Self> {
        let mut child = Command::new(python)
            .arg(root().join("tests/bench/clients.py"))
            .arg(guest(GUEST))
            .arg(module_folder()?)
            .env("PYTHONPATH", root().join("host/clients/python/src"))
            .env("COFFERDAM", std::env::current_exe()?.with_file_name("cofferdam"))
            .env("COFFERDAM_CACHE_DIR", root().join("target/test-cache"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {}", python.display()))?;
        let input = child.stdin.take().context("standard input is a pipe")?;
        let output = child.stdout.take().context("standard output is a pipe")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    /// Returns the time of one call.
    fn time(&mut self, name: &str, calls: u32) -> anyhow::Result<Duration> {
        writeln!(self.input, "{name} {calls}")?;
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(!line.is_empty(), "the Python process has ended");
        Ok(Duration::from_secs_f64(line.trim().parse::<f64>()?) / calls)
    }
}

impl Drop for PythonTimer {
    fn drop(&mut self) {
        let _ended = self.child.kill();
        let _reaped = self.child.wait();
    }
}
