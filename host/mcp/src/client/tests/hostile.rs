//! Servers that send more than they may.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink, Question, QuestionKind};
use cofferdam_tool::{CallContext, Completion, Toolset};
use serde_json::{Value, json};

use super::read_request;
use crate::client::{
    Generation, HttpEndpoint, RemoteServer, ServerEndpoint, ServerSettings, StdioCommand,
};

/// Server over HTTP that answers its tool `flood` with an endless stream of messages, and its tool
/// `plain` with a result.
struct Hostile {
    url: String,
    /// Number of bytes of messages that the client has accepted.
    sent: Arc<AtomicU64>,
}

impl Hostile {
    fn start(messages: fn(u64) -> Value) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let counted = Arc::clone(&counted);
                std::thread::spawn(move || answer(stream.unwrap(), messages, &counted));
            }
        });
        Self { url, sent }
    }

    async fn connect(&self, generation: Generation) -> Arc<RemoteServer> {
        let mut settings =
            ServerSettings::new("far", ServerEndpoint::Http(HttpEndpoint::new(&self.url).unwrap()));
        settings.generation = generation;
        settings.call_wait = Duration::from_secs(10);
        Arc::new(RemoteServer::connect(settings).await.unwrap())
    }
}

/// Answers one request. An error means that the client is gone.
fn answer(mut stream: TcpStream, messages: fn(u64) -> Value, sent: &AtomicU64) -> Option<()> {
    let request = read_request(&stream)?;
    let result = match request["method"].as_str().unwrap_or_default() {
        "server/discover" => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
            "ttlMs": 0, "cacheScope": "private",
            "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}},
        }),
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "flood", "inputSchema": {"type": "object"}}, {"name": "plain", "inputSchema": {"type": "object"}},
        ], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}),
        "tools/call" if request["params"]["name"] == "flood" => {
            stream
                .write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: \
                    close\r\n\r\n",
                )
                .ok()?;
            for number in 0.. {
                let mut message = messages(number);
                if message.is_null() {
                    message =
                        json!({"jsonrpc": "2.0", "id": request["id"], "result": {"content": []}});
                }
                let event = format!("data: {message}\n\n");
                stream.write_all(event.as_bytes()).ok()?;
                sent.fetch_add(u64::try_from(event.len()).unwrap(), Ordering::Relaxed);
                if message.get("result").is_some() {
                    return None;
                }
            }
            json!({})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "plain"}]}),
        _ => {
            return stream
                .write_all(
                    b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                )
                .ok();
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string();
    let head =
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length:";
    write!(stream, "{head} {}\r\n\r\n{answer}", answer.len()).ok()
}

fn question(number: u64) -> Value {
    let schema = json!({"type": "object", "properties": {}});
    let params = json!({"message": "?".repeat(1024), "requestedSchema": schema});
    json!({"jsonrpc": "2.0", "id": format!("q{number}"), "method": "elicitation/create", "params": params})
}

fn sampling(number: u64) -> Value {
    let content = json!({"type": "text", "text": "x".repeat(1024)});
    let params = json!({"messages": [{"role": "user", "content": content}], "maxTokens": 10});
    json!({"jsonrpc": "2.0", "id": number, "method": "sampling/createMessage", "params": params})
}

/// Returns two thousand log lines and the result.
fn lines(number: u64) -> Value {
    if number == 2000 {
        return Value::Null;
    }
    let params = json!({"level": "info", "data": "x".repeat(1024)});
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params})
}

/// User who never answers.
#[derive(Default)]
struct Absent(AtomicU64);

#[async_trait]
impl Asker for Absent {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, _: Vec<Question>) -> Result<Vec<Value>, AskError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::pending().await
    }
}

#[derive(Default)]
struct Shown(Mutex<Vec<String>>);

