//! Nodes that lose their connection for a while, and nodes that say what is not true.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_cluster::keyed::KeyedResults;
use cofferdam_cluster::{Bus, Dispatcher, DispatcherOptions, NodeName, Worker, WorkerOptions};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::handover::Handover;
use cofferdam_tool::{
    Annotations, Arguments, CallContext, Functions, Outcome, ToolSource as _, Toolset,
};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::network::{Network, SimulatedBus};
use super::results::SimulatedResults;
use super::scenario::Faults;

const SESSION: &str = "client";
const TASK: &str = "task";

/// Network without faults but those of the test.
struct Cluster {
    network: Arc<Network>,
    results: Arc<SimulatedResults>,
    runs: Runs,
}

/// Numbers of the workers that have started a call, and of those whose call was canceled.
#[derive(Clone, Default)]
struct Runs {
    started: Arc<Mutex<Vec<u64>>>,
    canceled: Arc<Mutex<Vec<u64>>>,
}

impl Runs {
    fn started(&self) -> Vec<u64> {
        self.started.lock().unwrap().clone()
    }

    fn canceled(&self) -> Vec<u64> {
        self.canceled.lock().unwrap().clone()
    }
}

/// Notes that a call was dropped before its end.
struct CountedRun {
    worker: u64,
    runs: Runs,
    has_ended: bool,
}

impl Drop for CountedRun {
    fn drop(&mut self) {
        if !self.has_ended {
            self.runs.canceled.lock().unwrap().push(self.worker);
        }
    }
}

/// Runs a test in simulated time.
fn simulate(test: impl AsyncFnOnce(Cluster)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let results = Arc::new(SimulatedResults::new(1, Faults::of(0)));
    let network = Network::new(1, Faults::of(0));
    runtime.block_on(test(Cluster { network, results, runs: Runs::default() }));
}

impl Cluster {
    async fn worker(&self, node: u64) -> Worker {
        let bus = self.network.connect(node);
        let name = NodeName::new(format!("w{node}")).unwrap();
        let options = WorkerOptions { name, ..WorkerOptions::default() };
        Worker::start(bus, self.toolset(node), options).await.unwrap()
    }

    async fn gateway(&self, node: u64) -> (Arc<Dispatcher>, Arc<SimulatedBus>) {
        let bus = self.network.connect(node);
        let options = DispatcherOptions {
            name: NodeName::new(format!("g{node}")).unwrap(),
            results: Arc::clone(&self.results) as Arc<dyn KeyedResults>,
            ..DispatcherOptions::default()
        };
        let dispatcher = Dispatcher::start(Arc::clone(&bus) as Arc<dyn Bus>, options).await;
        (dispatcher.unwrap(), bus)
    }

