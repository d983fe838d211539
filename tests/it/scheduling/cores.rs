//! Cores that call at the same time have pools of their own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cofferdam_engine::{Component, Plugin};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::{CallContext, Limits, Toolset};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

/// Maximum time to copy the code of a small plugin on a machine that also runs other tests.
const PATIENCE: Duration = Duration::from_secs(20);

async fn plugin(name: &str, limits: Limits) -> (Arc<Plugin>, Toolset) {
    let mut host = Host::new();
    host.limits = limits;
    let plugin = Arc::new(host.try_load(&Component::from_file_ambient(guest(name))).await.unwrap());
    let mut toolset = Toolset::new();
    toolset.add(Arc::clone(&plugin) as _).unwrap();
    (plugin, toolset)
}

/// Calls from as many tasks as there are threads until `is_over`, and compares all answers.
async fn call_side_by_side(
    toolset: &Toolset,
    tool: &'static str,
    arguments: &'static str,
    is_over: impl Fn() -> bool,
) {
    let stop = Arc::new(AtomicBool::new(false));
    let mut callers = JoinSet::new();
    for _ in 0..4 {
        let (toolset, stop) = (toolset.clone(), Arc::clone(&stop));
        callers.spawn(async move {
            let mut answers = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let context = CallContext::new("side by side");
                let completion =
                    toolset.call(tool, Some(arguments.as_bytes()), &context).await.unwrap();
                answers.push(completion.outcome);
                answers.dedup();
            }
            answers
        });
    }
    let started = Instant::now();
    while !is_over() && started.elapsed() < PATIENCE {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stop.store(true, Ordering::Relaxed);
    let answers: Vec<_> = callers.join_all().await.into_iter().flatten().collect();
    assert!(!answers.is_empty());
    assert!(
        answers.iter().all(|answer| *answer == answers[0] && answer.word() == "ok"),
        "{answers:?}"
    );
}

#[test]
fn calls_side_by_side_have_code_in_several_engines_and_a_single_caller_has_it_in_one() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let counted = Limits { fuel_max: Some(1_000_000_000), ..Limits::default() };
    let plugins = [("remember", "{}", Limits::default()), ("remember", "{}", counted)];
    let runtime = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
    for (tool, arguments, limits) in plugins {
        let (plugin, toolset) = runtime.block_on(plugin(tool, limits));
        for _ in 0..100 {
            let context = CallContext::new("alone");
            let called = runtime.block_on(toolset.call(tool, Some(arguments.as_bytes()), &context));
            assert_eq!(called.unwrap().outcome.word(), "ok");
        }
        assert_eq!(plugin.code_copies(), 1);
        let is_over = || plugin.code_copies() > 1;
        runtime.block_on(call_side_by_side(&toolset, tool, arguments, is_over));
        assert_eq!(plugin.code_copies() > 1, cores > 1, "{} cores", cores);
        // The copies answer as well.
        let started = Instant::now();
        let is_over = || started.elapsed() > Duration::from_millis(200);
        runtime.block_on(call_side_by_side(&toolset, tool, arguments, is_over));
    }
}
