//! `start`: from the start of the process to the first answer over MCP, with many plugins against
//! one.
//!
//! Measures the first `tools/call` and the first `tools/list`. Warm, everything is in the cache;
//! cold, the cache is empty, and every plugin is compiled.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::{Value, json};

use crate::copies::copies;
use crate::effort::Effort;
use crate::mcp::request::request;
use crate::mcp::{Served, list, serve, serve_with_cache, stdio::Server};
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "start";
const ROUNDS: usize = 20;
/// Compiling takes long.
const COLD_ROUNDS: usize = 3;
const STANDING: Duration = Duration::from_secs(3);
const MANY: usize = 1000;
const SOME: usize = 100;
const FEW: usize = 20;
/// Numbers of plugins in a quick run.
const QUICK: [usize; 2] = [4, 8];

#[derive(Clone, Copy)]
pub(crate) enum First {
    Call,
    List,
}

impl First {
    fn words(self) -> &'static str {
        match self {
            Self::Call => "first call",
            Self::List => "first list",
        }
    }
}

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let folder = tempfile::tempdir()?;
    let [some, many] = if effort.is_quick { QUICK } else { [SOME, MANY] };
    let one = configuration(folder.path(), 1)?;
    let mut rows = Vec::new();
    for (plugins, goal) in [(some, None), (many, Some(Goal::AtMost(3.0)))] {
        let several = configuration(folder.path(), plugins)?;
        for file in [&several, &one] {
            warm_up(effort, file, None)?;
        }
        for first in [First::Call, First::List] {
            let ratio = Ratio::new(format!(
                "{NAME}, {} with {plugins} plugins against 1, warm",
                first.words()
            ));
            let ratio = goal.into_iter().fold(ratio, Ratio::with_goal);
            let ours = async || time(with(serve()?, &several), first, plugins);
            let reference = async || time(with(serve()?, &one), first, 1);
            rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
        }
    }
    let few = configuration(folder.path(), FEW)?;
    warm_up(effort, &few, None)?;
    let ratio =
        Ratio::new(format!("{NAME}, first list with {FEW} plugins against a native server"));
    let ours = async || time(with(serve()?, &few), First::List, FEW);
    let reference = async || time(Served::Native.command()?, First::List, 1);
    rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    let several = configuration(folder.path(), some)?;
    let ratio = Ratio::new(format!("{NAME}, first call with {some} plugins against 1, cold"));
    let ours = async || cold(&several, some);
    let reference = async || cold(&one, 1);
    rows.push(ratio.alternate(effort, COLD_ROUNDS, ours, reference).await?.into());
    Ok(rows)
}

/// Writes a configuration file with `plugins` plugins.
pub(crate) fn configuration(folder: &Path, plugins: usize) -> anyhow::Result<PathBuf> {
    let table =
        |(number, file): (usize, PathBuf)| format!("[plugins.p{number}]\ncomponent = {file:?}\n");
    let tables: String = copies(plugins, None)?.into_iter().enumerate().map(table).collect();
    let path = folder.join(format!("{plugins}.toml"));
    std::fs::write(&path, tables)?;
    Ok(path)
}

pub(crate) fn with(mut command: Command, configuration: &Path) -> Command {
    command.arg("--config").arg(configuration);
    command
}

/// Makes starts until they are all alike. The first start compiles. New files, including those that
/// it writes, are trusted only after some time without change; so the second start records their
/// state, and the third is like all later ones. A server answers before every plugin is loaded, so
/// these starts run `cofferdam list`, with this home directory if there is one.
pub(crate) fn warm_up(
    effort: Effort,
    configuration: &Path,
    home: Option<&Path>,
) -> anyhow::Result<()> {
    for round in 0..=effort.warming() {
        if round > 0 {
            std::thread::sleep(STANDING);
        }
        let mut command = with(list()?, configuration);
        command.envs(home.map(|home| ("HOME", home)));
        let status = command.stdout(Stdio::null()).status()?;
        ensure!(status.success(), "`cofferdam list` ended with {status}");
    }
    Ok(())
}

fn cold(configuration: &Path, plugins: usize) -> anyhow::Result<Duration> {
    let folder = tempfile::tempdir()?;
    // The server creates its own directory, which no other user can read.
    time(with(serve_with_cache(&folder.path().join("cache"))?, configuration), First::Call, plugins)
}

pub(crate) fn time(command: Command, first: First, plugins: usize) -> anyhow::Result<Duration> {
    // If two plugins have the same tools, the names of the plugins precede theirs.
    let tool = if plugins > 2 { "p0_echo" } else { "echo" };
    let question = match first {
        First::Call => request(
            1,
            "tools/call",
            json!({"name": tool, "arguments": {"message": "to be or not to be"}}),
        ),
        First::List => request(1, "tools/list", json!({})),
    };
    let started = Instant::now();
    let mut server = Server::start(command)?;
    let answer = server.ask(&question)?;
    let taken = started.elapsed();
    ensure!(is_good(&answer), "not the answer: {answer}");
    Ok(taken)
}

fn is_good(answer: &Value) -> bool {
    let is_fine = answer.pointer("/result/isError") == Some(&Value::Bool(false));
    is_fine || answer.pointer("/result/tools/0").is_some()
}
