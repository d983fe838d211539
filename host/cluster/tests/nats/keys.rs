//! Calls with idempotency keys.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_cluster::keyed::{KeyedResults, MemoryResults};
use cofferdam_cluster::{CallTiming, DispatcherOptions};
use cofferdam_tool::{CallContext, Outcome, Output, Toolset};
use serde_json::{Value, json};

use super::calls::{call, type_name, wait_until, worker};
use super::jetstream::request;
use super::process::{GatewayProcess, Step, WorkerProcess};
use super::server::{Server, timing};
use super::tools::Starts;

pub(crate) async fn keyed(
    toolset: &Toolset,
    tool: &str,
    arguments: Value,
    (id, key): (&str, &str),
) -> Outcome {
    let context = CallContext { idempotency_key: Some(key.to_owned()), ..CallContext::new(id) };
    let arguments = arguments.to_string();
    toolset.call(tool, Some(arguments.as_bytes()), &context).await.unwrap().outcome
}

#[tokio::test]
async fn calls_with_one_key_have_one_result() {
    let Some(server) = Server::start(&[]) else { return };
    let results: Arc<dyn KeyedResults> = Arc::new(MemoryResults::default());
    have_one_result(&server, [Arc::clone(&results), results]).await;
}

#[tokio::test]
async fn gateways_share_results_in_jetstream() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = Server::with_jetstream(folder.path()) else { return };
    let (one, other) = tokio::join!(server.results(), server.results());
    have_one_result(&server, [one.unwrap(), other.unwrap()]).await;
}

/// Makes calls with keys through two gateways, each with one of the stores.
async fn have_one_result(server: &Server, results: [Arc<dyn KeyedResults>; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let _worker = worker(server, &path, 64).await;
    let [one, other] = results.map(|results| DispatcherOptions {
        timing: timing(),
        results,
        ..DispatcherOptions::default()
    });
    let gateways = [server.gateway_with(one).await, server.gateway_with(other).await];

    // Fifty at once, through two gateways.
    let ids: Vec<String> = (0..50).map(|number| format!("k{number}")).collect();
    let calls = ids.iter().enumerate().map(|(number, id)| {
        let toolset = &gateways[number % 2].toolset;
        keyed(toolset, "write", json!({"ms": 50}), (id, "a"))
    });
    let ended = futures_util::future::join_all(calls).await;
    assert!(
        ended.iter().all(|outcome| *outcome == ended[0] && outcome.word() == "ok"),
        "{ended:?}"
    );
    assert_eq!(ids.iter().map(|id| Starts::at(&path).of(id)).sum::<usize>(), 1);

    let toolset = &gateways[1].toolset;
    for (tool, arguments) in [("write", json!({"ms": 51})), ("read", json!({"ms": 50}))] {
        let other = keyed(toolset, tool, arguments, ("other", "a")).await;
        assert_eq!(type_name(&other), "IdempotencyConflict");
    }
    assert_eq!(Starts::at(&path).of("other"), 0);
    let ended = keyed(toolset, "write", json!({"ms": 50}), ("next", "b")).await;
    assert_eq!((ended.word(), Starts::at(&path).of("next")), ("ok", 1));

    // What is too large for the store is returned once.
    let large = json!({"bytes": 600_000});
    let ended = keyed(toolset, "echo", large.clone(), ("large", "c")).await;
    assert_eq!(ended, Outcome::Ok(Output::Value("x".repeat(600_000).into())));
    let again = keyed(toolset, "echo", large, ("again", "c")).await;
    assert_eq!(type_name(&again), "ResultNotStored");
}

#[tokio::test]
async fn a_call_with_a_key_runs_again_when_its_worker_is_lost() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let mut dying = WorkerProcess::start(&server.url(), &path, Some(Step::BeforeResult));
    let gateway = server.gateway().await;
    let _other = worker(&server, &path, 64).await;
    for number in 0.. {
        assert!(number < 100, "the worker is never chosen");
        let id = format!("k{number}");
        let ended = keyed(&gateway.toolset, "write", json!({}), (&id, &id)).await;
        let starts = Starts::at(&path).of(&id);
        assert_eq!(ended.word(), "ok", "{ended:?}");
        if dying.has_ended() {
            assert_eq!(starts, 2);
            break;
        }
        assert_eq!(starts, 1);
    }
}

#[tokio::test]
async fn another_gateway_takes_over_the_calls_of_one_that_was_killed() {
    const CALLS: usize = 64;
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = Server::with_jetstream(folder.path()) else { return };
    let path = folder.path().join("starts");
    // The calls of the lost gateway keep their permits for two seconds.
    let worker = worker(&server, &path, 2 * CALLS).await;
    let keys: Vec<String> = (0..CALLS).map(|number| format!("k{number}")).collect();
    let started = || keys.iter().map(|key| Starts::at(&path).of(key)).sum::<usize>();
    let killed = GatewayProcess::start(&server.url(), CALLS);
    wait_until("the starts of the calls", || started() == CALLS).await;
    drop(killed);
    let timing = CallTiming {
        claim_renewal: Duration::from_millis(200),
        claim_life: Duration::from_millis(1000),
        ..timing()
    };
    let results = server.results().await.unwrap();
    let options = DispatcherOptions { timing, results, ..DispatcherOptions::default() };
    let toolset = server.gateway_with(options).await.toolset;
    for _ in 0..2 {
        let calls = keys.iter().map(|key| keyed(&toolset, "once", json!({}), (key, key)));
        let ended = futures_util::future::join_all(calls).await;
        let expected = Outcome::Ok(Output::Value(json!("ended")));
        assert!(ended.iter().all(|outcome| *outcome == expected), "{ended:?}");
        assert!(keys.iter().all(|key| Starts::at(&path).of(key) == 2));
    }
    wait_until("the worker cancels the calls of the lost gateway", || worker.calls() == 0).await;
}

#[tokio::test]
async fn calls_without_a_key_do_not_depend_on_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = Server::with_jetstream(folder.path()) else { return };
    let path = folder.path().join("starts");
    let _worker = worker(&server, &path, 64).await;
    let timing = CallTiming { placement_wait_max: Duration::from_millis(300), ..timing() };
    let results = server.results().await.unwrap();
    let options = DispatcherOptions { timing, results, ..DispatcherOptions::default() };
    let gateway = server.gateway_with(options).await;
    request(&server, "DELETE", "").await;
    // The server deletes the bucket some time after it has received the request.
    for number in 0.. {
        assert!(number < 100, "the bucket is never deleted");
        let id = format!("k{number}");
        let ended = keyed(&gateway.toolset, "write", json!({}), (&id, &id)).await;
        if type_name(&ended) == "IdempotencyUnavailable" {
            assert_eq!(Starts::at(&path).of(&id), 0);
            break;
        }
    }
    assert_eq!(call(&gateway.toolset, "write", json!({}), "without").await.word(), "ok");
}
