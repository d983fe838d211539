//! `callers`: trivial calls per second of several concurrent callers, against as many callers of
//! raw wasmtime, and against one caller. Raw wasmtime has one pool; ours has one for each core, or
//! one in the rows that say so.
//!
//! Both sides share a number of calls among tasks of one runtime with a thread for each core, and
//! have as many permits as `cofferdam serve`.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::floor::Floor;
use cofferdam_engine::{EngineConfig, PoolSize};
use cofferdam_tests::{Host, config, guest, shared_cache};
use tokio::task::JoinSet;

use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "callers";
const GUEST: &str = "remember";
const ROUNDS: usize = 20;
/// Calls of all callers in one round: enough to make the time for waking threads negligible.
const CALLS: u32 = 8192;
const CALLS_MAX: u32 = 64;
/// Numbers of callers that are compared with raw wasmtime.
const CALLERS: [u32; 3] = [2, 16, 64];
const GOAL: Goal = Goal::AtLeast(0.9);
/// Numbers of callers that are compared with one caller.
const SCALED: [(u32, Option<Goal>); 2] = [(2, None), (256, Some(Goal::AtLeast(1.0)))];

/// Measures on a thread of its own: the benchmarks run on one thread, and this one needs a runtime
/// with several.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let measured = std::thread::spawn(move || {
        tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()?
            .block_on(on_all_cores(effort))
    });
    measured.join().map_err(|_| anyhow!("the benchmark has panicked"))?
}

async fn on_all_cores(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let [host, one_pool] = [
        host(PoolSize::default()).await,
        host(PoolSize { pools_max: 1, ..PoolSize::default() }).await,
    ];
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Arc::new(Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?);
    let mut rows = Vec::new();
    for (host, label, goal) in
        [(&host, "ours", Some(GOAL)), (&one_pool, "ours with one pool", None)]
    {
        for callers in CALLERS {
            let ours = async || time_ours(effort, host, callers).await;
            let reference = async || time_floor(effort, &floor, callers).await;
            let ratio = Ratio::of_rates(format!(
                "{NAME}, {callers} of {label} against {callers} of raw wasmtime"
            ));
            let ratio = goal.into_iter().fold(ratio, Ratio::with_goal);
            rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
        }
    }
    for (callers, goal) in SCALED {
        let ours = async |callers| time_ours(effort, &host, callers).await;
        let ratio = Ratio::of_rates(format!("{NAME}, {callers} against 1"));
        let ratio = goal.into_iter().fold(ratio, Ratio::with_goal);
        rows.push(scaling(ratio, effort, callers, ours).await?);
        let reference = async |callers| time_floor(effort, &floor, callers).await;
        let ratio = Ratio::of_rates(format!("{NAME}, raw wasmtime, {callers} against 1"));
        rows.push(scaling(ratio, effort, callers, reference).await?);
    }
    Ok(rows)
}

async fn host(pool: PoolSize) -> Arc<Host> {
    let pool = PoolSize { concurrent_calls_max: CALLS_MAX, ..pool };
    let mut host =
        Host::with(EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() });
    host.load(GUEST).await;
    Arc::new(host)
}

async fn scaling(
    ratio: Ratio,
    effort: Effort,
    callers: u32,
    time: impl AsyncFn(u32) -> anyhow::Result<Duration>,
) -> anyhow::Result<Measure> {
    Ok(ratio
        .alternate(effort, ROUNDS, async || time(callers).await, async || time(1).await)
        .await?
        .into())
}

async fn time_ours(effort: Effort, host: &Arc<Host>, callers: u32) -> anyhow::Result<Duration> {
    time(effort, host, callers, some_of_ours).await
}

async fn time_floor(effort: Effort, floor: &Arc<Floor>, callers: u32) -> anyhow::Result<Duration> {
    time(effort, floor, callers, some_of_the_floor).await
}

async fn some_of_ours(host: Arc<Host>, calls: u32) -> anyhow::Result<()> {
    for _ in 0..calls {
        let completion = host.call(GUEST, "{}").await;
        ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(())
}

async fn some_of_the_floor(floor: Arc<Floor>, calls: u32) -> anyhow::Result<()> {
    for _ in 0..calls {
        let contents = floor.call(GUEST, "{}").await.map_err(|reason| anyhow!(reason))?;
        ensure!(contents == 1, "a measured call failed");
    }
    Ok(())
}

/// Returns the time per call of `callers` concurrent callers of `target`.
async fn time<T, C>(
    effort: Effort,
    target: &Arc<T>,
    callers: u32,
    call: fn(Arc<T>, u32) -> C,
) -> anyhow::Result<Duration>
where
    T: Send + Sync + 'static,
    C: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let share = effort.times(CALLS / callers);
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..callers {
        tasks.spawn(call(Arc::clone(target), share));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(started.elapsed() / (share * callers))
}
