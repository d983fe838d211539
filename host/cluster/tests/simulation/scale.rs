//! Placement of calls on many workers, by load and without faults: messages, and the time that is
//! added to a call.
//!
//! `COFFERDAM_SIMULATION_WORKERS=10,100,1000` selects other numbers of workers. In the simulated
//! network, a message takes up to two milliseconds.

use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_cluster::{Bus, Dispatcher, DispatcherOptions, NodeName, Worker, WorkerOptions};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{CallContext, Functions, Outcome, Toolset};
use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::network::{Network, Random};
use super::scenario::Faults;

const WORKERS: &str = "COFFERDAM_SIMULATION_WORKERS";
const WORKERS_BY_DEFAULT: &str = "10";
const GATEWAYS: u64 = 4;
/// Maximum number of concurrent calls of one worker.
const CALLS_MAX: u64 = 8;
/// Mean time of a call.
const CALL_TIME: Duration = Duration::from_millis(100);
/// Time in which calls are made.
const ACTIVE: Duration = Duration::from_secs(2);

/// What a load costs.
struct Placement {
    workers: u64,
    /// Share of the maximum number of concurrent calls, in percent.
    load: u64,
    calls: usize,
    /// Calls that no worker accepted in time.
    refused: usize,
    messages: u64,
    /// Times that were added to calls, in ascending order.
    waits: Vec<Duration>,
    discovery: Duration,
    discovery_messages: u64,
}

impl Placement {
    fn wait(&self, percent: usize) -> Duration {
        self.waits[(self.waits.len() - 1) * percent / 100]
    }

    fn messages_by_call(&self) -> f64 {
        self.messages as f64 / self.calls as f64
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: Duration| time.as_micros() / 100;
        let shown = |time| format!("{}.{} ms", ms(time) / 10, ms(time) % 10);
        write!(
            f,
            "| {} | {} % | {} | {} | {:.1} | {} | {} | {} | {} |",
            self.workers,
            self.load,
            self.calls,
            self.refused,
            self.messages_by_call(),
            shown(self.wait(50)),
            shown(self.wait(99)),
            shown(self.discovery),
            self.discovery_messages
        )
    }
}

#[test]
fn calls_find_a_free_worker_among_many() {
    let typed = std::env::var(WORKERS).unwrap_or_else(|_| WORKERS_BY_DEFAULT.to_owned());
    for workers in typed.split(',').map(|number| number.parse().unwrap()) {
        for load in [50, 80, 95] {
            let placement = run(workers, load);
            println!("{placement}");
            assert!(placement.calls > 500, "{placement}");
            // Nearly every call asks for an offer, gets it, confirms it, and acknowledges a result.
            let (messages_max, wait_max) = match load {
                50 => (5.5, Duration::from_millis(30)),
                80 => (7.0, Duration::from_millis(300)),
                _ => (30.0, Duration::from_secs(10)),
            };
            assert!(placement.messages_by_call() < messages_max, "{placement}");
            assert!(placement.wait(99) < wait_max, "{placement}");
            assert!(load == 95 || placement.refused == 0, "{placement}");
        }
    }
}

fn run(workers: u64, load: u64) -> Placement {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(placement(workers, load))
}

async fn placement(workers: u64, load: u64) -> Placement {
    let network = Network::new(load, Faults::of(0));
    for number in 0..workers {
        let options = WorkerOptions {
            name: NodeName::new(format!("w{number}")).unwrap(),
            calls_max: usize::try_from(CALLS_MAX).unwrap(),
            ..WorkerOptions::default()
        };
        let bus = network.connect(1000 + number);
        let _worker = Worker::start(bus, toolset(), options).await.unwrap();
    }
    let mut gateways = Vec::new();
    let (sent, started) = (network.sent(), Instant::now());
    for number in 0..GATEWAYS {
        let bus = network.connect(number) as Arc<dyn Bus>;
        let name = NodeName::new(format!("g{number}")).unwrap();
        let options = DispatcherOptions { name, ..DispatcherOptions::default() };
        let dispatcher = Dispatcher::start(bus, options).await.unwrap();
        let mut toolset = Toolset::new();
        for source in dispatcher.discover().await.unwrap() {
            toolset.add(source).unwrap();
        }
        gateways.push(toolset);
    }
    let gateway_count = u32::try_from(GATEWAYS).unwrap();
    let (discovery, discovery_messages) =
        (started.elapsed() / gateway_count, (network.sent() - sent) / GATEWAYS);
    let sent = network.sent();
    let (waits, calls, refused) = make_calls(&gateways, workers, load).await;
    let messages = network.sent() - sent;
    Placement { workers, load, calls, refused, messages, waits, discovery, discovery_messages }
}

/// Makes calls at random times for a share of the maximum number. Returns the times that were added
/// to them, in ascending order, their number, and that of those which no worker accepted.
async fn make_calls(
    gateways: &[Toolset],
    workers: u64,
    load: u64,
) -> (Vec<Duration>, usize, usize) {
    let mut random = Random(load);
    let count =
        workers * CALLS_MAX * load / 100 * (ACTIVE.as_millis() / CALL_TIME.as_millis()) as u64;
    let calls = usize::try_from(count).unwrap();
    let waits = Arc::new(Mutex::new(Vec::with_capacity(calls)));
    let mut running = JoinSet::new();
    for number in 0..calls {
        let toolset = gateways[number % gateways.len()].clone();
        let (pause, waits) = (random.time(ACTIVE), Arc::clone(&waits));
        let ms = CALL_TIME.as_millis() as u64 / 2 + random.below(CALL_TIME.as_millis() as u64);
        running.spawn(async move {
            sleep(pause).await;
            let called = Instant::now();
            let arguments = json!({"ms": ms}).to_string();
            let context = CallContext::new(number.to_string());
            let ended = toolset.call("work", Some(arguments.as_bytes()), &context).await.unwrap();
            let is_ok = matches!(ended.outcome, Outcome::Ok(_));
            if is_ok {
                let wait = called.elapsed().saturating_sub(Duration::from_millis(ms));
                waits.lock().unwrap().push(wait);
            }
            is_ok
        });
    }
    let mut refused = 0;
    while let Some(ended) = running.join_next().await {
        refused += usize::from(!ended.unwrap());
    }
    let mut waits = std::mem::take(&mut *waits.lock().unwrap());
    waits.sort_unstable();
    (waits, calls, refused)
}

fn toolset() -> Toolset {
    let schema = r#"{"type":"object","properties":{"ms":{"type":"integer"}}}"#;
    let work = Declaration::new("work", "Works.", schema);
    let functions = Functions::new("simulated").with(work, async |arguments, _| {
        sleep(Duration::from_millis(arguments.value()["ms"].as_u64().unwrap())).await;
        Ok(json!(null))
    });
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions.unwrap())).unwrap();
    toolset
}
