//! Servers whose streams break, and servers that forget their sessions.

use std::io::Write as _;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::{CallContext, Completion, Toolset};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::read_request;
use crate::client::{HttpEndpoint, RemoteServer, ServerEndpoint, ServerSettings};

/// Time that nothing here needs.
const LONG: Duration = Duration::from_secs(30);
/// One event with an id, in a body that ends before its length.
const BROKEN: &str = "200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 1000\r\n\
    Connection: close\r\n\r\n\
    id: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\
    \"info\",\"data\":\"x\"}}\n\n";
const NOT_FOUND: &str = "404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const NO_STREAM: &str = "405 Method Not Allowed\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const ACCEPTED: &str = "202 Accepted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";

/// Starts a server and returns its address. `respond` gets the message of a request, null without
/// one, and returns the response.
fn start(mut respond: impl FnMut(&Value) -> String + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let Some(message) = read_request(&stream) else { continue };
            // The client may be gone.
            let _ = write!(stream, "HTTP/1.1 {}", respond(&message));
        }
    });
    url
}

fn json_response(message: &Value, result: &Value) -> String {
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    format!(
        "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn opened(message: &Value, revision: &str) -> String {
    let result = json!({
        "protocolVersion": revision, "capabilities": {"tools": {}},
        "serverInfo": {"name": "s", "version": "1"},
    });
    json_response(message, &result)
}

fn listed(message: &Value, support: &str) -> String {
    let execution = json!({"taskSupport": support});
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "execution": execution});
    json_response(message, &json!({"tools": [tool]}))
}

async fn connect(url: &str, call_wait: Duration) -> Arc<RemoteServer> {
    let endpoint = ServerEndpoint::Http(HttpEndpoint::new(url).unwrap());
    let mut settings = ServerSettings::new("s", endpoint);
    settings.call_wait = call_wait;
    Arc::new(RemoteServer::connect(settings).await.unwrap())
}

async fn call(server: &Arc<RemoteServer>) -> Completion {
    let mut tools = Toolset::new();
    tools.add(Arc::clone(server) as _).unwrap();
    tools.call("t", None, &CallContext::new("c")).await.unwrap()
}

fn shown(completion: &Completion) -> String {
    completion.outcome.shown().unwrap().text()
}

#[tokio::test]
async fn streams_that_break_are_not_opened_again_at_once() {
    let streams = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&streams);
    // Both the stream of the session and that of the call break.
    let url = start(move |message| match message["method"].as_str() {
        None => {
            *counted.lock() += 1;
            BROKEN.to_owned()
        }
        Some("initialize") => opened(message, "2025-11-25"),
        Some("tools/list") => listed(message, "forbidden"),
        Some("tools/call") => BROKEN.to_owned(),
        Some("server/discover") => NOT_FOUND.to_owned(),
        Some(_) => ACCEPTED.to_owned(),
    });
    let server = connect(&url, Duration::from_millis(700)).await;
    let ended = call(&server).await;
    assert_eq!(ended.record.error_type.as_deref(), Some("Timeout"), "{}", shown(&ended));
    let streams = *streams.lock();
    assert!((1..=2).contains(&streams), "{streams} streams");
}

/// Server that forgets its session before each second call, and offers `revisions` one after the
/// other. Returns its address and the methods of its requests.
fn forgetful(
    revisions: &'static [&'static str],
    support: &'static str,
) -> (String, Arc<Mutex<Vec<String>>>) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let (mut revisions, mut calls, mut is_known) = (revisions.iter(), 0, false);
    let url = start(move |message| {
        let Some(method) = message["method"].as_str() else { return NO_STREAM.to_owned() };
        noted.lock().push(method.to_owned());
        match method {
            "initialize" => {
                is_known = true;
                opened(message, revisions.next().unwrap())
            }
            "server/discover" => NOT_FOUND.to_owned(),
            "tools/call" => {
                calls += 1;
                is_known &= calls != 2;
                if !is_known {
                    return NOT_FOUND.to_owned();
                }
                json_response(message, &json!({"content": [{"type": "text", "text": "done"}]}))
            }
            _ if !is_known => NOT_FOUND.to_owned(),
            "tools/list" => listed(message, support),
            _ => ACCEPTED.to_owned(),
        }
    });
    (url, seen)
}

#[tokio::test]
async fn a_session_that_the_server_forgot_is_opened_again_with_all_checks() {
    for support in ["forbidden", "required"] {
        let (url, seen) = forgetful(&["2025-11-25", "2025-06-18"], support);
        let server = connect(&url, LONG).await;
        let mut changes = server.changes();
        changes.mark_unchanged();
        assert_eq!(shown(&call(&server).await), "done");
        assert_eq!(shown(&call(&server).await), "done", "{support}");
        assert_eq!(seen.lock().iter().filter(|method| *method == "tools/call").count(), 3);
        // The tools of the new session are listed.
        tokio::time::timeout(LONG, changes.changed()).await.unwrap().unwrap();
        assert_eq!(server.protocol_version().as_deref(), Some("2025-06-18"));
    }
}

#[tokio::test]
async fn a_new_session_in_an_unknown_revision_is_refused() {
    for support in ["forbidden", "required"] {
        let (url, seen) = forgetful(&["2025-11-25", "1999-01-01"], support);
        let server = connect(&url, LONG).await;
        assert_eq!(shown(&call(&server).await), "done");
        let refused = shown(&call(&server).await);
        assert!(refused.contains("Failed to reconnect to MCP server."), "{refused}");
        assert_eq!(seen.lock().iter().filter(|method| *method == "tools/call").count(), 2);
    }
}
