//! `call-floor`: a trivial tool call through the host against raw wasmtime on the same pool.
//!
//! Ours is the whole path of an edge: look the tool up, decode the arguments, wait for a place, instantiate, call, take the
//! result over, drop, record. The reference instantiates, calls and drops.

use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use cofferdam_engine::{EngineConfig, Floor, PoolSize};
use cofferdam_tests::{Host, config, guest, shared_cache};

use crate::ratio::Ratio;

pub(crate) const NAME: &str = "call-floor";
/// The guest and its tool: it takes nothing and returns a short text.
const GUEST: &str = "remember";
const ROUNDS: usize = 60;
const CALLS_PER_ROUND: u32 = 500;

/// A host with the guest of these benchmarks.
pub(crate) async fn host() -> Host {
    let mut host = empty_host();
    host.load(GUEST).await;
    host
}

/// A host with the cache of all benchmarks.
pub(crate) fn empty_host() -> Host {
    let config = EngineConfig {
        cache_directory: Some(shared_cache()),
        pool: PoolSize { concurrent_calls_max: 8, ..PoolSize::default() },
        ..config()
    };
    Host::with(config)
}

pub(crate) async fn measure() -> anyhow::Result<Ratio> {
    let host = host().await;
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?;

    let mut ratio = Ratio::new(NAME);
    // The first round warms caches and is not counted.
    for round in 0..=ROUNDS {
        let ours = time_ours(&host).await?;
        let reference = time_floor(&floor).await?;
        if round > 0 {
            ratio.add(ours, reference);
        }
    }
    Ok(ratio)
}

/// The time of one call through the host.
pub(crate) async fn time_ours(host: &Host) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..CALLS_PER_ROUND {
        let completion = host.call(GUEST, "{}").await;
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / CALLS_PER_ROUND)
}

async fn time_floor(floor: &Floor) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..CALLS_PER_ROUND {
        let contents = floor.call(GUEST, "{}").await.map_err(|reason| anyhow!(reason))?;
        anyhow::ensure!(contents == 1, "a measured call failed");
    }
    Ok(started.elapsed() / CALLS_PER_ROUND)
}
