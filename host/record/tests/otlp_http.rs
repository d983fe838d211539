//! Export of spans to a collector: a server that scripts its answers and keeps what it received.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "helpers of tests, which are not test functions themselves"
)]

use std::collections::{HashMap, VecDeque};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cofferdam_record::{
    CallFilter, Log, LogEvent, OtlpError, OtlpExporter, OtlpOptions, RecordOptions, Recorder,
};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::retry::Backoff;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{CallContext, Functions, Toolset};
use serde_json::{Value, json};

/// Secret that a header has.
const SECRET: &str = "CANARY0123456789";

/// A request that the collector received.
struct Received {
    path: String,
    headers: HashMap<String, String>,
    body: Value,
    bytes: usize,
}

/// Answer of the collector.
enum Answer {
    Status(u16, &'static str, &'static str),
    /// The connection is closed.
    Hangup,
    /// Nothing is said.
    Silence,
}

/// A collector. Without a script it accepts everything.
#[derive(Clone)]
struct Collector {
    address: std::net::SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    script: Arc<Mutex<VecDeque<Answer>>>,
}

impl Collector {
    fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let collector = Self {
            address: listener.local_addr().unwrap(),
            received: Arc::default(),
            script: Arc::new(Mutex::new(script.into_iter().collect())),
        };
        let serving = collector.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = serving.clone();
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        collector
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Some(request) = read_request(&mut reader) {
            self.received.lock().unwrap().push(request);
            let answer = self.script.lock().unwrap().pop_front();
            let (status, header, body) = match answer.unwrap_or(Answer::Status(200, "", "{}")) {
                Answer::Status(status, header, body) => (status, header, body),
                Answer::Hangup => return,
                Answer::Silence => {
                    std::thread::sleep(Duration::from_secs(60));
                    return;
                }
            };
            let length = body.len();
            let stream = reader.get_mut();
            write!(stream, "HTTP/1.1 {status} x\r\ncontent-length: {length}\r\n{header}\r\n{body}")
                .unwrap();
        }
    }

    fn options(&self) -> OtlpOptions {
        let millisecond = Duration::from_millis(1);
        OtlpOptions {
            headers: vec![(
                "authorization".to_owned(),
                SecretText::new(format!("Bearer {SECRET}")),
            )],
            backoff: Backoff {
                retries_max: u32::MAX,
                pause: millisecond,
                pause_max: 4 * millisecond,
            },
            retry_time: Duration::from_secs(20),
            ..OtlpOptions::new(format!("http://{}/base/", self.address))
        }
    }

    fn exporter(&self) -> OtlpExporter {
        OtlpExporter::new(self.options()).unwrap()
    }

    fn requests(&self) -> usize {
        self.received.lock().unwrap().len()
    }

    /// Returns the spans of all requests.
    fn spans(&self) -> Vec<Value> {
        let received = self.received.lock().unwrap();
        let spans = |one: &Received| {
            one.body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        };
        received.iter().flat_map(spans).collect()
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<Received> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("POST"));
    let path = words.next().unwrap().to_owned();
    let mut headers = HashMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_owned(), value.to_owned());
    }
    let mut compressed = vec![0; headers["content-length"].parse().unwrap()];
    reader.read_exact(&mut compressed).unwrap();
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&*compressed).read_to_end(&mut body).unwrap();
    let bytes = body.len();
    Some(Received { path, headers, body: serde_json::from_slice(&body).unwrap(), bytes })
}

struct TestLog {
    directory: tempfile::TempDir,
    recorder: Arc<Recorder>,
    tools: Toolset,
}

impl TestLog {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = RecordOptions::new(directory.path().join("log"));
        let recorder = Arc::new(Recorder::open(options).unwrap());
        let tool = |name| Declaration::new(name, "A tool.", r#"{"type":"object"}"#);
        let functions = Functions::new("samples")
            .with(tool("work"), async |_, _| Ok(json!("done")))
            .unwrap()
            .with(tool("fail"), async |_, _| Err(FunctionEnd::failure("It does not work.")))
            .unwrap();
        let mut tools = Toolset::new();
        tools.set_sink(Arc::clone(&recorder) as Arc<dyn CallSink>);
        tools.add(Arc::new(functions)).unwrap();
        Self { directory, recorder, tools }
    }

