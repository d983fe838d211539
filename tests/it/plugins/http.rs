//! The tool `http` of every conformance plugin, against servers on loopback.

use std::io::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_network::{ClientConfig, Resolver};
use cofferdam_tests::{Host, config, root, shared_cache};
use cofferdam_tool::permission::{HttpGrant, HttpRule};
use cofferdam_tool::recording::{CallRecording, RecordingLevel};
use cofferdam_tool::{Completion, Outcome, Output};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{LANGUAGES, built};
use crate::network::grant;
use crate::network::server::Server;

/// Languages whose plugin must have the tool.
const REQUIRED: [&str; 8] = ["rust", "python", "javascript", "typescript", "go", "c", "cpp", "zig"];
/// Maximum bytes that a call sends, so that a case reaches the limit soon.
const SENT_BYTES_MAX: u64 = 4 << 20;

/// A line of `http.jsonl`. Exactly one of `result`, `failure`, `failed` and `says` is set.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    tool: String,
    arguments: Map<String, Value>,
    /// Expected keys of the result.
    result: Option<Map<String, Value>>,
    /// Error value of a failure.
    failure: Option<Value>,
    /// Any failure.
    #[serde(default)]
    failed: bool,
    /// Part of the message of a failure.
    says: Option<String>,
    #[serde(default)]
    only: Vec<String>,
    #[serde(default)]
    except: Vec<String>,
}

impl Case {
    fn is_about(&self, language: &str) -> bool {
        let is_in = |languages: &[String]| languages.iter().any(|name| name == language);
        (self.only.is_empty() || is_in(&self.only)) && !is_in(&self.except)
    }

    /// Returns a description of the difference between the outcome and the case.
    fn problem(&self, completion: &Completion) -> Option<String> {
        let is_right = match &completion.outcome {
            Outcome::Ok(Output::Value(value)) => self.result.as_ref().is_some_and(|expected| {
                expected.iter().all(|(key, expected)| value.get(key) == Some(expected))
            }),
            Outcome::Failure(failure) => {
                self.failed
                    || self.failure.as_ref().is_some_and(|value| *value == failure.error_value())
                    || self.says.as_ref().is_some_and(|part| failure.message.contains(part))
            }
            _ => false,
        };
        let ended =
            completion.outcome.shown().map_or_else(|| "nothing".to_owned(), |shown| shown.text());
        (!is_right).then(|| format!("{}: {ended}\n{}", self.name, completion.record.stderr_tail))
    }
}

/// Name of the server with a certificate, the only one that is known.
const SECURE: &str = "secure.test";

/// Knows one name.
#[derive(Debug)]
struct OneName;

#[async_trait::async_trait]
impl Resolver for OneName {
    async fn addresses(&self, name: &str) -> std::io::Result<Vec<IpAddr>> {
        if name == SECURE {
            return Ok(vec![IpAddr::from([127, 0, 0, 1])]);
        }
        Err(std::io::Error::new(std::io::ErrorKind::NotFound, format!("{name} is unknown")))
    }
}

/// Servers that the cases name.
struct Servers {
    server: Server,
    second: Server,
    /// Server with a certificate, and the certificate of its authority.
    secure: (Server, Vec<u8>),
    /// Server that is not granted.
    other: Server,
    /// Address on which nothing listens.
    closed: String,
}

impl Servers {
    async fn start() -> Self {
        let unused = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let closed = format!("http://{}", unused.local_addr().unwrap());
        let (server, second, other) =
            (Server::start().await, Server::start().await, Server::start().await);
        let secure = Server::start_tls(SECURE).await;
        Self { server, second, secure, other, closed }
    }

    /// Returns the cases with the addresses of the servers.
    fn cases(&self) -> Vec<Case> {
        let text = std::fs::read_to_string(root().join("guest-sdk/conformance/http.jsonl"))
            .unwrap()
            .replace("{server}", &self.server.url(""))
            .replace("{second}", &self.second.url(""))
            .replace("{other}", &self.other.url(""))
            .replace("{other-address}", self.other.url("").trim_start_matches("http://"))
            .replace("{closed}", &self.closed)
            .replace("{secure}", &format!("https://{SECURE}:{}", self.secure.0.port()));
        text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }

    /// Runs recorded calls again, which must be identical and send nothing. Returns what is
    /// different.
    async fn replay(&self, host: &Host, recordings: &[(&Case, Arc<CallRecording>)]) -> Vec<String> {
        let sent = || self.server.requests().len() + self.second.requests().len();
        // A server may still be reading a request of a call that has ended.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let before = sent();
        let mut problems = Vec::new();
        for (case, recording) in recordings {
            let report = cofferdam::replay::run(host.plugin(), recording).await.unwrap();
            let is_exact = report.gaps.is_empty();
            let differences = report.differences.iter().filter(|_| is_exact);
            problems.extend(differences.map(|one| format!("replay of {}: {one}", case.name)));
        }
        assert_eq!(sent(), before, "a replay sent a request");
        problems
    }

    /// Loads a plugin that may send requests to all servers except `other`.
    async fn host(&self, guest: &str) -> Host {
        let mut config = config();
        config.cache_directory = Some(shared_cache());
        config.pool.concurrent_calls_max = 2;
        config.network = ClientConfig {
            resolver: Arc::new(OneName),
            authorities_pem: vec![self.secure.1.clone()],
            ..ClientConfig::default()
        };
        let mut host = Host::with(config);
        host.recording = RecordingLevel::All;
        host.limits.http_sent_bytes_max = SENT_BYTES_MAX;
        let urls = [self.server.url(""), self.second.url(""), self.closed.clone()];
        let urls = urls.iter().map(String::as_str).chain(["http://nosuch.test"]);
        let rules = urls.map(|url| format!("{url}/").parse::<HttpRule>().unwrap());
        host.grants.http = rules.map(HttpGrant::from).collect();
        host.grants.http.push(grant(&format!("https://{SECURE}:*/"), &["127.0.0.1"], &[]));
        host.load(guest).await;
        host
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_sdk_sends_requests_alike() {
    let servers = Servers::start().await;
    let cases = servers.cases();
    let mut problems = Vec::new();
    for language in LANGUAGES {
        let guest = format!("conformance_{language}");
        if built(&guest).is_none() {
            continue;
        }
        let host = servers.host(&guest).await;
        if host.toolset().definition("http").is_err() {
            assert!(!REQUIRED.contains(&language), "{guest} has no tool `http`");
            continue;
        }
        let mut count = 0;
        let mut recordings = Vec::new();
        for case in cases.iter().filter(|case| case.is_about(language)) {
            let arguments = Value::Object(case.arguments.clone()).to_string();
            let completion = host.call(&case.tool, &arguments).await;
            count += 1;
            let problem = case.problem(&completion);
            problems.extend(problem.map(|problem| format!("{language}: {problem}")));
            recordings.push((case, completion.record.recording.unwrap()));
        }
        for problem in servers.replay(&host, &recordings).await {
            problems.push(format!("{language}: {problem}"));
        }
        let _ = writeln!(std::io::stderr(), "HTTP in {language}: {count} cases");
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(servers.other.open_most(), 0, "a request was sent without a grant");
}
