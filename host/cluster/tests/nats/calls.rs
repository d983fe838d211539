//! Calls through a gateway.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use cofferdam_cluster::{
    CallTiming, ClusterError, Dispatcher, DispatcherOptions, Worker, WorkerOptions,
};
use cofferdam_tool::ask::{LogLevel, LogSink};
use cofferdam_tool::invoke::{Progress, ProgressSink};
use cofferdam_tool::{CallContext, Outcome, Output, ToolFailure, Toolset};
use serde_json::{Value, json};

use super::server::{Server, timing};
use super::tools::{Starts, toolset};

pub(crate) async fn call(toolset: &Toolset, tool: &str, arguments: Value, id: &str) -> Outcome {
    let arguments = arguments.to_string();
    let context = CallContext::new(id);
    toolset.call(tool, Some(arguments.as_bytes()), &context).await.unwrap().outcome
}

/// Makes 64 calls of `write`, which take `ms` each, one every 5 ms. The ids are numbers after
/// `prefix`.
pub(crate) async fn staggered(toolset: &Toolset, prefix: &str, ms: u64) -> Vec<Outcome> {
    let calls = (0..64).map(async |number| {
        tokio::time::sleep(Duration::from_millis(number * 5)).await;
        call(toolset, "write", json!({"ms": ms}), &format!("{prefix}{number}")).await
    });
    futures_util::future::join_all(calls).await
}

pub(crate) fn type_name(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Error(error) => error.type_name(),
        other => other.word(),
    }
}

pub(crate) async fn worker(server: &Server, starts: &std::path::Path, calls_max: usize) -> Worker {
    let options = WorkerOptions { calls_max, timing: timing(), ..WorkerOptions::default() };
    Worker::start(server.bus().await, toolset(starts), options).await.unwrap()
}

#[tokio::test]
async fn results_arrive_as_they_were() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let _worker = worker(&server, &folder.path().join("starts"), 8).await;
    let gateway = server.gateway().await;
    let names: Vec<_> = gateway.toolset.definitions().map(|tool| tool.name.to_string()).collect();
    assert_eq!(names, ["write", "read", "echo", "fail", "report", "once", "ask"]);

    let echoed = call(&gateway.toolset, "echo", json!({"text": "é\n"}), "1").await;
    assert_eq!(echoed, Outcome::Ok(Output::Value(json!("é\n"))));
    let failed = call(&gateway.toolset, "fail", json!({}), "2").await;
    assert_eq!(failed, Outcome::Failure(ToolFailure::new("no such order")));
    // Four parts, each smaller than the largest message.
    let large = call(&gateway.toolset, "echo", json!({"bytes": 2_000_000}), "3").await;
    assert_eq!(large, Outcome::Ok(Output::Value("x".repeat(2_000_000).into())));
    let too_large = call(&gateway.toolset, "echo", json!({"bytes": 17_000_000}), "4").await;
    assert_eq!(type_name(&too_large), "ResultTooLarge");
    let text = "x".repeat(1024 * 1024 - 1000);
    let too_large = call(&gateway.toolset, "echo", json!({"text": text + "é"}), "5").await;
    assert_eq!(type_name(&too_large), "ok");
}

#[derive(Default)]
struct Reports(Mutex<Vec<String>>);

impl ProgressSink for Reports {
    fn report(&self, call_id: &str, progress: Progress) {
        self.0.lock().unwrap().push(format!("{call_id} {progress:?}"));
    }
}

impl LogSink for Reports {
    fn log(&self, call_id: &str, level: LogLevel, message: &str) {
        self.0.lock().unwrap().push(format!("{call_id} {level:?} {message}"));
    }
}

