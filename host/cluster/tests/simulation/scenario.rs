//! One simulated run: gateways, workers, calls and faults, all chosen by a seed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_cluster::keyed::KeyedResults;
use cofferdam_cluster::{Bus, Dispatcher, DispatcherOptions, NodeName, Worker, WorkerOptions};
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::{Annotations, CallContext, Completion, Functions, Outcome, Output, Toolset};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use super::history::{Call, End, History, Key, Tool};
use super::network::{Network, Random};
use super::results::SimulatedResults;
use super::task::{Gateways, TaskClient};

const GATEWAYS: u64 = 2;
const WORKERS: u64 = 3;
const CALLS: u64 = 12;
/// Number of idempotency keys, which the calls of all gateways share.
const KEYS: u64 = 4;
/// Time in which calls are made and faults happen.
const ACTIVE: Duration = Duration::from_secs(6);
/// Time after which a call without an end counts as forgotten.
const END: Duration = Duration::from_secs(120);

/// Faults of a run: shares in percent, and numbers of events.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) late: u64,
    pub(crate) late_max: Duration,
    kills: u64,
    gateway_kills: u64,
    pauses: u64,
    /// Connections that are lost and restored.
    cuts: u64,
    drains: u64,
}

impl Faults {
    /// Returns the faults of a seed. Of seven seeds, one has none, one only drains workers, and one
    /// only kills a gateway.
    pub(crate) fn of(seed: u64) -> Self {
        let none = Self { late_max: Duration::from_millis(1), ..Self::default() };
        let late_max = Duration::from_secs(5);
        match seed % 7 {
            0 => none,
            1 => Self { drains: 2, ..none },
            2 => Self { doubled: 20, late: 10, late_max, ..none },
            3 => Self { lost: 5, doubled: 10, late: 5, late_max, ..none },
            4 => Self { kills: 4, pauses: 3, cuts: 2, ..none },
            5 => Self { gateway_kills: 1, ..none },
            _ => Self {
                lost: 2,
                doubled: 5,
                late: 5,
                late_max,
                kills: 3,
                gateway_kills: 1,
                pauses: 3,
                cuts: 1,
                drains: 1,
            },
        }
    }

    /// Returns the number of calls that a worker runs at the same time. With faults, workers are
    /// often busy.
    fn calls_max(&self, seed: u64) -> usize {
        if self.are_none() || seed.is_multiple_of(2) { 4 } else { 1 }
    }

    /// Returns true if no message, node or pause can keep a call from its result.
    pub(crate) fn are_none(&self) -> bool {
        let messages = self.lost + self.doubled + self.late;
        messages + self.kills + self.gateway_kills + self.pauses + self.cuts == 0
    }
}

pub(crate) type SharedHistory = Arc<Mutex<History>>;

struct Simulation {
    network: Arc<Network>,
    history: SharedHistory,
    results: Arc<SimulatedResults>,
    gateways: Gateways,
    random: Random,
    workers: Vec<(u64, Worker)>,
    next_worker: u64,
    /// Number of calls that a worker runs at the same time.
    calls_max: usize,
}

/// Runs a seed to its end.
pub(crate) fn run(seed: u64) -> History {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let history = runtime.block_on(simulate(seed));
    // Ends the tasks, which hold clones of the history.
    drop(runtime);
    Arc::into_inner(history).expect("the tasks have ended").into_inner().unwrap()
}

async fn simulate(seed: u64) -> SharedHistory {
    let faults = Faults::of(seed);
    let begun = Instant::now();
    let clock = move || u64::try_from(begun.elapsed().as_millis()).unwrap();
    let history = History::new(faults.clone(), GATEWAYS).with_clock(clock);
    let mut simulation = Simulation {
        network: Network::new(seed, faults.clone()),
        history: Arc::new(Mutex::new(history)),
        results: Arc::new(SimulatedResults::new(seed, faults.clone())),
        gateways: Gateways::default(),
        random: Random(seed ^ 0x5EED),
        workers: Vec::new(),
        next_worker: 100,
        calls_max: faults.calls_max(seed),
    };
    for _ in 0..WORKERS {
        simulation.start_worker().await;
    }
    let (finished, mut running) = mpsc::channel::<()>(1);
    for gateway in 0..GATEWAYS {
        simulation.start_gateway(gateway, &finished);
    }
    drop(finished);
    simulation.cause(&faults).await;
    // Ends when the last call has ended, or its gateway is dead.
    let _ = timeout(END, running.recv()).await;
    Arc::clone(&simulation.history)
}

