//! Connections: lost, restored, refused and encrypted ones.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_cluster::nats::{ClientCertificate, NatsBus, NatsError, NatsOptions};
use cofferdam_cluster::{
    Bus, ClusterError, Dispatcher, DispatcherOptions, Tenant, Worker, WorkerOptions,
};
use serde_json::json;

use super::calls::{call, type_name, worker};
use super::credentials::Pair;
use super::server::{Gateway, Server, connect, program, timing};
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
    let file = folder.path().join("credentials");
    for (content, is_accepted) in [("u:p\n", true), ("u:wrong", false), ("token", false)] {
        std::fs::write(&file, content).unwrap();
        let credentials_file = Some(file.clone());
        let with_file = NatsOptions { credentials_file, ..options(&server.url()) };
        let connected = NatsBus::connect_ambient(with_file).await;
        assert_eq!(connected.is_ok(), is_accepted, "{content}");
    }
    let config = folder.path().join("small.conf");
    std::fs::write(&config, "max_payload: 4096\n").unwrap();
    let server = Server::start(&["-c", config.to_str().unwrap()]).unwrap();
    let message = error(options(&server.url())).await.to_string();
    assert_eq!(
        message,
        "the NATS server allows messages of 4096 bytes, and 65536 are needed; raise its \
         `max_payload`"
    );
    for content in [None, Some(""), Some("u:p\nmore")] {
        let file = folder.path().join("invalid");
        if let Some(content) = content {
            std::fs::write(&file, content).unwrap();
        }
        let invalid = NatsOptions { credentials_file: Some(file), ..options(&server.url()) };
        assert!(matches!(error(invalid).await, NatsError::File { .. }), "{content:?}");
    }
}

/// Writes a certificate for a host, which is its own authority, and its key.
fn certificate(folder: &Path, name: &str, host: &str) -> ClientCertificate {
    let file = |suffix: &str| folder.join(format!("{name}{suffix}.pem"));
    let certified = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    std::fs::write(file(""), certified.cert.pem()).unwrap();
    std::fs::write(file("-key"), certified.signing_key.serialize_pem()).unwrap();
    ClientCertificate { certificate_file: file(""), key_file: file("-key") }
}

#[tokio::test]
async fn connections_are_encrypted_with_an_authority_of_ones_own() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let of_server = certificate(folder.path(), "server", "127.0.0.1");
    let (cert, key) = (&of_server.certificate_file, &of_server.key_file);
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
    let starts = folder.path().join("starts");
    let options = WorkerOptions::default();
    let _worker = Worker::start(Arc::clone(&bus), toolset(&starts), options).await.unwrap();
    let gateway = Gateway::start(bus, DispatcherOptions::default()).await;
    assert_eq!(call(&gateway.toolset, "echo", json!({}), "1").await.word(), "ok");

    // Its certificate is not one of a public authority.
    let message = error(NatsOptions { servers, ..NatsOptions::default() }).await.to_string();
    assert!(message.contains("--cluster-ca"), "{message}");
}

