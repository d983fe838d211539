//! Servers whose answers are missing, invalid, or those to other requests, and servers that do not
//! read.

use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_tool::{CallContext, Completion, Outcome, Toolset};
use serde_json::{Value, json};

use super::read_request;
use crate::client::{
    ConnectError, Generation, HttpEndpoint, RemoteServer, ServerEndpoint, ServerSettings,
    StdioCommand,
};

/// Time of a call that does not wait for its limit.
const SOON: Duration = Duration::from_secs(5);

/// Returns the head and the body of the response to a request.
type Respond = fn(&Value) -> (&'static str, String);

const JSON: &str = "200 OK\r\nContent-Type: application/json";
const EVENTS: &str = "200 OK\r\nContent-Type: text/event-stream";

/// Starts a server over HTTP and returns its address.
fn start(respond: Respond) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            std::thread::spawn(move || serve(stream.unwrap(), respond));
        }
    });
    url
}

fn serve(mut stream: TcpStream, respond: Respond) -> Option<()> {
    let request = read_request(&stream)?;
    let (head, body) = match request["id"].is_null() {
        true => ("202 Accepted", String::new()),
        false => respond(&request),
    };
    let length = body.len();
    write!(stream, "HTTP/1.1 {head}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}")
        .ok()
}

/// Answers the requests that open a connection, whose tool `t` answers with `called`.
fn opening(request: &Value, called: Respond) -> (&'static str, String) {
    let result = match request["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}),
        // As a server that ignores what it does not know.
        "server/discover" => return ("202 Accepted", String::new()),
        _ => return called(request),
    };
    (JSON, json!({"jsonrpc": "2.0", "id": request["id"], "result": result}).to_string())
}

fn settings(endpoint: ServerEndpoint) -> ServerSettings {
    let mut settings = ServerSettings::new("far", endpoint);
    settings.call_wait = Duration::from_secs(30);
    settings
}

async fn connect(respond: Respond) -> Arc<RemoteServer> {
    let endpoint = HttpEndpoint::new(&start(respond)).unwrap();
    Arc::new(RemoteServer::connect(settings(ServerEndpoint::Http(endpoint))).await.unwrap())
}

async fn call(server: &Arc<RemoteServer>, arguments: &Value) -> Completion {
    let mut tools = Toolset::new();
    tools.add(Arc::clone(server) as _).unwrap();
    let arguments = arguments.to_string();
    tools.call("t", Some(arguments.as_bytes()), &CallContext::new("c")).await.unwrap()
}

fn shown(completion: &Completion) -> String {
    completion.outcome.shown().unwrap().text()
}

