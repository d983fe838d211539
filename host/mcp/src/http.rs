//! MCP over HTTP: checks that a client may connect, limits each connection, and authenticates
//! requests.
//!
//! A request passes these checks in order: the limits of its connection, its address, its token,
//! its rate, its principal's share of connections and sessions, the limits of its body, and the
//! SDK's `Host` and `Origin` checks. Only then is it parsed. This module does not decide which
//! tools a principal may use; the catalog does.

mod batch;
mod connections;
mod guard;
mod head;
mod jwt;
mod message;
mod origins;
mod rate;
mod sessions;
mod shared_sessions;
mod stopping;
mod token;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connections::{ConnectionPermit, Connections};
pub use self::guard::{Access, InvalidAccess, TokenAccess};
use self::guard::{DeniedRequest, Guard};
pub use self::jwt::{OAuth, SubjectAccess};
use self::origins::Origins;
pub use self::rate::Rate;
use self::sessions::{SessionRefusal, Sessions, session_id};
pub use self::shared_sessions::SharedSessions;
use self::shared_sessions::StoredSessions;
pub use self::token::{NewToken, TokenFileError, digest, new_token, read_or_create};
use crate::server::{CloseSignals, Handler, Principal, STOPPING, Server};

/// Path of the MCP endpoint.
pub const PATH: &str = "/mcp";
/// Path of the metadata that names the token issuers for an OAuth client (RFC 9728).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// Maximum time to receive the head of a request.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// Maximum bytes of a request that opens a session, which keeps what the client says of itself.
const OPENING_BYTES_MAX: usize = 64 * 1024;
/// Maximum time to receive the body of a request.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum size of a request head, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of lines in a request head.
const HEAD_LINES_MAX: usize = 64;

/// Configuration of an HTTP endpoint.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Clients that may call.
    pub access: Access,
    /// Names by which clients may address the server (`Host`), in addition to the loopback names.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, such as `https://app.example:443`, in addition to the
    /// server's own address. Browsers let these pages read the responses (CORS). Requests from
    /// other pages are answered with 403.
    pub origins: Vec<String>,
    /// Maximum size of a request body, in bytes.
    pub body_bytes_max: usize,
    /// Maximum number of simultaneous connections. One principal can have half of them. Connections
    /// without an authenticated request so far can take up half of them, and a quarter from one
    /// address.
    pub connections_max: usize,
    /// Maximum request rate of one principal.
    pub rate: Rate,
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self {
            access: Access::default(),
            hosts: Vec::new(),
            origins: Vec::new(),
            body_bytes_max: 4 << 20,
            connections_max: 512,
            rate: Rate::default(),
        }
    }
}

