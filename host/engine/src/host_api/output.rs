//! Output streams of a guest.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

/// Maximum number of bytes that a guest writes in one step, which bounds the copy that the host
/// makes.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Receiver of what a guest writes.
pub(crate) trait OutputSink: Clone + Send + Sync + Unpin + 'static {
    /// Error that ends the call.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Takes bytes without waiting.
    fn push(&self, bytes: &[u8]) -> Result<(), Self::Error>;
}

/// Output stream that passes everything to a sink.
#[derive(Clone)]
pub(crate) struct OutputPipe<S>(pub(crate) S);

impl<S: OutputSink> IsTerminal for OutputPipe<S> {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl<S: OutputSink> StdoutStream for OutputPipe<S> {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl<S: OutputSink> Pollable for OutputPipe<S> {
    async fn ready(&mut self) {}
}

impl<S: OutputSink> OutputStream for OutputPipe<S> {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.0.push(&bytes).map_err(|error| StreamError::Trap(wasmtime::Error::new(error)))
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

impl<S: OutputSink> AsyncWrite for OutputPipe<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.0.push(bytes).map(|()| bytes.len()).map_err(io::Error::other))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
