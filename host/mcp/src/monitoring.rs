//! Pages for programs that watch a server: its health and its metrics, on an address of their own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// Maximum number of open connections. Further ones wait.
const CONNECTIONS_MAX: usize = 16;
/// Maximum time of a connection.
const CONNECTION_TIME_MAX: Duration = Duration::from_secs(30);
/// Maximum size of a request head, in bytes.
const HEAD_BYTES_MAX: usize = 8 * 1024;

/// A page.
#[derive(Debug, Clone)]
pub struct MonitoringPage {
    /// True if the server is well. Otherwise the status of the response is 503.
    pub is_healthy: bool,
    /// Media type of the text.
    pub media_type: &'static str,
    /// Text of the page.
    pub text: String,
}

/// Pages by path. Called for each request, so it must not block.
pub type MonitoringPages = Arc<dyn Fn(&str) -> Option<MonitoringPage> + Send + Sync>;

/// Serves pages over HTTP until `stop` fires. Every client that can connect may read them.
pub async fn serve_monitoring(
    listener: TcpListener,
    pages: MonitoringPages,
    stop: CancellationToken,
) {
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let accepted = async {
            let permit = Arc::clone(&room).acquire_owned().await;
            (listener.accept().await, permit)
        };
        let (stream, permit) = tokio::select! {
            () = stop.cancelled() => return,
            accepted = accepted => match accepted {
                (Ok((stream, _)), Ok(permit)) => (stream, permit),
                // Mostly a lack of file handles: neither a reason to end nor to spin.
                _ => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                    continue;
                }
            },
        };
        let (pages, stop) = (Arc::clone(&pages), stop.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let response = answer(&*pages, &request);
                async move { Ok::<_, Infallible>(response) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(CONNECTION_TIME_MAX);
            http.max_buf_size(HEAD_BYTES_MAX).keep_alive(false);
            let connection = http.serve_connection(TokioIo::new(stream), answer);
            let connection = tokio::time::timeout(CONNECTION_TIME_MAX, connection);
            if let Some(Ok(Err(error))) = stop.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a monitoring connection ended early");
            }
            drop(permit);
        });
    }
}

fn answer(
    pages: &(dyn Fn(&str) -> Option<MonitoringPage> + Send + Sync),
    request: &Request<Incoming>,
) -> Response<Full<Bytes>> {
    let text = |status, media_type: &'static str, text: String| {
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    };
    let plain =
        |status, message: &str| text(status, "text/plain; charset=utf-8", message.to_owned());
    if request.method() != Method::GET {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "expected GET\n");
    }
    match pages(request.uri().path()) {
        Some(page) if page.is_healthy => text(StatusCode::OK, page.media_type, page.text),
        Some(page) => text(StatusCode::SERVICE_UNAVAILABLE, page.media_type, page.text),
        None => plain(StatusCode::NOT_FOUND, "the pages are /healthz and /metrics\n"),
    }
}
