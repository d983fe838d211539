//! `memory`: resident bytes of plugins and calls.
//!
//! Reads the memory of the process from the system, and therefore runs before all other benchmarks:
//! memory that they leave behind would hide the result.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use cofferdam_engine::{Component, EngineConfig, PoolSize};
use cofferdam_tests::{Host, config, shared_cache};
use cofferdam_tool::{CallContext, Toolset};
use tokio::task::JoinSet;

use crate::call_floor;
use crate::copies::copies;
use crate::effort::Effort;
use crate::measure::{Amount, Goal, Measure, Unit};
use crate::samples::Samples;

pub(crate) const NAME: &str = "memory";
/// The guest that is copied: a small one, of 60 KB, so that not all memory of a plugin is code.
const GUEST: &str = "served";
const PLUGINS: u32 = 100;
const TOOL: &str = "echo";
const ARGUMENTS: &[u8] = br#"{"message":"to be or not to be"}"#;
/// Concurrent calls that wait in the guest.
const CALLS_AT_ONCE: u32 = 200;
const WAITING: &str = r#"{"steps":1,"pause_ms":600}"#;
/// Time at which all of them wait.
const MIDDLE: Duration = Duration::from_millis(300);
const ROUNDS: usize = 5;
const CALLS_BEFORE: u32 = 10_000;
const CALLS: u32 = 100_000;
/// Noise of allocators: 10 bytes per call.
const GROWTH_BYTES_MAX: f64 = 1024.0 * 1024.0;

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let mut rows = growth(effort).await?;
    rows.extend(plugins(effort).await?);
    rows.push(in_flight(effort).await?);
    Ok(rows)
}

/// Measures the growth of memory between some and many calls.
async fn growth(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let host = call_floor::host().await;
    call_floor::time_ours(&host, effort.times(CALLS_BEFORE)).await?;
    let before = resident_bytes()?;
    call_floor::time_ours(&host, effort.times(CALLS)).await?;
    let samples = Samples::from_iter([resident_bytes()? - before]);
    let name = format!("{NAME}, growth over {CALLS} calls after the first {CALLS_BEFORE}");
    let row = Amount::new(name, Unit::Bytes, samples).with_goal(Goal::AtMost(GROWTH_BYTES_MAX));
    Ok(vec![row.into()])
}

/// Measures the memory of a plugin that is loaded from the cache, and of one whose code is in
/// memory as well.
async fn plugins(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let count = effort.times(PLUGINS);
    let files = copies(usize::try_from(count)?, Some(GUEST))?;
    let host = call_floor::empty_host();
    // The first load may compile the plugins. They stay loaded, so that they free no memory that
    // others could reuse.
    let _first = load(&host, &files).await?;
    let before = resident_bytes()?;
    let plugins = load(&host, &files).await?;
    let loaded = resident_bytes()?;
    for plugin in &plugins {
        let called = plugin.call(TOOL, Some(ARGUMENTS), &CallContext::new("memory")).await?;
        ensure!(called.record.outcome == "ok", "a call ended as {}", called.record.outcome);
    }
    let called = resident_bytes()?;
    let each = |bytes: f64| Samples::from_iter([bytes / f64::from(count)]);
    let idle = Amount::new(format!("{NAME}, an idle plugin"), Unit::Bytes, each(loaded - before));
    let warm = Amount::new(
        format!("{NAME}, an idle plugin that was called"),
        Unit::Bytes,
        each(called - before),
    );
    Ok(vec![idle.into(), warm.into()])
}

/// Loads plugins. They have equal tools, so each is a toolset of its own.
async fn load(host: &Host, files: &[PathBuf]) -> anyhow::Result<Vec<Toolset>> {
    let mut loaded = Vec::with_capacity(files.len());
    for file in files {
        let plugin = host.try_load(&Component::from_file_ambient(file.clone())).await?;
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(plugin))?;
        loaded.push(toolset);
    }
    Ok(loaded)
}

/// Measures the memory of a waiting call.
async fn in_flight(effort: Effort) -> anyhow::Result<Measure> {
    let count = effort.times(CALLS_AT_ONCE);
    let pool = PoolSize { concurrent_calls_max: CALLS_AT_ONCE, ..PoolSize::default() };
    let mut host =
        Host::with(EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() });
    host.load(GUEST).await;
    let host = Arc::new(host);
    let mut samples = Samples::default();
    let warming = effort.warming();
    for round in 0..warming + effort.rounds(ROUNDS) {
        let before = resident_bytes()?;
        let mut calls = JoinSet::new();
        for _ in 0..count {
            let host = Arc::clone(&host);
            calls.spawn(async move { host.call("count", WAITING).await });
        }
        tokio::time::sleep(MIDDLE).await;
        let during = resident_bytes()?;
        while let Some(ended) = calls.join_next().await {
            let outcome = ended?.record.outcome;
            ensure!(outcome == "ok", "a call that waits ended as {outcome}");
        }
        if round >= warming {
            samples.add((during - before) / f64::from(count));
        }
    }
    Ok(Amount::new(format!("{NAME}, a call that waits"), Unit::Bytes, samples).into())
}

/// Returns the resident set of this process.
fn resident_bytes() -> anyhow::Result<f64> {
    resident_bytes_of("self")
}

/// Returns the resident set of a process.
pub(crate) fn resident_bytes_of(process: &str) -> anyhow::Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))
        .context("this is measured only on Linux")?;
    let line =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no resident set")?;
    let kibibytes: u32 = line.trim().trim_end_matches("kB").trim().parse()?;
    Ok(f64::from(kibibytes) * 1024.0)
}