impl HttpOptions {
    /// Checks that [`Server::serve_http`] accepts these options for `address`.
    ///
    /// # Errors
    /// [`InvalidAccess`] if the options admit unauthenticated clients from other machines, or no
    /// client at all.
    pub fn check(&self, address: SocketAddr) -> Result<(), InvalidAccess> {
        Guard::new(self.access.clone(), self.rate, address).map(|_| ())
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// State of one HTTP endpoint.
struct HttpService {
    mcp: StreamableHttpService<Handler, Sessions>,
    sessions: Arc<Sessions>,
    origins: Origins,
    guard: Guard,
    body_bytes_max: usize,
    stop: CancellationToken,
    /// Tracks requests that are being answered.
    answering: TaskTracker,
}

impl Server {
    /// Serves clients that connect to `listener`, until `stop` fires. Calls in flight then have ten
    /// seconds to end; other requests are answered with 503.
    ///
    /// # Errors
    /// [`InvalidAccess`] if the options admit unauthenticated clients from other machines, or no
    /// client at all.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> Result<(), InvalidAccess> {
        let address = listener.local_addr().map_err(|_| InvalidAccess::NoAddress)?;
        let guard = Guard::new(options.access.clone(), options.rate, address)?;
        let stored = self.shared.shared_sessions.get().cloned();
        let stored = stored.map(|store| Arc::new(StoredSessions::new(store)));
        let sessions = Arc::new(Sessions::new(stored.clone()));
        let shared = Arc::clone(&self.shared);
        // The streams of the SDK end with this token rather than with `stop`, because the SDK
        // answers 500 for a call that it interrupts.
        let end = CancellationToken::new();
        let mut config = config(&options, address, end.clone());
        config.session_store = stored.map(|stored| stored as _);
        let closing = CloseSignals::with(stop.clone());
        let endpoint = Arc::new(HttpService {
            mcp: StreamableHttpService::new(
                move || Ok(Handler::new(Arc::clone(&shared), closing.clone())),
                Arc::clone(&sessions),
                config,
            ),
            sessions,
            origins: Origins::new(&options.origins),
            guard,
            body_bytes_max: options.body_bytes_max,
            stop: stop.clone(),
            answering: TaskTracker::new(),
        });
        let drained = async {
            stop.cancelled().await;
            self.shared.drained().await;
            // The responses of drained calls may still be on their way.
            endpoint.answering.close();
            let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.answering.wait()).await;
        };
        tokio::pin!(drained);
        let connections = Connections::new(options.connections_max);
        let open = TaskTracker::new();
        loop {
            // A connection without a free slot waits in the backlog, where it costs nothing.
            let (stream, address) = tokio::select! {
                () = &mut drained => break,
                accepted = async {
                    connections.has_room().await;
                    listener.accept().await.ok()
                } => match accepted {
                    Some(accepted) => accepted,
                    None => {
                        // Mostly a lack of file handles: neither a reason to end nor to spin.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            // A response takes several writes; joining them (Nagle's algorithm) costs 40 ms each.
            let _ = stream.set_nodelay(true);
            let (endpoint, stop) = (Arc::clone(&endpoint), stop.clone());
            let permit = connections.admit(address.ip());
            // A connection opened while the server is stopping gets a 503 response, so it stays
            // open until its first request.
            let is_late = stop.is_cancelled();
            open.spawn(async move {
                let closed = permit.closed.clone();
                let answer = service_fn(move |request| {
                    let (endpoint, permit) = (Arc::clone(&endpoint), Arc::clone(&permit));
                    async move { Ok::<_, Infallible>(endpoint.answer(&permit, request).await) }
                });
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIME_MAX)
                    .max_headers(HEAD_LINES_MAX);
                http.max_buf_size(HEAD_BYTES_MAX);
                let mut connection =
                    std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
                let ended = tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = closed.cancelled() => return,
                    () = stop.cancelled(), if !is_late => {
                        connection.as_mut().graceful_shutdown();
                        connection.await
                    }
                };
                if let Err(error) = ended {
                    tracing::debug!(%error, "a connection ended early");
                }
            });
        }
        self.stop();
        open.close();
        // The remaining connections only have a response to write.
        if tokio::time::timeout(Duration::from_millis(200), open.wait()).await.is_err() {
            end.cancel();
            let _ = tokio::time::timeout(Duration::from_secs(1), open.wait()).await;
        }
        Ok(())
    }
}

fn config(
    options: &HttpOptions,
    address: SocketAddr,
    stop: CancellationToken,
) -> StreamableHttpServerConfig {
    let loopback = ["localhost", "127.0.0.1", "::1"].map(str::to_owned);
    // Origin of a page that this server itself delivered. On the same machine, another port is
    // another site.
    let port = address.port();
    let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}"));
    StreamableHttpServerConfig::default()
        .with_json_response(true)
        // The streams of a session begin with ids of their own.
        .with_sse_retry(None)
        .with_allowed_hosts(loopback.into_iter().chain(options.hosts.iter().cloned()))
        .with_allowed_origins(own.into_iter().chain(options.origins.iter().cloned()))
        .enforce_origin_validation()
        .with_max_request_body_bytes(options.body_bytes_max)
        .with_cancellation_token(stop)
}

fn session_refusal(refused: SessionRefusal) -> Response<Body> {
    match refused {
        SessionRefusal::Unknown => refusal(StatusCode::NOT_FOUND, "there is no such session"),
        SessionRefusal::TooMany => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many sessions; end some or try again later",
        ),
        SessionRefusal::Unavailable => refusal(
            StatusCode::SERVICE_UNAVAILABLE,
            "sessions cannot be looked up at the moment; try again later",
        ),
    }
}

