//! Requests for tokens, which end even if their callers give up.

use std::sync::LazyLock;
use std::time::Duration;

use rmcp::transport::AuthError;
use tokio_util::task::TaskTracker;

/// Requests of this process that have not ended.
static RUNNING: LazyLock<TaskTracker> = LazyLock::new(TaskTracker::new);

/// Makes a request for tokens in a task of its own, which stores them even if the caller gives up:
/// authorization servers accept a code once, and most of them a refresh token.
pub(super) async fn finish<T: Send + 'static, E: From<AuthError> + Send + 'static>(
    request: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, E> {
    let ended = RUNNING.spawn(request).await;
    ended.unwrap_or_else(|error| Err(AuthError::InternalError(error.to_string()).into()))
}

/// Waits until no request runs, at most for `wait`.
pub(crate) async fn finished(wait: Duration) {
    RUNNING.close();
    // The requests that have not ended by then are given up.
    let _ = tokio::time::timeout(wait, RUNNING.wait()).await;
}
