//! Connections without HTTP.

use std::sync::Arc;

use cofferdam_network::{ClientConfig, Resolver};
use cofferdam_tests::Host;
use cofferdam_tool::CallRecord;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};

use super::{Names, bare_host, refused};

async fn host(rules: &[String], names: &Arc<Names>) -> Host {
    let resolver: Arc<dyn Resolver> = Arc::clone(names) as _;
    let mut host = bare_host(ClientConfig { resolver, ..ClientConfig::default() }, 4);
    host.grants.sockets = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    host.limits.wall_ms_max = 5000;
    host.load("sockets").await;
    host
}

async fn act(host: &Host, what: &str, to: &str) -> (String, CallRecord) {
    let arguments = serde_json::json!({ "do": what, "to": to }).to_string();
    let completion = host.call("sockets", &arguments).await;
    (completion.outcome.shown().unwrap().text(), *completion.record)
}

/// Starts a server that answers a line with "you said" and the line. Returns its port.
async fn tcp_echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut said = [0; 6];
            stream.read_exact(&mut said).await.unwrap();
            stream.write_all(b"you said ").await.unwrap();
            stream.write_all(&said).await.unwrap();
        }
    });
    port
}

#[tokio::test]
async fn without_a_grant_there_are_no_sockets() {
    let port = tcp_echo().await;
    let names = Names::new(&[&["127.0.0.1"]]);
    let host = host(&[], &names).await;
    for (what, to) in [
        ("tcp", format!("127.0.0.1:{port}")),
        ("udp", format!("127.0.0.1:{port}")),
        ("listen", "127.0.0.1:0".to_owned()),
    ] {
        let (said, record) = act(&host, what, &to).await;
        // If the interface has no error for it, the call ends.
        let is_ended = record.error_type.as_deref() == Some("CapabilityDenied");
        assert!(is_ended || said == "error: PermissionDenied", "{what}: {said}");
        assert!(record.refused[0].capability.starts_with("wasi:sockets/"), "{:?}", record.refused);
    }
    let (said, record) = act(&host, "lookup", "server.test:80").await;
    assert!(record.outcome == "error" || said.starts_with("error"), "{said}");
    assert_eq!(names.lookups(), 0);
}

#[tokio::test]
async fn a_granted_address_is_reached_at_its_port_alone() {
    let (port, other) = (tcp_echo().await, tcp_echo().await);
    let names = Names::new(&[&["127.0.0.1"]]);
    let host = host(&[format!("tcp 127.0.0.1:{port}")], &names).await;
    let (said, record) = act(&host, "tcp", &format!("127.0.0.1:{port}")).await;
    assert_eq!(said, "you said hello\n");
    assert_eq!((record.hosts[0].host.as_str(), record.hosts[0].port), ("127.0.0.1", port));
    for (what, to, wanted) in [
        ("tcp", format!("127.0.0.1:{other}"), format!("socket:tcp 127.0.0.1:{other}")),
        ("tcp", format!("127.0.0.2:{port}"), format!("socket:tcp 127.0.0.2:{port}")),
    ] {
        let (said, record) = act(&host, what, &to).await;
        assert_eq!(said, "error: PermissionDenied", "{to}");
        assert_eq!(refused(&record), [wanted]);
    }
    for (what, to) in [("udp", format!("127.0.0.1:{port}")), ("listen", "127.0.0.1:0".to_owned())] {
        assert_eq!(act(&host, what, &to).await.0, "error: PermissionDenied", "{what}");
    }
}

#[tokio::test]
async fn a_granted_name_is_looked_up_by_the_host_and_its_addresses_are_judged() {
    let port = tcp_echo().await;
    let names = Names::new(&[&["10.0.0.1", "127.0.0.1"]]);
    let rules = [format!("tcp server.test:{port}"), format!("tcp 127.0.0.1:{port}")];
    let host = host(&rules, &names).await;
    let (said, _) = act(&host, "tcp", &format!("server.test:{port}")).await;
    assert_eq!(said, "you said hello\n");
    assert_eq!(names.lookups(), 1);
    let (said, _) = act(&host, "lookup", "server.test:80").await;
    assert_eq!(said, "127.0.0.1:80");
    let before = names.lookups();
    let (said, record) = act(&host, "lookup", "other.test:80").await;
    assert!(said.starts_with("error"), "{said}");
    assert_eq!((names.lookups(), refused(&record)), (before, vec!["lookup:other.test"]));
}

#[tokio::test]
async fn a_name_is_no_way_to_an_address_that_is_not_granted() {
    let port = tcp_echo().await;
    let names = Names::new(&[&["127.0.0.1"]]);
    let host = host(&[format!("tcp server.test:{port}")], &names).await;
    let (said, record) = act(&host, "tcp", &format!("server.test:{port}")).await;
    assert!(said.starts_with("error"), "{said}");
    assert_eq!(refused(&record), ["address:127.0.0.1"]);
}

#[tokio::test]
async fn datagrams_go_to_granted_addresses() {
    let server = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = server.local_addr().unwrap();
    let answering = tokio::spawn(async move {
        let mut said = [0; 64];
        let (length, from) = server.recv_from(&mut said).await.unwrap();
        // An answer from another address arrives first and is dropped.
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        stranger.send_to(b"stranger", from).await.unwrap();
        server.send_to(&said[..length], from).await.unwrap();
    });
    let names = Names::new(&[&["127.0.0.1"]]);
    let host = host(&[format!("udp {to}")], &names).await;
    let (said, _) = act(&host, "udp", &to.to_string()).await;
    assert_eq!(said, format!("hello\n from {to}"));
    answering.await.unwrap();
    let (said, record) = act(&host, "udp", "127.0.0.1:9").await;
    assert_eq!(
        (said.as_str(), refused(&record)),
        ("error: PermissionDenied", vec!["socket:udp 127.0.0.1:9"])
    );
}
