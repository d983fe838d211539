//! JSON lines: how a client on standard input and output is read and answered.
//!
//! Lines mean what the SDK's own transport says they mean, with two differences that a client sees:
//! answers and notifications that come before the first request belong to nothing and are passed
//! over, where the SDK would end the connection; and answers that are ready together are written
//! together. The most frequent message, a plain `tools/call`, is read in one go (`lines/call.rs`);
//! the SDK tries one type of request after the other. Batches of revision 2025-03-26 are taken
//! apart here (`lines/batch.rs`).

mod batch;
mod call;
mod output;

use std::io::Cursor;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, ServerJsonRpcMessage};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader};
use tokio_util::sync::CancellationToken;

use self::batch::Batches;
pub(crate) use self::batch::{MESSAGES_MAX as BATCH_MAX, REVISION as BATCH_REVISION};
use self::output::{Output, Waiting};

/// Longest line that is read, in bytes; a longer one is passed over. The SDK's number.
const LINE_BYTES_MAX: usize = DEFAULT_MAX_LINE_LENGTH;

/// Lines of one client.
pub(super) struct Lines<R, W> {
    input: BufReader<R>,
    /// The line that is being read. Reading may be interrupted anywhere and goes on here.
    line: Vec<u8>,
    /// The rest of the line belongs to one that was too long.
    is_skipping: bool,
    output: Arc<Output<W>>,
    /// A line could not be read and was answered, and the answer is not yet written.
    owes_flush: bool,
    has_begun: bool,
    /// Requests that wait for their answers, as far as that is known: for when to write, and for
    /// nothing else.
    unanswered: usize,
    /// `None` unless the client speaks the revision that has batches.
    batches: Option<Batches>,
    closing: Closing,
}

/// Signals for the end of a connection.
#[derive(Debug, Clone, Default)]
pub(crate) struct Closing {
    /// Says that the server is stopping: what was asked is answered, and nothing new is begun.
    pub(crate) stop: CancellationToken,
    /// Fires when nothing more will be asked, because the input has ended or the server is
    /// stopping.
    pub(crate) last: CancellationToken,
}

impl Closing {
    /// Closes when `stop` does, or earlier.
    pub(crate) fn with(stop: CancellationToken) -> Self {
        Self { last: stop.child_token(), stop }
    }
}

/// What came of reading on.
enum Step {
    Line,
    Part,
    TooLong,
    End,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(input: R, output: W, closing: Closing) -> Self {
        Self {
            closing,
            input: BufReader::new(input),
            line: Vec::new(),
            is_skipping: false,
            output: Arc::new(Output::new(output)),
            owes_flush: false,
            has_begun: false,
            unanswered: 0,
            batches: None,
        }
    }

    /// Writes the answers that there are when it is polled. It outlives the connection.
    pub(super) fn flush(&self) -> impl Future<Output = std::io::Result<()>> + Send + use<R, W> {
        let output = Arc::clone(&self.output);
        async move { output.flush().await }
    }

    /// The next message of a batch that was read, as a line. Otherwise reads a line, which may turn
    /// out to be a batch.
    async fn next_message(&mut self) -> Option<()> {
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
                // The SDK says what is wrong with it.
                return Some(());
            }
            self.line.clear();
        }
    }

    /// Reads until `line` holds a whole line, with its end. `None` at the end of the input; what
    /// came before that without the end of a line is no message.
    async fn next_line(&mut self) -> Option<()> {
        loop {
            match self.step().await {
                Step::Line => return Some(()),
                Step::Part => {}
                Step::TooLong => {
                    tracing::error!(
                        LINE_BYTES_MAX,
                        "a line of the client is too long and passed over"
                    )
                }
                Step::End => return None,
            }
        }
    }

    /// Takes what there is of a line. Between waiting and taking nothing is lost if the future is
    /// dropped.
    async fn step(&mut self) -> Step {
        let available = match self.input.fill_buf().await {
            Ok([]) => return Step::End,
            Ok(available) => available,
            Err(error) => {
                tracing::error!(%error, "the client cannot be read");
                return Step::End;
            }
        };
        let end = memchr::memchr(b'\n', available);
        let part = end.and_then(|end| available.get(..=end)).unwrap_or(available);
        let taken = part.len();
        let step = if self.is_skipping {
            self.is_skipping = end.is_none();
            Step::Part
        } else if self.line.len().saturating_add(taken) > LINE_BYTES_MAX {
            self.line.clear();
            self.is_skipping = end.is_none();
            Step::TooLong
        } else {
            self.line.extend_from_slice(part);
            if end.is_some() { Step::Line } else { Step::Part }
        };
        self.input.consume(taken);
        step
    }

    /// The message of a line, as the SDK reads it. `None` if it is to be ignored, or was answered
    /// because it is no message.
    async fn read_by_sdk(&mut self, line: Vec<u8>) -> Option<RxJsonRpcMessage<RoleServer>> {
        let answers = Waiting::new(&self.output);
        // All of the line is there and answers go to memory, so this never waits.
        let message =
            AsyncRwTransport::<RoleServer, _, _>::new(Cursor::new(line), answers).receive().await;
        self.owes_flush = message.is_none() && self.output.has_waiting();
        message
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

impl<R, W> Transport<RoleServer> for Lines<R, W>
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
                // The batch has other requests that wait for their answers.
                Ok(None) => Ok(()),
                Ok(Some(answers)) => self.output.add(&answers),
                Err(message) => self.output.add(&message),
            },
        };
        if is_answer {
            self.unanswered = self.unanswered.saturating_sub(1);
            // Whoever waits for this answer alone gets it at once. Others are written by the first
            // of these futures that runs, all that are there by then in one go.
            if self.unanswered == 0 {
                self.output.try_flush();
            }
        }
        let output = Arc::clone(&self.output);
        let last = self.closing.last.clone();
        async move {
            added?;
            let flushed = last.run_until_cancelled(output.flush()).await;
            // The SDK sends the last answers one after the other and not for long: a client that
            // reads slowly must not hold them up. What cannot be written at once is written when
            // the connection is closed.
            flushed.unwrap_or_else(|| {
                output.try_flush();
                Ok(())
            })
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        let received = self.next_until_stopped().await;
        if received.is_none() {
            // Subscriptions end now; nothing else keeps the connection open.
            self.closing.last.cancel();
        }
        received
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.output.close().await
    }
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    /// The next message. `None` at the end of the input, or when the server is stopping and has
    /// answered everything.
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
                // Reading can be interrupted anywhere.
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
                    self.read_by_sdk(line).await
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
