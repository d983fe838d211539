//! Workers that take over from others.

use std::time::Duration;

use cofferdam_cluster::{
    CallTiming, ClusterError, Dispatcher, DispatcherOptions, Worker, WorkerOptions,
};
use serde_json::json;

use super::calls::{call, staggered, type_name, wait_until, worker};
use super::server::{Server, timing};
use super::tools::toolset;

#[tokio::test]
async fn a_successor_takes_over_and_no_call_is_lost() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let first = worker(&server, &path, 64).await;
    let before = server.gateway().await;
    let calls = staggered(&before.toolset, "c", 50);
    let taking_over = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let same = first.start_successor(toolset(&path)).await.unwrap();
        // Nothing was replaced, so that no gateway needs the first worker.
        assert!(!first.hand_over(&same));
        first.finish_calls().await;
        let other = toolset(&path).restrict(|tool| tool.name.as_str() != "fail");
        let other = same.start_successor(other).await.unwrap();
        // Gateways still know the version that was replaced.
        assert!(same.hand_over(&other));
        (same, other)
    };
    let (ended, (same, other)) = tokio::join!(calls, taking_over);
    assert!(ended.iter().all(|outcome| outcome.word() == "ok"), "{ended:?}");
    assert_eq!((first.calls(), other.calls()), (0, 0));

    let after = server.gateway().await;
    assert!(after.toolset.definition("fail").is_err());
    assert_eq!(call(&after.toolset, "write", json!({}), "new").await.word(), "ok");
    same.drain(Duration::from_secs(1)).await;
    assert_eq!(
        type_name(&call(&before.toolset, "write", json!({}), "old").await),
        "WorkerUnavailable"
    );
    assert_eq!(call(&after.toolset, "write", json!({}), "last").await.word(), "ok");
}

#[tokio::test]
async fn gateways_learn_at_once_that_a_worker_comes_or_goes() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let bus = server.bus().await;
    let dispatcher = Dispatcher::start(bus, DispatcherOptions::default()).await.unwrap();
    let changed = || tokio::time::timeout(Duration::from_secs(5), dispatcher.workers_changed());
    let timing = CallTiming { leave_wait: Duration::from_secs(5), ..timing() };
    let options = WorkerOptions { timing, ..WorkerOptions::default() };
    let worker = Worker::start(server.bus().await, toolset(&path), options).await.unwrap();
    changed().await.expect("an announcement of the new worker");
    let gateway = server.gateway().await;

    let draining = tokio::spawn(worker.drain(Duration::from_secs(5)));
    changed().await.expect("an announcement of the end");
    // Gateways that look do not find the worker, and those that have not looked still call it.
    assert_eq!(dispatcher.discover().await.err(), Some(ClusterError::NoWorkers));
    assert_eq!(call(&gateway.toolset, "write", json!({}), "late").await.word(), "ok");
    draining.abort();
}

#[tokio::test]
async fn a_source_that_a_successor_does_not_have_is_not_called() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let worker = worker(&server, &path, 64).await;
    let gateway = server.gateway().await;
    let functions = cofferdam_tool::Functions::new("others");
    let declaration = cofferdam_tool::declaration::Declaration::new("other", "Is there.", "{}");
    let functions = functions.with(declaration, async |_, _| Ok(json!(1))).unwrap();
    let mut others = cofferdam_tool::Toolset::new();
    others.add(std::sync::Arc::new(functions)).unwrap();
    let _other = worker.start_successor(others).await.unwrap();
    assert_eq!(call(&gateway.toolset, "write", json!({}), "1").await.word(), "ok");
    assert!(!worker.hand_over(&_other));
    wait_until("the end of the subscription", || worker.calls() == 0).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ended = call(&gateway.toolset, "write", json!({}), "2").await;
    assert_eq!(type_name(&ended), "WorkerUnavailable");
}

#[tokio::test]
async fn permits_are_shared_with_a_successor() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let first = worker(&server, &path, 2).await;
    let timing = CallTiming { placement_wait_max: Duration::from_millis(300), ..timing() };
    let options = DispatcherOptions { timing, ..DispatcherOptions::default() };
    let toolset = server.gateway_with(options).await.toolset;
    let slow = || async {
        let first = call(&toolset, "write", json!({"ms": 1500}), "1");
        let second = call(&toolset, "write", json!({"ms": 1500}), "2");
        tokio::join!(first, second)
    };
    let taking_over = async {
        wait_until("both calls", || first.calls() == 2).await;
        let next = first.start_successor(super::tools::toolset(&path)).await.unwrap();
        assert!(!first.hand_over(&next));
        let third = call(&toolset, "write", json!({}), "3").await;
        assert_eq!(type_name(&third), "WorkersBusy");
        next
    };
    let ((one, two), next) = tokio::join!(slow(), taking_over);
    assert_eq!([one.word(), two.word()], ["ok", "ok"]);
    assert_eq!(call(&toolset, "write", json!({}), "4").await.word(), "ok");
    assert_eq!(next.calls(), 0);
}