impl HttpService {
    async fn answer(
        self: &Arc<Self>,
        permit: &Arc<ConnectionPermit>,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let origin = self.origins.allowed(request.headers());
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut response = self.route(permit, request, origin.is_some()).await;
        if let Some(origin) = origin {
            origins::expose(origin, &mut response);
        }
        // A `Content-Length` header next to it is not visible here. Closing the connection ensures
        // that nothing another parser would take for the next request is read (RFC 9112, section
        // 6.1).
        if is_chunked {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn route(
        self: &Arc<Self>,
        permit: &Arc<ConnectionPermit>,
        request: Request<Incoming>,
        is_allowed_origin: bool,
    ) -> Response<Body> {
        if let Err(problem) = head::check_address(&request) {
            return refusal(StatusCode::BAD_REQUEST, problem);
        }
        let path = request.uri().path().trim_end_matches('/');
        let is_metadata = path == METADATA_PATH || path.strip_prefix(METADATA_PATH) == Some(PATH);
        if !is_metadata && path != PATH {
            return refusal(StatusCode::NOT_FOUND, "MCP is spoken at /mcp");
        }
        // A browser sends a preflight request without the token.
        if is_allowed_origin && origins::is_preflight(&request) {
            return self.preflight(request.into_parts().0).await;
        }
        if is_metadata {
            return match self.guard.metadata() {
                Some(metadata) if request.method() == Method::GET => {
                    answer(StatusCode::OK, metadata)
                }
                _ => refusal(StatusCode::NOT_FOUND, "there is nothing here"),
            };
        }
        let _answering = self.answering.token();
        let principal = match self.guard.admit(request.headers()).await {
            Ok(principal) => principal,
            Err(denied) => return denied_response(&denied),
        };
        let name = principal.name().to_owned();
        let Some(in_flight) = permit.begin(&name) else {
            return refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many connections of this client; close some",
            );
        };
        let (mut parts, body) = request.into_parts();
        let session = session_id(&parts.headers).map(str::to_owned);
        if let Some(session) = &session
            && let Err(refused) = self.sessions.check(session, &name, &parts.method).await
        {
            return session_refusal(refused);
        }
        // The token has served its purpose; nothing after this line needs it.
        parts.headers.remove(header::AUTHORIZATION);
        parts.extensions.insert(principal);
        head::widen_accept(&mut parts.headers);
        let body = Limited::new(body, self.body_bytes_max).collect();
        let body = match tokio::time::timeout(BODY_TIME_MAX, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long");
            }
            Ok(Err(_)) => return refusal(StatusCode::BAD_REQUEST, "the body could not be read"),
            Err(_) => return refusal(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
        };
        if message::has_too_many_values(&body) {
            let message = format!("the body holds more than {} JSON values", message::VALUES_MAX);
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        if self.stop.is_cancelled() && !stopping::is_part_of_call(&parts.method, &body) {
            let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, STOPPING);
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        let may_open = session.is_none() && may_open_session(&parts.headers);
        if may_open && body.len() > OPENING_BYTES_MAX {
            let message = format!(
                "a request that opens a session has at most {OPENING_BYTES_MAX} bytes; for another \
                 one, send the header `Mcp-Method`, or `Mcp-Session-Id` with a session"
            );
            return refusal(StatusCode::PAYLOAD_TOO_LARGE, &message);
        }
        let response = if may_open {
            // Not dropped when the client hangs up: other servers must learn of the session.
            let service = Arc::clone(self);
            let opening = tokio::spawn(async move { service.open(parts, body, &name).await });
            opening.await.unwrap_or_else(|_| {
                refusal(StatusCode::INTERNAL_SERVER_ERROR, "the request could not be answered")
            })
        } else {
            self.handle(parts, body, &name).await
        };
        // The request is in flight until its response has been sent.
        response.map(|body| {
            body.map_frame(move |frame| {
                let _ = &in_flight;
                frame
            })
            .boxed()
        })
    }

    async fn handle(&self, parts: Parts, body: Bytes, principal: &str) -> Response<Body> {
        if batch::is_batch(&parts, &body) {
            self.batch(parts, &body, principal).await
        } else {
            self.forward(parts, body).await
        }
    }

    /// Lets the SDK answer one message.
    async fn forward(&self, parts: Parts, body: Bytes) -> Response<Body> {
        let principal = parts.extensions.get::<Principal>().cloned();
        let is_post = parts.method == Method::POST;
        let request = Request::from_parts(parts, Full::new(body.clone()));
        let answered = Box::pin(self.mcp.handle(request));
        let response = match principal {
            Some(principal) => principal.answer(answered).await,
            None => answered.await,
        };
        if message::is_text_error(&response) {
            return Box::pin(message::json_error(response, is_post.then_some(&*body))).await;
        }
        response
    }

    /// Handles a request that may open a session.
    async fn open(&self, parts: Parts, body: Bytes, principal: &str) -> Response<Body> {
        let response = self.handle(parts, body, principal).await;
        // The SDK answers so for a session that is refused.
        if response.status() == StatusCode::INTERNAL_SERVER_ERROR
            && self.sessions.is_full(principal)
        {
            return session_refusal(SessionRefusal::TooMany);
        }
        response
    }

    /// Answers a browser that asks whether a page of an allowed origin may send a request.
    async fn preflight(&self, parts: Parts) -> Response<Body> {
        let asked = parts.headers.clone();
        // The SDK checks `Host` and then rejects this method, which means that the check has
        // passed.
        let checked = self.mcp.handle(Request::from_parts(parts, Full::new(Bytes::new()))).await;
        if checked.status() != StatusCode::METHOD_NOT_ALLOWED {
            return checked;
        }
        let mut response = Response::new(Full::new(Bytes::new()).boxed());
        origins::permit(&asked, &mut response);
        response
    }
}

/// Returns false if a request cannot be the one that opens a session: the SDK rejects it if this
/// header contradicts its body.
fn may_open_session(headers: &HeaderMap) -> bool {
    headers.get("mcp-method").is_none_or(|method| method == "initialize")
}

fn denied_response(denied: &DeniedRequest) -> Response<Body> {
    let mut response = refusal(denied.status, denied.message);
    if let Some(challenge) = &denied.challenge
        && let Ok(challenge) = HeaderValue::from_str(challenge)
    {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    if denied.status == StatusCode::TOO_MANY_REQUESTS {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// Returns an error response for a request that is refused before its JSON-RPC message is read.
fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    error_response(status, -32600, message)
}

/// Returns an error response. It has no id, because that of the request is not known.
fn error_response(status: StatusCode, code: i32, message: &str) -> Response<Body> {
    let error = json!({"jsonrpc": "2.0", "error": {"code": code, "message": message}});
    answer(status, error.to_string())
}

fn answer(status: StatusCode, json: String) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::from(json)).boxed());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Returns true if only this machine can reach the address.
#[must_use]
pub fn is_local(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}
