//! Lines of JSON: reading with a maximum length, and a queue of lines to write.

use async_trait::async_trait;
use cofferdam_tool::text::without_byte_order_mark;
use futures_util::StreamExt as _;
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{Receiver, Sender};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::message::HostMessage;
use super::session::MessageSender;
use crate::error::Context as _;
use crate::{Error, Result};

/// Maximum bytes of a line.
const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Maximum number of lines that wait to be written. Calls wait for room, reports do not.
const QUEUED_MAX: usize = 256;

/// Bytes from which queued lines are written before further ones are added to them.
const WRITTEN_BYTES: usize = 64 * 1024;

/// Lines of the program.
pub(super) struct LineReader<R>(FramedRead<R, LinesCodec>);

impl<R: AsyncRead + Send + Unpin> LineReader<R> {
    pub(super) fn new(input: R) -> Self {
        Self(FramedRead::new(input, LinesCodec::new_with_max_length(LINE_BYTES_MAX)))
    }

    /// Returns the next line that is not empty, without a byte order mark, or `None` at the end.
    pub(super) async fn next(&mut self) -> Result<Option<String>> {
        loop {
            match self.0.next().await {
                None => return Ok(None),
                Some(Ok(line)) => {
                    let line = without_byte_order_mark(&line);
                    if !line.trim().is_empty() {
                        return Ok(Some(line.to_owned()));
                    }
                }
                Some(Err(LinesCodecError::MaxLineLengthExceeded)) => {
                    return Err(Error::invalid(format!(
                        "expected lines of at most {LINE_BYTES_MAX} bytes, found a longer one"
                    )));
                }
                Some(Err(LinesCodecError::Io(error)))
                    if error.kind() == std::io::ErrorKind::InvalidData =>
                {
                    return Err(Error::invalid("expected lines of UTF-8, found other bytes"));
                }
                Some(Err(LinesCodecError::Io(error))) => {
                    return Err(error).context("the program cannot be read");
                }
            }
        }
    }
}

/// Queue of lines to the program. Clones write to the same queue.
#[derive(Clone)]
pub(super) struct LineSender(Sender<Vec<u8>>);

/// Returns a new queue.
pub(super) fn channel() -> (LineSender, Receiver<Vec<u8>>) {
    let (sender, receiver) = tokio::sync::mpsc::channel(QUEUED_MAX);
    (LineSender(sender), receiver)
}

impl LineSender {
    /// Queues a message, when there is room. Without a reader the message is lost.
    pub(super) async fn send(&self, message: &impl Serialize) {
        if let Some(line) = line(message) {
            let _ = self.0.send(line).await;
        }
    }
}

#[async_trait]
impl MessageSender for LineSender {
    async fn send(&self, message: &HostMessage<'_>) {
        Self::send(self, message).await;
    }

    fn offer(&self, message: &HostMessage<'_>) {
        if let Some(line) = line(message) {
            let _ = self.0.try_send(line);
        }
    }
}

fn line(message: &impl Serialize) -> Option<Vec<u8>> {
    let mut line = serde_json::to_vec(message)
        .inspect_err(|error| tracing::error!(%error, "a message cannot be written"))
        .ok()?;
    line.push(b'\n');
    Some(line)
}

/// Writes lines until all senders are gone or the program closes its end. Lines that are ready
/// together are written together.
pub(super) async fn write_all(
    mut queue: Receiver<Vec<u8>>,
    mut output: impl AsyncWrite + Send + Unpin,
) -> std::io::Result<()> {
    while let Some(mut lines) = queue.recv().await {
        while lines.len() < WRITTEN_BYTES
            && let Ok(more) = queue.try_recv()
        {
            lines.extend_from_slice(&more);
        }
        output.write_all(&lines).await?;
        output.flush().await?;
    }
    Ok(())
}
