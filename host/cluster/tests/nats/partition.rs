//! Networks that carry nothing for a while although all connections stay open.

use std::net::Ipv4Addr;
use std::time::Duration;

use cofferdam_cluster::{DispatcherOptions, Worker, WorkerOptions};
use cofferdam_tool::{Outcome, Toolset};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::calls::{call, type_name, worker};
use super::server::{Gateway, Server, connect, timing};
use super::tools::{Starts, toolset};

/// Number of calls at the same time.
const CALLS: usize = 8;

/// Network between one node and the server.
struct Link {
    url: String,
    is_cut: watch::Sender<bool>,
}

impl Link {
    async fn to(server: &Server) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let url = format!("nats://{}", listener.local_addr().unwrap());
        let (is_cut, cut) = watch::channel(false);
        let port = server.port();
        tokio::spawn(async move {
            while let Ok((node, _)) = listener.accept().await {
                let server = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
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
    let link = Link::to(&server).await;
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
    let link = Link::to(&server).await;
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
