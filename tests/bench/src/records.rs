//! `records`: cost of the call log, and of recordings with which calls can run again.
//!
//! One caller makes trivial calls with and without a log in alternating rounds; the difference is
//! the result. Sixteen callers are compared by their rates. A replay is compared with a call.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::{EngineConfig, PoolSize};
use cofferdam_record::{PayloadMode, RecordOptions, Recorder};
use cofferdam_tests::{Host, config, shared_cache};
use cofferdam_tool::recording::RecordingLevel;
use tokio::task::JoinSet;

use crate::call_floor::{self, GUEST};
use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "records";
const ROUNDS: usize = 60;
const CALLS_PER_ROUND: u32 = 500;
const CALLERS: u32 = 16;
/// Calls of all callers in one round.
const CALLS: u32 = 8192;

/// Measures on a thread of its own, with a runtime that has a thread for each core.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let measured = std::thread::spawn(move || {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(rows(effort))
    });
    measured.join().map_err(|_| anyhow!("the benchmark has panicked"))?
}

async fn rows(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let folder = tempfile::tempdir()?;
    let plain = host(RecordingLevel::Off, None).await?;
    let path = |name: &str| folder.path().join(name);
    let digests = host(RecordingLevel::Off, Some((&path("digests"), PayloadMode::Digests))).await?;
    let failures =
        host(RecordingLevel::Failures, Some((&path("failures"), PayloadMode::Digests))).await?;
    let all = host(RecordingLevel::All, Some((&path("all"), PayloadMode::Digests))).await?;
    let calls = effort.times(CALLS_PER_ROUND);
    let time = async |host: &Host| call_floor::time_ours(host, calls).await;
    let mut rows = Vec::new();
    for (name, ours, reference) in [
        ("a log with digests", &digests, &plain),
        ("recordings of failures, besides", &failures, &digests),
        ("recordings of all calls, besides", &all, &digests),
    ] {
        let ratio = Ratio::new(format!("{NAME}, {name}"));
        let (ours, reference) = (async || time(ours).await, async || time(reference).await);
        rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.difference().into());
    }
    let ratio = Ratio::of_rates(format!("{NAME}, {CALLERS} callers with digests against without"))
        .with_goal(Goal::AtLeast(0.8));
    let ours = async || many(effort, &digests).await;
    let reference = async || many(effort, &plain).await;
    rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    rows.push(replays(effort, &all).await?);
    Ok(rows)
}

async fn host(
    recording: RecordingLevel,
    log: Option<(&Path, PayloadMode)>,
) -> anyhow::Result<Arc<Host>> {
    let pool = PoolSize { concurrent_calls_max: CALLERS, ..PoolSize::default() };
    let config = EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() };
    let mut host = Host::with(config);
    host.recording = recording;
    host.load(GUEST).await;
    if let Some((directory, payloads)) = log {
        let options = RecordOptions { payloads, ..RecordOptions::new(directory) };
        host.set_sink(Arc::new(Recorder::open(options).context("the log cannot be opened")?));
    }
    Ok(Arc::new(host))
}

/// Returns the time per call of 16 callers.
async fn many(effort: Effort, host: &Arc<Host>) -> anyhow::Result<Duration> {
    let share = effort.times(CALLS / CALLERS);
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..CALLERS {
        let host = Arc::clone(host);
        tasks.spawn(async move { call_floor::time_ours(&host, share).await });
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(started.elapsed() / (share * CALLERS))
}

/// Compares a replay of a trivial call with the call.
async fn replays(effort: Effort, host: &Host) -> anyhow::Result<Measure> {
    let completion = host.call(GUEST, "{}").await;
    let recording = completion.record.recording.context("the call was not recorded")?;
    let calls = effort.times(CALLS_PER_ROUND);
    let ours = async || {
        let started = Instant::now();
        for _ in 0..calls {
            let replay = host.plugin().replay(&recording).await?;
            ensure!(replay.missing.is_empty(), "a replay has other inputs");
        }
        Ok(started.elapsed() / calls)
    };
    let reference = async || call_floor::time_ours(host, calls).await;
    let ratio = Ratio::new(format!("{NAME}, a replay against a recorded call"));
    Ok(ratio.alternate(effort, ROUNDS, ours, reference).await?.into())
}