#[tokio::test]
async fn a_call_without_an_answer_of_its_own_fails_at_once_over_http() {
    let cases: [(Respond, &str); 6] = [
        (
            |request| opening(request, |_| ("202 Accepted", String::new())),
            "HTTP 202 Accepted, which has no answer to the request",
        ),
        (
            |request| opening(request, |_| ("204 No Content", String::new())),
            "HTTP 204 No Content, which has no answer to the request",
        ),
        (
            |request| {
                opening(request, |_| {
                    (JSON, r#"{"jsonrpc":"2.0","id":99,"result":{"content":[]}}"#.into())
                })
            },
            "does not answer the request",
        ),
        (
            |request| {
                opening(request, |_| {
                    (JSON, r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}"#.into())
                })
            },
            "does not answer the request",
        ),
        (
            |request| {
                opening(request, |_| {
                    (JSON, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}"#.into())
                })
            },
            "error -32700: not JSON",
        ),
        (
            |request| {
                opening(request, |request| {
                    let id = &request["id"];
                    (
                        EVENTS,
                        format!(
                            "data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"x\":NaN}}}}\n\nid: 1\n\n"
                        ),
                    )
                })
            },
            "the server's answer cannot be read",
        ),
    ];
    for (respond, detail) in cases {
        let server = connect(respond).await;
        let started = Instant::now();
        let completion = call(&server, &json!({})).await;
        assert!(started.elapsed() < SOON, "{detail}: {:?}", started.elapsed());
        let Outcome::Error(error) = &completion.outcome else { panic!("{completion:?}") };
        let found = error.to_string();
        assert!(found.contains(detail), "{found}");
    }
}

/// Returns settings for a server that is a script. It opens the connection and then goes on with
/// `rest`.
fn script(revision: &str, rest: &str) -> ServerSettings {
    let script = format!(
        r#"
        answer() {{ read -r line; printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$1" "$2"; }}
        answer 0 '{{"protocolVersion":"{revision}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"s","version":"1"}}}}'
        read -r initialized
        answer 1 '{{"tools":[{{"name":"t","inputSchema":{{"type":"object","properties":{{"a":{{}}}}}},"annotations":{{"idempotentHint":false}}}}]}}'
        {rest}
        "#
    );
    let command = StdioCommand {
        program: "/bin/sh".to_owned(),
        arguments: vec!["-c".to_owned(), script],
        env: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
        ..StdioCommand::default()
    };
    let mut settings = settings(ServerEndpoint::Command(command));
    settings.generation = Generation::Handshake;
    settings
}

#[cfg(unix)]
#[tokio::test]
async fn an_answer_that_cannot_be_read_ends_its_call_over_a_pipe() {
    for (answer, message) in [
        (r#"{"jsonrpc":"2.0","id":2,"result":{"x":NaN}}"#, "the server's answer cannot be read"),
        (r#"{"jsonrpc":"2.0","result":{"x":NaN}}"#, "the server's answer cannot be read"),
        (r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"not JSON"}}"#, "not JSON"),
    ] {
        let rest =
            format!("read -r call; echo working; printf '%s\\n' '{answer}'; exec sleep 1000");
        let server = Arc::new(RemoteServer::connect(script("2025-11-25", &rest)).await.unwrap());
        let started = Instant::now();
        let completion = call(&server, &json!({})).await;
        assert!(started.elapsed() < SOON, "{answer}: {:?}", started.elapsed());
        assert!(shown(&completion).contains(message), "{}", shown(&completion));
    }
}

#[cfg(unix)]
#[tokio::test]
async fn an_unknown_revision_is_refused() {
    let refused = RemoteServer::connect(script("1999-01-01", "exec sleep 1000")).await;
    let error = refused.err().unwrap();
    assert!(matches!(error, ConnectError::UnknownRevision { .. }), "{error}");
    assert_eq!(
        error.to_string(),
        "the server speaks the revision `1999-01-01` of MCP; this client speaks 2024-11-05, \
         2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"
    );
}

#[cfg(unix)]
#[tokio::test]
async fn calls_of_a_server_that_does_not_read_are_refused_and_withdrawn() {
    let mut settings = script("2025-11-25", "exec sleep 1000");
    settings.call_wait = Duration::from_millis(300);
    let server = Arc::new(RemoteServer::connect(settings).await.unwrap());
    let large = json!({"a": "x".repeat(900 << 10)});
    let is_refused = |end: &Completion| shown(end).contains("The server does not read its input.");
    // Calls that were given up make room, except the one of which a part has been written.
    for held in [18, 17] {
        let ends = futures_util::future::join_all((0..24).map(|_| call(&server, &large))).await;
        let (refused, given_up): (Vec<_>, Vec<_>) = ends.into_iter().partition(is_refused);
        assert_eq!((refused.len(), given_up.len()), (24 - held, held));
        for end in given_up {
            assert_eq!(end.record.error_type.as_deref(), Some("Timeout"));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_call_whose_repetition_has_an_effect_is_not_sent_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("calls");
    let rest = format!("read -r call; echo x >> '{}'; exit 1", file.display());
    let server = Arc::new(RemoteServer::connect(script("2025-11-25", &rest)).await.unwrap());
    let end = call(&server, &json!({})).await;
    assert_eq!(end.record.error_type.as_deref(), Some("Mcp.ConnectionLost"), "{end:?}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "x\n");
}
