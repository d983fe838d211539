//! The store of results in JetStream.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cofferdam_cluster::keyed::KeyedResults;
use serde_json::json;

use super::server::{Server, program, results_at, unused_port};

/// Maximum time for an election on a busy machine.
pub(crate) const ELECTION_MAX: Duration = Duration::from_secs(60);

#[tokio::test]
async fn entries_of_jetstream_change_by_their_revision() {
    let folder = tempfile::tempdir().unwrap();
    let Some(server) = Server::with_jetstream(folder.path()) else { return };
    let store = server.results().await.unwrap();
    let value = Bytes::from_static(b"a");
    assert_eq!(store.read("k").await, Ok(None));
    let first = store.write("k", None, value.clone()).await.unwrap().unwrap();
    assert_eq!(store.write("k", None, value.clone()).await, Ok(None));
    let second = store.write("k", Some(first), value.clone()).await.unwrap().unwrap();
    assert_eq!(store.write("k", Some(first), value.clone()).await, Ok(None));
    let read = store.read("k").await.unwrap().unwrap();
    assert_eq!((read.revision, read.value), (second, value));
    let largest = Bytes::from(vec![b'x'; store.value_bytes_max()]);
    assert!(store.write("large", None, largest.clone()).await.unwrap().is_some());
    assert_eq!(store.read("large").await.unwrap().unwrap().value, largest);
}

/// Sends a request to JetStream.
pub(crate) async fn request(server: &Server, subject: &str, body: &str) {
    let subject = format!("$JS.API.STREAM.{subject}.KV_{BUCKET}");
    let bus = server.bus().await;
    bus.publish(&subject, Some("ignored"), Bytes::from(body.to_owned())).await.unwrap();
    bus.flush().await.unwrap();
}

const BUCKET: &str = "cofferdam-v1-default-results";

async fn message(server: &Server) -> String {
    server.results().await.err().expect("the store cannot be used").to_string()
}

#[tokio::test]
async fn a_store_that_cannot_be_used_is_one_line_that_says_what_to_do() {
    let Some(server) = Server::start(&[]) else { return };
    let address = server.url().replace("nats://", "");
    assert_eq!(
        message(&server).await,
        format!(
            "JetStream is off at {address}; start the servers with it (`nats-server -js`), or \
             keep results in memory (--cluster-results memory)"
        )
    );
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nats.conf");
    let store = folder.path().display();
    let text = format!("jetstream {{ store_dir: \"{store}\", max_file_store: 1MB }}\n");
    std::fs::write(&config, text).unwrap();
    let server = Server::start(&["-c", config.to_str().unwrap()]).unwrap();
    let full = message(&server).await;
    assert!(
        full.starts_with(&format!("cannot create the bucket `{BUCKET}` in JetStream: "))
            && full.contains("insufficient storage resources available")
            && full.ends_with("create the bucket with `nats kv add`"),
        "{full}"
    );
    let small = json!({
        "name": format!("KV_{BUCKET}"), "subjects": [format!("$KV.{BUCKET}.>")],
        "max_msgs_per_subject": 1, "max_msg_size": 1000, "num_replicas": 1, "storage": "memory",
        "retention": "limits", "discard": "new",
    });
    request(&server, "CREATE", &small.to_string()).await;
    assert_eq!(
        message(&server).await,
        format!(
            "the bucket `{BUCKET}` in JetStream allows values of 1000 bytes, and 17408 bytes are \
             needed; raise the limit with `nats stream edit KV_{BUCKET}`"
        )
    );
}

/// Starts three servers of one cluster.
fn cluster(folder: &std::path::Path) -> Vec<Server> {
    let ports: Vec<_> = (0..3).map(|_| unused_port()).collect();
    let routes: Vec<_> = ports.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
    let start = |(number, port): (usize, &u16)| {
        let config = folder.join(format!("{number}.conf"));
        let store = folder.join(number.to_string());
        let text = format!(
            "server_name: s{number}\njetstream {{ store_dir: {store:?} }}\n\
             cluster {{ name: c, listen: \"127.0.0.1:{port}\", routes: {routes:?} }}\n"
        );
        std::fs::write(&config, text).unwrap();
        Server::start(&["-c", config.to_str().unwrap()]).unwrap()
    };
    ports.iter().enumerate().map(start).collect()
}

/// Opens the store of results of the default tenant, once a cluster has elected a leader.
pub(crate) async fn elected_results(servers: &str) -> Arc<dyn KeyedResults> {
    let started = Instant::now();
    loop {
        match results_at(servers).await {
            Ok(store) => return store,
            Err(error) => assert!(started.elapsed() < ELECTION_MAX, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_cluster_of_servers_keeps_results_when_one_is_lost() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut servers = cluster(folder.path());
    let urls: Vec<_> = servers.iter().map(Server::url).collect();
    let store = elected_results(&urls.join(",")).await;
    let (value, other) = (Bytes::from_static(b"a"), Bytes::from_static(b"b"));
    let first = store.write("k", None, value.clone()).await.unwrap().unwrap();
    assert_eq!(store.write("k", None, value.clone()).await, Ok(None));
    drop(servers.remove(0));
    let lost = Instant::now();
    let written = loop {
        match store.write("k", Some(first), other.clone()).await {
            Ok(written) => break written,
            Err(error) => assert!(lost.elapsed() < ELECTION_MAX, "{error}"),
        }
    };
    let read = loop {
        match store.read("k").await {
            Ok(Some(read)) if read.value == other => break read,
            // A server that is behind has the earlier value.
            found => assert!(lost.elapsed() < ELECTION_MAX, "{found:?}"),
        }
    };
    // An entry whose acknowledgement was lost has changed when it is written again.
    assert!(written.is_none_or(|written| written == read.revision) && read.revision > first);
}