impl Simulation {
    async fn start_worker(&mut self) {
        let node = self.next_worker;
        self.next_worker += 1;
        self.history.lock().unwrap().note(format_args!("worker {node} is there"));
        let bus = self.network.connect(node);
        let options = WorkerOptions {
            name: NodeName::new(format!("w{node}")).unwrap(),
            calls_max: self.calls_max,
            ..WorkerOptions::default()
        };
        let toolset = toolset(&self.history, node);
        let worker = Worker::start(bus, toolset, options).await.unwrap();
        self.workers.push((node, worker));
    }

    /// Starts a gateway that makes its calls at random times.
    fn start_gateway(&mut self, gateway: u64, finished: &mpsc::Sender<()>) {
        let bus = self.network.connect(gateway);
        let calls: Vec<_> = (0..CALLS).map(|number| self.plan(gateway, number)).collect();
        let (history, finished) = (Arc::clone(&self.history), finished.clone());
        let spawner = Arc::clone(&bus);
        let options = DispatcherOptions {
            name: NodeName::new(format!("g{gateway}")).unwrap(),
            results: Arc::clone(&self.results) as Arc<dyn KeyedResults>,
            ..DispatcherOptions::default()
        };
        let (gateways, network) = (self.gateways.clone(), Arc::clone(&self.network));
        bus.spawn(Box::pin(async move {
            let bus = Arc::clone(&spawner) as Arc<dyn Bus>;
            let dispatcher = Dispatcher::start(bus, options).await.unwrap();
            gateways.add(gateway, Arc::clone(&dispatcher), Arc::clone(&spawner));
            let toolset = loop {
                // Catalogs can be lost.
                if let Ok(sources) = dispatcher.discover().await {
                    let mut toolset = Toolset::new();
                    sources.into_iter().for_each(|source| toolset.add(source).unwrap());
                    break toolset;
                }
            };
            for (call, pause) in calls {
                let (toolset, history) = (toolset.clone(), Arc::clone(&history));
                let (finished, is_task) = (finished.clone(), call.is_task);
                let (gateways, network) = (gateways.clone(), Arc::clone(&network));
                let making = async move {
                    sleep(pause).await;
                    let call = PlannedCall::new(call, &history);
                    match is_task {
                        true => call.make_task(toolset, gateways, network).await,
                        false => call.make(&toolset).await,
                    }
                    drop(finished);
                };
                match is_task {
                    // The client of a task does not die with its gateway.
                    true => drop(tokio::spawn(making)),
                    false => spawner.spawn(Box::pin(making)),
                }
            }
        }));
    }

    fn plan(&mut self, gateway: u64, number: u64) -> (Call, Duration) {
        let tool = if self.random.percent(50) { Tool::Read } else { Tool::Write };
        let deadline_ms = self.random.percent(15).then(|| self.random.below(3000));
        let key = self
            .random
            .percent(30)
            .then(|| Key { number: self.random.below(KEYS), is_misused: self.random.percent(15) });
        // All calls with a key are of the same tool.
        let tool = if key.is_some() { Tool::Write } else { tool };
        let is_task = key.is_none() && deadline_ms.is_none() && self.random.percent(40);
        (Call { gateway, number, tool, deadline_ms, key, is_task }, self.random.time(ACTIVE))
    }

