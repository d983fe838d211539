//! Many calls at once: which runs, which waits, and the cost for the others.
//!
//! Other tests run at the same time, so times are printed, and the bounds only fail a hang or a
//! wait for the work of another call. The documented figures come from `cofferdam-bench`.

#![expect(clippy::print_stdout, reason = "measured figures, visible with --nocapture")]

mod alone;
mod cores;

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_engine::{EngineConfig, PoolSize, ProcessBudget};
use cofferdam_tests::{Host, config, shared_cache};
use cofferdam_tool::record::MemoryRefusal;
use cofferdam_tool::{CallContext, Completion, Limits, Outcome};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Maximum delay of an end or an answer: far less than the work of the others, far more than on an
/// idle machine.
const LATE_MAX: Duration = Duration::from_millis(500);

/// Returns the two kinds of runtime that embed a host: that of the binary, and that of a server.
fn runtimes() -> [Runtime; 2] {
    [Builder::new_current_thread(), Builder::new_multi_thread()]
        .map(|mut builder| builder.enable_all().build().unwrap())
}

fn pool_of(concurrent_calls_max: u32) -> EngineConfig {
    let pool = PoolSize { concurrent_calls_max, ..PoolSize::default() };
    EngineConfig { cache_directory: Some(shared_cache()), pool, ..config() }
}

/// Returns a host with `crash` under `limits` and `remember` under the defaults.
async fn host(config: EngineConfig, limits: Limits) -> Arc<Host> {
    let mut host = Host::with(config);
    host.limits = limits;
    host.load("crash").await;
    host.limits = Limits::default();
    host.load("remember").await;
    Arc::new(host)
}

fn spawn(
    calls: &mut JoinSet<Completion>,
    host: &Arc<Host>,
    tool: &'static str,
    arguments: &'static str,
    context: &CallContext,
) {
    let (host, context) = (Arc::clone(host), context.clone());
    calls.spawn(async move { host.try_call(tool, arguments, &context).await.unwrap() });
}

fn cancelled_by(token: &CancellationToken) -> CallContext {
    CallContext { cancellation: token.clone(), ..CallContext::new("cancelled") }
}

/// Makes one trivial call of another plugin and returns its duration.
async fn trivial(host: &Host) -> Duration {
    let started = Instant::now();
    let completion = host.call("remember", "{}").await;
    assert_eq!(completion.record.outcome, "ok", "{:?}", completion.record);
    started.elapsed()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

async fn runaways_and_others() {
    // Some calls reach the CPU limit, others the wall-clock limit.
    let host =
        host(pool_of(16), Limits { wall_ms_max: 2_000, cpu_ms_max: 600, ..Limits::default() })
            .await;
    let (mut runaways, cancelled) = (JoinSet::new(), CancellationToken::new());
    for _ in 0..cores() + 2 {
        spawn(&mut runaways, &host, "spin", "{}", &CallContext::new("runaway"));
    }
    let mut one_more = JoinSet::new();
    spawn(&mut one_more, &host, "spin", "{}", &cancelled_by(&cancelled));
    tokio::time::sleep(Duration::from_millis(100)).await;

    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        slowest = slowest.max(trivial(&host).await);
    }
    let cancelled_at = Instant::now();
    cancelled.cancel();
    let completion = one_more.join_next().await.unwrap().unwrap();
    let cancelling = cancelled_at.elapsed();
    println!(
        "while {} calls run away: a trivial call {slowest:?}, a cancellation {cancelling:?}",
        cores() + 3
    );
    assert!(matches!(completion.outcome, Outcome::Cancelled), "{:?}", completion.record);
    assert!(slowest < LATE_MAX && cancelling < LATE_MAX);

    while let Some(completion) = runaways.join_next().await {
        let record = completion.unwrap().record;
        let ended = record.error_type.as_deref();
        assert!(matches!(ended, Some("Timeout" | "CpuLimit")), "{record:?}");
        let limit = Duration::from_millis(2_000);
        assert!(record.phases.run < limit + LATE_MAX, "{record:?}");
    }
}

#[test]
fn runaway_calls_end_at_their_limits_and_others_are_served_meanwhile() {
    for runtime in runtimes() {
        runtime.block_on(runaways_and_others());
    }
}

