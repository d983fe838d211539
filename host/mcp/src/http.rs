//! MCP over HTTP: who may connect, how much a connection may take, and who a request is from.
//!
//! A request passes, in this order: the limits of its connection, its address, its token, its rate,
//! its principal's share of connections and sessions, the limits of its body, and the `Host` and
//! `Origin` checks of the SDK. Only then it is parsed. Nothing here decides what a principal may
//! use; that is the catalogue's business.

mod batch;
mod connections;
mod guard;
mod head;
mod jwt;
mod origins;
mod rate;
mod sessions;
mod token;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::transport::streamable_http_server::StreamableHttpServerConfig;
use rmcp::transport::streamable_http_server::StreamableHttpService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use self::connections::{Connections, Place};
pub use self::guard::{Access, InvalidAccess, TokenAccess};
use self::guard::{Denied, Guard};
pub use self::jwt::{OAuth, SubjectAccess};
use self::origins::Origins;
pub use self::rate::Rate;
use self::sessions::{Sessions, session_id};
pub use self::token::{NewToken, TokenFileError, digest, new_token, read_or_create};
use crate::server::{Closing, Handler, STOPPING, Server};

/// Where MCP is spoken.
pub const PATH: &str = "/mcp";
/// Where an OAuth client finds out who issues tokens (RFC 9728).
const METADATA_PATH: &str = "/.well-known/oauth-protected-resource";
/// How long the head of a request may take.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// How long the body of a request may take.
const BODY_TIME_MAX: Duration = Duration::from_secs(30);
/// Longest head, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Most lines of a head.
const HEAD_LINES_MAX: usize = 64;

/// How a server behaves on HTTP.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Who may call.
    pub access: Access,
    /// Names by which the server may be addressed (`Host`), beside the loopback ones.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call, as `https://app.example:443`, beside the server's own
    /// address. A browser lets their pages read the answers (CORS). Requests of any other page are
    /// answered with 403.
    pub origins: Vec<String>,
    /// Longest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// Most connections at the same time. One principal can have half of them; connections on which
    /// no request has been authenticated yet can be half of them, and a quarter from one address.
    pub connections_max: usize,
    /// How often one principal may call.
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
    /// Refuses options with which [`Server::serve_http`] would not serve at `address`.
    ///
    /// # Errors
    /// [`InvalidAccess`] if they would let anybody in from another machine, or nobody at all.
    pub fn check(&self, address: SocketAddr) -> Result<(), InvalidAccess> {
        Guard::new(self.access.clone(), self.rate, address).map(|_| ())
    }
}

type Body = BoxBody<Bytes, Infallible>;

/// One HTTP endpoint.
struct Endpoint {
    mcp: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Sessions,
    origins: Origins,
    guard: Guard,
    body_bytes_max: usize,
    stop: CancellationToken,
    /// Requests that are being answered.
    answering: TaskTracker,
}

