//! Any messages to a gateway and a worker: none of their tasks panics, each call of the gateway
//! ends, a tool that writes starts only after a confirmation, and both work afterwards.
//!
//! An input consists of steps, with an empty line between them. The first line of a step is a
//! command, or the subject of a message and its subject for replies, both without the prefix of the
//! tenant. The other lines are the payload.

mod bus;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_cluster::{
    CallTiming, Dispatcher, DispatcherOptions, NodeName, RemoteSource, Worker, WorkerOptions,
};
use cofferdam_tool::ask::{AskError, Asker, Question, QuestionKind};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Annotations, CallContext, Functions, Toolset};
use serde_json::{Value, json};
use tokio::runtime::Builder;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use self::bus::{Network, Node};

/// Prefix of all subjects of the tenant.
const PREFIX: &str = "cofferdam.v1.default";
/// Maximum number of steps of an input.
const STEPS_MAX: usize = 32;
/// Time after a step in which gateway and worker exchange messages.
const STEP: Duration = Duration::from_millis(1);
/// Time that a call of the gateway may take.
const CALL_MAX: Duration = Duration::from_secs(5);
/// Time after which everything has ended that the steps have begun.
const END: Duration = Duration::from_secs(20);
/// Number of concurrent calls of the worker.
const CALLS_MAX: usize = 4;

/// Sends the messages to a gateway `g` and a worker `w`. All clocks are virtual.
pub(crate) fn check(bytes: &[u8]) {
    let mut builder = Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().expect("a runtime can be made");
    runtime.block_on(async {
        let fleet = Fleet::start().await;
        for step in steps(bytes).take(STEPS_MAX) {
            fleet.run(step).await;
            sleep(STEP).await;
        }
        fleet.end().await;
    });
}

/// Returns the parts of an input between empty lines.
fn steps(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let input = rest?;
        let end = input.windows(2).position(|pair| pair == b"\n\n");
        rest = end.map(|end| &input[end + 2..]);
        Some(end.map_or(input, |end| &input[..end]))
    })
}

/// A gateway and a worker.
struct Fleet {
    network: Arc<Network>,
    worker: Worker,
    gateway: Arc<Dispatcher>,
    tools: Toolset,
    /// Subject of calls of the worker's only source.
    route: String,
    writes: Arc<AtomicUsize>,
    /// Calls of the gateway that may still run.
    calls: Mutex<Vec<JoinHandle<()>>>,
}

impl Fleet {
    async fn start() -> Self {
        let network = Arc::<Network>::default();
        let writes = Arc::<AtomicUsize>::default();
        let name = NodeName::new("w").expect("a name");
        let options =
            WorkerOptions { name, calls_max: CALLS_MAX, timing: timing(), ..Default::default() };
        let worker = Worker::start(network.connect(Node::Worker), toolset(&writes), options);
        let worker = worker.await.expect("a worker starts");
        let gateway = gateway(&network, "g").await;
        let sources = gateway.discover().await.expect("the worker answers");
        let route = format!("call.{}", sources[0].version());
        let tools = toolset_of(sources);
        Self { network, worker, gateway, tools, route, writes, calls: Mutex::default() }
    }

    async fn run(&self, step: &[u8]) {
        let end = step.iter().position(|byte| *byte == b'\n').unwrap_or(step.len());
        let (line, payload) = (&step[..end], step.get(end + 1..).unwrap_or_default());
        let Ok(line) = std::str::from_utf8(line) else { return };
        let (first, second) = line.split_once(' ').unwrap_or((line, ""));
        match first {
            // From now on, only the input answers the gateway.
            "hold" => self.network.hold(true),
            "release" => self.network.hold(false),
            "wait" => sleep(Duration::from_millis(second.parse::<u16>().unwrap_or(0).into())).await,
            "call" => self.call(second, payload),
            "discover" => self.discover(),
            subject => {
                let subject = if subject == "route" { &self.route } else { subject };
                let reply = (!second.is_empty()).then(|| format!("{PREFIX}.{second}"));
                let bus = self.network.connect(Node::Input);
                let subject = format!("{PREFIX}.{subject}");
                let _ = bus.publish(&subject, reply.as_deref(), payload.to_vec().into()).await;
            }
        }
    }

