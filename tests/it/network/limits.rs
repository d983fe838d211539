//! Servers and guests that never stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_network::{ClientConfig, Resolver, Timeouts};
use cofferdam_tool::permission::HttpGrant;

use super::server::Server;
use super::{ask, bare_host, context, get, grant, host, host_with, refused};

/// Returns settings with short timeouts.
fn impatient() -> ClientConfig {
    let timeouts = Timeouts {
        connect: Duration::from_millis(200),
        first_byte: Duration::from_millis(300),
        between_bytes: Duration::from_millis(300),
    };
    ClientConfig { timeouts, ..ClientConfig::default() }
}

#[tokio::test]
async fn answers_that_do_not_end_well_have_names() {
    let server = Server::start().await;
    let host = host_with(vec![grant(&server.url("/"), &[], &[])], impatient()).await;
    for (path, ends) in [
        ("/header/70000", "error: ErrorCode::HttpResponseHeaderSectionSize(Some(65536))"),
        ("/headers", "error: ErrorCode::HttpResponseHeaderSectionSize(Some(65536))"),
        ("/silent", "error: ErrorCode::ConnectionReadTimeout"),
        ("/stall", "yy then error: Some(ErrorCode::ConnectionReadTimeout)"),
        ("/short", "yy then error: Some(ErrorCode::HttpResponseIncomplete)"),
        ("/upgrade", "error: ErrorCode::HttpUpgradeFailed"),
        ("/nonsense", "error: ErrorCode::HttpProtocolError"),
        ("/header/30000", "\n"),
    ] {
        let (answer, _) = get(&host, &server.url(path)).await;
        assert!(answer.ends_with(ends), "{path}: {}", answer.chars().take(200).collect::<String>());
    }
    server.open_becomes(0).await;
}

