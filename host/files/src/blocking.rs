//! Where work that may take long is done.

use tokio::runtime::Handle;

use crate::FileError;

/// Runs `work` on a thread of tokio's blocking pool, or in place when there is no runtime. Dropping the future does not
/// stop work that has begun.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FileError> + Send + 'static,
) -> Result<T, FileError> {
    let Ok(runtime) = Handle::try_current() else { return work() };
    // It fails when the runtime is shutting down.
    runtime.spawn_blocking(work).await.unwrap_or_else(|error| Err(std::io::Error::other(error).into()))
}