#[tokio::test]
async fn a_server_takes_the_user_from_the_certificate_of_a_client() {
    if program().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let of_server = certificate(folder, "server", "127.0.0.1");
    let own = certificate(folder, "own", "one.test");
    let clients = std::fs::read_to_string(&own.certificate_file).unwrap();
    let other = certificate(folder, "other", "two.test");
    let clients = clients + &std::fs::read_to_string(&other.certificate_file).unwrap();
    std::fs::write(folder.join("clients.pem"), clients).unwrap();
    let config = folder.join("nats.conf");
    let permit = |user: &str| {
        let text = format!(
            "tls {{ cert_file: {:?}, key_file: {:?}, ca_file: {:?}, verify_and_map: true }}\n\
             authorization {{ users = [ {{ user: {user:?} }} ] }}\n",
            of_server.certificate_file,
            of_server.key_file,
            folder.join("clients.pem"),
        );
        std::fs::write(&config, text).unwrap();
    };
    permit("one.test");
    let server = Server::start(&["-c", config.to_str().unwrap()]).unwrap();
    let options = |certificate: Option<&ClientCertificate>| NatsOptions {
        servers: server.url(),
        authorities_file: Some(of_server.certificate_file.clone()),
        certificate: certificate.cloned(),
        ..NatsOptions::default()
    };
    for (certificate, part) in [
        (None, "--cluster-cert"),
        (Some(&other), "refuses the credentials"),
        (Some(&certificate(folder, "unknown", "one.test")), "--cluster-cert"),
        (
            Some(&ClientCertificate { key_file: other.key_file.clone(), ..own.clone() }),
            "other-key.pem: ",
        ),
    ] {
        let message = error(options(certificate)).await.to_string();
        assert!(message.contains(part), "{message}");
    }
    let pair = Pair::start(options(Some(&own)), folder).await;
    pair.has_answer().await;

    // The next connection has the certificate that the files have then.
    permit("two.test");
    std::fs::copy(&other.certificate_file, &own.certificate_file).unwrap();
    std::fs::copy(&other.key_file, &own.key_file).unwrap();
    let _server = server.restart(Duration::from_millis(100)).await;
    pair.has_answer().await;
}

#[tokio::test]
async fn tenants_do_not_see_each_other() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let _worker = worker(&server, &folder.path().join("starts"), 8).await;
    let tenant = Tenant::new("other").unwrap();
    let options = DispatcherOptions { tenant, ..DispatcherOptions::default() };
    let dispatcher = Dispatcher::start(server.bus().await, options).await.unwrap();
    assert_eq!(dispatcher.discover().await.err(), Some(ClusterError::NoWorkers));
}

/// The permissions of the page are all that gateways and workers need.
#[tokio::test]
async fn the_permissions_of_the_page_suffice() {
    if program().is_none() {
        return;
    }
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cluster.md");
    let page = std::fs::read_to_string(page).unwrap();
    let (_, rest) = page.split_once("authorization {").unwrap();
    let (block, _) = rest.split_once("```").unwrap();
    let block = block.replace("$GATEWAY_PASSWORD", "g").replace("$WORKER_PASSWORD", "w");
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nats.conf");
    std::fs::write(&config, format!("authorization {{{block}")).unwrap();
    let server = Server::start(&["-c", config.to_str().unwrap()]).unwrap();
    let bus = |user: &str| {
        let servers = server.url().replace("nats://", &format!("nats://{user}@"));
        async move { connect(&servers).await }
    };
    let starts = folder.path().join("starts");
    let options = WorkerOptions { timing: timing(), ..WorkerOptions::default() };
    let worker = Worker::start(bus("worker:w").await, toolset(&starts), options).await.unwrap();
    let gateway = bus("gateway:g").await;
    let options = DispatcherOptions::default();
    let remote = Gateway::start(Arc::clone(&gateway), options).await.toolset;
    let large = json!({"bytes": 1_000_000});
    assert_eq!(call(&remote, "echo", large, "1").await.word(), "ok");
    worker.drain(Duration::from_secs(1)).await;
    let ended = call(&remote, "echo", json!({}), "2").await;
    assert_eq!(type_name(&ended), "WorkerUnavailable");

    // A gateway cannot take the calls of others.
    let mut others = gateway.subscribe("cofferdam.v1.default.call.>", None).await.unwrap();
    let listening = tokio::time::timeout(Duration::from_millis(200), others.next()).await;
    assert!(listening.is_err());
    let _ = call(&remote, "echo", json!({}), "3").await;
    let listening = tokio::time::timeout(Duration::from_millis(200), others.next()).await;
    assert!(listening.is_err(), "{listening:?}");
}

#[tokio::test]
async fn a_worker_ends_without_its_server() {
    let Some(server) = Server::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let worker = worker(&server, &folder.path().join("starts"), 8).await;
    let status = worker.monitor();
    drop(server);
    super::calls::wait_until("the end of the connection", || {
        status.status().bus == cofferdam_cluster::bus::BusState::Disconnected
    })
    .await;
    let ending = worker.drain(Duration::from_secs(1));
    assert!(tokio::time::timeout(Duration::from_secs(5), ending).await.is_ok());
}
