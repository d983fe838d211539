//! Sends one request on a connection of its own.

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
use crate::meter::{Metered, Verdict};
use crate::{
    Admitted, Allowance, BoxError, ClientError, NetworkError, Resolver, Stage, SystemResolver, tls,
};

/// Longest timeout, so that a point in time can always be computed.
const TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// Smallest limit for heads that the HTTP library works with.
const HEAD_BYTES_LEAST: usize = 8192;

/// Settings of a [`Client`].
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// Who looks names up.
    pub resolver: Arc<dyn Resolver>,
    /// Files with certificates of authorities in PEM form that are believed besides Mozilla's, such
    /// as a company's own.
    pub authorities_pem: Vec<Vec<u8>>,
    /// The longest that each part of a request may take. A request may ask for less.
    pub timeouts: Timeouts,
    /// Bytes of the head of an answer; 8192 at least. Also what is buffered of its body.
    pub head_bytes_max: usize,
    /// Requests of all requesters together that are under way at one time. Each holds a connection.
    pub requests_max: u32,
}

/// How long each part of a request may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Looking the name up, connecting and agreeing on TLS, together.
    pub connect: Duration,
    /// From there to the head of the answer, sending the request included.
    pub first_byte: Duration,
    /// Between two parts of the answer's body.
    pub between_bytes: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            // Some round trips to the other side of the world, with a packet lost.
            connect: Duration::from_secs(10),
            // A model takes its time to answer; the limit of the call is mostly shorter.
            first_byte: Duration::from_secs(300),
            between_bytes: Duration::from_secs(60),
        }
    }
}

impl Timeouts {
    /// The shorter of each pair.
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
            // Servers accept heads of 8 to 32 KiB themselves.
            head_bytes_max: 64 * 1024,
            // Far above what people run, and a bound for descriptors and buffers (some 100 KiB
            // each).
            requests_max: 4096,
        }
    }
}

/// Sends requests. Cheap to clone; clones share the limits.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    resolver: Arc<dyn Resolver>,
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
    /// A client with these settings.
    ///
    /// # Errors
    /// [`ClientError`] when a file of `authorities_pem` is none.
    pub fn new(config: ClientConfig) -> Result<Self, ClientError> {
        let longest =
            Timeouts { connect: TIMEOUT_MAX, first_byte: TIMEOUT_MAX, between_bytes: TIMEOUT_MAX };
        let requests = usize::try_from(config.requests_max).unwrap_or(Semaphore::MAX_PERMITS);
        let inner = Inner {
            resolver: config.resolver,
            tls: tls::config(&config.authorities_pem)?,
            timeouts: config.timeouts.narrowed_by(&longest),
            head_bytes_max: config.head_bytes_max.max(HEAD_BYTES_LEAST),
            requests: Arc::new(Semaphore::new(requests.min(Semaphore::MAX_PERMITS))),
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Who looks names up for this client.
    #[must_use]
    pub fn resolver(&self) -> &Arc<dyn Resolver> {
        &self.inner.resolver
    }

    /// Sends a request and waits for the head of its answer. Dropping the future, or the body of
    /// the answer, closes the connection.
    ///
    /// Has to be called within a runtime of tokio.
    ///
    /// # Errors
    /// [`NetworkError`], with the cause.
    pub async fn send<B>(
        &self,
        admitted: Admitted<B>,
        allowance: &Allowance,
        timeouts: &Timeouts,
    ) -> Result<Response<ResponseBody>, NetworkError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let inner = &*self.inner;
        let timeouts = inner.timeouts.narrowed_by(timeouts);
        let Admitted { request, target, addresses, bound } = admitted;
        // One request more than a requester may have waits for one of them; semaphores are never
        // closed.
        let mine = Arc::clone(&allowance.requests).acquire_owned().await;
        let mine = mine.map_err(|_| NetworkError::TooManyRequests)?;
        let ends_at = Instant::now() + timeouts.connect;
        let shared = timeout_at(ends_at, Arc::clone(&inner.requests).acquire_owned()).await;
        let Ok(Ok(shared)) = shared else { return Err(NetworkError::TooManyRequests) };

        let connection =
            connect(&*inner.resolver, &inner.tls, &target, &addresses, ends_at).await?;
        let verdict = Verdict::default();
        let metered = Metered::new(connection, Arc::clone(&allowance.meter), Arc::clone(&verdict));
        let explain = Explain { verdict, head_bytes_max: inner.head_bytes_max };
        let mut protocol = http1::Builder::new();
        protocol.max_buf_size(inner.head_bytes_max);
        let (mut sender, connection) =
            protocol.handshake(TokioIo::new(metered)).await.map_err(|e| explain.error(e))?;
        let link = Link::new(tokio::spawn(async move {
            // Its error is also that of whoever waits for the head or the body.
            let _ = connection.await;
            // The places are free when the connection is closed.
            drop((mine, shared));
        }));
        let request = request.map(|body| RequestBody::new(body, bound));
        let answer = timeout(timeouts.first_byte, sender.send_request(request)).await;
        let answer = answer
            .map_err(|_| NetworkError::Timeout(Stage::FirstByte))?
            .map_err(|e| explain.error(e))?;
        if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(NetworkError::Upgrade);
        }
        // The library's own limit is for its buffer, which holds more than one head.
        if head_bytes(answer.headers()) > inner.head_bytes_max {
            return Err(NetworkError::HeadLimit(inner.head_bytes_max));
        }
        Ok(answer.map(|body| ResponseBody::new(body, timeouts.between_bytes, explain, link)))
    }
}

/// Bytes of header lines.
fn head_bytes(headers: &HeaderMap) -> usize {
    // A colon, a space and the end of the line.
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
}

/// Says why a connection ended.
#[derive(Debug)]
pub(crate) struct Explain {
    verdict: Verdict,
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
            None if error.is_incomplete_message() || error.is_closed() || ended_early(&error) => {
                NetworkError::Incomplete
            }
            None => NetworkError::Protocol(error),
        }
    }
}

/// Whether the connection ended before the body did. The library has no word of its own for that.
fn ended_early(error: &hyper::Error) -> bool {
    let cause =
        std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<std::io::Error>());
    cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::UnexpectedEof)
}
