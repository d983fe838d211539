//! Networks that carry nothing for a while although all connections stay open.

use std::net::Ipv4Addr;
use std::path::Path;
use std::time::{Duration, Instant};

use cofferdam_cluster::{CallTiming, DispatcherOptions, Worker, WorkerOptions};
use cofferdam_tool::{Outcome, Toolset};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::calls::{call, type_name, worker};
use super::jetstream::{ELECTION_MAX, elected_results};
use super::keys::keyed;
use super::server::{Gateway, Server, connect, program, timing, unused_port};
use super::tools::{Starts, toolset};

/// Number of calls at the same time.
const CALLS: usize = 8;

/// Network between a node and a server, or between two servers.
struct Link {
    url: String,
    is_cut: watch::Sender<bool>,
}

impl Link {
    /// Returns a network to the server that listens on a port.
    async fn to(port: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let (is_cut, cut) = watch::channel(false);
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                // The server may not have started yet.
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await;
                let Ok(server) = server else { continue };
                let (from_node, to_node) = node.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(carry(from_node, to_server, cut.clone()));
                tokio::spawn(carry(from_server, to_node, cut.clone()));
            }
        });
        Self { url, is_cut }
    }

    /// Holds everything back from now on, in both directions.
    fn cut(&self) {
        self.is_cut.send_replace(true);
    }

    /// Carries everything again, first that which was held back.
    fn heal(&self) {
        self.is_cut.send_replace(false);
    }
}

async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut cut: watch::Receiver<bool>) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if cut.wait_for(|is_cut| !is_cut).await.is_err()
            || to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}

fn ids(name: &str) -> impl Iterator<Item = String> {
    (0..CALLS).map(move |number| format!("{name}-{number}"))
}

/// Runs several slow calls at the same time.
async fn calls(tools: &Toolset, name: &str) -> Vec<Outcome> {
    let ids: Vec<_> = ids(name).collect();
    let calls = ids.iter().map(|id| call(tools, "write", json!({"ms": 300}), id));
    futures_util::future::join_all(calls).await
}

/// Waits until all of these calls have started.
async fn started(starts: &Starts, name: &str) {
    while ids(name).any(|id| starts.of(&id) == 0) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_worker_that_is_cut_off_starts_no_call_twice() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let starts = Starts::at(&path);
    let link = Link::to(server.port()).await;
    let options = WorkerOptions { timing: timing(), ..WorkerOptions::default() };
    let cut_off = Worker::start(connect(&link.url).await, toolset(&path), options).await.unwrap();
    let gateway = server.gateway().await;

    let cutting = async {
        started(&starts, "running").await;
        link.cut();
    };
    let (ended, ()) = tokio::join!(calls(&gateway.toolset, "running"), cutting);
    assert!(ended.iter().all(|end| type_name(end) == "OutcomeUnknown"), "{ended:?}");

    // The server still sends calls to it, and gateways send them to the other worker after that.
    let other = worker(&server, &path, 64).await;
    let ended = calls(&gateway.toolset, "placed").await;
    assert!(ended.iter().all(|end| matches!(end, Outcome::Ok(_))), "{ended:?}");

    // It receives all of them now.
    link.heal();
    let ended = calls(&gateway.toolset, "healed").await;
    assert!(ended.iter().all(|end| matches!(end, Outcome::Ok(_))), "{ended:?}");
    tokio::time::sleep(Duration::from_secs(1)).await;
    for id in ["running", "placed", "healed"].into_iter().flat_map(ids) {
        assert_eq!(starts.of(&id), 1, "{id}");
    }
    assert_eq!(cut_off.calls(), 0);
    other.drain(Duration::from_secs(1)).await;
    assert_eq!(call(&gateway.toolset, "write", json!({}), "after").await.word(), "ok");
}

#[tokio::test]
async fn a_gateway_that_is_cut_off_ends_its_calls_and_works_again() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let starts = Starts::at(&path);
    let worker = worker(&server, &path, 64).await;
    let link = Link::to(server.port()).await;
    let options = DispatcherOptions { timing: timing(), ..DispatcherOptions::default() };
    let gateway = Gateway::start(connect(&link.url).await, options).await;

    let cutting = async {
        started(&starts, "running").await;
        link.cut();
    };
    let (ended, ()) = tokio::join!(calls(&gateway.toolset, "running"), cutting);
    assert!(ended.iter().all(|end| type_name(end) == "OutcomeUnknown"), "{ended:?}");
    link.heal();
    let ended = calls(&gateway.toolset, "healed").await;
    assert!(ended.iter().all(|end| matches!(end, Outcome::Ok(_))), "{ended:?}");
    for id in ["running", "healed"].into_iter().flat_map(ids) {
        assert_eq!(starts.of(&id), 1, "{id}");
    }
    assert_eq!(worker.calls(), 0);
}

