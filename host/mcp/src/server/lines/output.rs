//! Outgoing messages: they are serialized when they are sent, and written by the first future that
//! runs.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};

/// Maximum buffer capacity that is retained for further messages, in bytes. The memory of a larger
/// buffer is freed.
const RETAINED_BYTES_MAX: usize = 64 * 1024;
/// Number of queued bytes above which no further requests are read, so that a client that does not
/// read cannot fill the memory. As many may be in the process of being written: together, as much
/// as the client of this crate queues for a server.
pub(super) const WAITING_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Output of one connection.
pub(super) struct LineOutput<W> {
    /// Lines that are queued for writing.
    waiting: Arc<Mutex<Vec<u8>>>,
    /// Writer of the stream; `None` once the connection is closed.
    writer: tokio::sync::Mutex<Option<LineWriter<W>>>,
}

struct LineWriter<W> {
    stream: W,
    /// Lines that are being written. Writing can be interrupted at any point and resumes here.
    writing: BytesMut,
    /// True if the stream may have buffered bytes that need a flush.
    needs_flush: bool,
}

impl<W: AsyncWrite + Send + Unpin> LineOutput<W> {
    pub(super) fn new(stream: W) -> Self {
        let writer = LineWriter { stream, writing: BytesMut::new(), needs_flush: false };
        Self { waiting: Arc::default(), writer: tokio::sync::Mutex::new(Some(writer)) }
    }

    /// Adds a message as a line, whole or not at all.
    pub(super) fn add(&self, message: &impl Serialize) -> io::Result<()> {
        let mut waiting = self.waiting.lock();
        let before = waiting.len();
        match serde_json::to_writer(&mut *waiting, message) {
            Ok(()) => {
                waiting.push(b'\n');
                Ok(())
            }
            Err(error) => {
                waiting.truncate(before);
                Err(error.into())
            }
        }
    }

    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// Returns whether no more requests should be read until the client has read.
    pub(super) fn is_full(&self) -> bool {
        self.waiting.lock().len() > WAITING_BYTES_MAX
    }

    /// Writes all lines that are queued.
    pub(super) async fn flush(&self) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        self.flush_by(writer.as_mut()).await
    }

    /// Like [`Self::flush`], but only writes what is possible without waiting. The rest, and any
    /// error, is left to the next [`Self::flush`].
    pub(super) fn try_flush(&self) {
        if let Ok(mut writer) = self.writer.try_lock() {
            let flush = std::pin::pin!(self.flush_by(writer.as_mut()));
            let _ = flush.poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    async fn flush_by(&self, writer: Option<&mut LineWriter<W>>) -> io::Result<()> {
        let Some(writer) = writer else {
            return Err(io::Error::new(io::ErrorKind::NotConnected, "the connection is closed"));
        };
        while writer.take(&self.waiting) {
            let bytes = writer.writing.len();
            writer.needs_flush = true;
            writer.stream.write_all_buf(&mut writer.writing).await?;
            if bytes > RETAINED_BYTES_MAX {
                writer.writing = BytesMut::new();
            }
        }
        if writer.needs_flush {
            writer.stream.flush().await?;
            writer.needs_flush = false;
        }
        Ok(())
    }

    /// Writes the queued lines and closes the connection.
    pub(super) async fn close(&self) -> io::Result<()> {
        let mut writer = self.writer.lock().await;
        let flushed = self.flush_by(writer.as_mut()).await;
        *writer = None;
        flushed
    }
}

impl<W> LineWriter<W> {
    /// Takes over the queued lines if the previous ones are written. Returns whether there is
    /// anything to write.
    fn take(&mut self, waiting: &Mutex<Vec<u8>>) -> bool {
        if self.writing.is_empty() {
            let mut waiting = waiting.lock();
            self.writing.extend_from_slice(&waiting);
            waiting.clear();
            waiting.shrink_to(RETAINED_BYTES_MAX);
        }
        !self.writing.is_empty()
    }
}

/// Stream that appends to the queued lines.
pub(super) struct BufferedLines(Arc<Mutex<Vec<u8>>>);

impl BufferedLines {
    pub(super) fn new<W>(output: &LineOutput<W>) -> Self {
        Self(Arc::clone(&output.waiting))
    }
}

impl AsyncWrite for BufferedLines {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
