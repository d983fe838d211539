//! Authorization at a server that is its own authorization server, and gives up what is used twice.

use std::convert::Infallible;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ALLOW, AUTHORIZATION, WWW_AUTHENTICATE};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use rmcp::transport::streamable_http_client::StreamableHttpClient as _;

use super::*;
use crate::client::{RemoteServer, ServerEndpoint, ServerSettings};

/// Limit of a connection that does not wait for a slow refresh.
const SHORT: Duration = Duration::from_secs(1);
/// Time of a slow refresh.
const SLOW: Duration = Duration::from_secs(3);
const LONG: Duration = Duration::from_secs(20);

/// Server whose tokens `a1`, `a2` and so on are valid. Each refresh replaces `r0` by `r1`, and so
/// on.
struct Served {
    origin: String,
    /// True if only challenges name the authorization server.
    is_by_challenge: bool,
    /// Path of the resource in the metadata.
    resource: &'static str,
    state: Mutex<ServedState>,
}

#[derive(Default)]
struct ServedState {
    /// Status of the responses of the token endpoint, and time that they take.
    status: StatusCode,
    delay: Duration,
    /// Number of tokens that were issued, and of the first ones that are no longer valid.
    issued: usize,
    withdrawn: usize,
    /// Codes and refresh tokens that were sent to the token endpoint.
    sent: Vec<String>,
    /// Those that are no longer valid.
    used: Vec<String>,
}

impl Served {
    async fn start(is_by_challenge: bool) -> Arc<Self> {
        Self::start_with(is_by_challenge, "/mcp").await
    }

    async fn start_with(is_by_challenge: bool, resource: &'static str) -> Arc<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let served = Arc::new(Self { origin, is_by_challenge, resource, state: Mutex::default() });
        let serving = Arc::clone(&served);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let served = Arc::clone(&serving);
                let service = service_fn(move |request| {
                    let served = Arc::clone(&served);
                    async move { Ok::<_, Infallible>(served.answer(request).await) }
                });
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        served
    }

    fn respond(&self, status: StatusCode, delay: Duration) {
        let mut state = self.state.lock().unwrap();
        (state.status, state.delay) = (status, delay);
    }

    fn sent(&self) -> Vec<String> {
        self.state.lock().unwrap().sent.clone()
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let issuer = format!("{}/login", self.origin);
        let json = |status: StatusCode, document: Value| {
            let response = Response::builder().status(status);
            response.header("content-type", "application/json").body(document.to_string().into())
        };
        let response = match head.uri.path() {
            "/token" => {
                let (status, delay, document) = self.token(&body);
                tokio::time::sleep(delay).await;
                json(status, document)
            }
            "/mcp" if head.method == Method::POST => {
                let token = head.headers.get(AUTHORIZATION).map(|value| value.to_str().unwrap());
                let mut valid = {
                    let state = self.state.lock().unwrap();
                    state.withdrawn + 1..=state.issued
                }
                .map(|number| format!("Bearer a{number}"));
                match valid.any(|valid| Some(valid.as_str()) == token) {
                    true => mcp(&body),
                    false => Response::builder()
                        .status(StatusCode::UNAUTHORIZED)
                        .header(WWW_AUTHENTICATE, self.challenge())
                        .body(Full::default()),
                }
            }
            "/mcp" => Response::builder()
                .status(StatusCode::METHOD_NOT_ALLOWED)
                .header(ALLOW, "POST")
                .body(Full::default()),
            path if path == "/resource"
                || !self.is_by_challenge
                    && path.starts_with("/.well-known/oauth-protected-resource") =>
            {
                let resource = format!("{}{}", self.origin, self.resource);
                json(
                    StatusCode::OK,
                    json!({"resource": resource, "authorization_servers": [issuer]}),
                )
            }
            "/.well-known/oauth-authorization-server/login" => json(
                StatusCode::OK,
                json!({
                    "issuer": issuer,
                    "authorization_endpoint": format!("{}/authorize", self.origin),
                    "token_endpoint": format!("{}/token", self.origin),
                    "response_types_supported": ["code"],
                    "code_challenge_methods_supported": ["S256"],
                }),
            ),
            _ => Response::builder().status(StatusCode::NOT_FOUND).body(Full::default()),
        };
        response.unwrap()
    }

