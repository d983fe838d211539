//! Counts the bytes of a connection and stops it at the limit.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Byte counts of all connections of one requester.
#[derive(Debug)]
pub(crate) struct Meter {
    sent: Mutex<Count>,
    received: Mutex<Count>,
}

#[derive(Debug, Clone, Copy)]
struct Count {
    bytes: u64,
    bytes_max: u64,
}

/// Limit that ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overrun {
    Sent(u64),
    Received(u64),
}

/// Limit that ended a connection, if one did. The connection sets it, and the code that explains
/// the end reads it, regardless of how the protocol wraps the transport's error.
pub(crate) type OverrunCell = Arc<OnceLock<Overrun>>;

impl Meter {
    pub(crate) fn new(sent_bytes_max: u64, received_bytes_max: u64) -> Self {
        let count = |bytes_max| Mutex::new(Count { bytes: 0, bytes_max });
        Self { sent: count(sent_bytes_max), received: count(received_bytes_max) }
    }

    pub(crate) fn count_sent(&self, bytes: usize) -> bool {
        let mut sent = self.sent.lock();
        let is_allowed = sent.left(bytes) == bytes;
        if is_allowed {
            sent.add(bytes);
        }
        is_allowed
    }

    pub(crate) fn sent_bytes(&self) -> u64 {
        self.sent.lock().bytes
    }

    pub(crate) fn received_bytes(&self) -> u64 {
        self.received.lock().bytes
    }
}

// A count is a plain number, which a panic elsewhere cannot leave inconsistent.

impl Count {
    /// Returns the number of bytes left, at most `of`.
    fn left(&self, of: usize) -> usize {
        let left = self.bytes_max.saturating_sub(self.bytes);
        usize::try_from(left).unwrap_or(usize::MAX).min(of)
    }

    fn add(&mut self, bytes: usize) {
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }
}

/// Connection that counts its bytes. Holds a lock while it polls the transport, which never blocks,
/// so that concurrent connections of one requester cannot exceed the limit together.
pub(crate) struct MeteredStream<S> {
    stream: S,
    meter: Arc<Meter>,
    verdict: OverrunCell,
}

impl<S> MeteredStream<S> {
    pub(crate) fn new(stream: S, meter: Arc<Meter>, verdict: OverrunCell) -> Self {
        Self { stream, meter, verdict }
    }

    fn stop(&self, overrun: Overrun) -> io::Error {
        // The first limit is the cause; a second one changes nothing.
        let _ = self.verdict.set(overrun);
        io::ErrorKind::QuotaExceeded.into()
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MeteredStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let meter = Arc::clone(&this.meter);
        let mut count = meter.received.lock();
        let left = count.left(buffer.remaining());
        if left == 0 && buffer.remaining() > 0 {
            // The end of the connection is still passed on; one more byte is an error.
            let mut byte = [0];
            let mut probe = ReadBuf::new(&mut byte);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut probe))?;
            return Poll::Ready(match probe.filled() {
                [] => Ok(()),
                _ => Err(this.stop(Overrun::Received(count.bytes_max))),
            });
        }
        let mut part = ReadBuf::new(buffer.initialize_unfilled_to(left));
        ready!(Pin::new(&mut this.stream).poll_read(context, &mut part))?;
        let read = part.filled().len();
        count.add(read);
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for MeteredStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let meter = Arc::clone(&this.meter);
        let mut count = meter.sent.lock();
        let left = count.left(bytes.len());
        let Some(part) = bytes.get(..left).filter(|part| !part.is_empty() || bytes.is_empty())
        else {
            return Poll::Ready(Err(this.stop(Overrun::Sent(count.bytes_max))));
        };
        let written = ready!(Pin::new(&mut this.stream).poll_write(context, part))?;
        count.add(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn metered(
        input: &'static [u8],
        sent: u64,
        received: u64,
    ) -> (MeteredStream<impl AsyncRead + AsyncWrite>, OverrunCell) {
        let verdict = OverrunCell::default();
        let stream = tokio::io::join(input, Vec::new());
        (
            MeteredStream::new(stream, Arc::new(Meter::new(sent, received)), Arc::clone(&verdict)),
            verdict,
        )
    }

    #[tokio::test]
    async fn exactly_the_limit_passes() {
        let (mut stream, verdict) = metered(b"12345", 5, 5);
        let mut read = Vec::new();
        stream.read_to_end(&mut read).await.unwrap();
        stream.write_all(b"12345").await.unwrap();
        assert_eq!((read.as_slice(), verdict.get()), (b"12345".as_slice(), None));
        assert_eq!((stream.meter.sent_bytes(), stream.meter.received_bytes()), (5, 5));
    }

    #[tokio::test]
    async fn one_byte_more_does_not() {
        let (mut stream, verdict) = metered(b"123456", 9, 5);
        let mut read = Vec::new();
        assert!(stream.read_to_end(&mut read).await.is_err());
        assert_eq!(
            (read.as_slice(), verdict.get()),
            (b"12345".as_slice(), Some(&Overrun::Received(5)))
        );
        let (mut stream, verdict) = metered(b"", 5, 9);
        assert!(stream.write_all(b"123456").await.is_err());
        assert_eq!((stream.meter.sent_bytes(), verdict.get()), (5, Some(&Overrun::Sent(5))));
    }
}
