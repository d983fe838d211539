//! Calls a plugin with extism and prints the time, for comparison by `cofferdam-bench`.
//!
//! A line on standard input is a kind and a number of calls, such as `fresh 500`. The answer is a
//! line with the nanoseconds of one call. The limits on time and memory are the host's defaults,
//! and nothing is logged.

use std::hint::black_box;
use std::io::{BufRead as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use extism::{CompiledPlugin, Manifest, Plugin, PluginBuilder, Wasm};

const TOOL: &str = "echo";
const ARGUMENTS: &str = r#"{"message":"to be or not to be"}"#;
const ANSWER: &str = r#"{"echoed":{"message":"to be or not to be"}}"#;
/// Default limits of a call in the host: `Limits::default` of `host/tool`.
const WALL: Duration = Duration::from_secs(30);
const MEMORY_PAGES_MAX: u32 = 1024;

fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).context("the plugin is the only argument")?;
    let manifest = Manifest::new([Wasm::data(std::fs::read(path)?)])
        .with_timeout(WALL)
        .with_memory_max(MEMORY_PAGES_MAX);
    let compiled = PluginBuilder::new(manifest).with_wasi(false).with_cache_disabled().compile()?;
    let mut reused = Plugin::new_from_compiled(&compiled)?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (kind, calls) = line.split_once(' ').context("a kind and a number")?;
        let calls: u32 = calls.parse()?;
        let started = Instant::now();
        for _ in 0..calls {
            match kind {
                "fresh" => fresh(&compiled)?,
                "reused" => call(&mut reused)?,
                _ => anyhow::bail!("neither fresh nor reused: {kind}"),
            }
        }
        let taken = started.elapsed() / calls.max(1);
        writeln!(std::io::stdout(), "{}", taken.as_nanos())?;
    }
    Ok(())
}

/// Makes a call that shares nothing with others: a plugin of its own, from compiled code.
fn fresh(compiled: &CompiledPlugin) -> anyhow::Result<()> {
    call(&mut Plugin::new_from_compiled(compiled)?)
}

fn call(plugin: &mut Plugin) -> anyhow::Result<()> {
    let answer: &str = plugin.call(TOOL, black_box(ARGUMENTS))?;
    ensure!(answer == ANSWER, "not an echo: {answer}");
    Ok(())
}
