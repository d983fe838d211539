//! JSON lines: reads and answers a client on standard input and output.
//!
//! Over the SDK's own transport, a small call of a plugin takes 1.20 times as long if the client
//! waits for each answer, and 1.33 times as long with 16 calls in flight (medians of 25 rounds on
//! one CPU, 2026-11-24; 1.54 and 1.27 on two). That is why this one exists.
//!
//! Lines mean the same as for the SDK's own transport, with two differences that a client can see:
//! responses and notifications before the first request are ignored, where the SDK would end the
//! connection; and responses that are ready together are written together. The most frequent
//! message, a plain `tools/call`, is parsed in one pass (`lines/call.rs`); the SDK tries one
//! request type after the other. Batches of revision 2025-03-26 are split here (`lines/batch.rs`).

mod batch;
mod call;
mod output;

use std::io::Cursor;
use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH};
use rmcp::{ErrorData, RoleServer};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader};
use tokio_util::sync::CancellationToken;

use self::batch::Batches;
pub(crate) use self::batch::{MESSAGES_MAX as BATCH_MAX, REVISION as BATCH_REVISION};
use self::output::{BufferedLines, LineOutput};

/// Maximum length of a line, in bytes, as in the SDK. A longer line is skipped.
const LINE_BYTES_MAX: usize = DEFAULT_MAX_LINE_LENGTH;

/// Line-based transport for one client.
pub(super) struct LineTransport<R, W> {
    input: BufReader<R>,
    /// Line that is being read. Reading can be interrupted at any point and resumes here.
    line: Vec<u8>,
    /// True if the rest of the current line belongs to one that was too long.
    is_skipping: bool,
    output: Arc<LineOutput<W>>,
    /// True if the response to an unreadable line is queued but not yet written.
    owes_flush: bool,
    has_begun: bool,
    /// Estimated number of unanswered requests. It only decides when to write.
    unanswered: usize,
    /// Open batches; `None` unless the client uses the revision that has batches.
    batches: Option<Batches>,
    closing: CloseSignals,
}

/// Signals for the end of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct CloseSignals {
    /// Fires when the server is stopping: requests in flight are answered, and no new ones start.
    pub(crate) stop: CancellationToken,
    /// Fires when no further requests will arrive, because the input has ended or the server is
    /// stopping.
    pub(crate) last: CancellationToken,
}

impl CloseSignals {
    /// Creates signals that fire when `stop` does, or earlier.
    pub(crate) fn with(stop: CancellationToken) -> Self {
        Self { last: stop.child_token(), stop }
    }
}

/// Request that the SDK cannot read.
#[derive(Deserialize)]
struct UnreadRequest {
    id: RequestId,
    #[serde(rename = "method")]
    _method: IgnoredAny,
}