pub(crate) async fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < Duration::from_secs(10), "not seen: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn one_caller_does_not_take_all_permits() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let options = WorkerOptions {
        calls_max: 4,
        caller_calls_max: 3,
        timing: timing(),
        ..WorkerOptions::default()
    };
    let _worker = Worker::start(server.bus().await, toolset(&path), options).await.unwrap();
    let timing = CallTiming { placement_wait_max: Duration::from_millis(300), ..timing() };
    let options = DispatcherOptions { timing, ..DispatcherOptions::default() };
    let toolset = server.gateway_with(options).await.toolset;
    let of = async |caller: &str, id: &str| {
        let session = Some(caller.to_owned());
        let context = CallContext { session, ..CallContext::new(id) };
        toolset.call("write", Some(br#"{"ms":2000}"#), &context).await.unwrap().outcome
    };
    let (first, second, third, fourth, other) =
        tokio::join!(of("a", "1"), of("a", "2"), of("a", "3"), of("a", "4"), of("b", "5"));
    let ended = [first, second, third, fourth].map(|outcome| type_name(&outcome).to_owned());
    assert_eq!(ended.iter().filter(|end| *end == "WorkersBusy").count(), 1, "{ended:?}");
    assert_eq!(other.word(), "ok");
}

#[tokio::test]
async fn reports_arrive_and_cancellation_reaches_the_tool() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let worker = worker(&server, &path, 8).await;
    let gateway = server.gateway().await;
    let reports = Arc::new(Reports::default());
    let context = CallContext {
        progress: Some(Arc::clone(&reports) as Arc<dyn ProgressSink>),
        log: Some(Arc::clone(&reports) as Arc<dyn LogSink>),
        ..CallContext::new("c1")
    };
    let cancellation = context.cancellation.clone();
    let toolset = gateway.toolset.clone();
    let calling = tokio::spawn(async move { toolset.call("report", None, &context).await });
    wait_until("both reports", || reports.0.lock().unwrap().len() == 2).await;
    assert_eq!(
        *reports.0.lock().unwrap(),
        ["c1 Progress { done: 1.0, total: Some(2.0), message: Some(\"a\") }", "c1 Notice hello"]
    );
    cancellation.cancel();
    assert_eq!(calling.await.unwrap().unwrap().outcome, Outcome::Cancelled);
    wait_until("the end of the tool", || Starts::at(&path).of("canceled c1") == 1).await;

    // A dropped call is canceled as well, and so is one whose deadline passes.
    let context = CallContext::new("c2");
    let dropped = gateway.toolset.call("report", None, &context);
    assert!(tokio::time::timeout(Duration::from_millis(200), dropped).await.is_err());
    wait_until("the end of the tool", || Starts::at(&path).of("canceled c2") == 1).await;
    let deadline = tokio::time::Instant::now() + Duration::from_millis(200);
    let context = CallContext { deadline: Some(deadline), ..CallContext::new("c3") };
    let ended = gateway.toolset.call("report", None, &context).await.unwrap();
    assert_eq!(ended.outcome, Outcome::Cancelled);
    wait_until("the end of the tool", || Starts::at(&path).of("canceled c3") == 1).await;
    wait_until("an idle worker", || worker.calls() == 0).await;
}

#[tokio::test]
async fn without_a_worker_the_answer_comes_at_once() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(&server, &folder.path().join("starts"), 8).await;
    let gateway = server.gateway().await;
    worker.drain(Duration::from_secs(1)).await;
    let started = Instant::now();
    let ended = call(&gateway.toolset, "echo", json!({}), "1").await;
    assert_eq!(type_name(&ended), "WorkerUnavailable");
    // A gateway that waits for a worker does so for ten seconds.
    assert!(started.elapsed() < Duration::from_secs(3), "{:?}", started.elapsed());

    let bus = server.bus().await;
    let dispatcher = Dispatcher::start(bus, DispatcherOptions::default()).await.unwrap();
    assert_eq!(dispatcher.discover().await.err(), Some(ClusterError::NoWorkers));
}

#[tokio::test]
async fn calls_wait_for_busy_workers_and_move_to_others() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let first = worker(&server, &path, 1).await;
    let gateway = server.gateway().await;
    let slow = json!({"ms": 300});
    let calls = ["1", "2", "3"].map(|id| call(&gateway.toolset, "write", slow.clone(), id));
    let ended = futures_util::future::join_all(calls).await;
    assert!(ended.iter().all(|outcome| outcome.word() == "ok"), "{ended:?}");

    // Calls that run, and calls that arrive while their worker ends, are not lost.
    let second = worker(&server, &path, 64).await;
    let draining = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        first.drain(Duration::from_secs(5)).await;
    };
    let (ended, ()) = tokio::join!(staggered(&gateway.toolset, "d", 20), draining);
    assert!(ended.iter().all(|outcome| outcome.word() == "ok"), "{ended:?}");
    assert!((0..64).all(|number| Starts::at(&path).of(&format!("d{number}")) == 1));
    assert_eq!(second.calls(), 0);
}

/// Returns the types of the messages to workers while a tool is called.
async fn messages_of(server: &Server, toolset: &Toolset, tool: &str) -> Vec<String> {
    let bus = server.bus().await;
    let mut all = bus.subscribe("cofferdam.>", None).await.unwrap();
    // The server has the subscription when it has delivered a message.
    bus.publish("cofferdam.observed", None, Bytes::new()).await.unwrap();
    all.next().await.unwrap();
    assert_eq!(call(toolset, tool, json!({}), tool).await.word(), "ok");
    let mut types = Vec::new();
    // The last message acknowledges the result.
    while types.last().is_none_or(|last| last != "received") {
        let message = all.next().await.unwrap();
        if message.subject.contains(".in.") {
            continue;
        }
        let header = message.payload.split(|byte| *byte == b'\n').next().unwrap();
        let header: Value = serde_json::from_slice(header).unwrap();
        types.push(header["type"].as_str().unwrap().to_owned());
    }
    types
}

#[tokio::test]
async fn a_read_only_call_needs_no_confirmation() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let _worker = worker(&server, &folder.path().join("starts"), 8).await;
    let toolset = server.gateway().await.toolset;
    let write = messages_of(&server, &toolset, "write").await;
    assert_eq!(write, ["call", "start", "received"]);
    assert_eq!(messages_of(&server, &toolset, "read").await, ["call", "received"]);
}
