//! MCP over HTTP: who may connect, how much a connection may take, and who a request is from.
//!
//! A request passes, in this order: the limits of its connection, its address, its token, its rate, the limits of its body, and
//! the `Host` and `Origin` checks of the SDK. Only then it is parsed. Nothing here decides what a principal may use; that is
//! the catalogue's business.

mod guard;
mod jwt;
mod rate;
mod token;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
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
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

pub use self::guard::{Access, InvalidAccess, TokenAccess};
use self::guard::{Denied, Guard};
pub use self::jwt::{OAuth, SubjectAccess};
pub use self::rate::Rate;
pub use self::token::{NewToken, TokenFileError, digest, new_token, read_or_create};
use crate::server::{Handler, Server};

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
/// Most sessions of clients of the handshake era.
const SESSIONS_MAX: usize = 1000;

/// How a server behaves on HTTP.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    /// Who may call.
    pub access: Access,
    /// Names by which the server may be addressed (`Host`), beside the loopback ones.
    pub hosts: Vec<String>,
    /// Web pages that may call, as `https://app.example:443`, beside those of the server's own address. Any other page gets
    /// 403.
    pub origins: Vec<String>,
    /// Longest body of a request, in bytes.
    pub body_bytes_max: usize,
    /// Most connections at the same time.
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

type Body = BoxBody<Bytes, Infallible>;

/// One HTTP endpoint.
struct Endpoint {
    mcp: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    guard: Guard,
    body_bytes_max: usize,
}

impl Server {
    /// Serves clients that connect to `listener`, until `stop`. Requests in flight are then given a moment to end.
    ///
    /// # Errors
    /// [`InvalidAccess`] if the options would let anybody in from another machine, or nobody at all.
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
        let endpoint = Arc::new(Endpoint {
            mcp: StreamableHttpService::new(
                move || Ok(Handler::new(Arc::clone(&shared))),
                Arc::clone(&sessions),
                config(&options, address, stop.child_token()),
            ),
            sessions,
            guard,
            body_bytes_max: options.body_bytes_max,
        });
        let room = Arc::new(Semaphore::new(options.connections_max));
        let open = tokio_util::task::TaskTracker::new();
        loop {
            // A connection that finds no room waits in the backlog, where it costs nothing.
            let (place, stream) = tokio::select! {
                () = stop.cancelled() => break,
                accepted = async {
                    let place = Arc::clone(&room).acquire_owned().await.ok()?;
                    let (stream, _) = listener.accept().await.ok()?;
                    Some((place, stream))
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
            open.spawn(async move {
                let _place = place;
                let answer = service_fn(move |request| {
                    let endpoint = Arc::clone(&endpoint);
                    async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
                });
                let mut http = http1::Builder::new();
                http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX).max_headers(HEAD_LINES_MAX);
                http.max_buf_size(HEAD_BYTES_MAX);
                let mut connection = std::pin::pin!(http.serve_connection(TokioIo::new(stream), answer));
                let ended = tokio::select! {
                    ended = connection.as_mut() => ended,
                    () = stop.cancelled() => {
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
        let _ = tokio::time::timeout(Duration::from_secs(5), open.wait()).await;
        Ok(())
    }
}

fn config(options: &HttpOptions, address: SocketAddr, stop: CancellationToken) -> StreamableHttpServerConfig {
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
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path().trim_end_matches('/');
        if path == METADATA_PATH || path.strip_prefix(METADATA_PATH) == Some(PATH) {
            return match self.guard.metadata() {
                Some(metadata) if request.method() == Method::GET => answer(StatusCode::OK, metadata),
                _ => refusal(StatusCode::NOT_FOUND, "there is nothing here"),
            };
        }
        if path != PATH {
            return refusal(StatusCode::NOT_FOUND, "MCP is spoken at /mcp");
        }
        let principal = match self.guard.admit(request.headers()).await {
            Ok(principal) => principal,
            Err(denied) => return denied_response(&denied),
        };
        let opens_session = !request.headers().contains_key("mcp-session-id");
        if opens_session && self.sessions.sessions.read().await.len() >= SESSIONS_MAX {
            return refusal(StatusCode::SERVICE_UNAVAILABLE, "too many sessions; try again later");
        }
        let (mut parts, body) = request.into_parts();
        // The token has done its work; nothing behind this line needs it.
        parts.headers.remove(header::AUTHORIZATION);
        parts.extensions.insert(principal);
        let body = Limited::new(body, self.body_bytes_max).collect();
        let body = match tokio::time::timeout(BODY_TIME_MAX, body).await {
            Ok(Ok(body)) => body.to_bytes(),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                return refusal(StatusCode::PAYLOAD_TOO_LARGE, "the body is too long");
            }
            Ok(Err(_)) => return refusal(StatusCode::BAD_REQUEST, "the body could not be read"),
            Err(_) => return refusal(StatusCode::REQUEST_TIMEOUT, "the body took too long"),
        };
        self.mcp.handle(Request::from_parts(parts, Full::new(body))).await
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
