//! `call-floor`: a trivial tool call through the host against raw wasmtime on the same pool.
//!
//! Ours is the complete path of a call: look up the tool, decode the arguments, wait for a permit,
//! instantiate, call, read the result, drop, record. The reference instantiates, calls and drops.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use cofferdam_engine::floor::Floor;
use cofferdam_engine::{EngineConfig, PoolSize};
use cofferdam_tests::{Host, config, guest, shared_cache};

use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::one_cpu::OneCpu;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "call-floor";
/// Name of the guest and of its tool, which takes nothing and returns a short string.
pub(crate) const GUEST: &str = "remember";
const ROUNDS: usize = 60;
pub(crate) const CALLS_PER_ROUND: u32 = 500;

/// Returns a host with the guest of these benchmarks.
pub(crate) async fn host() -> Host {
    let mut host = empty_host();
    host.load(GUEST).await;
    host
}

/// Returns a host with the cache of all benchmarks.
pub(crate) fn empty_host() -> Host {
    let config = EngineConfig {
        cache_directory: Some(shared_cache()),
        pool: PoolSize { concurrent_calls_max: 8, ..PoolSize::default() },
        ..config()
    };
    Host::with(config)
}

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let host = host().await;
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?;
    let calls = effort.times(CALLS_PER_ROUND);
    let ours = async || time_ours(&host, calls).await;
    let reference = async || time_floor(&floor, calls).await;
    let ratio = |name: String| Ratio::new(name).with_goal(Goal::AtMost(1.3));
    let mut rows =
        vec![ratio(NAME.to_owned()).alternate(effort, ROUNDS, ours, reference).await?.into()];
    let _one = OneCpu::take()?;
    let ratio = ratio(format!("{NAME}, one CPU"));
    rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    Ok(rows)
}

/// Returns the time of one call through the host.
pub(crate) async fn time_ours(host: &Host, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let completion = host.call(GUEST, "{}").await;
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}

/// Returns the time of one call in raw wasmtime.
pub(crate) async fn time_floor(floor: &Floor, calls: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..calls {
        let contents = floor.call(GUEST, "{}").await.map_err(|reason| anyhow!(reason))?;
        anyhow::ensure!(contents == 1, "a measured call failed");
    }
    Ok(started.elapsed() / calls)
}
