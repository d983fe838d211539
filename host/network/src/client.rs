//! Client that sends each request on its own connection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout, timeout_at};

use crate::body::{Link, RequestBody, ResponseBody};
use crate::connect::connect;
use crate::meter::{MeteredStream, OverrunCell};
use crate::resolve::LimitedResolver;
use crate::{
    AdmittedRequest, Allowance, BoxError, ClientError, NetworkError, NetworkStage, Resolver,
    SystemResolver, tls,
};

/// Longest timeout. Bounded so that adding it to an [`Instant`] cannot overflow.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Smallest limit for heads that the HTTP library supports.
const HEAD_BYTES_LEAST: usize = 8192;

/// Settings of a [`Client`].
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Resolver for host names.
    pub resolver: Arc<dyn Resolver>,
    /// PEM files with certificates of authorities, such as a company's own, that are trusted in
    /// addition to Mozilla's.
    pub authorities_pem: Vec<Vec<u8>>,
    /// Maximum durations of the parts of a request. A request may set shorter ones.
    pub timeouts: Timeouts,
    /// Maximum bytes of a response head, at least 8192. Also the size of the buffer for the body.
    pub head_bytes_max: usize,
    /// Maximum number of concurrent requests of all requesters. Each holds a connection.
    pub requests_max: u32,
}

/// Timeouts of the parts of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Name lookup, TCP connection and TLS handshake, together.
    pub connect: Duration,
    /// From the end of the handshake to the response head, sending the request included.
    pub first_byte: Duration,
    /// Between two parts of the response body.
    pub between_bytes: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            // A few round trips to the other side of the world, with a packet lost.
            connect: Duration::from_secs(10),
            // Models take long to respond. The time limit of the call is usually shorter.
            first_byte: Duration::from_secs(300),
            between_bytes: Duration::from_secs(60),
        }
    }
}

impl Timeouts {
    /// Returns the shorter one of each pair of timeouts.
    #[must_use]
    pub fn narrowed_by(&self, other: &Self) -> Self {
        Self {
            connect: self.connect.min(other.connect),
            first_byte: self.first_byte.min(other.first_byte),
            between_bytes: self.between_bytes.min(other.between_bytes),
        }
    }
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver::default()),
            authorities_pem: Vec::new(),
            timeouts: Timeouts::default(),
            // Servers themselves accept heads of 8 to 32 KiB.
            head_bytes_max: 64 * 1024,
            // Far above normal use; bounds file descriptors and buffers (about 100 KiB each).
            requests_max: 4096,
        }
    }
}

/// Sends requests. Cloning is cheap; clones share the limits.
#[derive(Clone)]
pub struct Client {
    inner: Arc<ClientState>,
    resolver: Arc<dyn Resolver>,
}

struct ClientState {
    tls: Arc<rustls::ClientConfig>,
    timeouts: Timeouts,
    head_bytes_max: usize,
    requests: Arc<Semaphore>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("timeouts", &self.inner.timeouts).finish_non_exhaustive()
    }
}

