//! A few nodes without faults but those that a test causes, in simulated time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_cluster::keyed::KeyedResults;
use cofferdam_cluster::{Bus, Dispatcher, DispatcherOptions, NodeName, Worker, WorkerOptions};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::handover::Handover;
use cofferdam_tool::{Annotations, Arguments, CallContext, Functions, Outcome, Toolset};
use serde_json::json;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::network::{Network, SimulatedBus};
use super::results::SimulatedResults;
use super::scenario::Faults;
use super::task::SESSION;

/// Id of the only task.
pub(crate) const TASK: &str = "task";

/// Network without faults but those of the test.
pub(crate) struct Cluster {
    pub(crate) network: Arc<Network>,
    pub(crate) results: Arc<SimulatedResults>,
    pub(crate) runs: Runs,
}

/// Numbers of the workers that have started a call, and of those whose call was canceled.
#[derive(Clone, Default)]
pub(crate) struct Runs {
    started: Arc<Mutex<Vec<u64>>>,
    canceled: Arc<Mutex<Vec<u64>>>,
}

impl Runs {
    pub(crate) fn started(&self) -> Vec<u64> {
        self.started.lock().unwrap().clone()
    }

    pub(crate) fn canceled(&self) -> Vec<u64> {
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
pub(crate) fn simulate(test: impl AsyncFnOnce(Cluster)) {
    simulate_seed((1, Faults::of(0)), test);
}

/// Runs a test in simulated time on a network with faults, which `seed` chooses.
pub(crate) fn simulate_seed((seed, faults): (u64, Faults), test: impl AsyncFnOnce(Cluster)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let results = Arc::new(SimulatedResults::new(seed, faults.clone()));
    let network = Network::new(seed, faults);
    runtime.block_on(test(Cluster { network, results, runs: Runs::default() }));
}

impl Cluster {
    pub(crate) async fn worker(&self, node: u64) -> Worker {
        self.worker_with(node, WorkerOptions::default()).await
    }

    pub(crate) async fn worker_with(&self, node: u64, options: WorkerOptions) -> Worker {
        let bus = self.network.connect(node);
        let name = NodeName::new(format!("w{node}")).unwrap();
        let options = WorkerOptions { name, ..options };
        Worker::start(bus, self.toolset(node), options).await.unwrap()
    }

    pub(crate) async fn gateway(&self, node: u64) -> (Arc<Dispatcher>, Arc<SimulatedBus>) {
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
    pub(crate) fn toolset(&self, worker: u64) -> Toolset {
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
    pub(crate) async fn call(
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
    pub(crate) async fn task(
        &self,
        gateway: &(Arc<Dispatcher>, Arc<SimulatedBus>),
        called: (&'static str, u64),
        context: CallContext,
    ) -> (JoinHandle<Outcome>, Arc<Handover>) {
        let (call, handover) = self.callable_task(gateway, called, context).await;
        assert!(handover.request(TASK.to_owned()).await);
        (call, handover)
    }

    /// Starts a call that can be handed over.
    pub(crate) async fn callable_task(
        &self,
        gateway: &(Arc<Dispatcher>, Arc<SimulatedBus>),
        called: (&'static str, u64),
        context: CallContext,
    ) -> (JoinHandle<Outcome>, Arc<Handover>) {
        let handover = Handover::new();
        let context = CallContext {
            session: context.session.or_else(|| Some(SESSION.to_owned())),
            handover: Some(Arc::clone(&handover)),
            ..context
        };
        (self.call(gateway, called, context).await, handover)
    }
}

/// Takes a task over.
pub(crate) fn resume(
    (dispatcher, _): &(Arc<Dispatcher>, Arc<SimulatedBus>),
    context: CallContext,
) -> JoinHandle<Outcome> {
    let dispatcher = Arc::clone(dispatcher);
    tokio::spawn(async move {
        let call = dispatcher.resume(SESSION, TASK).await.unwrap().unwrap();
        call.run(&context).await.outcome
    })
}

pub(crate) fn type_name(outcome: &Outcome) -> &str {
    match outcome {
        Outcome::Error(error) => error.type_name(),
        other => other.word(),
    }
}