    /// Returns the tools `read` and `write`, which take a number of milliseconds.
    fn toolset(&self, worker: u64) -> Toolset {
        let mut functions = Functions::new("simulated");
        for (name, read_only) in [("read", Some(true)), ("write", None)] {
            let schema = r#"{"type":"object","properties":{"ms":{"type":"integer"}}}"#;
            let annotations = Annotations { read_only, ..Annotations::default() };
            let declaration = Declaration::new(name, "Waits.", schema);
            let declaration = Declaration { annotations, ..declaration };
            let runs = self.runs.clone();
            let function = move |arguments: Arguments, _: CallContext| {
                runs.started.lock().unwrap().push(worker);
                let runs = runs.clone();
                async move {
                    let mut run = CountedRun { worker, runs, has_ended: false };
                    let ms = arguments.value()["ms"].as_u64().unwrap();
                    sleep(Duration::from_millis(ms)).await;
                    run.has_ended = true;
                    Ok(json!(worker))
                }
            };
            functions = functions.with(declaration, function).unwrap();
        }
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(functions)).unwrap();
        toolset
    }

    /// Starts a call of a tool that takes `ms`.
    async fn call(
        &self,
        (dispatcher, bus): &(Arc<Dispatcher>, Arc<SimulatedBus>),
        (tool, ms): (&'static str, u64),
        context: CallContext,
    ) -> JoinHandle<Outcome> {
        let mut toolset = Toolset::new();
        for source in dispatcher.discover().await.unwrap() {
            toolset.add(source).unwrap();
        }
        let (sender, receiver) = tokio::sync::oneshot::channel();
        bus.spawn(Box::pin(async move {
            let arguments = json!({"ms": ms}).to_string();
            let ended = toolset.call(tool, Some(arguments.as_bytes()), &context).await;
            let _ = sender.send(ended.unwrap().outcome);
        }));
        sleep(Duration::from_millis(100)).await;
        tokio::spawn(async move { receiver.await.unwrap() })
    }

    /// Starts a call that other gateways can take over.
    async fn task(
        &self,
        gateway: &(Arc<Dispatcher>, Arc<SimulatedBus>),
        (tool, ms): (&'static str, u64),
    ) -> (JoinHandle<Outcome>, Arc<Handover>) {
        let handover = Handover::new();
        let context = CallContext {
            session: Some(SESSION.to_owned()),
            handover: Some(Arc::clone(&handover)),
            ..CallContext::new("c1")
        };
        let call = self.call(gateway, (tool, ms), context).await;
        assert!(handover.request(TASK.to_owned()).await);
        (call, handover)
    }
}

/// Takes a task over.
fn resume((dispatcher, _): &(Arc<Dispatcher>, Arc<SimulatedBus>)) -> JoinHandle<Outcome> {
    let dispatcher = Arc::clone(dispatcher);
    tokio::spawn(async move {
        let call = dispatcher.resume(SESSION, TASK).await.unwrap().unwrap();
        call.run(&CallContext::new("c1")).await.outcome
    })
}

fn type_name(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Error(error) => error.type_name(),
        other => other.word(),
    }
}

#[test]
fn a_task_is_taken_over_while_its_worker_connects_again() {
    simulate(async |cluster: Cluster| {
        let _worker = cluster.worker(100).await;
        let (first, second) = (cluster.gateway(1).await, cluster.gateway(2).await);
        let (_lost, _) = cluster.task(&first, ("write", 6000)).await;
        cluster.network.kill(1);
        cluster.network.cut(100);
        let resumed = resume(&second);
        sleep(Duration::from_secs(1)).await;
        cluster.network.reconnect(100);
        assert_eq!(type_name(&resumed.await.unwrap()), "ok");
        assert_eq!(cluster.runs.started(), [100]);
    });
}

#[test]
fn a_task_of_another_gateway_is_not_started_again() {
    simulate(async |cluster: Cluster| {
        let _worker = cluster.worker(100).await;
        let (first, second) = (cluster.gateway(1).await, cluster.gateway(2).await);
        let (call, handover) = cluster.task(&first, ("read", 60_000)).await;
        let other = cluster.worker(101).await;
        cluster.network.cut(100);
        let _resumed = resume(&second);
        // The first gateway loses the worker and cannot learn from it that the task has moved.
        assert_eq!(type_name(&call.await.unwrap()), "CallMoved");
        assert!(handover.has_moved());
        sleep(Duration::from_millis(100)).await;
        assert_eq!((cluster.runs.started(), other.calls()), (vec![100], 0));
    });
}

#[test]
fn a_worker_that_is_back_cancels_the_call_that_its_gateway_has_given_up() {
    simulate(async |cluster: Cluster| {
        let worker = cluster.worker(100).await;
        let gateway = cluster.gateway(1).await;
        let call = cluster.call(&gateway, ("write", 600_000), CallContext::new("c1")).await;
        cluster.network.cut(100);
        assert_eq!(type_name(&call.await.unwrap()), "OutcomeUnknown");
        sleep(Duration::from_millis(500)).await;
        assert_eq!((worker.calls(), cluster.runs.canceled()), (1, vec![]));
        cluster.network.reconnect(100);
        sleep(Duration::from_secs(2)).await;
        assert_eq!((worker.calls(), cluster.runs.canceled()), (0, vec![100]));
    });
}

