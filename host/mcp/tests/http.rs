//! MCP over HTTP, with requests of programs, web pages and unauthorized clients.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

mod issuer;
mod raw;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_mcp::{
    Access, HttpOptions, OAuth, Offer, Rate, Server, ServerOptions, SubjectAccess, TokenAccess,
};
use cofferdam_tool::pattern::ToolPattern;
use cofferdam_tool::{
    Annotations, CallContext, CallRecord, Completion, InputSchema, Outcome, Output, ToolCall,
    ToolDefinition, ToolName, ToolSource, Toolset,
};
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use self::issuer::Issuer;

const TOKEN: &str = "a-token-that-is-hard-to-guess";
const NARROW: &str = "a-token-for-one-source-alone";

/// Source with one tool that answers with the source's name.
struct Named(&'static str);

#[async_trait]
impl ToolSource for Named {
    fn name(&self) -> &str {
        self.0
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        let definition = ToolDefinition {
            name: ToolName::new(format!("who_{}", self.0)).unwrap(),
            title: None,
            description: "Says who it is.".to_owned(),
            input: Arc::new(InputSchema::compile("who", "{}").unwrap()),
            output: None,
            annotations: Annotations::default(),
            group: None,
        };
        Arc::from([Arc::new(definition)])
    }

    async fn invoke(&self, _: ToolCall<'_>, context: &CallContext) -> Completion {
        let who = json!({"who": self.0, "session": context.session});
        Completion::new(Outcome::Ok(Output::Value(who)), CallRecord::default())
    }
}

/// Server with the sources `red` and `blue`.
struct Running {
    address: SocketAddr,
    client: Client,
    _stop: DropGuard,
}

impl Running {
    async fn start(options: HttpOptions) -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap(), options)
    }

    fn on(listener: TcpListener, options: HttpOptions) -> Self {
        Self::with(listener, options, ServerOptions::default())
    }

    fn with(listener: TcpListener, options: HttpOptions, behavior: ServerOptions) -> Self {
        let sources: [Arc<dyn ToolSource>; 2] = [Arc::new(Named("red")), Arc::new(Named("blue"))];
        let offer = Offer { toolset: Toolset::join(sources).unwrap(), ..Offer::default() };
        let server = Server::new(offer, behavior).unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { server.serve_http(listener, options, stopped).await.unwrap() });
        // Only the first of several tests succeeds.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        Self {
            address,
            client: Client::builder().no_proxy().build().unwrap(),
            _stop: stop.drop_guard(),
        }
    }

    fn request(&self, method: &str, mut parameters: Value) -> RequestBuilder {
        parameters["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
        let request = self
            .client
            .post(format!("http://{}/mcp", self.address))
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", method);
        let request = match parameters["name"].as_str() {
            Some(name) => request.header("mcp-name", name),
            None => request,
        };
        request.body(body.to_string())
    }

    async fn list(&self, token: Option<&str>) -> Response {
        let request = self.request("tools/list", json!({}));
        let request = match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        request.send().await.unwrap()
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn with_tokens() -> HttpOptions {
    let only_red = Some(BTreeSet::from(["red".to_owned()]));
    let tokens = vec![
        TokenAccess {
            name: "owner".to_owned(),
            sha256: digest(TOKEN),
            sources: None,
            tools: None,
            decides: true,
        },
        TokenAccess {
            name: "narrow".to_owned(),
            sha256: digest(NARROW),
            sources: only_red,
            tools: None,
            decides: false,
        },
    ];
    HttpOptions { access: Access { tokens, ..Access::default() }, ..HttpOptions::default() }
}

fn open() -> HttpOptions {
    HttpOptions { access: Access { is_open: true, ..Access::default() }, ..HttpOptions::default() }
}

async fn json_of(response: Response) -> Value {
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

fn names(listed: &Value) -> Vec<&str> {
    listed["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_token_that_is_limited_to_tools_lists_finds_and_calls_only_these() {
    let mut options = with_tokens();
    let tools = Some(vec![ToolPattern::new("*_red").unwrap()]);
    let token = "a-token-for-some-tools-of-all-sources";
    let access = TokenAccess {
        name: "tools".to_owned(),
        sha256: digest(token),
        sources: None,
        tools,
        decides: false,
    };
    options.access.tokens.push(access);
    for searches in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Running::with(
            listener,
            options.clone(),
            ServerOptions { searches, ..ServerOptions::default() },
        );
        let listed = json_of(server.list(Some(token)).await).await;
        let expected: &[&str] =
            if searches { &["tools_search", "tools_call"] } else { &["who_red"] };
        assert_eq!(names(&listed), expected);
        let call = async |tool: &str, arguments: Value| {
            let parameters = json!({"name": tool, "arguments": arguments});
            json_of(
                server.request("tools/call", parameters).bearer_auth(token).send().await.unwrap(),
            )
            .await
        };
        if searches {
            let found = call("tools_search", json!({"query": "says who it is"})).await.to_string();
            assert!(found.contains("who_red") && !found.contains("who_blue"), "{found}");
            let refused = call("tools_call", json!({"name": "who_blue", "arguments": {}})).await;
            assert_eq!(refused["result"]["isError"], true, "{refused}");
            continue;
        }
        assert_eq!(call("who_red", json!({})).await["result"]["structuredContent"]["who"], "red");
        let refused = call("who_blue", json!({})).await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        assert_eq!(refused["result"]["content"][0]["text"], "Tool who_blue not found");
    }
}

#[tokio::test]
async fn a_token_is_needed_and_decides_what_is_there() {
    let server = Running::start(with_tokens()).await;
    for token in [None, Some("another-token-of-that-length")] {
        let refused = server.list(token).await;
        assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
        assert!(refused.headers()["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
    }
    assert_eq!(names(&json_of(server.list(Some(TOKEN)).await).await), ["who_red", "who_blue"]);
    assert_eq!(names(&json_of(server.list(Some(NARROW)).await).await), ["who_red"]);
    let call = |tool: &str| {
        server.request("tools/call", json!({"name": tool, "arguments": {}})).bearer_auth(NARROW)
    };
    let red = json_of(call("who_red").send().await.unwrap()).await;
    assert_eq!(red["result"]["structuredContent"], json!({"who": "red", "session": "narrow"}));
    let blue = json_of(call("who_blue").send().await.unwrap()).await;
    assert_eq!(blue["result"]["content"][0]["text"], "Tool who_blue not found");
}

#[tokio::test]
async fn a_page_of_another_site_cannot_call_even_where_no_token_is_needed() {
    let server = Running::start(open()).await;
    let port = server.address.port();
    // Headers that a browser adds on its own when a page fetches across sites.
    let from = |origin: &str| {
        server
            .request("tools/call", json!({"name": "who_red", "arguments": {}}))
            .header("origin", origin)
            .header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "cors")
            .header("user-agent", "Mozilla/5.0")
    };
    for origin in
        ["https://evil.example", "http://localhost:3000", "null", "http://127.0.0.1.evil.example"]
    {
        assert_eq!(from(origin).send().await.unwrap().status(), StatusCode::FORBIDDEN, "{origin}");
    }
    // A browser sends forms without a preflight, but a form is not JSON.
    let form = server
        .client
        .post(format!("http://{}/mcp", server.address))
        .header("origin", "https://evil.example");
    assert_eq!(
        form.header("content-type", "text/plain").body("{}").send().await.unwrap().status(),
        StatusCode::FORBIDDEN
    );
    let preflight = server
        .client
        .request(reqwest::Method::OPTIONS, format!("http://{}/mcp", server.address))
        .header("origin", "https://evil.example")
        .header("access-control-request-method", "POST");
    let preflight = preflight.send().await.unwrap();
    assert!(!preflight.status().is_success());
    assert!(!preflight.headers().contains_key("access-control-allow-origin"));
    // Host name that the page's owner points at this server (DNS rebinding).
    let rebound =
        server.request("tools/list", json!({})).header("host", format!("evil.example:{port}"));
    assert_eq!(rebound.send().await.unwrap().status(), StatusCode::FORBIDDEN);
    // The server's own pages, and programs, may call.
    let own = from(&format!("http://127.0.0.1:{port}")).send().await.unwrap();
    assert_eq!(own.status(), StatusCode::OK);
    assert_eq!(server.list(None).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_request_has_limits() {
    let server = Running::start(HttpOptions { body_bytes_max: 10_000, ..open() }).await;
    let large = server
        .request("tools/call", json!({"name": "who_red", "arguments": {"a": "x".repeat(20_000)}}));
    assert_eq!(large.send().await.unwrap().status(), StatusCode::PAYLOAD_TOO_LARGE);
    let roomy = Running::start(open()).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "x".repeat(70_000), "version": "1"},
    }});
    let opening = roomy.client.post(format!("http://{}/mcp", roomy.address));
    let opening = opening.header("content-type", "application/json");
    let opening = opening.header("accept", "application/json, text/event-stream");
    let refused = opening.body(initialize.to_string()).send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let head = server.request("tools/list", json!({})).header("x-large", "x".repeat(60_000));
    assert!(head.send().await.map_or(true, |response| response.status().is_client_error()));
    assert_eq!(server.list(None).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_client_that_never_ends_its_request_is_dropped() {
    let server = Running::start(open()).await;
    let mut slow = TcpStream::connect(server.address).await.unwrap();
    slow.write_all(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n").await.unwrap();
    let mut rest = Vec::new();
    let ended = tokio::time::timeout(Duration::from_secs(40), slow.read_to_end(&mut rest)).await;
    assert!(ended.is_ok(), "the connection is still open");
}

#[tokio::test]
async fn too_many_requests_are_refused_for_a_while() {
    let rate = Rate { per_second: 1.0, burst: 3.0 };
    let server = Running::start(HttpOptions { rate, ..with_tokens() }).await;
    let mut refused = 0;
    for _ in 0..6 {
        refused +=
            usize::from(server.list(Some(TOKEN)).await.status() == StatusCode::TOO_MANY_REQUESTS);
    }
    assert!(refused >= 2, "{refused}");
    assert_eq!(
        server.list(Some(NARROW)).await.status(),
        StatusCode::OK,
        "another principal is not held up"
    );
}

#[tokio::test]
async fn clients_that_hang_up_do_not_make_the_host_fetch_keys_again() {
    let issuer = Issuer::start_slow(Duration::from_millis(400)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let resource = format!("http://{}/mcp", listener.local_addr().unwrap());
    let oauth = OAuth {
        issuer: issuer.url.parse().unwrap(),
        resource: resource.parse().unwrap(),
        keys: None,
        scopes: Vec::new(),
        subjects: BTreeMap::new(),
        others: SubjectAccess(None),
    };
    let access = Access { oauth: Some(oauth), ..Access::default() };
    let server = Running::on(listener, HttpOptions { access, ..HttpOptions::default() });
    let claims =
        json!({"iss": issuer.url, "aud": resource, "sub": "ann", "exp": issuer::now() + 600});
    let token = issuer.token(&claims);
    for _ in 0..20 {
        let hung_up =
            tokio::time::timeout(Duration::from_millis(10), server.list(Some(&token))).await;
        assert!(hung_up.is_err());
    }
    assert_eq!(server.list(Some(&token)).await.status(), StatusCode::OK);
    assert_eq!(issuer.key_requests(), 1);
}

#[tokio::test]
async fn tokens_of_an_issuer_are_checked_before_they_are_believed() {
    let issuer = Issuer::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let resource = format!("http://{}/mcp", listener.local_addr().unwrap());
    let sources =
        |names: &[&str]| SubjectAccess(Some(names.iter().map(|name| (*name).to_owned()).collect()));
    let oauth = OAuth {
        issuer: issuer.url.parse().unwrap(),
        resource: resource.parse().unwrap(),
        keys: None,
        scopes: vec!["tools".to_owned()],
        subjects: BTreeMap::from([("ann".to_owned(), sources(&["red", "blue"]))]),
        others: sources(&["blue"]),
    };
    let access = Access { oauth: Some(oauth), ..Access::default() };
    let server = Running::on(listener, HttpOptions { access, ..HttpOptions::default() });

    let refused = server.list(None).await;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap().to_owned();
    let metadata = challenge.split('"').find(|part| part.starts_with("http://")).unwrap();
    let metadata = json_of(server.client.get(metadata).send().await.unwrap()).await;
    assert_eq!(metadata["resource"], resource);
    assert_eq!(
        metadata["authorization_servers"],
        json!([issuer.url.parse::<url::Url>().unwrap().as_str()])
    );
    assert_eq!(metadata["scopes_supported"], json!(["tools"]));

    let claims = |change: Value| {
        let mut claims = json!({"iss": issuer.url, "aud": resource, "sub": "ann", "exp": issuer::now() + 600, "scope": "tools more"});
        for (name, value) in change.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims
    };
    let listed = server.list(Some(&issuer.token(&claims(json!({}))))).await;
    assert_eq!(names(&json_of(listed).await), ["who_red", "who_blue"]);
    let other = issuer.token(&claims(json!({"sub": "bob", "scope": null, "scp": ["tools"]})));
    assert_eq!(names(&json_of(server.list(Some(&other)).await).await), ["who_blue"]);

    let narrow = server.list(Some(&issuer.token(&claims(json!({"scope": "more"}))))).await;
    assert_eq!(narrow.status(), StatusCode::FORBIDDEN);
    assert!(narrow.headers()["www-authenticate"].to_str().unwrap().contains("insufficient_scope"));

    let good = issuer.token(&claims(json!({})));
    let bad = [
        issuer.token(&claims(json!({"aud": "https://another.example/mcp"}))),
        issuer.token(&claims(json!({"iss": "https://another.example"}))),
        issuer.token(&claims(json!({"exp": issuer::now() - 600}))),
        issuer.token(&claims(json!({"nbf": issuer::now() + 600}))),
        issuer.token(&claims(json!({"exp": null}))),
        issuer.token(&claims(json!({"sub": ""}))),
        issuer.with_critical_extension(&claims(json!({}))),
        issuer.token(&claims(json!({"sub": null}))),
        issuer.forged(&claims(json!({}))),
        issuer.without_signature(&claims(json!({}))),
        issuer.signed_with_the_public_key(&claims(json!({}))),
        format!("{good}A"),
        "a.b.c".to_owned(),
    ];
    for token in bad {
        assert_eq!(server.list(Some(&token)).await.status(), StatusCode::UNAUTHORIZED, "{token}");
    }
    assert_eq!(server.list(Some(&good)).await.status(), StatusCode::OK);
}
