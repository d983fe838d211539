//! Time of a call through gateway, bus and worker, compared with the same call in the process.
//!
//! `COFFERDAM_NATS_SERVER=target/nats/bin/nats-server cargo bench -p cofferdam-cluster --features
//! nats`. Gateway and worker share this process and its threads, on two connections.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a benchmark fails by panicking and prints what it measures"
)]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_cluster::nats::{NatsBus, NatsOptions};
use cofferdam_cluster::{Bus, Dispatcher, DispatcherOptions, Worker, WorkerOptions};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{CallContext, Functions, Toolset};
use serde_json::json;

const CALLS: usize = 5000;
const CONCURRENT: usize = 64;

fn main() {
    let Some(program) = std::env::var_os("COFFERDAM_NATS_SERVER") else {
        println!("skipped: COFFERDAM_NATS_SERVER names no server");
        return;
    };
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let mut server = Command::new(program)
        .args(["-a", "127.0.0.1", "-p", &port.port().to_string()])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while TcpStream::connect(port).is_err() {
        std::thread::sleep(Duration::from_millis(20));
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(measure(&format!("nats://{port}")));
    server.kill().unwrap();
    server.wait().unwrap();
}

async fn measure(url: &str) {
    let options = || NatsOptions { servers: url.to_owned(), ..NatsOptions::default() };
    let connect =
        || async { Arc::new(NatsBus::connect_ambient(options()).await.unwrap()) as Arc<dyn Bus> };
    let local = toolset();
    let worker_options = WorkerOptions { calls_max: 2 * CONCURRENT, ..WorkerOptions::default() };
    let worker = Worker::start(connect().await, local.clone(), worker_options).await.unwrap();
    let dispatcher =
        Dispatcher::start(connect().await, DispatcherOptions::default()).await.unwrap();
    let mut remote = Toolset::new();
    for source in dispatcher.discover().await.unwrap() {
        remote.add(source).unwrap();
    }
    one_at_a_time("in the process", &local).await;
    one_at_a_time("through a gateway", &remote).await;
    concurrently("in the process", &local).await;
    concurrently("through a gateway", &remote).await;
    worker.drain(Duration::from_secs(1)).await;
    one_at_a_time("no worker", &remote).await;
}

fn toolset() -> Toolset {
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
    let echo = Declaration::new("echo", "Repeats.", schema);
    let functions = Functions::new("bench")
        .with(echo, async |arguments, _| Ok(json!(arguments.value()["text"])))
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

async fn call(toolset: &Toolset, arguments: &str) {
    let context = CallContext::new("c");
    toolset.call("echo", Some(arguments.as_bytes()), &context).await.unwrap();
}

async fn one_at_a_time(what: &str, toolset: &Toolset) {
    let arguments = json!({"text": "x".repeat(256)}).to_string();
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let started = Instant::now();
        call(toolset, &arguments).await;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let (half, most) = (times[CALLS / 2], times[CALLS * 99 / 100]);
    println!("{what}, one at a time: p50 {half:?}, p99 {most:?}");
}

async fn concurrently(what: &str, toolset: &Toolset) {
    let arguments: Arc<str> = json!({"text": "x".repeat(256)}).to_string().into();
    let started = Instant::now();
    let callers: Vec<_> = (0..CONCURRENT)
        .map(|_| {
            let (toolset, arguments) = (toolset.clone(), Arc::clone(&arguments));
            tokio::spawn(async move {
                for _ in 0..CALLS / CONCURRENT * 4 {
                    call(&toolset, &arguments).await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let count = CALLS / CONCURRENT * 4 * CONCURRENT;
    let rate = count as f64 / started.elapsed().as_secs_f64();
    println!("{what}, {CONCURRENT} at a time: {rate:.0} calls/s");
}
