//! Serves the tools of a host to one program, over two streams of JSON lines. `docs/pipe.md`
//! describes the messages. [`ProgramSession`] is the same without the streams, for a host in the
//! process of the program.
//!
//! The program chooses the tools, so it is trusted like an operator. Its model is not: a call that
//! needs approval runs only after the program has approved it, and a program that does not say that
//! it approves calls gets none of them.

mod approver;
mod calls;
mod functions;
mod lines;
mod message;
mod requests;
mod session;

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::calls::Calls;
use self::lines::{LineReader, LineSender};
use self::message::ClientMessage;
use crate::error::ErrorKind;
use crate::{EngineOptions, Error, Result, Selection};

pub use self::message::HostMessage;
pub use self::session::{
    CallResult, MessageSender, ProgramCall, ProgramCompletion, ProgramSession,
};

/// Version of the protocol.
pub const PROTOCOL: u64 = 1;

/// Maximum time for the program to read what is left after the host has been stopped.
const WRITE_AFTER_STOP_MAX: Duration = Duration::from_secs(2);

/// Options of a host that serves a pipe.
pub struct PipeOptions {
    /// Plugins, servers and stores. The tools of the program are added.
    pub selection: Selection,
    /// Options of the engine.
    pub engine: EngineOptions,
}

/// Loads the host that `options` describe and serves it to the program that writes `input` and
/// reads `output`, until the input ends or `stop` fires. Calls in progress are canceled then.
///
/// # Errors
/// Returns an error if the host cannot be built or the program breaks the protocol. The program has
/// received it as `failed`, if it can be reached.
pub async fn serve(
    options: PipeOptions,
    input: impl AsyncRead + Send + Unpin,
    output: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<()> {
    let (sender, queue) = lines::channel();
    let writer = tokio::spawn(lines::write_all(queue, output));
    let served = async {
        let mut lines = LineReader::new(input);
        let served = stop.run_until_cancelled(converse(options, &mut lines, &sender)).await;
        let served = served.unwrap_or(Ok(()));
        if let Err(error) = &served {
            sender.send(&HostMessage::failed(error)).await;
        }
        drop(sender);
        // Ends when all senders are gone, or the program has closed its end.
        let _ = writer.await;
        served
    };
    // A program that does not read must not keep a host that has been stopped.
    let stopped = async {
        stop.cancelled().await;
        tokio::time::sleep(WRITE_AFTER_STOP_MAX).await;
    };
    tokio::select! {
        served = served => served,
        () = stopped => Ok(()),
    }
}

/// Serves one program until its input ends.
async fn converse(
    options: PipeOptions,
    lines: &mut LineReader<impl AsyncRead + Send + Unpin>,
    sender: &LineSender,
) -> Result<()> {
    let Some(line) = lines.next().await? else { return Ok(()) };
    let carrier = Arc::new(sender.clone());
    let session = ProgramSession::open(options, &line, carrier).await?;
    sender.send(&session.ready()).await;
    let calls = Calls::new(session, sender.clone());
    let end = calls.cancel_on_drop();
    let read = read_messages(lines, &calls).await;
    if read.is_err() {
        calls.fail();
    }
    drop(end);
    calls.ended().await;
    read
}

/// Handles the messages of a program until its input ends.
async fn read_messages(
    lines: &mut LineReader<impl AsyncRead + Send + Unpin>,
    calls: &Calls,
) -> Result<()> {
    while let Some(line) = lines.next().await? {
        match ClientMessage::parse(&line)? {
            ClientMessage::Hello(_) => {
                return Err(Error::invalid("expected one `hello`, found a second one"));
            }
            ClientMessage::Call(call) => calls.start(call).await?,
            ClientMessage::InvalidCall { id, error } => calls.refuse(id, &error).await?,
            ClientMessage::Cancel { id } => calls.cancel(id),
            ClientMessage::Reply { id, reply } => calls.session().settle(id, reply),
            ClientMessage::Unknown => {}
        }
    }
    Ok(())
}

impl ErrorKind {
    /// Returns the exit code of a program that ends with an error of this kind.
    #[must_use]
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Invalid => 2,
            Self::Unavailable => 4,
            Self::Failed => 5,
        }
    }
}
