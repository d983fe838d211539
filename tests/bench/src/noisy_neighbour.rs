//! `noisy-neighbour`: a trivial call while another plugin computes on every core, against the same call on a quiet host.
//!
//! Two more calls compute than there are cores, without end. The trivial calls come one after another with a pause between
//! them, as those of a person or a model do, so that each has to win its thread back. The goal is a ratio of at most 3.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_engine::{EngineConfig, PoolSize};
use cofferdam_tests::{Host, config, shared_cache};
use cofferdam_tool::{CallContext, Outcome};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::ratio::Ratio;

pub(crate) const NAME: &str = "noisy-neighbour";
const TRIVIAL: &str = "remember";
const BUSY: &str = "crash";
const ROUNDS: usize = 20;
const CALLS_PER_ROUND: usize = 200;
const PAUSE: Duration = Duration::from_micros(500);
/// How long the busy calls have to find their lane.
const SETTLE: Duration = Duration::from_millis(50);

pub(crate) async fn measure() -> anyhow::Result<Ratio> {
    let busy_calls = std::thread::available_parallelism()?.get() + 2;
    let host = Arc::new(host(busy_calls).await?);
    let mut ratio = Ratio::new(NAME);
    for round in 0..=ROUNDS {
        let reference = median_call(&host).await?;
        let ours = beside_busy_calls(&host, busy_calls).await?;
        // The first round warms caches and is not counted.
        if round > 0 {
            ratio.add(ours, reference);
        }
    }
    Ok(ratio)
}

async fn host(busy_calls: usize) -> anyhow::Result<Host> {
    let concurrent_calls_max = u32::try_from(busy_calls * 2)?;
    let pool = PoolSize { concurrent_calls_max, ..PoolSize::default() };
    let mut host = Host::with(EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() });
    host.load(TRIVIAL).await.load(BUSY).await;
    Ok(host)
}

async fn beside_busy_calls(host: &Arc<Host>, busy_calls: usize) -> anyhow::Result<Duration> {
    let (mut busy, token) = (JoinSet::new(), CancellationToken::new());
    for _ in 0..busy_calls {
        let host = Arc::clone(host);
        let context = CallContext { cancellation: token.clone(), ..CallContext::new("busy") };
        busy.spawn(async move { host.try_call("spin", "{}", &context).await });
    }
    tokio::time::sleep(SETTLE).await;
    let median = median_call(host).await;
    token.cancel();
    while let Some(ended) = busy.join_next().await {
        let computed = matches!(ended??.outcome, Outcome::Cancelled);
        anyhow::ensure!(computed, "a busy call ended before the measurement did");
    }
    median
}

async fn median_call(host: &Host) -> anyhow::Result<Duration> {
    let mut times = Vec::with_capacity(CALLS_PER_ROUND);
    for _ in 0..CALLS_PER_ROUND {
        let started = Instant::now();
        let completion = host.call(TRIVIAL, "{}").await;
        times.push(started.elapsed());
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
        tokio::time::sleep(PAUSE).await;
    }
    times.sort_unstable();
    Ok(times.get(CALLS_PER_ROUND / 2).copied().unwrap_or_default())
}