    async fn call(&self, tool: &str, id: &str) {
        let context =
            CallContext { session: Some("chat".to_owned()), ..CallContext::new(id.to_owned()) };
        let _ = self.tools.call(tool, Some(b"{}"), &context).await;
    }

    async fn calls(&self, number: usize) {
        for index in 0..number {
            self.call("work", &format!("c{index}")).await;
        }
        self.recorder.flush();
    }

    fn log(&self) -> Log {
        Log::open(self.directory.path().join("log")).unwrap()
    }
}

fn attributes(span: &Value) -> HashMap<String, Value> {
    let all = span["attributes"].as_array().unwrap().iter();
    all.map(|one| (one["key"].as_str().unwrap().to_owned(), one["value"].clone())).collect()
}

/// Asserts that a value is in OTLP's JSON, as the specification maps its protobuf.
fn assert_span(span: &Value) {
    let is_hex = |value: &Value, length: usize| {
        let text = value.as_str().unwrap();
        text.len() == length && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    assert!(is_hex(&span["traceId"], 32) && is_hex(&span["spanId"], 16), "{span}");
    assert!(span["parentSpanId"].is_null() || is_hex(&span["parentSpanId"], 16));
    let time = |name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"));
    assert!(time("startTimeUnixNano") > 1_700_000_000_000_000_000);
    assert!(span["kind"].is_u64());
    for key in span.as_object().unwrap().keys() {
        assert!(!key.contains('_'), "{key}");
    }
    for (name, value) in attributes(span) {
        let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
        match &**kind {
            "stringValue" => assert!(value.is_string(), "{name}"),
            "intValue" => assert!(value.as_str().unwrap().parse::<i64>().is_ok(), "{name}"),
            "arrayValue" => assert!(value["values"].is_array(), "{name}"),
            other => panic!("{name} has a {other}"),
        }
    }
    assert_eq!(attributes(span).contains_key("error.type"), span["status"]["code"] == 2);
}

fn model(finish: &str) -> LogEvent {
    LogEvent::Model {
        provider: "openai-chat".to_owned(),
        model: "m1".to_owned(),
        session: Some("chat".to_owned()),
        input_tokens: Some(3),
        output_tokens: Some(5),
        finish: finish.to_owned(),
        trace: None,
        exchange: None,
        duration: Duration::from_secs(1),
    }
}

#[tokio::test]
async fn a_log_is_exported_as_spans_of_the_conventions() {
    let (collector, log) = (Collector::new([]), TestLog::new());
    log.call("work", "c1").await;
    log.call("fail", "c2").await;
    log.recorder.event(model("stop"));
    log.recorder.event(model("RateLimited"));
    log.recorder.event(LogEvent::Agent {
        agent: "helper".to_owned(),
        session: Some("chat".to_owned()),
        provider: Some("anthropic".to_owned()),
        model: Some("m2".to_owned()),
        input_tokens: Some(3),
        output_tokens: None,
        error: None,
        trace: None,
        duration: Duration::from_secs(2),
    });
    log.recorder.close();
    let report = collector.exporter().export(&log.log(), &CallFilter::default()).await.unwrap();
    assert_eq!((report.spans, report.rejected, report.message), (5, 0, None));
    {
        let received = collector.received.lock().unwrap();
        let Received { path, headers, body, .. } = &received[0];
        assert_eq!(path, "/base/v1/traces");
        assert_eq!(headers["content-type"], "application/json");
        assert_eq!(headers["content-encoding"], "gzip");
        assert_eq!(headers["authorization"], format!("Bearer {SECRET}"));
        let resource = &body["resourceSpans"][0]["resource"]["attributes"][0];
        assert_eq!(
            *resource,
            json!({"key": "service.name", "value": {"stringValue": "cofferdam"}})
        );
    }
    let spans = collector.spans();
    spans.iter().for_each(assert_span);
    let named = |name: &str| {
        let found: Vec<_> = spans.iter().filter(|span| span["name"] == name).collect();
        assert!(!found.is_empty(), "{name}");
        found.into_iter().map(|span| (span["kind"].clone(), attributes(span))).collect::<Vec<_>>()
    };
    let text = |text: &str| json!({"stringValue": text});
    let (kind, failed) = &named("execute_tool fail")[0];
    assert_eq!(*kind, 1);
    assert_eq!(failed["gen_ai.operation.name"], text("execute_tool"));
    assert_eq!(failed["gen_ai.tool.name"], text("fail"));
    assert_eq!(failed["gen_ai.tool.call.id"], text("c2"));
    assert_eq!(failed["error.type"], text("tool_error"));
    assert!(!failed.contains_key("gen_ai.provider.name"));
    assert!(!named("execute_tool work")[0].1.contains_key("error.type"));
    let chats = named("chat m1");
    let (kind, chat) = &chats[0];
    assert_eq!(*kind, 3);
    assert_eq!(chat["gen_ai.operation.name"], text("chat"));
    assert_eq!(chat["gen_ai.provider.name"], text("openai"));
    assert_eq!(chat["gen_ai.request.model"], text("m1"));
    assert_eq!(chat["gen_ai.usage.input_tokens"], json!({"intValue": "3"}));
    assert_eq!(chat["gen_ai.conversation.id"], text("chat"));
    let reasons = json!({"arrayValue": {"values": [text("stop")]}});
    assert_eq!(chat["gen_ai.response.finish_reasons"], reasons);
    assert_eq!(chats[1].1["error.type"], text("RateLimited"));
    let (kind, agent) = &named("invoke_agent helper")[0];
    assert_eq!(*kind, 1);
    assert_eq!(agent["gen_ai.operation.name"], text("invoke_agent"));
    assert_eq!(agent["gen_ai.provider.name"], text("anthropic"));
    assert_eq!(agent["gen_ai.agent.name"], text("helper"));
}

#[tokio::test]
async fn requests_are_bounded_and_failures_that_pass_are_retried() {
    let script = [
        Answer::Status(503, "", "busy"),
        Answer::Hangup,
        Answer::Status(429, "retry-after: 1\r\n", ""),
        Answer::Status(502, "", ""),
        Answer::Status(504, "retry-after: Tue, 24 Nov 2020 16:00:00 GMT\r\n", ""),
    ];
    let (collector, log) = (Collector::new(script), TestLog::new());
    log.calls(1200).await;
    let started = Instant::now();
    let report = collector.exporter().export(&log.log(), &CallFilter::default()).await.unwrap();
    assert_eq!(report.spans, 1200);
    let waited = started.elapsed();
    assert!(waited >= Duration::from_secs(1) && waited < Duration::from_secs(15), "{waited:?}");
    let received = collector.received.lock().unwrap();
    assert_eq!(received.len(), 5 + 3);
    for one in received.iter() {
        let spans = &one.body["resourceSpans"][0]["scopeSpans"][0]["spans"];
        assert!(spans.as_array().unwrap().len() <= 512 && one.bytes <= 1 << 20);
    }
    let ids: std::collections::HashSet<_> = received
        .iter()
        .flat_map(|one| {
            one.body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap().clone()
        })
        .map(|span| span["spanId"].clone())
        .collect();
    assert_eq!(ids.len(), 1200);
}

#[tokio::test]
async fn rejected_spans_are_reported_and_not_sent_again() {
    let body = r#"{"partialSuccess":{"rejectedSpans":"2","errorMessage":"too\u001b old"}}"#;
    let (collector, log) = (Collector::new([Answer::Status(200, "", body)]), TestLog::new());
    log.calls(5).await;
    let report = collector.exporter().export(&log.log(), &CallFilter::default()).await.unwrap();
    assert_eq!((report.spans, report.rejected), (5, 2));
    assert_eq!(report.message.as_deref(), Some("too  old"));
    assert_eq!(collector.requests(), 1);
}

#[tokio::test]
async fn a_refusal_is_an_error_with_advice_and_without_secrets() {
    for (status, expected) in
        [(400, "in JSON"), (401, "`authorization`"), (404, "`/v1/traces`"), (308, "redirects")]
    {
        let body = r#"{"message":"no Bearer CANARY0123456789"}"#;
        let collector = Collector::new([Answer::Status(status, "location: /x\r\n", body)]);
        let log = TestLog::new();
        log.calls(1).await;
        let error = collector.exporter().export(&log.log(), &CallFilter::default()).await;
        let error = error.unwrap_err();
        let message = error.to_string();
        assert!(message.contains(&format!("HTTP {status}")), "{message}");
        assert!(message.contains(expected), "{message}");
        assert!(!message.contains("CANARY") && !format!("{error:?}").contains("CANARY"));
        assert_eq!(collector.requests(), 1);
    }
    let collector = Collector::new([]);
    let shown = format!("{:?} {:?}", collector.options(), collector.exporter());
    assert!(!shown.contains("CANARY"), "{shown}");
}

#[tokio::test]
async fn an_endpoint_that_cannot_be_used_is_an_error() {
    let refused = |endpoint: &str, has_headers: bool| {
        let mut options = OtlpOptions::new(endpoint);
        if has_headers {
            options.headers.push(("x-key".to_owned(), SecretText::new(SECRET)));
        }
        OtlpExporter::new(options).map(drop).unwrap_err().to_string()
    };
    for (endpoint, expected) in [
        ("localhost:4318", "neither"),
        ("4318", "write it as"),
        ("http://me:CANARY@localhost", "`authorization`"),
        ("http://collector.example", "`https:`"),
    ] {
        let message = refused(endpoint, true);
        assert!(message.contains(expected) && !message.contains("CANARY"), "{message}");
    }
    assert!(OtlpExporter::new(OtlpOptions::new("http://collector.example")).is_ok());
    let mut options = OtlpOptions::new("http://localhost");
    options.headers.push(("x-key".to_owned(), SecretText::new("CANARY\nCANARY")));
    let error = OtlpExporter::new(options).unwrap_err();
    assert!(matches!(error, OtlpError::Header { .. }) && !error.to_string().contains("CANARY"));
}

#[tokio::test]
async fn a_collector_that_never_answers_is_an_error_after_the_time_for_retries() {
    let collector = Collector::new((0..100).map(|_| Answer::Silence));
    let log = TestLog::new();
    log.calls(1).await;
    let options = OtlpOptions {
        timeout: Duration::from_millis(50),
        retry_time: Duration::from_millis(200),
        ..collector.options()
    };
    let exporter = OtlpExporter::new(options).unwrap();
    let error = exporter.export(&log.log(), &CallFilter::default()).await.unwrap_err();
    let OtlpError::Connection { attempts, cause, .. } = &error else { panic!("{error}") };
    assert!(*attempts > 1 && cause.contains("no answer within 0.05 s"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_host_is_exported_and_the_rest_at_the_end() {
    let script = [Answer::Status(503, "", ""), Answer::Status(400, "", "no"), Answer::Hangup];
    let (collector, log) = (Collector::new(script), TestLog::new());
    let other = Recorder::open(RecordOptions::new(log.directory.path().join("log"))).unwrap();
    let export = collector.exporter().follow(log.recorder.follow().unwrap());
    log.calls(10).await;
    // The first request is refused for good, so that its spans stay in the log only.
    let until = Instant::now() + Duration::from_secs(20);
    while export.health().failed == 0 && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let failed = export.health();
    assert_eq!((failed.failed, failed.sent, failed.is_failing), (10, 0, true));
    assert!(failed.error.unwrap().contains("HTTP 400"));
    // What other processes write is theirs to export.
    other.event(model("stop"));
    other.close();
    for index in 0..700 {
        log.call("work", &format!("d{index}")).await;
    }
    log.recorder.close();
    let started = Instant::now();
    let health = export.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(3));
    assert_eq!((health.sent, health.failed, health.is_failing), (700, 10, false));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_that_never_answers_delays_neither_calls_nor_the_end() {
    let (collector, log) = (Collector::new((0..100).map(|_| Answer::Silence)), TestLog::new());
    let export = collector.exporter().follow(log.recorder.follow().unwrap());
    let started = Instant::now();
    log.calls(2000).await;
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    while collector.requests() == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    log.recorder.close();
    let started = Instant::now();
    assert_eq!(export.shutdown().await.sent, 0);
    assert!(started.elapsed() < Duration::from_millis(2500), "{:?}", started.elapsed());
    assert_eq!(log.log().query(&CallFilter::default()).unwrap().calls.len(), 2000);
}