impl Server {
    /// Serves clients that connect to `listener`, until `stop`. Calls in flight then have ten
    /// seconds to end; other requests are answered with 503.
    ///
    /// # Errors
    /// [`InvalidAccess`] if the options would let anybody in from another machine, or nobody at
    /// all.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> Result<(), InvalidAccess> {
        let address = listener.local_addr().map_err(|_| InvalidAccess::NoAddress)?;
        let guard = Guard::new(options.access.clone(), options.rate, address)?;
        let sessions = Arc::new(LocalSessionManager::default());
        let shared = Arc::clone(&self.shared);
        // The streams of the SDK end with this token, and not with `stop`: it answers 500 for a
        // call that it interrupts.
        let end = CancellationToken::new();
        let closing = Closing::with(stop.clone());
        let endpoint = Arc::new(Endpoint {
            mcp: StreamableHttpService::new(
                move || Ok(Handler::new(Arc::clone(&shared), closing.clone())),
                Arc::clone(&sessions),
                config(&options, address, end.clone()),
            ),
            sessions: Sessions::new(sessions),
            origins: Origins::new(&options.origins),
            guard,
            body_bytes_max: options.body_bytes_max,
            stop: stop.clone(),
            answering: TaskTracker::new(),
        });
        let drained = async {
            stop.cancelled().await;
            self.shared.drained().await;
            // Their answers are on the way.
            endpoint.answering.close();
            let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.answering.wait()).await;
        };
        tokio::pin!(drained);
        let connections = Connections::new(options.connections_max);
        let open = TaskTracker::new();
        loop {
            // A connection that finds no room waits in the backlog, where it costs nothing.
            let (stream, address) = tokio::select! {
                () = &mut drained => break,
                accepted = async {
                    connections.has_room().await;
                    listener.accept().await.ok()
                } => match accepted {
                    Some(accepted) => accepted,
                    None => {
                        // Out of file handles, mostly: not a reason to end, nor to spin.
                        tokio::time::sleep(Duration::from_millis(50)).await;
                        continue;
                    }
                },
            };
            // An answer is several writes; waiting to join them costs 40 ms each.
            let _ = stream.set_nodelay(true);
            let (endpoint, stop) = (Arc::clone(&endpoint), stop.clone());
            let place = connections.place(address.ip());
            // One that comes while the server is stopping is told so, and is not closed before it
            // has asked.
            let is_late = stop.is_cancelled();
            open.spawn(async move {
                let closed = place.closed.clone();
                let answer = service_fn(move |request| {
                    let (endpoint, place) = (Arc::clone(&endpoint), Arc::clone(&place));
                    async move { Ok::<_, Infallible>(endpoint.answer(&place, request).await) }
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
        // Connections that only have an answer to write.
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
    // A page that this very server delivered; on the same machine, another port is another site.
    let port = address.port();
    let own = ["localhost", "127.0.0.1", "[::1]"].map(|host| format!("http://{host}:{port}"));
    StreamableHttpServerConfig::default()
        .with_json_response(true)
        .with_allowed_hosts(loopback.into_iter().chain(options.hosts.iter().cloned()))
        .with_allowed_origins(own.into_iter().chain(options.origins.iter().cloned()))
        .enforce_origin_validation()
        .with_max_request_body_bytes(options.body_bytes_max)
        .with_cancellation_token(stop)
}

impl Endpoint {
    async fn answer(&self, place: &Arc<Place>, request: Request<Incoming>) -> Response<Body> {
        let origin = self.origins.allowed(request.headers());
        let is_chunked = request.headers().contains_key(header::TRANSFER_ENCODING);
        let mut response = self.route(place, request, origin.is_some()).await;
        if let Some(origin) = origin {
            origins::expose(origin, &mut response);
        }
        // A `Content-Length` beside it is not seen here. What another reader of the connection
        // takes for the next request is not read (RFC 9112, section 6.1).
        if is_chunked {
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }

    async fn route(
        &self,
        place: &Arc<Place>,
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
        // A browser asks without the token.
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
        if self.stop.is_cancelled() {
            let mut response = refusal(StatusCode::SERVICE_UNAVAILABLE, STOPPING);
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            return response;
        }
        let _answering = self.answering.token();
        let principal = match self.guard.admit(request.headers()).await {
            Ok(principal) => principal,
            Err(denied) => return denied_response(&denied),
        };
        let name = principal.name().to_owned();
        let Some(in_flight) = place.begin(&name) else {
            return refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many connections of this client; close some",
            );
        };
        let (mut parts, body) = request.into_parts();
        let session = session_id(&parts.headers).map(str::to_owned);
        if let Some(session) = &session
            && !self.sessions.may_use(session, &name).await
        {
            return refusal(StatusCode::NOT_FOUND, "there is no such session");
        }
        // The token has done its work; nothing behind this line needs it.
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
        let response = if batch::is_batch(&parts, &body) {
            self.batch(parts, &body, &name).await
        } else {
            self.mcp.handle(Request::from_parts(parts, Full::new(body))).await
        };
        if session.is_none()
            && let Some(session) = session_id(response.headers())
            && !self.sessions.open(session, &name).await
        {
            return refusal(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many sessions; end some or try again later",
            );
        }
        // The request is in flight until its answer has been sent.
        response.map(|body| {
            body.map_frame(move |frame| {
                let _ = &in_flight;
                frame
            })
            .boxed()
        })
    }

    /// The answer to a browser that asks whether a page of an allowed origin may send a request.
    async fn preflight(&self, parts: Parts) -> Response<Body> {
        let asked = parts.headers.clone();
        // The SDK checks `Host`, and then has no answer to this method.
        let checked = self.mcp.handle(Request::from_parts(parts, Full::new(Bytes::new()))).await;
        if checked.status() != StatusCode::METHOD_NOT_ALLOWED {
            return checked;
        }
        let mut response = Response::new(Full::new(Bytes::new()).boxed());
        origins::permit(&asked, &mut response);
        response
    }
}

fn denied_response(denied: &Denied) -> Response<Body> {
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

/// A refusal that comes before there is a JSON-RPC request to answer.
fn refusal(status: StatusCode, message: &str) -> Response<Body> {
    let error = json!({"jsonrpc": "2.0", "error": {"code": -32600, "message": message}});
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

/// Whether an address can be reached from this machine alone.
#[must_use]
pub fn is_local(address: SocketAddr) -> bool {
    address.ip().is_loopback()
}