    fn challenge(&self) -> String {
        format!("Bearer resource_metadata=\"{}/resource\"", self.origin)
    }

    fn token(&self, body: &[u8]) -> (StatusCode, Duration, Value) {
        let mut state = self.state.lock().unwrap();
        let sent = url::form_urlencoded::parse(body)
            .find(|(name, _)| name == "refresh_token" || name == "code")
            .unwrap()
            .1
            .into_owned();
        state.sent.push(sent.clone());
        if state.status != StatusCode::OK {
            return (state.status, state.delay, json!({"error": "server_error"}));
        }
        if state.used.contains(&sent) {
            return (StatusCode::BAD_REQUEST, state.delay, json!({"error": "invalid_grant"}));
        }
        state.used.push(sent);
        state.issued += 1;
        let document = json!({
            "access_token": format!("a{}", state.issued),
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": format!("r{}", state.issued),
        });
        (StatusCode::OK, state.delay, document)
    }

    fn url(&self) -> Url {
        Url::parse(&format!("{}/mcp", self.origin)).unwrap()
    }
}

fn mcp(body: &[u8]) -> http::Result<Response<Full<Bytes>>> {
    let message: Value = serde_json::from_slice(body).unwrap();
    let result = match message["method"].as_str().unwrap() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }),
        "tools/list" => json!({"tools": []}),
        _ => {
            let status = match message["id"].is_null() {
                true => StatusCode::ACCEPTED,
                false => StatusCode::NOT_FOUND,
            };
            return Response::builder().status(status).body(Full::default());
        }
    };
    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    Response::builder().header("content-type", "application/json").body(answer.to_string().into())
}

/// User who accepts each login, and the number of logins.
#[derive(Default)]
struct Accepts(AtomicU64);

#[async_trait]
impl Browser for Accepts {
    async fn redirect_uri(&self) -> Result<String, String> {
        Ok("http://127.0.0.1:1/callback".to_owned())
    }

    async fn visit(&self, address: &str) -> Result<String, String> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        let address = Url::parse(address).unwrap();
        let state = address.query_pairs().find(|(name, _)| name == "state").unwrap().1;
        Ok(format!("http://127.0.0.1:1/callback?code=code{number}&state={state}"))
    }
}

/// Client of a server, with its store.
struct Client {
    url: Url,
    settings: OAuthSettings,
    browser: Arc<Accepts>,
}

impl Client {
    fn new(served: &Served) -> Self {
        let browser = Arc::new(Accepts::default());
        let client = OAuthClient::Person {
            browser: Arc::clone(&browser) as _,
            registered: Some(("registered".to_owned(), None)),
            metadata_url: None,
        };
        let settings = OAuthSettings {
            client,
            issuer: None,
            scopes: Vec::new(),
            store: Arc::new(MemoryCredentials::default()),
            allows_private_addresses: false,
        };
        Self { url: served.url(), settings, browser }
    }

    /// Creates a client with tokens that have expired.
    fn with_expired(served: &Served) -> Self {
        let client = Self::new(served);
        let stored = json!({
            "client_id": "registered",
            "token_response": {
                "access_token": "a0", "token_type": "Bearer", "expires_in": 60,
                "refresh_token": "r0",
            },
            "granted_scopes": [],
            "token_received_at": 1,
            "issuer": format!("{}/login", served.origin),
        });
        client.settings.store.save(&client.key(), &stored.to_string()).unwrap();
        client
    }

    fn key(&self) -> String {
        store::key(&self.url, &self.settings.client)
    }

    /// Returns the refresh token that is stored.
    fn stored(&self) -> Option<String> {
        let text = self.settings.store.load(&self.key()).unwrap()?;
        let stored: Value = serde_json::from_str(&text).unwrap();
        Some(stored["token_response"]["refresh_token"].as_str().unwrap().to_owned())
    }