/// Result of one read.
enum ReadStep {
    Line,
    Part,
    TooLong,
    End,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, closing: CloseSignals) -> Self {
        Self {
            closing,
            input: BufReader::new(input),
            line: Vec::new(),
            is_skipping: false,
            output: Arc::new(LineOutput::new(output)),
            owes_flush: false,
            has_begun: false,
            unanswered: 0,
            batches: None,
        }
    }

    /// Returns a future that writes the responses queued when it is polled. It outlives the
    /// connection.
    pub(super) fn flush(&self) -> impl Future<Output = std::io::Result<()>> + Send + use<R, W> {
        let output = Arc::clone(&self.output);
        async move { output.flush().await }
    }

    /// Puts the next message of a batch into `line`. Without one, reads a line, which may turn out
    /// to be a batch. Waits before that while too much output is queued.
    async fn next_message(&mut self) -> Option<()> {
        while self.output.is_full() {
            self.output.flush().await.ok()?;
        }
        loop {
            if let Some(message) = self.batches.as_mut().and_then(Batches::next) {
                self.line = message;
                return Some(());
            }
            self.next_line().await?;
            let Some(batches) = self.batches.as_mut().filter(|_| batch::is_batch(&self.line))
            else {
                return Some(());
            };
            if !batches.read(&self.line) {
                // The SDK reports the error.
                return Some(());
            }
            self.line.clear();
        }
    }

    /// Reads until `line` holds a complete line, including its line ending. Returns `None` at the
    /// end of the input; an unterminated last line is not a message.
    async fn next_line(&mut self) -> Option<()> {
        loop {
            match self.step().await {
                ReadStep::Line => return Some(()),
                ReadStep::Part => {}
                ReadStep::TooLong => {
                    tracing::error!(
                        LINE_BYTES_MAX,
                        "a line of the client is too long and passed over"
                    )
                }
                ReadStep::End => return None,
            }
        }
    }

    /// Consumes the available part of a line. It is cancel safe: no data is lost if the future is
    /// dropped.
    async fn step(&mut self) -> ReadStep {
        let available = match self.input.fill_buf().await {
            Ok([]) => return ReadStep::End,
            Ok(available) => available,
            Err(error) => {
                tracing::error!(%error, "the client cannot be read");
                return ReadStep::End;
            }
        };
        let end = memchr::memchr(b'\n', available);
        let part = end.and_then(|end| available.get(..=end)).unwrap_or(available);
        let taken = part.len();
        let step = if self.is_skipping {
            self.is_skipping = end.is_none();
            ReadStep::Part
        } else if self.line.len().saturating_add(taken) > LINE_BYTES_MAX {
            self.line.clear();
            self.is_skipping = end.is_none();
            ReadStep::TooLong
        } else {
            self.line.extend_from_slice(part);
            if end.is_some() { ReadStep::Line } else { ReadStep::Part }
        };
        self.input.consume(taken);
        step
    }

    /// Parses a line with the SDK. Returns `None` if the line is to be ignored, or was answered
    /// because it is not a message.
    async fn read_by_sdk(&mut self, line: Bytes) -> Option<RxJsonRpcMessage<RoleServer>> {
        let answers = BufferedLines::new(&self.output);
        // The line is complete and responses go to memory, so this never waits.
        let message = AsyncRwTransport::<RoleServer, _, _>::new(Cursor::new(line.clone()), answers)
            .receive()
            .await;
        if message.is_none() {
            if !self.output.has_waiting() {
                self.refuse(&line);
            }
            self.owes_flush = self.output.has_waiting();
        }
        message
    }

    /// Answers a request that the SDK cannot read although it is JSON, for example because of half
    /// a surrogate pair in a string: its sender would wait for the answer.
    fn refuse(&mut self, line: &[u8]) {
        let Ok(UnreadRequest { id, .. }) = serde_json::from_slice(line) else { return };
        let error = ErrorData::parse_error("the request cannot be read", None);
        let message = ServerJsonRpcMessage::error(error, Some(id));
        let message = match &mut self.batches {
            Some(batches) => batches.refuse(message),
            None => Some(message),
        };
        // Fails if the client has gone, which the next read finds.
        let _ = message.map(|message| self.output.add(&message));
    }

    fn count(&mut self, message: &RxJsonRpcMessage<RoleServer>) {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                self.has_begun = true;
                self.unanswered = self.unanswered.saturating_add(1);
                if let ClientRequest::InitializeRequest(request) = &request.request {
                    let has_batches = request.params.protocol_version.as_str() == BATCH_REVISION;
                    self.batches = has_batches.then(Batches::default);
                }
            }
            ClientJsonRpcMessage::Notification(notification)
                if matches!(
                    notification.notification,
                    ClientNotification::CancelledNotification(_)
                ) =>
            {
                self.unanswered = self.unanswered.saturating_sub(1);
            }
            _ => {}
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer =
            matches!(message, ServerJsonRpcMessage::Response(_) | ServerJsonRpcMessage::Error(_));
        let added = match &mut self.batches {
            None => self.output.add(&message),
            Some(batches) => match batches.collect(message) {
                // Other requests of the batch are still unanswered.
                Ok(None) => Ok(()),
                Ok(Some(answers)) => self.output.add(&answers),
                Err(message) => self.output.add(&message),
            },
        };
        if is_answer {
            self.unanswered = self.unanswered.saturating_sub(1);
            // A client that waits only for this response gets it at once. Otherwise the first of
            // these futures that runs writes all responses that are ready by then.
            if self.unanswered == 0 {
                self.output.try_flush();
            }
        }
        let output = Arc::clone(&self.output);
        let last = self.closing.last.clone();
        async move {
            added?;
            let flushed = last.run_until_cancelled(output.flush()).await;
            // The SDK sends the last responses one after the other and for a limited time, so a
            // client that reads slowly must not delay them. Closing the connection writes what
            // cannot be written at once.
            flushed.unwrap_or_else(|| {
                output.try_flush();
                Ok(())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let received = self.next_until_stopped().await;
        if received.is_none() {
            // Subscriptions end here; nothing else keeps the connection open.
            self.closing.last.cancel();
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.close().await
    }
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// Returns the next message, or `None` at the end of the input, or when the server is stopping
    /// and has answered everything.
    async fn next_until_stopped(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if self.owes_flush {
                self.output.flush().await.ok()?;
                self.owes_flush = false;
            }
            if self.closing.stop.is_cancelled() {
                if self.unanswered == 0 {
                    return None;
                }
                self.next_message().await?;
            } else {
                let stop = self.closing.stop.clone();
                // Reading can be interrupted at any point.
                match stop.run_until_cancelled(self.next_message()).await {
                    Some(line) => line?,
                    None => continue,
                }
            }
            let message = match call::read(&self.line) {
                Some(message) => {
                    self.line.clear();
                    Some(message)
                }
                None => {
                    let line = std::mem::take(&mut self.line);
                    self.read_by_sdk(line.into()).await
                }
            };
            if let Some(batches) = &mut self.batches
                && let Some(answers) = batches.note(message.as_ref())
            {
                self.output.add(&answers).ok()?;
                self.owes_flush = true;
            }
            let Some(message) = message else { continue };
            self.count(&message);
            if self.has_begun {
                return Some(message);
            }
        }
    }
}

#[cfg(test)]
mod tests;
