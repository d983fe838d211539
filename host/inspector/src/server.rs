//! Connections of browsers, with limits.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::inspector::InspectorState;
use crate::router;
use crate::stall::StallLimited;

/// Maximum number of open connections. Further ones wait.
const CONNECTIONS_MAX: usize = 64;
/// Maximum time to receive the head of a request, and of an unused connection.
const HEAD_TIME_MAX: Duration = Duration::from_secs(15);
/// Maximum time in which a browser takes no part of a response.
const STALL_MAX: Duration = Duration::from_secs(15);
/// Maximum size of a request head, in bytes.
const HEAD_BYTES_MAX: usize = 32 * 1024;
/// Maximum number of lines in a request head.
const HEAD_LINES_MAX: usize = 64;

/// Serves pages until `stop` is canceled.
pub(crate) async fn serve(
    state: Arc<InspectorState>,
    listener: TcpListener,
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
        // A response takes several writes; joining them (Nagle's algorithm) costs 40 ms each.
        let _ = stream.set_nodelay(true);
        let (state, stop) = (Arc::clone(&state), stop.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(router::answer(&state, request).await) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME_MAX);
            http.max_buf_size(HEAD_BYTES_MAX).max_headers(HEAD_LINES_MAX);
            let stream = TokioIo::new(StallLimited::new(stream, STALL_MAX));
            let connection = http.serve_connection(stream, answer);
            if let Some(Err(error)) = stop.run_until_cancelled(connection).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(permit);
        });
    }
}
