//! Servers over HTTP.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use cofferdam_tool::{CallContext, Completion, Outcome, ToolSource as _, Toolset};
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::client::{
    ConnectError, HttpEndpoint, InvalidEndpoint, MemoryCredentials, OAuthClient, OAuthSettings,
    RemoteServer, ServerEndpoint, ServerSettings,
};

/// Behavior of a test server.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Json,
    Events,
    TooLarge,
    TooLargeEvent,
}

struct Served {
    manner: Manner,
    redirect: Option<String>,
    /// Method, if any, and token of each request.
    seen: Mutex<Vec<(String, Option<String>)>>,
}

async fn serve(manner: Manner, redirect: Option<String>) -> (String, Arc<Served>, JoinHandle<()>) {
    let served = Arc::new(Served { manner, redirect, seen: Mutex::default() });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let answering = Arc::clone(&served);
    // Its connections end with the server.
    let running = tokio::spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let served = Arc::clone(&answering);
            let service = service_fn(move |request| answer(Arc::clone(&served), request));
            connections
                .spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    (url, served, running)
}

async fn answer(
    served: Arc<Served>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let token =
        request.headers().get(AUTHORIZATION).map(|value| value.to_str().unwrap().to_owned());
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message["method"].as_str().unwrap_or_default();
    served.seen.lock().unwrap().push((method.to_owned(), token));
    if let Some(to) = &served.redirect {
        let answer =
            Response::builder().status(StatusCode::TEMPORARY_REDIRECT).header(LOCATION, to);
        return Ok(answer.body(Full::default()).unwrap());
    }
    let Some(result) = result(method, &message["params"]) else {
        let status =
            if message["id"].is_null() { StatusCode::ACCEPTED } else { StatusCode::NOT_FOUND };
        return Ok(Response::builder().status(status).body(Full::default()).unwrap());
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let (kind, answer) = match served.manner {
        Manner::Json => ("application/json", answer),
        Manner::Events => ("text/event-stream", format!("data: {answer}\n\n")),
        Manner::TooLarge => ("application/json", answer + &" ".repeat(17 << 20)),
        Manner::TooLargeEvent => {
            ("text/event-stream", format!("data: {}{answer}\n\n", " ".repeat(17 << 20)))
        }
    };
    Ok(Response::builder().header(CONTENT_TYPE, kind).body(Full::from(answer)).unwrap())
}

/// Server of the earlier draft of tasks.
fn result(method: &str, parameters: &Value) -> Option<Value> {
    let object = json!({"type": "object"});
    Some(match method {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => json!({"tools": [
            {"name": "long", "inputSchema": object, "execution": {"taskSupport": "required"}},
            {"name": "typed", "inputSchema": object, "outputSchema": {"type": "object", "required": ["n"]}},
            {"name": "null", "inputSchema": null},
        ]}),
        "tools/call" if parameters["name"] == "typed" => {
            json!({"content": [], "structuredContent": {"m": 1}})
        }
        "tools/call" if parameters.get("task").is_some() => {
            json!({"task": {"taskId": "k", "status": "working", "createdAt": "", "lastUpdatedAt": "", "ttl": null}})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "plain"}]}),
        "tasks/get" => {
            json!({"taskId": "k", "status": "completed", "createdAt": "", "lastUpdatedAt": "", "ttl": 1})
        }
        "tasks/result" => {
            json!({"content": [{"type": "text", "text": "a task's"}], "_meta": {"x": 1}})
        }
        _ => return None,
    })
}

async fn connect(url: &str, token: Option<&'static str>) -> Result<RemoteServer, ConnectError> {
    let mut endpoint = HttpEndpoint::new(url).unwrap();
    if let Some(token) = token {
        endpoint =
            endpoint.with_headers(vec![(AUTHORIZATION, HeaderValue::from_static(token))]).unwrap();
    }
    RemoteServer::connect(ServerSettings::new("s", ServerEndpoint::Http(endpoint))).await
}

async fn call(server: &Arc<RemoteServer>, tool: &str) -> Completion {
    let mut tools = Toolset::new();
    tools.add(Arc::clone(server) as _).unwrap();
    tools.call(tool, None, &CallContext::new("c")).await.unwrap()
}

#[tokio::test]
async fn tasks_of_the_earlier_draft_run_over_http_in_either_form_of_answer() {
    for manner in [Manner::Json, Manner::Events] {
        let (url, served, _running) = serve(manner, None).await;
        let server = Arc::new(connect(&url, Some("Bearer t")).await.unwrap());
        let completion = call(&server, "long").await;
        assert_eq!(completion.outcome.shown().unwrap().text(), "a task's");
        assert_eq!(completion.record.hosts[0].host, "127.0.0.1");
        assert_eq!(call(&server, "null").await.outcome.shown().unwrap().text(), "plain");
        let seen = served.seen.lock().unwrap();
        assert!(seen.iter().all(|(_, token)| token.as_deref() == Some("Bearer t")), "{seen:?}");
        let methods: Vec<_> = seen
            .iter()
            .map(|(method, _)| method.as_str())
            .filter(|name| name.contains("task"))
            .collect();
        assert_eq!(methods, ["tasks/get", "tasks/result"]);
    }
}

