//! Last parts of a guest's standard output and standard error, for the call record.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Maximum number of bytes that a guest writes in one step, which bounds the copy that the host
/// makes.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Keeps the last bytes that were written and drops the rest. Writing never fails, so that a tool
/// that prints a lot works like one that prints nothing.
#[derive(Clone)]
pub(crate) struct LogTail {
    tail: Arc<Mutex<VecDeque<u8>>>,
    bytes_max: usize,
}

impl LogTail {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { tail: Arc::default(), bytes_max }
    }

    /// Returns the kept bytes as a string. Bytes that are not UTF-8 are replaced; control
    /// characters are kept, so code that prints the string must escape them.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.lock().make_contiguous()).into_owned()
    }

    fn push(&self, bytes: &[u8]) {
        let mut tail = self.lock();
        let kept = bytes.get(bytes.len().saturating_sub(self.bytes_max)..).unwrap_or_default();
        let excess = (tail.len() + kept.len()).saturating_sub(self.bytes_max);
        tail.drain(..excess);
        tail.extend(kept);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<u8>> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IsTerminal for LogTail {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for LogTail {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for LogTail {
    async fn ready(&mut self) {}
}

impl OutputStream for LogTail {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(WRITE_BYTES_MAX)
    }
}

impl AsyncWrite for LogTail {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let log = LogTail::new(5);
        log.push(b"abc");
        assert_eq!(log.text(), "abc");
        log.push(b"defg");
        assert_eq!(log.text(), "cdefg");
        log.push(b"0123456789");
        assert_eq!(log.text(), "56789");
    }
}