    /// Waits until a refresh token is stored.
    async fn stores(&self, token: &str) {
        let stores = async {
            while self.stored().as_deref() != Some(token) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, stores).await.unwrap();
    }

    fn endpoint(&self) -> HttpEndpoint {
        let endpoint = HttpEndpoint::new(self.url.as_str()).unwrap();
        endpoint.with_oauth(self.settings.clone()).unwrap()
    }

    async fn connect(&self, wait: Duration) -> Result<RemoteServer, ConnectError> {
        let mut settings = ServerSettings::new("s", ServerEndpoint::Http(self.endpoint()));
        settings.connect_wait = wait;
        RemoteServer::connect(settings).await
    }

    async fn authorizer(&self) -> Arc<Authorizer> {
        let (endpoint, settings) = (self.endpoint(), self.settings.clone());
        let http = HttpClient::new().unwrap();
        Arc::new(Authorizer::new(&endpoint, settings, http, Arc::default()).await.unwrap())
    }

    fn logins(&self) -> u64 {
        self.browser.0.load(Ordering::Relaxed)
    }
}

async fn is_too_late(client: &Client) -> bool {
    let started = Instant::now();
    let connected = client.connect(SHORT).await;
    assert!(started.elapsed() < SLOW, "{:?}", started.elapsed());
    matches!(connected, Err(ConnectError::TooLate(SHORT)))
}

#[tokio::test]
async fn a_refresh_goes_on_when_its_caller_gives_up() {
    for is_by_challenge in [false, true] {
        let served = Served::start(is_by_challenge).await;
        served.respond(StatusCode::OK, SLOW);
        let client = Client::with_expired(&served);
        assert!(is_too_late(&client).await);
        assert_eq!(client.stored().as_deref(), Some("r0"));
        RemoteServer::tokens_stored(LONG).await;
        assert_eq!(client.stored().as_deref(), Some("r1"));
        client.connect(LONG).await.unwrap();
        assert_eq!(served.sent(), ["r0"], "{is_by_challenge}");
        assert_eq!(client.logins(), 0);
    }
}

#[tokio::test]
async fn a_refresh_of_the_transport_goes_on_when_its_request_is_given_up() {
    let served = Served::start(false).await;
    // The server has withdrawn the token of the store, which has not expired.
    let client = Client::new(&served);
    client.connect(LONG).await.unwrap();
    served.state.lock().unwrap().withdrawn = 1;
    served.respond(StatusCode::OK, SLOW);
    let authorizer = client.authorizer().await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let post = authorizer.client();
    let posting = post.post_message(
        client.url.as_str().into(),
        serde_json::from_value(message).unwrap(),
        None,
        None,
        Default::default(),
    );
    assert!(tokio::time::timeout(SHORT, posting).await.is_err());
    assert_eq!(client.stored().as_deref(), Some("r1"));
    RemoteServer::tokens_stored(LONG).await;
    assert_eq!(client.stored().as_deref(), Some("r2"));
    client.connect(LONG).await.unwrap();
    assert_eq!(served.sent(), ["code0", "r1"]);
}

#[tokio::test]
async fn metadata_of_another_resource_is_not_used() {
    // A resource may be the address or a part of its path (RFC 9728, section 3.3, as MCP extends it).
    for resource in ["/mcp", "/", ""] {
        let served = Served::start_with(true, resource).await;
        Client::new(&served).connect(LONG).await.unwrap();
    }
    for resource in ["/other", "/mcp/more", "/mc", "/mcp/"] {
        for is_by_challenge in [false, true] {
            let served = Served::start_with(is_by_challenge, resource).await;
            let client = Client::new(&served);
            let error = client.connect(LONG).await.err().unwrap().to_string();
            assert!(error.contains("resource") && error.contains(resource), "{error}");
            assert_eq!((served.sent().len(), client.logins()), (0, 0), "{resource}");
        }
    }
}