    /// Causes the faults, one after the other. There is always a worker that is neither dead nor
    /// draining.
    async fn cause(&mut self, faults: &Faults) {
        let mut causes = Vec::new();
        causes.extend((0..faults.kills).map(|_| Cause::Kill));
        causes.extend((0..faults.gateway_kills).map(|_| Cause::KillGateway));
        causes.extend((0..faults.pauses).map(|_| Cause::Pause));
        causes.extend((0..faults.cuts).map(|_| Cause::Cut));
        causes.extend((0..faults.drains).map(|_| Cause::Drain));
        let gap = ACTIVE / u32::try_from(causes.len().max(1)).unwrap();
        while !causes.is_empty() {
            let cause = causes.swap_remove(self.random.below(causes.len() as u64) as usize);
            sleep(self.random.time(gap)).await;
            match cause {
                Cause::Kill => self.kill().await,
                Cause::KillGateway => self.kill_gateway(),
                Cause::Pause => self.pause(),
                Cause::Cut => self.cut(),
                Cause::Drain => self.drain().await,
            }
        }
    }

    fn kill_gateway(&mut self) {
        let gateway = self.random.below(GATEWAYS);
        let mut history = self.history.lock().unwrap();
        history.note(format_args!("gateway {gateway} dies"));
        history.gateway_killed(gateway);
        drop(history);
        self.network.kill(gateway);
    }

    async fn kill(&mut self) {
        let (node, _worker) = self.take_worker();
        self.start_worker().await;
        // At once, or at one of the next steps of a call.
        let messages = self.random.below(12);
        self.history.lock().unwrap().note(format_args!("worker {node} dies after {messages}"));
        match messages {
            0 => self.network.kill(node),
            _ => self.network.kill_after(node, messages),
        }
    }

    /// Returns a gateway, or a worker that is neither dead nor draining.
    fn some_node(&mut self) -> u64 {
        match self.random.percent(30) {
            true => self.random.below(GATEWAYS),
            false => self.workers[self.random.below(WORKERS) as usize].0,
        }
    }

    fn cut(&mut self) {
        let node = self.some_node();
        let time = self.random.time(Duration::from_secs(8));
        self.history.lock().unwrap().note(format_args!("node {node} is cut off for {time:?}"));
        self.network.cut(node);
        let network = Arc::clone(&self.network);
        tokio::spawn(async move {
            sleep(time).await;
            network.reconnect(node);
        });
    }

    fn pause(&mut self) {
        let node = self.some_node();
        let time = self.random.time(Duration::from_secs(8));
        self.history.lock().unwrap().note(format_args!("node {node} pauses for {time:?}"));
        self.network.pause(node);
        let network = Arc::clone(&self.network);
        tokio::spawn(async move {
            sleep(time).await;
            network.resume(node);
        });
    }

    async fn drain(&mut self) {
        let (node, worker) = self.take_worker();
        self.start_worker().await;
        self.history.lock().unwrap().note(format_args!("worker {node} drains"));
        tokio::spawn(worker.drain(Duration::from_secs(30)));
    }

    fn take_worker(&mut self) -> (u64, Worker) {
        let chosen = self.random.below(self.workers.len() as u64);
        self.workers.swap_remove(chosen as usize)
    }
}

enum Cause {
    Kill,
    KillGateway,
    Pause,
    Cut,
    Drain,
}

/// Returns the tools of a worker. Each run is noted, and its number is the result.
fn toolset(history: &SharedHistory, worker: u64) -> Toolset {
    let read = Annotations { read_only: Some(true), ..Annotations::default() };
    let tools = [("read", read), ("write", Annotations::default())];
    let mut functions = Functions::new("simulated");
    for (name, annotations) in tools {
        let declaration = Declaration {
            annotations,
            ..Declaration::new(
                name,
                "Does.",
                r#"{"type":"object","properties":{"ms":{"type":"integer"},
                    "asks":{"type":"boolean"}}}"#,
            )
        };
        let history = Arc::clone(history);
        functions = functions
            .with(declaration, move |arguments, context| {
                let history = Arc::clone(&history);
                async move {
                    let run = history.lock().unwrap().started(&context.call_id, worker);
                    let ms = arguments.value()["ms"].as_u64().unwrap();
                    sleep(Duration::from_millis(ms)).await;
                    if arguments.value()["asks"] == true {
                        let answer = ask(&context, run).await?;
                        history.lock().unwrap().answered(&context.call_id, run, answer);
                    }
                    Ok(json!({"run": run}))
                }
            })
            .unwrap();
    }
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