#[tokio::test]
async fn a_guest_can_be_less_patient_than_the_host_and_not_more() {
    let server = Server::start().await;
    let started = Instant::now();
    let patient = host(&[&server.url("/")]).await;
    let (answer, _) = ask(&patient, &[("url", &server.url("/silent")), ("patience", "100")]).await;
    assert_eq!(answer, "error: ErrorCode::ConnectionReadTimeout");
    let host = host_with(vec![grant(&server.url("/"), &[], &[])], impatient()).await;
    let (answer, _) = ask(&host, &[("url", &server.url("/silent")), ("patience", "600000")]).await;
    assert_eq!(answer, "error: ErrorCode::ConnectionReadTimeout");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[tokio::test]
async fn a_call_receives_as_much_as_it_may_and_no_more() {
    let server = Server::start().await;
    let mut host = bare_host(ClientConfig::default(), 8);
    host.limits.http_received_bytes_max = 1_000_000;
    host.grants.http = network(&server);
    host.load("http").await;
    for path in ["/endless", "/large/2000000"] {
        let (answer, record) = get(&host, &server.url(path)).await;
        let error = "then error: Some(ErrorCode::HttpResponseBodySize(Some(1000000)))";
        assert!(answer.ends_with(error), "{path}: {answer}");
        assert_eq!(record.http_received_bytes, 1_000_000);
        assert_eq!(refused(&record), ["limit:http-received-bytes-max"]);
    }
    let (answer, record) = get(&host, &server.url("/continue")).await;
    assert_eq!(answer, "error: ErrorCode::HttpResponseBodySize(Some(1000000))");
    assert_eq!(record.http_received_bytes, 1_000_000);
    // Several requests share the limit.
    let (answer, record) =
        ask(&host, &[("url", &server.url("/large/400000")), ("parallel", "3")]).await;
    assert_eq!(answer.matches("400000 bytes").count(), 2, "{answer}");
    assert_eq!(record.http_received_bytes, 1_000_000);
    server.open_becomes(0).await;
}

#[tokio::test]
async fn a_call_sends_as_much_as_it_may_and_no_more() {
    let server = Server::start().await;
    let mut host = bare_host(ClientConfig::default(), 8);
    host.limits.http_sent_bytes_max = 100_000;
    host.grants.http = network(&server);
    host.load("http").await;
    for (bytes, is_sent) in [("90000", true), ("200000", false)] {
        let post = [("method", "POST"), ("url", &*server.url("/fine")), ("bytes", bytes)];
        let (answer, record) = ask(&host, &post).await;
        assert_eq!(answer.ends_with("fine"), is_sent, "{answer}");
        assert_eq!(record.refused.is_empty(), is_sent);
        if !is_sent {
            assert_eq!(answer, "error: ErrorCode::HttpRequestBodySize(Some(100000))");
            assert_eq!(refused(&record), ["limit:http-sent-bytes-max"]);
            assert_eq!(record.http_sent_bytes, 100_000);
        }
    }
}

#[tokio::test]
async fn requests_beyond_those_under_way_wait_their_turn() {
    let server = Server::start().await;
    let mut host = bare_host(ClientConfig::default(), 8);
    host.limits.http_requests_max = 2;
    host.grants.http = network(&server);
    host.load("http").await;
    let (answer, record) =
        ask(&host, &[("url", &server.url("/slow/20")), ("parallel", "10")]).await;
    assert_eq!(answer.matches("late").count(), 10, "{answer}");
    assert_eq!(record.hosts[0].requests, 10);
    assert!(server.open_most() <= 3, "{}", server.open_most());
}

#[tokio::test]
async fn the_process_has_a_limit_of_its_own() {
    let server = Server::start().await;
    let config = ClientConfig { requests_max: 1, ..impatient() };
    let host = host_with(vec![grant(&server.url("/"), &[], &[])], config).await;
    let (answer, record) = ask(&host, &[("url", &server.url("/silent")), ("parallel", "2")]).await;
    assert!(answer.contains("ErrorCode::ConnectionLimitReached"), "{answer}");
    assert!(answer.contains("ErrorCode::ConnectionReadTimeout"), "{answer}");
    assert_eq!(record.refused.len(), 1, "{:?}", record.refused);
}

/// Resolver that never answers.
#[derive(Debug)]
struct Mute;

#[async_trait::async_trait]
impl Resolver for Mute {
    async fn addresses(&self, _name: &str) -> std::io::Result<Vec<std::net::IpAddr>> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn connecting_takes_as_long_as_it_may() {
    let server = Server::start().await;
    let rules = || vec![grant("https://*:*/", &["127.0.0.1"], &[])];
    let mute = host_with(rules(), ClientConfig { resolver: Arc::new(Mute), ..impatient() }).await;
    let (answer, _) = get(&mute, "https://server.test/").await;
    assert_eq!(answer, "error: ErrorCode::DnsTimeout");
    // A server without TLS waits for a request that never ends.
    let host = host_with(rules(), impatient()).await;
    let (answer, _) = get(&host, &format!("https://{}/", server.address)).await;
    assert_eq!(answer, "error: ErrorCode::ConnectionTimeout");
    let closed = Server::start().await.address;
    let (answer, _) = get(&host, &format!("https://127.0.0.1:{}/", closed.port())).await;
    assert_eq!(answer, "error: ErrorCode::ConnectionRefused");
    server.open_becomes(0).await;
}

#[tokio::test]
async fn a_call_that_ends_takes_its_connections_with_it() {
    let server = Server::start().await;
    let mut host = bare_host(ClientConfig::default(), 8);
    host.limits.wall_ms_max = 300;
    host.grants.http = network(&server);
    host.load("http").await;
    for path in ["/silent", "/stall", "/drip", "/endless"] {
        let (_, record) = get(&host, &server.url(path)).await;
        let ended_well = record.error_type.is_none() && record.refused.is_empty();
        assert!(!ended_well, "{path}: {record:?}");
        server.open_becomes(0).await;
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_takes_its_connections_with_it() {
    let server = Server::start().await;
    let host = Arc::new(host(&[&server.url("/")]).await);
    let context = context();
    let cancellation = context.cancellation.clone();
    let arguments = serde_json::json!({"url": server.url("/silent"), "parallel": "3"}).to_string();
    let calling = Arc::clone(&host);
    let call =
        tokio::spawn(async move { calling.try_call("http", &arguments, &context).await.unwrap() });
    server.open_becomes(3).await;
    cancellation.cancel();
    assert_eq!(call.await.unwrap().record.outcome, "cancelled");
    server.open_becomes(0).await;
}

fn network(server: &Server) -> Vec<HttpGrant> {
    vec![grant(&server.url("/"), &[], &[])]
}