#[tokio::test]
async fn a_result_that_breaks_the_declared_schema_is_an_error() {
    let (url, _, _running) = serve(Manner::Json, None).await;
    let server = Arc::new(connect(&url, None).await.unwrap());
    let Outcome::Error(error) = call(&server, "typed").await.outcome else { panic!("a success") };
    assert_eq!(error.type_name(), "InvalidResult");
}

#[tokio::test]
async fn no_header_follows_a_redirect_to_another_server() {
    let (elsewhere, other, _running) = serve(Manner::Json, None).await;
    let (url, served, _also) = serve(Manner::Json, Some(elsewhere)).await;
    assert!(connect(&url, Some("Bearer t")).await.is_err());
    assert!(!served.seen.lock().unwrap().is_empty());
    assert!(other.seen.lock().unwrap().is_empty(), "the redirect was followed");
}

#[tokio::test]
async fn answers_that_are_too_large_are_not_read() {
    for manner in [Manner::TooLarge, Manner::TooLargeEvent] {
        let (url, _, _running) = serve(manner, None).await;
        assert!(connect(&url, None).await.is_err());
    }
}

#[tokio::test]
async fn a_server_that_does_not_come_back_is_named_as_that() {
    let (url, _, running) = serve(Manner::Json, None).await;
    let server = Arc::new(connect(&url, None).await.unwrap());
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    let completion = call(&server, "null").await;
    let shown = completion.outcome.shown().unwrap();
    assert_eq!(shown.text(), r#"{"error":{"message":"Failed to reconnect to MCP server."}}"#);
    assert_eq!(completion.record.error_type.as_deref(), Some("Mcp.Unreachable"));
    assert_eq!(server.definitions().len(), 3);
}

#[test]
fn headers_of_the_protocol_are_rejected() {
    let with = |name: &'static str| {
        HttpEndpoint::new("https://example.com/")
            .unwrap()
            .with_headers(vec![(HeaderName::from_static(name), HeaderValue::from_static("x"))])
    };
    for name in ["mcp-session-id", "accept", "host", "transfer-encoding", "content-length"] {
        let error = with(name).unwrap_err();
        assert_eq!(error, InvalidEndpoint::ReservedHeader(HeaderName::from_static(name)));
        assert!(error.to_string().contains(name), "{error}");
    }
    assert!(with("authorization").is_ok() && with("x-api-key").is_ok());
}

#[test]
fn endpoints_with_other_secrets_are_different() {
    let endpoint = |header: &'static str, secret: &str| {
        let client = OAuthClient::Host { id: "c".to_owned(), secret: secret.to_owned() };
        let store = Arc::new(MemoryCredentials::default());
        let oauth = OAuthSettings {
            client,
            issuer: None,
            scopes: vec![],
            store,
            allows_private_addresses: false,
        };
        let headers = vec![(AUTHORIZATION, HeaderValue::from_static(header))];
        let endpoint = HttpEndpoint::new("https://example.com/").unwrap();
        ServerEndpoint::Http(endpoint.with_headers(headers).unwrap().with_oauth(oauth).unwrap())
    };
    let first = endpoint("a", "b");
    assert!(first.has_same_secrets(&endpoint("a", "b")));
    assert!(!first.has_same_secrets(&endpoint("x", "b")));
    assert!(!first.has_same_secrets(&endpoint("a", "x")));
}

#[test]
fn secrets_go_over_https_or_stay_on_this_machine() {
    let with_token = |url: &str| HttpEndpoint::new(url).unwrap().with_headers(vec![]);
    assert_eq!(
        with_token("http://example.com/").unwrap_err(),
        InvalidEndpoint::SecretOverPlainHttp
    );
    assert_eq!(
        with_token("http://127.0.0.1.example.com/").unwrap_err(),
        InvalidEndpoint::SecretOverPlainHttp
    );
    for url in ["https://example.com/", "http://127.0.0.1:1/", "http://[::1]/", "http://localhost/"]
    {
        assert!(with_token(url).is_ok(), "{url}");
    }
    assert_eq!(
        HttpEndpoint::new("https://a:b@example.com/").unwrap_err(),
        InvalidEndpoint::Credentials
    );
    assert!(matches!(HttpEndpoint::new("file:///x").unwrap_err(), InvalidEndpoint::Scheme(_)));
}
