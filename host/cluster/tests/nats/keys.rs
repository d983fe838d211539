//! Calls with idempotency keys.

use std::sync::Arc;

use cofferdam_cluster::DispatcherOptions;
use cofferdam_cluster::keyed::{KeyedResults, MemoryResults};
use cofferdam_tool::{CallContext, Outcome, Output, Toolset};
use serde_json::{Value, json};

use super::calls::{type_name, worker};
use super::process::{Step, WorkerProcess};
use super::server::{Server, timing};
use super::tools::Starts;

async fn keyed(
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
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let _worker = worker(&server, &path, 64).await;
    let results: Arc<dyn KeyedResults> = Arc::new(MemoryResults::default());
    let options = || DispatcherOptions {
        timing: timing(),
        results: Arc::clone(&results),
        ..DispatcherOptions::default()
    };
    let gateways = [server.gateway_with(options()).await, server.gateway_with(options()).await];

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