#[tokio::test]
async fn another_start_waits_for_a_refresh_that_goes_on() {
    for is_by_challenge in [false, true] {
        let served = Served::start(is_by_challenge).await;
        served.respond(StatusCode::OK, SLOW);
        let client = Client::with_expired(&served);
        assert!(is_too_late(&client).await);
        served.respond(StatusCode::OK, Duration::ZERO);
        client.connect(LONG).await.unwrap();
        assert_eq!(served.sent(), ["r0", "r1"], "{is_by_challenge}");
        assert_eq!(client.logins(), 0);
    }
}

#[tokio::test]
async fn a_code_is_exchanged_when_its_caller_gives_up() {
    let served = Served::start(false).await;
    served.respond(StatusCode::OK, SLOW);
    let client = Client::new(&served);
    assert!(is_too_late(&client).await);
    client.stores("r1").await;
    client.connect(LONG).await.unwrap();
    assert_eq!(served.sent(), ["code0"]);
    assert_eq!(client.logins(), 1);
}

#[tokio::test]
async fn the_same_connection_uses_tokens_that_came_too_late() {
    for client in [Client::new, Client::with_expired] {
        let served = Served::start(true).await;
        served.respond(StatusCode::OK, SLOW);
        let client = client(&served);
        let authorizer = client.authorizer().await;
        let challenge = served.challenge();
        let late = tokio::time::timeout(SHORT, authorizer.authorize(&challenge)).await;
        assert!(late.is_err());
        authorizer.authorize(&challenge).await.unwrap();
        assert_eq!(authorizer.client().token().await.unwrap(), "a1");
        assert_eq!(served.sent().len(), 1);
    }
}

#[tokio::test]
async fn a_refresh_that_fails_is_sent_once() {
    let served = Served::start(false).await;
    served.respond(StatusCode::INTERNAL_SERVER_ERROR, Duration::ZERO);
    let client = Client::with_expired(&served);
    let error = client.connect(LONG).await.err().unwrap();
    assert!(matches!(error, ConnectError::Refresh(_)), "{error}");
    let message = error.to_string();
    assert!(message.contains("cannot be refreshed") && !message.contains("r0"), "{message}");
    assert_eq!(served.sent(), ["r0"]);
    assert_eq!(client.logins(), 0);
}

#[tokio::test]
async fn a_refresh_that_a_challenge_made_possible_is_tried_again_after_a_failure() {
    let served = Served::start(true).await;
    served.respond(StatusCode::INTERNAL_SERVER_ERROR, Duration::ZERO);
    let client = Client::with_expired(&served);
    let authorizer = client.authorizer().await;
    let challenge = served.challenge();
    // The login fails as well.
    assert!(authorizer.authorize(&challenge).await.is_err());
    assert_eq!(served.sent(), ["r0", "code0"]);
    served.state.lock().unwrap().sent.clear();
    served.respond(StatusCode::OK, Duration::ZERO);
    authorizer.authorize(&challenge).await.unwrap();
    assert_eq!(served.sent(), ["r0"]);
    assert_eq!(client.stored().as_deref(), Some("r1"));
}

#[tokio::test]
async fn a_refresh_token_that_is_rejected_leads_to_a_login() {
    for is_by_challenge in [false, true] {
        let served = Served::start(is_by_challenge).await;
        served.state.lock().unwrap().used.push("r0".to_owned());
        let client = Client::with_expired(&served);
        client.connect(LONG).await.unwrap();
        assert_eq!(served.sent(), ["r0", "code0"], "{is_by_challenge}");
        assert_eq!(client.stored().as_deref(), Some("r1"));
    }
}

#[test]
fn addresses_of_an_authorization_server_are_https_or_on_this_machine() {
    for address in
        ["https://auth.example/a", "http://127.0.0.1:1/", "http://localhost/", "http://[::1]/"]
    {
        assert!(check_address("token endpoint", address).is_ok(), "{address}");
    }
    for address in [
        "http://auth.example/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/html,x",
        "/token",
        "",
    ] {
        let error = check_address("token endpoint", address).unwrap_err().to_string();
        assert!(error.contains("token endpoint has to begin with `https`"), "{error}");
    }
}
