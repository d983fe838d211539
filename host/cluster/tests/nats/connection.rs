//! Connections: lost, restored, refused and encrypted ones.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_cluster::nats::{NatsBus, NatsError, NatsOptions};
use cofferdam_cluster::{Bus, ClusterError, Dispatcher, Tenant, Worker, WorkerOptions};
use cofferdam_tool::Toolset;
use serde_json::json;

use super::calls::{call, type_name, worker};
use super::server::{Server, program};
use super::tools::{Starts, toolset};

async fn error(options: NatsOptions) -> NatsError {
    NatsBus::connect_ambient(options).await.err().expect("there is no connection")
}

#[tokio::test]
async fn a_call_survives_a_restart_of_the_server() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("starts");
    let _worker = worker(&server, &path, 64).await;
    let gateway = server.gateway().await;
    let running = call(&gateway.toolset, "write", json!({"ms": 500}), "running");
    let restarting = async {
        while Starts::at(&path).of("running") == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        server.restart(Duration::from_millis(100)).await
    };
    let (ended, server) = tokio::join!(running, restarting);
    // The result may have been sent to the server that died. Then the gateway asks for it, unless
    // the worker needs longer for its new connection than the gateway waits.
    assert!(["ok", "OutcomeUnknown"].contains(&type_name(&ended)), "{ended:?}");
    assert_eq!(Starts::at(&path).of("running"), 1);
    let mut attempts = 0;
    while call(&gateway.toolset, "echo", json!({}), "after").await.word() != "ok" {
        attempts += 1;
        assert!(attempts < 50, "no call succeeds after the restart");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    drop(server);
}

#[tokio::test]
async fn each_mistake_is_one_line_that_says_what_to_do() {
    if program().is_none() {
        return;
    }
    let options = |servers: &str| NatsOptions { servers: servers.to_owned(), ..Default::default() };
    let message = error(options("nats://127.0.0.1:1")).await.to_string();
    assert_eq!(
        message,
        "no NATS server answers at 127.0.0.1:1; start one (`nats-server`) or correct --cluster"
    );
    let server = Server::start(&["--user", "u", "--pass", "p"]).unwrap();
    let address = server.url().replace("nats://", "");
    for wrong in [format!("nats://{address}"), format!("nats://u:wrong@{address}")] {
        let message = error(options(&wrong)).await.to_string();
        assert_eq!(
            message,
            format!(
                "the NATS server at {address} refuses the credentials; pass those of its \
                 configuration with --cluster-credentials or in the address"
            )
        );
    }
    assert!(NatsBus::connect_ambient(options(&format!("nats://u:p@{address}"))).await.is_ok());

    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("small.conf");
    std::fs::write(&config, "max_payload: 4096\n").unwrap();
    let server = Server::start(&["-c", config.to_str().unwrap()]).unwrap();
    let message = error(options(&server.url())).await.to_string();
    assert_eq!(
        message,
        "the NATS server allows messages of 4096 bytes, and 65536 are needed; raise its \
         `max_payload`"
    );
    let missing = NatsOptions {
        credentials_file: Some(folder.path().join("missing.creds")),
        ..options(&server.url())
    };
    assert!(matches!(error(missing).await, NatsError::File { .. }));
}

#[tokio::test]
async fn connections_are_encrypted_with_an_authority_of_ones_own() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let certified = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    std::fs::write(file("cert.pem"), certified.cert.pem()).unwrap();
    std::fs::write(file("key.pem"), certified.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (file("cert.pem"), file("key.pem"));
    let arguments =
        ["--tls", "--tlscert", cert.to_str().unwrap(), "--tlskey", key.to_str().unwrap()];
    let server = Server::start(&arguments).unwrap();
    let servers = server.url().replace("nats://", "tls://");
    let trusting = NatsOptions {
        servers: servers.clone(),
        authorities_file: Some(cert.clone()),
        ..NatsOptions::default()
    };
    let bus: Arc<dyn Bus> = Arc::new(NatsBus::connect_ambient(trusting).await.unwrap());
    let starts = file("starts");
    let options = WorkerOptions::default();
    let _worker = Worker::start(Arc::clone(&bus), toolset(&starts), options).await.unwrap();
    let dispatcher = Dispatcher::start(bus, Tenant::default()).await.unwrap();
    let toolset = Toolset::join(dispatcher.discover().await.unwrap()).unwrap();
    assert_eq!(call(&toolset, "echo", json!({}), "1").await.word(), "ok");

    // Its certificate is not one of a public authority.
    let message = error(NatsOptions { servers, ..NatsOptions::default() }).await.to_string();
    assert!(message.contains("--cluster-ca"), "{message}");
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let _worker = worker(&server, &folder.path().join("starts"), 8).await;
    let other = Tenant::new("other").unwrap();
    let dispatcher = Dispatcher::start(server.bus().await, other).await.unwrap();
    assert_eq!(dispatcher.discover().await.err(), Some(ClusterError::NoWorkers));
}