impl Client {
    /// Returns a client with these settings.
    ///
    /// # Errors
    /// [`ClientError`] if a file in `authorities_pem` is not a list of certificates, or if TLS
    /// cannot be set up.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let longest =
            Timeouts { connect: TIMEOUT_MAX, first_byte: TIMEOUT_MAX, between_bytes: TIMEOUT_MAX };
        let requests = usize::try_from(config.requests_max).unwrap_or(Semaphore::MAX_PERMITS);
        let inner = ClientState {
            tls: tls::config(&config.authorities_pem)?,
            timeouts: config.timeouts.narrowed_by(&longest),
            head_bytes_max: config.head_bytes_max.max(HEAD_BYTES_LEAST),
            requests: Arc::new(Semaphore::new(requests.min(Semaphore::MAX_PERMITS))),
        };
        Ok(Self { inner: Arc::new(inner), resolver: config.resolver })
    }

    /// Returns a client for one requester, such as a plugin: it shares the limits of this one, and
    /// has at most four lookups of names at a time, so that slow names of one requester do not
    /// stop the requests of others.
    #[must_use]
    pub fn for_requester(&self) -> Self {
        let resolver = Arc::new(LimitedResolver::new(Arc::clone(&self.resolver)));
        Self { inner: Arc::clone(&self.inner), resolver }
    }

    /// Returns the resolver that this client uses for host names.
    #[must_use]
    pub fn resolver(&self) -> &Arc<dyn Resolver> {
        &self.resolver
    }

    /// Sends a request and waits for the response head. Dropping the future or the response body
    /// closes the connection.
    ///
    /// Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// [`NetworkError`] with the cause.
    pub async fn send<B>(
        &self,
        admitted: AdmittedRequest<B>,
        allowance: &Allowance,
        timeouts: &Timeouts,
    ) -> Result<Response<ResponseBody>, NetworkError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let inner = &*self.inner;
        let timeouts = inner.timeouts.narrowed_by(timeouts);
        let AdmittedRequest { request, target, addresses, bound } = admitted;
        // A request beyond the requester's limit waits for one of its other requests to finish. The
        // semaphores are never closed.
        let mine = Arc::clone(&allowance.requests).acquire_owned().await;
        let mine = mine.map_err(|_| NetworkError::TooManyRequests)?;
        let ends_at = Instant::now() + timeouts.connect;
        let shared = timeout_at(ends_at, Arc::clone(&inner.requests).acquire_owned()).await;
        let Ok(Ok(shared)) = shared else { return Err(NetworkError::TooManyRequests) };

        let connection = connect(&*self.resolver, &inner.tls, &target, &addresses, ends_at).await?;
        let verdict = OverrunCell::default();
        let metered =
            MeteredStream::new(connection, Arc::clone(&allowance.meter), Arc::clone(&verdict));
        let explain = Explain { verdict, head_bytes_max: inner.head_bytes_max };
        let mut protocol = http1::Builder::new();
        protocol.max_buf_size(inner.head_bytes_max);
        let (mut sender, connection) =
            protocol.handshake(TokioIo::new(metered)).await.map_err(|e| explain.error(e))?;
        let link = Link::new(tokio::spawn(async move {
            // The task that waits for the head or the body sees the same error.
            let _ = connection.await;
            // Releases the permits only after the connection is closed.
            drop((mine, shared));
        }));
        let request = request.map(|body| RequestBody::new(body, bound));
        let answer = timeout(timeouts.first_byte, sender.send_request(request)).await;
        let answer = answer
            .map_err(|_| NetworkError::Timeout(NetworkStage::FirstByte))?
            .map_err(|e| explain.error(e))?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(NetworkError::Upgrade);
        }
        // The library's own limit applies to its buffer, which holds more than one head.
        if head_bytes(answer.headers()) > inner.head_bytes_max {
            return Err(NetworkError::HeadLimit(inner.head_bytes_max));
        }
        Ok(answer.map(|body| ResponseBody::new(body, timeouts.between_bytes, explain, link)))
    }
}

/// Returns the size of the header lines in bytes.
fn head_bytes(headers: &HeaderMap) -> usize {
    // A colon, a space and the line ending.
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// Maps an error of the HTTP library to the reason why the connection ended.
#[derive(Debug)]
pub(crate) struct Explain {
    verdict: OverrunCell,
    head_bytes_max: usize,
}

impl Explain {
    pub(crate) fn error(&self, error: hyper::Error) -> NetworkError {
        use crate::meter::Overrun;
        match self.verdict.get() {
            Some(Overrun::Sent(max)) => NetworkError::SentLimit(*max),
            Some(Overrun::Received(max)) => NetworkError::ReceivedLimit(*max),
            None if error.is_parse_too_large() => NetworkError::HeadLimit(self.head_bytes_max),
            None if error.is_user() => NetworkError::RequestBody,
            None if error.is_incomplete_message() || error.is_closed() || is_incomplete(&error) => {
                NetworkError::Incomplete
            }
            None => NetworkError::Protocol(error),
        }
    }
}

/// Returns whether the connection ended before the body did. The library has no dedicated error for
/// that.
fn is_incomplete(error: &hyper::Error) -> bool {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::UnexpectedEof)
}
