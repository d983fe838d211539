//! `noisy-neighbour`: a trivial call while another plugin computes on every core, against the same
//! call on an idle host.
//!
//! The number of calls that compute endlessly is the number of cores plus two. The trivial calls
//! come one after another with a pause between them, like those of a user or a model, so that each
//! has to regain its thread. The goal is a ratio of at most 3.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_engine::{EngineConfig, PoolSize};
use cofferdam_tests::{Host, config, shared_cache};
use cofferdam_tool::{CallContext, Outcome};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::effort::Effort;
use crate::measure::{Goal, Measure};
use crate::ratio::Ratio;
use crate::samples::Samples;

pub(crate) const NAME: &str = "noisy-neighbour";
const TRIVIAL: &str = "remember";
const BUSY: &str = "crash";
const ROUNDS: usize = 20;
const CALLS_PER_ROUND: u32 = 200;
const PAUSE: Duration = Duration::from_micros(500);
/// Time for the busy calls to move to their executor.
const SETTLE: Duration = Duration::from_millis(50);

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let busy_calls = std::thread::available_parallelism()?.get() + 2;
    let host = Arc::new(host(busy_calls).await?);
    let ours = async || beside_busy_calls(&host, busy_calls, effort).await;
    let reference = async || median_call(&host, effort).await;
    let ratio = Ratio::new(NAME).with_goal(Goal::AtMost(3.0));
    Ok(vec![ratio.alternate(effort, ROUNDS, ours, reference).await?.into()])
}

async fn host(busy_calls: usize) -> anyhow::Result<Host> {
    let concurrent_calls_max = u32::try_from(busy_calls * 2)?;
    let pool = PoolSize { concurrent_calls_max, ..PoolSize::default() };
    let mut host =
        Host::with(EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() });
    host.load(TRIVIAL).await.load(BUSY).await;
    Ok(host)
}

async fn beside_busy_calls(
    host: &Arc<Host>,
    busy_calls: usize,
    effort: Effort,
) -> anyhow::Result<Duration> {
    let (mut busy, token) = (JoinSet::new(), CancellationToken::new());
    for _ in 0..busy_calls {
        let host = Arc::clone(host);
        let context = CallContext { cancellation: token.clone(), ..CallContext::new("busy") };
        busy.spawn(async move { host.try_call("spin", "{}", &context).await });
    }
    tokio::time::sleep(SETTLE).await;
    let median = median_call(host, effort).await;
    token.cancel();
    while let Some(ended) = busy.join_next().await {
        let computed = matches!(ended??.outcome, Outcome::Cancelled);
        anyhow::ensure!(computed, "a busy call ended before the measurement did");
    }
    median
}

async fn median_call(host: &Host, effort: Effort) -> anyhow::Result<Duration> {
    let mut times = Samples::default();
    for _ in 0..effort.times(CALLS_PER_ROUND) {
        let started = Instant::now();
        let completion = host.call(TRIVIAL, "{}").await;
        times.add(started.elapsed().as_secs_f64());
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
        tokio::time::sleep(PAUSE).await;
    }
    Ok(Duration::from_secs_f64(times.median()))
}