/// Starts three servers of one cluster. Returns the networks of the third one to the others.
async fn servers(folder: &Path) -> (Vec<Server>, [Link; 2]) {
    let ports: [_; 3] = std::array::from_fn(|_| unused_port());
    let links = [Link::to(ports[0]).await, Link::to(ports[1]).await];
    let to = |port: u16| format!("nats://127.0.0.1:{port}");
    let routes = [
        vec![to(ports[1])],
        vec![to(ports[0])],
        links.iter().map(|link| link.url.clone()).collect(),
    ];
    let start = |number: usize| {
        let config = folder.join(format!("{number}.conf"));
        let (port, routes) = (ports[number], &routes[number]);
        // No server learns another way to the third one than through the links.
        let text = format!(
            "server_name: s{number}\nping_interval: \"1s\"\nping_max: 2\n\
             jetstream {{ store_dir: {:?} }}\n\
             cluster {{ name: c, listen: \"127.0.0.1:{port}\", advertise: \"127.0.0.1:9\", \
             routes: {routes:?} }}\n",
            folder.join(number.to_string()),
        );
        std::fs::write(&config, text).unwrap();
        Server::start(&["-c", config.to_str().unwrap()]).unwrap()
    };
    ((0..3).map(start).collect(), links)
}

/// Starts a gateway that stores results in JetStream.
async fn keyed_gateway(server: &Server) -> Gateway {
    let results = elected_results(&server.url()).await;
    let timing = CallTiming { store_wait_max: Duration::from_secs(2), ..timing() };
    let options = DispatcherOptions { timing, results, ..DispatcherOptions::default() };
    server.gateway_with(options).await
}

/// Makes a call with an idempotency key until it is `ok`.
async fn eventually(tools: &Toolset, (id, key): (&str, &str)) -> Outcome {
    let started = Instant::now();
    loop {
        let ended = keyed(tools, "write", json!({}), (id, key)).await;
        if ended.word() == "ok" {
            return ended;
        }
        assert_eq!(type_name(&ended), "IdempotencyUnavailable", "{ended:?}");
        assert!(started.elapsed() < ELECTION_MAX, "{ended:?}");
    }
}

#[tokio::test]
async fn both_sides_of_a_divided_cluster_go_on_and_no_key_runs_twice() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let starts = Starts::at(&path);
    let (servers, links) = servers(folder.path()).await;
    let _workers = [worker(&servers[1], &path, 64).await, worker(&servers[2], &path, 64).await];
    let majority = keyed_gateway(&servers[0]).await;
    let minority = keyed_gateway(&servers[2]).await;
    let before = eventually(&majority.toolset, ("before", "a")).await;

    links.iter().for_each(Link::cut);
    let (ended, others) =
        tokio::join!(calls(&majority.toolset, "majority"), calls(&minority.toolset, "minority"));
    for end in ended.iter().chain(&others) {
        assert!(matches!(end, Outcome::Ok(_)), "{end:?}");
    }
    // Two of three servers can store results, and one cannot.
    let divided = keyed(&minority.toolset, "write", json!({}), ("divided", "b")).await;
    assert_eq!(type_name(&divided), "IdempotencyUnavailable", "{divided:?}");
    let during = eventually(&majority.toolset, ("during", "b")).await;

    links.iter().for_each(Link::heal);
    assert_eq!(eventually(&minority.toolset, ("healed", "a")).await, before);
    assert_eq!(eventually(&minority.toolset, ("healed", "b")).await, during);
    for (id, count) in [("before", 1), ("during", 1), ("divided", 0), ("healed", 0)] {
        assert_eq!(starts.of(id), count, "{id}");
    }
    for id in ["majority", "minority"].into_iter().flat_map(ids) {
        assert_eq!(starts.of(&id), 1, "{id}");
    }
}