/// Asks the client of a call to repeat the number of the run.
async fn ask(context: &CallContext, run: u64) -> Result<Option<u64>, FunctionEnd> {
    let asker = context.asker.as_ref().unwrap();
    let question = Question {
        name: "run".to_owned(),
        kind: QuestionKind::Elicitation,
        parameters: [("run".to_owned(), json!(run))].into_iter().collect(),
    };
    let answered = asker.ask(vec![question]).await;
    let answered = answered.map_err(|error| FunctionEnd::failure(error.to_string()))?;
    Ok(answered[0]["run"].as_u64())
}

/// Client of a call. It answers after a while.
struct Client {
    id: String,
    answer_time: Duration,
    history: SharedHistory,
}

#[async_trait]
impl Asker for Client {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        let run = questions[0].parameters["run"].as_u64().unwrap();
        self.history.lock().unwrap().asked(&self.id, run);
        sleep(self.answer_time).await;
        Ok(vec![json!({"run": run})])
    }
}

/// A call and the context that its client gives it.
struct PlannedCall {
    id: String,
    gateway: u64,
    tool: &'static str,
    arguments: String,
    context: CallContext,
    random: Random,
    history: SharedHistory,
}

impl PlannedCall {
    /// Decides about a call, and notes it.
    fn new(call: Call, history: &SharedHistory) -> Self {
        let (id, gateway) = (call.id(), call.gateway);
        let mut random = Random(match call.key {
            Some(key) => 5000 + key.number * 2 + u64::from(key.is_misused),
            None => call.gateway * 1000 + call.number,
        });
        let ms_max = if call.is_task { 12_000 } else { 4000 };
        let ms = if random.percent(50) { random.below(20) } else { random.below(ms_max) };
        let asks = random.percent(25);
        let client = Client {
            id: id.clone(),
            answer_time: random.time(Duration::from_secs(5)),
            history: Arc::clone(history),
        };
        let context = CallContext {
            asker: Some(Arc::new(client)),
            deadline: call.deadline_ms.map(|ms| Instant::now() + Duration::from_millis(ms)),
            idempotency_key: call.key.map(|key| key.number.to_string()),
            ..CallContext::new(id.clone())
        };
        let tool = match call.tool {
            Tool::Read => "read",
            Tool::Write => "write",
        };
        history.lock().unwrap().called(call);
        let arguments = json!({"ms": ms, "asks": asks}).to_string();
        Self { id, gateway, tool, arguments, context, random, history: Arc::clone(history) }
    }

    /// Makes the call and notes its end.
    async fn make(self, toolset: &Toolset) {
        let ended = toolset.call(self.tool, Some(self.arguments.as_bytes()), &self.context).await;
        let end = match ended {
            Ok(Completion { outcome, .. }) => end(outcome),
            Err(refused) => End::Other(refused.to_string()),
        };
        self.history.lock().unwrap().ended_as(&self.id, end);
    }

    /// Makes the call as one that may become a task.
    async fn make_task(self, toolset: Toolset, gateways: Gateways, network: Arc<Network>) {
        let Self { id, gateway: first, random, history, .. } = self;
        let client = TaskClient { id, first, gateways, network, history, random };
        client.run(toolset, self.tool, self.arguments, self.context).await;
    }
}

pub(crate) fn end(outcome: Outcome) -> End {
    match outcome {
        Outcome::Ok(Output::Value(value)) => End::Ok { run: value["run"].as_u64() },
        Outcome::Cancelled => End::Cancelled,
        Outcome::Error(error) if error.type_name() == "OutcomeUnknown" => End::Unknown,
        Outcome::Error(error)
            if ["WorkerUnavailable", "WorkersBusy", "IdempotencyUnavailable"]
                .contains(&error.type_name()) =>
        {
            End::NotCalled
        }
        Outcome::Error(error) if error.type_name() == "IdempotencyConflict" => End::Conflict,
        other => End::Other(format!("{other:?}")),
    }
}