#[test]
fn a_call_without_a_connection_is_sent_once() {
    simulate(async |cluster: Cluster| {
        let _worker = cluster.worker(100).await;
        let gateway = cluster.gateway(1).await;
        let context = || CallContext::new("c1");
        let first = cluster.call(&gateway, ("write", 0), context()).await;
        assert_eq!(type_name(&first.await.unwrap()), "ok");
        let toolset = Arc::clone(&gateway.0);
        let mut remote = Toolset::new();
        for source in toolset.discover().await.unwrap() {
            remote.add(source).unwrap();
        }
        let sent = cluster.network.sent();
        cluster.network.cut(1);
        let arguments = json!({"ms": 0}).to_string();
        let context = context();
        let calling = remote.call("write", Some(arguments.as_bytes()), &context);
        let connecting = async {
            sleep(Duration::from_secs(5)).await;
            cluster.network.reconnect(1);
        };
        let (ended, ()) = tokio::join!(calling, connecting);
        assert_eq!(type_name(&ended.unwrap().outcome), "ok");
        // A call, an offer, its confirmation, the result and its acknowledgement.
        assert_eq!(cluster.network.sent() - sent, 5);

        // An outage that lasts ends the call.
        cluster.network.cut(1);
        let started = Instant::now();
        let ended = remote.call("write", Some(arguments.as_bytes()), &context).await;
        assert_eq!(type_name(&ended.unwrap().outcome), "WorkerUnavailable");
        assert!((10..11).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
    });
}

#[test]
fn a_worker_without_a_connection_ends() {
    simulate(async |cluster: Cluster| {
        let worker = cluster.worker(100).await;
        cluster.network.cut(100);
        let ending = worker.drain(Duration::from_secs(1));
        assert!(timeout(Duration::from_secs(5), ending).await.is_ok());
    });
}

#[test]
fn a_successor_whose_start_was_interrupted_offers_nothing() {
    simulate(async |cluster: Cluster| {
        let worker = cluster.worker(100).await;
        let (dispatcher, _) = cluster.gateway(1).await;
        cluster.network.cut(100);
        let starting = worker.start_successor(cluster.toolset(100));
        assert!(timeout(Duration::from_millis(100), starting).await.is_err());
        sleep(Duration::from_millis(100)).await;
        cluster.network.reconnect(100);
        let versions = dispatcher.versions().await.unwrap();
        assert_eq!(versions.iter().map(|version| version.workers).collect::<Vec<_>>(), [1]);
    });
}

#[test]
fn false_routes_do_not_keep_a_gateway_from_the_true_ones() {
    simulate(async |cluster: Cluster| {
        let _workers = (cluster.worker(100).await, cluster.worker(101).await);
        let bus = cluster.network.connect(200);
        let mut catalog = bus.subscribe("cofferdam.v1.default.catalog", None).await.unwrap();
        // It does not answer questions about them.
        let _calls = bus.subscribe("cofferdam.v1.default.call.>", None).await.unwrap();
        let answering = Arc::clone(&bus);
        bus.spawn(Box::pin(async move {
            let routes: Vec<_> = (0..10_000).map(|number| format!("{number:032x}")).collect();
            let answer = Bytes::from(format!("{{\"type\":\"routes\"}}\n{}", json!(routes)));
            while let Some(message) = catalog.next().await {
                let reply = message.reply.unwrap();
                answering.publish(&reply, None, answer.clone()).await.unwrap();
            }
        }));
        let (dispatcher, _) = cluster.gateway(1).await;
        let started = Instant::now();
        let sources = dispatcher.discover().await.unwrap();
        assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
        assert_eq!(sources.iter().map(|source| source.name()).collect::<Vec<_>>(), ["simulated"]);
    });
}
