//! HTTP client of buckets.
//!
//! HTTP/1 over a pool of connections, TLS with Mozilla's roots. Nothing comes from the environment:
//! no proxy, no certificate, no credential. Redirects are not followed. A request has to be
//! answered in full before a deadline, body included. Plain HTTP has to be enabled explicitly.

use std::error::Error as _;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::client::legacy::{Client, Error as ClientError};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody,
    HttpResponse, HttpResponseBody, HttpService,
};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::{Instant, Sleep, sleep_until, timeout_at};

use super::service::Service;

/// Time after which an idle connection is closed: services close theirs after about as long.
const IDLE: Duration = Duration::from_secs(15);

/// Creates clients for the builders of `object_store`.
#[derive(Debug, Clone)]
pub(super) struct Connector {
    pub(super) service: Arc<Service>,
    pub(super) connect_timeout: Duration,
    pub(super) request_timeout: Duration,
    pub(super) allows_http: bool,
}

struct PooledClient {
    client: Client<HttpsConnector<TcpConnector>, HttpRequestBody>,
    request_timeout: Duration,
    service: Arc<Service>,
}

/// A body that has to arrive before `deadline`.
struct TimedBody {
    body: Incoming,
    deadline: Pin<Box<Sleep>>,
}

#[derive(Debug, thiserror::Error)]
#[error("no full answer in time")]
struct BodyTimeout;

impl Connector {
    fn client(&self) -> Result<PooledClient, rustls::Error> {
        let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = TcpConnector::new();
        tcp.set_connect_timeout(Some(self.connect_timeout));
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls);
        let tls = if self.allows_http { tls.https_or_http() } else { tls.https_only() };
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .build(tls.enable_http1().wrap_connector(tcp));
        Ok(PooledClient {
            client,
            request_timeout: self.request_timeout,
            service: Arc::clone(&self.service),
        })
    }
}

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.client();
        let client = client
            .map_err(|error| object_store::Error::Generic { store: "TLS", source: error.into() });
        Ok(HttpClient::new(client?))
    }
}

#[async_trait]
impl HttpService for PooledClient {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let now = Instant::now();
        let deadline = now.checked_add(self.request_timeout).unwrap_or(now);
        let answered = timeout_at(deadline, self.client.request(request)).await;
        let answer = answered.map_err(|_| HttpError::new(HttpErrorKind::Timeout, BodyTimeout))?;
        let (head, body) = answer.map_err(of_client)?.into_parts();
        self.service.answered(head.status.as_u16());
        let body = TimedBody { body, deadline: Box::pin(sleep_until(deadline)) };
        Ok(HttpResponse::from_parts(head, HttpResponseBody::new(body)))
    }
}

impl Body for TimedBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(frame) => Poll::Ready(
                frame.map(|frame| frame.map_err(|error| HttpError::new(kind_of(&error), error))),
            ),
            Poll::Pending => {
                let is_over = self.deadline.as_mut().poll(context).is_ready();
                let elapsed = || HttpError::new(HttpErrorKind::Timeout, BodyTimeout);
                if is_over { Poll::Ready(Some(Err(elapsed()))) } else { Poll::Pending }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl fmt::Debug for PooledClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pooled")
            .field("request_timeout", &self.request_timeout)
            .finish_non_exhaustive()
    }
}

fn of_client(error: ClientError) -> HttpError {
    let kind = if error.is_connect() {
        HttpErrorKind::Connect
    } else {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<hyper::Error>());
        cause.map_or(HttpErrorKind::Unknown, kind_of)
    };
    HttpError::new(kind, error)
}

/// Classifies a failure. The kind decides whether the request is retried.
fn kind_of(error: &hyper::Error) -> HttpErrorKind {
    if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_closed() || error.is_incomplete_message() || error.is_body_write_aborted() {
        HttpErrorKind::Request
    } else if error.is_canceled() {
        HttpErrorKind::Interrupted
    } else if error.is_parse() {
        HttpErrorKind::Decode
    } else {
        HttpErrorKind::Unknown
    }
}