async fn loading_is_served_too() {
    let host = host(pool_of(16), Limits { wall_ms_max: 3_000, ..Limits::default() }).await;
    let mut runaways = JoinSet::new();
    for _ in 0..cores() + 2 {
        spawn(&mut runaways, &host, "spin", "{}", &CallContext::new("runaway"));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut other = Host::with(pool_of(2));
    other.load("text").await;
    assert_eq!(runaways.len(), cores() + 2);
}

#[test]
fn a_plugin_can_be_loaded_while_others_run_away() {
    for runtime in runtimes() {
        runtime.block_on(loading_is_served_too());
    }
}

async fn a_flood_of_one_plugin() {
    let budget = ProcessBudget { waiting_calls_per_plugin_max: 10, ..ProcessBudget::default() };
    let host = host(EngineConfig { budget, ..pool_of(8) }, Limits::default()).await;
    let mut flood = JoinSet::new();
    for _ in 0..40 {
        spawn(&mut flood, &host, "sleep", r#"{"ms":200}"#, &CallContext::new("flood"));
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    for _ in 0..10 {
        let record = host.call("remember", "{}").await.record;
        assert_eq!(record.outcome, "ok", "{record:?}");
    }
    let mut refused = 0;
    while let Some(completion) = flood.join_next().await {
        let completion = completion.unwrap();
        if completion.record.outcome != "ok" {
            assert_eq!(completion.record.error_type.as_deref(), Some("PluginUnavailable"));
            assert_eq!(completion.outcome.transient(), Some(true));
            let detail = completion.record.detail.unwrap();
            assert_eq!(detail, "10 calls of the plugin are waiting already, which is the maximum");
            refused += 1;
        }
    }
    assert_eq!(refused, 40 - 7 - 10, "what runs frees a permit, and ten more wait");
}

#[test]
fn a_flood_of_one_plugin_is_refused_alone() {
    for runtime in runtimes() {
        runtime.block_on(a_flood_of_one_plugin());
    }
}

#[tokio::test]
async fn the_memory_of_the_process_is_a_limit_of_its_own() {
    let budget = ProcessBudget { memory_bytes_max: 64 << 20, ..ProcessBudget::default() };
    let limits = Limits { memory_bytes_max: 1 << 30, ..Limits::default() };
    let host = host(EngineConfig { budget, ..pool_of(8) }, limits).await;
    for _ in 0..2 {
        let record = host.call("allocate", r#"{"mebibytes":100}"#).await.record;
        assert_eq!(record.error_type.as_deref(), Some("MemoryLimit"), "{record:?}");
        assert_eq!(record.memory_refused_by, Some(MemoryRefusal::Process), "{record:?}");
        assert!(record.memory_peak_bytes <= 56 << 20, "{record:?}");
        let record = host.call("allocate", r#"{"mebibytes":20}"#).await.record;
        assert_eq!(record.outcome, "ok", "what was reserved has come back: {record:?}");
    }
}

async fn every_permit_comes_back() {
    let host = host(pool_of(8), Limits::default()).await;
    let (mut calls, token) = (JoinSet::new(), CancellationToken::new());
    for number in 0..64 {
        // Some calls run, some sleep, and most wait for a permit.
        let tool = if number % 2 == 0 { "spin" } else { "sleep" };
        spawn(&mut calls, &host, tool, "{}", &cancelled_by(&token));
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let cancelled_at = Instant::now();
    token.cancel();
    while let Some(completion) = calls.join_next().await {
        let completion = completion.unwrap();
        assert!(matches!(completion.outcome, Outcome::Cancelled), "{:?}", completion.record);
    }
    println!("64 calls cancelled in {:?}", cancelled_at.elapsed());
    assert!(cancelled_at.elapsed() < LATE_MAX * 2);
    // The maximum for one plugin.
    for _ in 0..7 {
        spawn(&mut calls, &host, "sleep", r#"{"ms":1000}"#, &CallContext::new("after"));
    }
    while let Some(completion) = calls.join_next().await {
        let record = completion.unwrap().record;
        assert_eq!(record.outcome, "ok", "{record:?}");
        assert!(record.phases.wait < Duration::from_millis(900), "a permit was free: {record:?}");
    }
}

#[test]
fn cancelled_calls_free_all_permits() {
    for runtime in runtimes() {
        runtime.block_on(every_permit_comes_back());
    }
}

async fn dropped_calls() {
    let host = host(pool_of(1), Limits::default()).await;
    for tool in ["spin", "sleep", "spin"] {
        let call = host.call(tool, "{}");
        assert!(tokio::time::timeout(Duration::from_millis(100), call).await.is_err());
        let dropped_at = Instant::now();
        trivial(&host).await;
        println!("after a dropped {tool} the next call was done in {:?}", dropped_at.elapsed());
        assert!(dropped_at.elapsed() < LATE_MAX);
    }
}

#[test]
fn dropping_the_future_of_a_call_frees_its_permit() {
    for runtime in runtimes() {
        runtime.block_on(dropped_calls());
    }
}