impl LogSink for Shown {
    fn log(&self, _call_id: &str, _level: LogLevel, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

async fn call(server: &Arc<RemoteServer>, tool: &str, context: &CallContext) -> Completion {
    let mut tools = Toolset::new();
    tools.add(Arc::clone(server) as _).unwrap();
    tools.call(tool, None, context).await.unwrap()
}

#[tokio::test]
async fn requests_without_end_end_the_call_over_http() {
    for (generation, messages) in [
        (Generation::Handshake, question as fn(u64) -> Value),
        (Generation::Stateless, question),
        (Generation::Handshake, sampling),
    ] {
        let hostile = Hostile::start(messages);
        let server = hostile.connect(generation).await;
        let user = Arc::new(Absent::default());
        let context = CallContext { asker: Some(Arc::clone(&user) as _), ..CallContext::new("c") };
        let started = Instant::now();
        let completion = call(&server, "flood", &context).await;
        assert_eq!(completion.record.error_type.as_deref(), Some("Mcp.TooManyRequests"));
        assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
        assert!(user.0.load(Ordering::Relaxed) <= 8, "the user was asked more often than that");
        // Only the buffers of two sockets and the queues of the SDK.
        let sent = hostile.sent.load(Ordering::Relaxed);
        assert!(sent < 32 << 20, "{sent} bytes were taken");
        // The next call gets a new connection.
        let plain = call(&server, "plain", &CallContext::new("d")).await;
        assert_eq!(plain.outcome.shown().unwrap().text(), "plain");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn requests_without_end_end_the_call_over_a_pipe() {
    let script = r#"
        answer() { read -r line; echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
        answer 0 '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'
        read -r initialized
        answer 1 '{"tools":[{"name":"flood","inputSchema":{"type":"object"}}]}'
        read -r call
        i=0
        while :; do
            echo "{\"jsonrpc\":\"2.0\",\"id\":\"q$i\",\"method\":\"roots/list\"}"
            i=$((i+1))
        done
    "#;
    let command = StdioCommand {
        program: "/bin/sh".to_owned(),
        arguments: vec!["-c".to_owned(), script.to_owned()],
        ..StdioCommand::default()
    };
    let mut settings = ServerSettings::new("far", ServerEndpoint::Command(command));
    settings.generation = Generation::Handshake;
    settings.call_wait = Duration::from_secs(10);
    let server = Arc::new(RemoteServer::connect(settings).await.unwrap());
    let completion = call(&server, "flood", &CallContext::new("c")).await;
    assert_eq!(completion.record.error_type.as_deref(), Some("Mcp.TooManyRequests"));
}

#[tokio::test]
async fn log_lines_without_end_are_left_out_and_counted() {
    let hostile = Hostile::start(lines);
    let server = hostile.connect(Generation::Handshake).await;
    let shown = Arc::new(Shown::default());
    let context = CallContext { log: Some(Arc::clone(&shown) as _), ..CallContext::new("c") };
    let started = Instant::now();
    let completion = call(&server, "flood", &context).await;
    assert_eq!(completion.record.outcome, "ok");
    let shown = shown.0.lock().unwrap();
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap() + 2;
    assert!(shown.len() <= seconds * 51, "{} lines in {seconds} s", shown.len());
    assert!(shown.iter().any(|line| line.ends_with(" of the server left out")), "{shown:?}");
}

#[tokio::test]
async fn a_request_that_is_too_large_is_refused_and_the_call_goes_on() {
    fn large(number: u64) -> Value {
        let mut asked = question(number);
        asked["params"]["message"] = "?".repeat(300 * 1024).into();
        if number == 1 { Value::Null } else { asked }
    }
    let hostile = Hostile::start(large);
    let server = hostile.connect(Generation::Handshake).await;
    let user = Arc::new(Absent::default());
    let context = CallContext { asker: Some(Arc::clone(&user) as _), ..CallContext::new("c") };
    assert_eq!(call(&server, "flood", &context).await.record.outcome, "ok");
    assert_eq!(user.0.load(Ordering::Relaxed), 0);
}
