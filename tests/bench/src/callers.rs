//! `callers`: how many trivial calls there are in a second when several callers call at once, against one caller; the scaling of raw
//! wasmtime stands beside it, and that of two callers with an engine each, which share no pool.
//!
//! Both sides share a number of calls among tasks of one runtime with a thread for each core, and have as many places as
//! `cofferdam serve`.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::{EngineConfig, Floor, PoolSize};
use cofferdam_tests::{Host, config, guest, shared_cache};
use tokio::task::JoinSet;

use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "callers";
const GUEST: &str = "remember";
const ROUNDS: usize = 20;
/// Calls of all callers in one round: enough for waking the threads not to count.
const CALLS: u32 = 8192;
const PLACES: u32 = 64;
/// How many call at once, and what is promised of ours.
const CALLERS: [(u32, Option<Goal>); 3] =
    [(2, Some(Goal::AtLeast(1.7))), (16, None), (256, Some(Goal::AtLeast(1.0)))];

/// The benchmarks run on one thread, and this needs a runtime with several.
pub(crate) fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let measured = std::thread::spawn(move || {
        tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(on_all_cores(effort))
    });
    measured.join().map_err(|_| anyhow!("the benchmark has panicked"))?
}

async fn on_all_cores(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let (host, other) = (host().await, host().await);
    let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
    let floor = Arc::new(Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?);
    let mut rows = Vec::new();
    for (callers, goal) in CALLERS {
        let ours = async |callers| time_ours(effort, &[&host], callers).await;
        let ratio = Ratio::of_rates(format!("{NAME}, {callers} against 1"));
        let ratio = goal.into_iter().fold(ratio, Ratio::with_goal);
        rows.push(scaling(ratio, effort, callers, ours).await?);
        let reference = async |callers| time_floor(effort, &floor, callers).await;
        let ratio = Ratio::of_rates(format!("{NAME}, raw wasmtime, {callers} against 1"));
        rows.push(scaling(ratio, effort, callers, reference).await?);
    }
    let both = [&host, &other];
    let ours =
        async |callers| time_ours(effort, both.get(..callers as usize).unwrap_or(&both), callers).await;
    let ratio = Ratio::of_rates(format!("{NAME}, 2 with an engine each against 1"));
    rows.push(scaling(ratio, effort, 2, ours).await?);
    let ours = async || time_ours(effort, &[&host], PLACES).await;
    let reference = async || time_floor(effort, &floor, PLACES).await;
    let ratio = Ratio::of_rates(format!("{NAME}, {PLACES} of ours against {PLACES} of raw wasmtime"));
    rows.push(ratio.alternate(effort, ROUNDS, ours, reference).await?.into());
    Ok(rows)
}

async fn host() -> Arc<Host> {
    let pool = PoolSize { concurrent_calls_max: PLACES, ..PoolSize::default() };
    let mut host = Host::with(EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() });
    host.load(GUEST).await;
    Arc::new(host)
}

async fn scaling(
    ratio: Ratio,
    effort: Effort,
    callers: u32,
    time: impl AsyncFn(u32) -> anyhow::Result<Duration>,
) -> anyhow::Result<Measure> {
    Ok(ratio.alternate(effort, ROUNDS, async || time(callers).await, async || time(1).await).await?.into())
}

/// The callers take the hosts in turn.
async fn time_ours(effort: Effort, hosts: &[&Arc<Host>], callers: u32) -> anyhow::Result<Duration> {
    let hosts = hosts.iter().copied().cycle();
    let calls = hosts.map(|host| (Arc::clone(host), some_of_ours as fn(_, _) -> _)).take(callers as usize);
    time(effort, calls.collect()).await
}

async fn time_floor(effort: Effort, floor: &Arc<Floor>, callers: u32) -> anyhow::Result<Duration> {
    let calls = std::iter::repeat_with(|| (Arc::clone(floor), some_of_the_floor as fn(_, _) -> _))
        .take(callers as usize);
    time(effort, calls.collect()).await
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

/// What a caller calls, and how it does so a number of times.
type Calls<T, C> = (Arc<T>, fn(Arc<T>, u32) -> C);

/// The time that passes for each call, when there is a caller for each of `calls`.
async fn time<T, C>(effort: Effort, calls: Vec<Calls<T, C>>) -> anyhow::Result<Duration>
where
    T: Send + Sync + 'static,
    C: Future<Output = anyhow::Result<()>> + Send + 'static,
{
    let callers = u32::try_from(calls.len())?;
    let share = effort.times(CALLS / callers);
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for (target, call) in calls {
        tasks.spawn(call(target, share));
    }
    while let Some(ended) = tasks.join_next().await {
        ended??;
    }
    Ok(started.elapsed() / (share * callers))
}
