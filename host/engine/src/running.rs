//! Work that a call has done outside of its own future.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A task of the embedder's runtime, which ends with whoever waits for it. `None` comes out when it has panicked or when
/// the runtime is shutting down.
///
/// Inner calls and questions are none of what the guest computes: in the busy lane they would have slow threads.
pub(crate) struct Running<T>(JoinHandle<T>);

impl<T: Send + 'static> Running<T> {
    /// Starts `work`.
    pub(crate) fn start(runtime: &Handle, work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(runtime.spawn(work))
    }
}

impl<T> Future for Running<T> {
    type Output = Option<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<T>> {
        Pin::new(&mut self.0).poll(cx).map(Result::ok)
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
