//! Network access of a guest.

mod limits;
mod secrets;
pub(super) mod server;
mod sockets;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use cofferdam_network::{ClientConfig, Resolver};
use cofferdam_tests::{Host, config, shared_cache};
use cofferdam_tool::permission::{HttpGrant, HttpRule, SecretText};
use cofferdam_tool::{CallContext, CallRecord};

use server::Server;

/// Answers each lookup with the next of its answers, and repeats the last one.
#[derive(Debug)]
struct Names {
    answers: Mutex<Vec<Vec<IpAddr>>>,
    lookups: AtomicUsize,
}

impl Names {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let answers =
            answers.iter().map(|answer| answer.iter().map(|text| text.parse().unwrap()).collect());
        let mut answers: Vec<_> = answers.collect();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), lookups: AtomicUsize::new(0) })
    }

    fn lookups(&self) -> usize {
        self.lookups.load(Ordering::SeqCst)
    }
}

#[async_trait::async_trait]
impl Resolver for Names {
    async fn addresses(&self, _name: &str) -> std::io::Result<Vec<IpAddr>> {
        self.lookups.fetch_add(1, Ordering::SeqCst);
        let mut answers = self.answers.lock().unwrap();
        Ok(if answers.len() > 1 { answers.pop().unwrap() } else { answers[0].clone() })
    }
}

/// Returns a grant made of a rule, addresses, and headers that the host sets.
pub(crate) fn grant(rule: &str, addresses: &[&str], headers: &[&str]) -> HttpGrant {
    let mut grant = HttpGrant::from(rule.parse::<HttpRule>().unwrap());
    grant.addresses.extend(
        addresses
            .iter()
            .map(|text| text.parse::<cofferdam_tool::permission::AddressRange>().unwrap()),
    );
    grant.headers = headers.iter().map(|text| text.parse().unwrap()).collect();
    grant
}

/// Returns a host for `calls` concurrent calls, without a plugin.
fn bare_host(network: ClientConfig, calls: u32) -> Host {
    let mut config = config();
    config.cache_directory = Some(shared_cache());
    config.pool.concurrent_calls_max = calls;
    config.network = network;
    Host::with(config)
}

async fn host_with(grants: Vec<HttpGrant>, network: ClientConfig) -> Host {
    let mut host = bare_host(network, 8);
    let secrets = BTreeMap::from([("key".to_owned(), SecretText::new("s3cr3t-value"))]);
    (host.grants.http, host.grants.secrets) = (grants, secrets);
    host.load("http").await;
    host
}

/// Returns a host that lets the guest send requests that match `rules`.
async fn host(rules: &[&str]) -> Host {
    host_with(rules.iter().map(|rule| grant(rule, &[], &[])).collect(), ClientConfig::default())
        .await
}