    /// Starts a call at the gateway.
    fn call(&self, tool: &str, arguments: &[u8]) {
        let (tools, tool, arguments) = (self.tools.clone(), tool.to_owned(), arguments.to_vec());
        self.add(async move {
            let context = CallContext {
                deadline: Instant::now().checked_add(CALL_MAX),
                asker: Some(Arc::new(Client)),
                ..CallContext::new("c")
            };
            let _ = tools.call(&tool, Some(&arguments), &context).await;
        });
    }

    /// Lets the gateway look for tools.
    fn discover(&self) {
        let gateway = Arc::clone(&self.gateway);
        self.add(async move {
            let _ = gateway.versions().await;
        });
    }

    fn add(&self, call: impl Future<Output = ()> + Send + 'static) {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(tokio::spawn(call));
    }

    /// Checks everything when all calls have ended.
    async fn end(self) {
        let calls = std::mem::take(&mut *self.calls.lock().unwrap_or_else(PoisonError::into_inner));
        for call in calls {
            let ended = timeout(END, call).await.expect("a call of the gateway does not end");
            ended.expect("a call of the gateway panics");
        }
        self.network.hold(false);
        sleep(END).await;
        assert_eq!(self.worker.calls(), 0, "a call of the worker does not end");
        let (writes, confirmed) = (self.writes.load(Ordering::Relaxed), self.network.confirmed());
        assert!(writes <= confirmed, "{writes} calls started after {confirmed} confirmations");

        let other = gateway(&self.network, "g2").await;
        let tools = toolset_of(other.discover().await.expect("the worker answers"));
        for tools in [&tools, &self.tools] {
            let called = tools.call("write", Some(b"{}"), &CallContext::new("after")).await;
            let called = called.expect("the tool is known");
            assert_eq!(called.outcome.word(), "ok", "{:?}", called.outcome);
        }
        assert_eq!(self.writes.load(Ordering::Relaxed), writes + 2);
        self.network.check_tasks().await;
    }
}

/// Returns the default times, but a worker does not wait for other gateways for an hour.
fn timing() -> CallTiming {
    CallTiming { unattended_max: Duration::from_secs(10), ..CallTiming::default() }
}

async fn gateway(network: &Arc<Network>, name: &str) -> Arc<Dispatcher> {
    let name = NodeName::new(name).expect("a name");
    let options = DispatcherOptions { name, timing: timing(), ..Default::default() };
    Dispatcher::start(network.connect(Node::Gateway), options).await.expect("a gateway starts")
}

fn toolset_of(sources: Vec<Arc<RemoteSource>>) -> Toolset {
    let mut tools = Toolset::new();
    for source in sources {
        tools.add(source).expect("one source");
    }
    tools
}

/// Returns a tool that reads, one that counts its calls as a tool that writes, and one that asks.
fn toolset(writes: &Arc<AtomicUsize>) -> Toolset {
    let read = Declaration {
        annotations: Annotations { read_only: Some(true), ..Annotations::default() },
        ..Declaration::new("read", "Reads.", "{}")
    };
    let (write, ask) =
        (Declaration::new("write", "Writes.", "{}"), Declaration::new("ask", "Asks.", "{}"));
    let writes = Arc::clone(writes);
    let functions = Functions::new("fuzz")
        .with(read, async |_, _| Ok(json!("read")))
        .and_then(|functions| {
            functions.with(write, move |_, _| {
                writes.fetch_add(1, Ordering::Relaxed);
                async { Ok(json!("written")) }
            })
        })
        .and_then(|functions| {
            functions.with(ask, async |_, context: CallContext| {
                let Some(asker) = &context.asker else { return Ok(json!("no client")) };
                let answers = asker.ask(vec![Question::approval("q", "go on?".to_owned())]).await;
                Ok(json!(answers.unwrap_or_default()))
            })
        });
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions.expect("the declarations are constant"))).expect("one source");
    toolset
}

/// User of the gateway.
struct Client;

#[async_trait]
impl Asker for Client {
    fn can_ask(&self, _: QuestionKind) -> bool {
        true
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        Ok(questions.iter().map(|_| json!({"action": "accept"})).collect())
    }
}