/// Returns the guest's answer and the call record.
async fn ask(host: &Host, arguments: &[(&str, &str)]) -> (String, CallRecord) {
    let arguments: serde_json::Value = arguments
        .iter()
        .copied()
        .collect::<BTreeMap<_, _>>()
        .into_iter()
        .map(|(k, v)| (k.to_owned(), v.into()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let completion = host.call("http", &arguments.to_string()).await;
    let text = completion.outcome.shown().map(|shown| shown.text()).unwrap_or_default();
    (text, *completion.record)
}

async fn get(host: &Host, url: &str) -> (String, CallRecord) {
    ask(host, &[("url", url)]).await
}

fn refused(record: &CallRecord) -> Vec<&str> {
    record.refused.iter().map(|refusal| refusal.capability.as_str()).collect()
}

/// Returns a host whose guest may send anything to `server.test`, which `names` resolves.
async fn named(names: &Arc<Names>, granted: &[&str]) -> Host {
    let resolver: Arc<dyn Resolver> = Arc::clone(names) as _;
    let network = ClientConfig { resolver, ..ClientConfig::default() };
    host_with(vec![grant("http://server.test:*/", granted, &[])], network).await
}

#[tokio::test]
async fn a_granted_request_is_answered() {
    let server = Server::start().await;
    let host = host(&[&format!("GET,POST http://{}/", server.address)]).await;
    let (answer, record) = ask(
        &host,
        &[
            ("method", "POST"),
            ("url", &server.url("/echo?a=b")),
            ("headers", "x-one: 1|x-one: 2"),
            ("body", "hello"),
        ],
    )
    .await;
    assert!(answer.starts_with("200\n"), "{answer}");
    assert!(answer.contains("POST /echo?a=b HTTP/1.1\r\n"), "{answer}");
    assert!(answer.contains("x-one: 1\r\nx-one: 2\r\n"), "{answer}");
    assert!(answer.contains(&format!("host: {}\r\n", server.address)), "{answer}");
    assert!(answer.contains("5\r\nhello\r\n0\r\n\r\n"), "{answer}");
    assert_eq!(
        (record.hosts.len(), record.hosts[0].host.as_str()),
        (1, "127.0.0.1"),
        "{:?}",
        record.hosts
    );
    assert_eq!((record.hosts[0].port, record.hosts[0].requests), (server.port(), 1));
    assert_eq!(record.http_sent_bytes, server.requests()[0].len() as u64);
    assert!(record.http_received_bytes > record.http_sent_bytes, "{record:?}");
    assert_eq!(refused(&record), [""; 0]);
}

#[tokio::test]
async fn a_granted_request_over_tls_is_answered_and_the_certificate_counts() {
    let (server, authority) = Server::start_tls("server.test").await;
    let names = Names::new(&[&["127.0.0.1"]]);
    let rules = vec![grant("https://*.test:*/", &["127.0.0.1"], &[])];
    let resolver: Arc<dyn Resolver> = Arc::clone(&names) as _;
    let unknown = ClientConfig { resolver, ..ClientConfig::default() };
    let known = ClientConfig { authorities_pem: vec![authority], ..unknown.clone() };
    let (host, stranger) = (host_with(rules.clone(), known).await, host_with(rules, unknown).await);
    let url = format!("https://server.test:{}/echo", server.port());
    let (answer, _) = ask(&host, &[("method", "PUT"), ("url", &url), ("body", "hello")]).await;
    assert!(answer.starts_with("200\n") && answer.contains("hello"), "{answer}");
    assert!(answer.contains(&format!("host: server.test:{}\r\n", server.port())), "{answer}");

    let other = format!("https://other.test:{}/echo", server.port());
    for (host, url) in [(&host, &other), (&stranger, &url)] {
        let (answer, _) = get(host, url).await;
        assert_eq!(answer, "error: ErrorCode::TlsCertificateError");
    }
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn bodies_stream_both_ways() {
    let server = Server::start().await;
    let host = host(&[&server.url("/")]).await;
    let (answer, record) =
        ask(&host, &[("method", "POST"), ("url", &server.url("/fine")), ("bytes", "1000000")])
            .await;
    assert!(answer.ends_with("fine"), "{answer}");
    assert_eq!(server.requests()[0].matches('x').count(), 1_000_000);
    assert!(record.http_sent_bytes > 1_000_000);
    let (answer, record) = get(&host, &server.url("/large/5000000")).await;
    assert!(answer.ends_with("\n5000000 bytes"), "{answer}");
    assert!(record.http_received_bytes > 5_000_000);
}

#[tokio::test]
async fn without_a_grant_nothing_is_sent_and_the_operator_reads_what_would_grant_it() {
    let server = Server::start().await;
    let host = host(&[]).await;
    let (answer, record) = get(&host, &server.url("/echo")).await;
    assert_eq!(answer, "error: ErrorCode::HttpRequestDenied");
    assert_eq!(refused(&record), [format!("http:GET http://{}/echo", server.address)]);
    assert_eq!((record.hosts.len(), record.http_sent_bytes), (0, 0));
    server.open_becomes(0).await;
    assert_eq!(server.open_most(), 0);
}

#[tokio::test]
async fn a_grant_is_for_its_method_scheme_host_port_and_path_alone() {
    let server = Server::start().await;
    let other = Server::start().await;
    let host =
        host(&[&format!("GET http://{}/api", server.address), "https://*.example.com/"]).await;
    let (answer, _) = get(&host, &server.url("/api/x")).await;
    assert!(answer.starts_with("200\n"), "{answer}");
    let port = server.port();
    for (method, url) in [
        ("POST", server.url("/api/x")),
        ("get", server.url("/api/x")),
        ("GET", other.url("/api/x")),
        ("GET", format!("https://127.0.0.1:{port}/api/x")),
        ("GET", server.url("/apis")),
        ("GET", server.url("/")),
        ("GET", server.url("/api/../admin")),
        ("GET", server.url("/api/%2e%2e/admin")),
        ("GET", server.url("/api//admin")),
        ("GET", server.url("/api/..%2fadmin")),
        ("GET", format!("http://localhost:{port}/api")),
        ("GET", format!("http://127.0.0.2:{port}/api")),
        ("GET", format!("http://[::ffff:127.0.0.2]:{port}/api")),
        ("GET", format!("http://127.0.0.1.example.com:{port}/api")),
        ("GET", "https://example.com/".to_owned()),
        ("GET", "https://a.example.com.evil.test/".to_owned()),
        ("GET", "https://aexample.com/".to_owned()),
        ("GET", "http://a.example.com/".to_owned()),
    ] {
        let (answer, record) = ask(&host, &[("method", method), ("url", &url)]).await;
        assert_eq!(answer, "error: ErrorCode::HttpRequestDenied", "{method} {url}");
        assert_eq!(record.refused.len(), 1, "{method} {url}");
        assert!(record.refused[0].capability.starts_with("http:"), "{:?}", record.refused);
    }
    assert_eq!((server.requests().len(), other.open_most()), (1, 0));
}

#[tokio::test]
async fn a_url_that_could_be_read_in_two_ways_is_none() {
    let server = Server::start().await;
    let host = host(&["http://*:*/", "https://*:*/"]).await;
    let port = server.port();
    for (method, url, error) in [
        ("GET", format!("http://user@127.0.0.1:{port}/"), "ErrorCode::HttpRequestUriInvalid"),
        (
            "GET",
            format!("http://a.example:80@127.0.0.1:{port}/"),
            "ErrorCode::HttpRequestUriInvalid",
        ),
        ("GET", format!("http://2130706433:{port}/"), "ErrorCode::HttpRequestUriInvalid"),
        ("GET", format!("http://0x7f000001:{port}/"), "ErrorCode::HttpRequestUriInvalid"),
        ("GET", format!("http://0x7f.1:{port}/"), "ErrorCode::HttpRequestUriInvalid"),
        ("GET", format!("http://0177.0.0.1:{port}/"), "ErrorCode::HttpRequestUriInvalid"),
        ("GET", format!("http://127.1:{port}/"), "ErrorCode::HttpRequestUriInvalid"),
        ("GET", "http://:80/".to_owned(), "ErrorCode::HttpRequestUriInvalid"),
        ("GET", "http://a.example:99999/".to_owned(), "ErrorCode::HttpRequestUriInvalid"),
        ("GET", "ftp://a.example/".to_owned(), "ErrorCode::HttpProtocolError"),
        ("GET", format!("http://127.0.0.1:{port}/ HTTP/1.1"), "path"),
        ("GET", format!("http://127.0.0.1:{port}/^x: y"), "path"),
        ("CONNECT", format!("http://127.0.0.1:{port}/"), "ErrorCode::HttpRequestMethodInvalid"),
        ("TRACE", format!("http://127.0.0.1:{port}/"), "ErrorCode::HttpRequestMethodInvalid"),
    ] {
        let (answer, _) = ask(&host, &[("method", method), ("url", &url)]).await;
        assert_eq!(answer, format!("error: {error}"), "{method} {url}");
    }
    assert_eq!(server.open_most(), 0);
}

#[tokio::test]
async fn an_address_that_is_not_public_is_refused_however_it_is_reached() {
    let server = Server::start().await;
    for address in [
        "127.0.0.1",
        "127.9.9.9",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "2002:7f00:1::1",
        "2001::1",
        "fe80::1",
        "fd00:ec2::254",
        "ff02::1",
    ] {
        let names = Names::new(&[&[address]]);
        let host = named(&names, &[]).await;
        let (answer, record) = get(&host, &format!("http://server.test:{}/", server.port())).await;
        assert_eq!(answer, "error: ErrorCode::DestinationIpProhibited", "{address}");
        let reason = record.refused[0].reason.as_deref().unwrap();
        assert!(reason.contains("`addresses = [\""), "{address}: {reason}");
        assert_eq!(names.lookups(), 1);
    }
    assert_eq!(server.open_most(), 0);
}

#[tokio::test]
async fn a_wildcard_is_not_a_grant_of_addresses() {
    let server = Server::start().await;
    let host = host(&["http://*:*/"]).await;
    for name in ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]"] {
        let (answer, record) = get(&host, &format!("http://{name}:{}/", server.port())).await;
        assert_eq!(answer, "error: ErrorCode::DestinationIpProhibited", "{name}");
        assert!(
            record.refused[0].reason.as_deref().unwrap().contains("a loopback address"),
            "{:?}",
            record.refused
        );
    }
    assert_eq!(server.open_most(), 0);
}

#[tokio::test]
async fn the_address_that_was_checked_is_the_one_that_is_connected() {
    let server = Server::start().await;
    let url = format!("http://server.test:{}/fine", server.port());
    // A second lookup would lead to 127.0.0.2, which is not granted and where no server listens.
    let names = Names::new(&[&["127.0.0.1"], &["127.0.0.2"]]);
    let host = named(&names, &["127.0.0.1"]).await;
    let (answer, _) = get(&host, &url).await;
    assert!(answer.ends_with("fine"), "{answer}");
    assert_eq!((names.lookups(), server.requests().len()), (1, 1));
    let (answer, _) = get(&host, &url).await;
    assert_eq!(answer, "error: ErrorCode::DestinationIpProhibited");
    assert_eq!((names.lookups(), server.requests().len()), (2, 1));
}

#[tokio::test]
async fn addresses_that_are_not_granted_are_skipped() {
    let server = Server::start().await;
    let names = Names::new(&[&["127.0.0.2", "10.0.0.1", "::ffff:127.0.0.1"]]);
    let host = named(&names, &["127.0.0.1"]).await;
    let (answer, _) = get(&host, &format!("http://server.test:{}/fine", server.port())).await;
    assert!(answer.ends_with("fine"), "{answer}");
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_following_it_is_a_new_request() {
    let (server, other) = (Server::start().await, Server::start().await);
    let host = host(&[&server.url("/")]).await;
    let away = server.url(&format!("/redirect/{}", other.url("/echo")));
    let (answer, _) = get(&host, &away).await;
    assert!(answer.starts_with("302\n"), "{answer}");
    let (answer, record) = ask(&host, &[("url", &away), ("follow", "yes")]).await;
    assert_eq!(answer, "error: ErrorCode::HttpRequestDenied");
    assert_eq!(refused(&record), [format!("http:GET http://{}/echo", other.address)]);
    assert_eq!(other.open_most(), 0);
    let here = server.url(&format!("/redirect/{}", server.url("/fine")));
    let (answer, record) = ask(&host, &[("url", &here), ("follow", "yes")]).await;
    assert!(answer.ends_with("fine"), "{answer}");
    assert_eq!(record.hosts[0].requests, 2);
}

#[tokio::test]
async fn a_header_cannot_become_another_message() {
    let server = Server::start().await;
    let host = host(&[&server.url("/")]).await;
    for (headers, error) in [
        ("x: a^y: b", "header x: HeaderError::InvalidSyntax"),
        ("x y: b", "header x y: HeaderError::InvalidSyntax"),
        ("host: evil.example", "header host: HeaderError::Forbidden"),
        ("Transfer-Encoding: chunked", "header Transfer-Encoding: HeaderError::Forbidden"),
        ("connection: upgrade", "header connection: HeaderError::Forbidden"),
        ("upgrade: websocket", "header upgrade: HeaderError::Forbidden"),
        ("proxy-authorization: x", "header proxy-authorization: HeaderError::Forbidden"),
        (
            "content-length: 1|content-length: 2",
            "header content-length: HeaderError::InvalidSyntax",
        ),
        ("content-length: +1", "header content-length: HeaderError::InvalidSyntax"),
    ] {
        let (answer, _) = ask(&host, &[("url", &server.url("/echo")), ("headers", headers)]).await;
        assert_eq!(answer, format!("error: {error}"), "{headers}");
    }
    assert_eq!(server.open_most(), 0);
    // A wrong content length ends the request, and the rest of the body does not become a second
    // one.
    let smuggled = [
        ("method", "POST"),
        ("url", &server.url("/early")),
        ("headers", "content-length: 3"),
        ("body", "abcGET /smuggled HTTP/1.1"),
    ];
    ask(&host, &smuggled).await;
    assert!(
        server.requests().iter().all(|request| !request.contains("smuggled")),
        "{:?}",
        server.requests()
    );
}

#[tokio::test]
async fn an_answer_is_given_as_it_came_without_what_belongs_to_the_connection() {
    let server = Server::start().await;
    let host = host(&[&server.url("/")]).await;
    let (answer, _) = get(&host, &server.url("/zipped")).await;
    assert!(answer.contains("content-encoding: gzip\n") && answer.ends_with("zip!"), "{answer}");
    let (answer, _) = get(&host, &server.url("/hop")).await;
    assert!(answer.contains("x-other: y\n"), "{answer}");
    assert!(!answer.contains("keep-alive") && !answer.contains("proxy-authenticate"), "{answer}");
}

/// Runs a test again in a process whose environment names proxies that do not exist.
#[test]
fn proxies_in_the_environment_are_ignored() {
    let mut again = std::process::Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "network::a_granted_request_is_answered"]);
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        again.env(name, "http://127.0.0.1:1");
    }
    let output = again.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

/// Returns the context of a caller that can cancel.
fn context() -> CallContext {
    CallContext::new("test")
}
