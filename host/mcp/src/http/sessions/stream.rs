//! A stream of events and its readers.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_util::Stream;
use rmcp::model::ServerJsonRpcMessage;
use rmcp::transport::streamable_http_server::session::ServerSseMessage;

use super::events::Events;
use super::session::Session;

/// Time after which a client whose stream has ended early may come back.
const RETRY: Duration = Duration::from_secs(3);

/// Id of an event: the number of the event, and of its stream unless that is the standalone one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventId {
    pub(super) event: u64,
    pub(super) call: Option<u64>,
}

impl EventId {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (event, call) = match text.split_once('/') {
            Some((event, call)) => (event, Some(call.parse().ok()?)),
            None => (text, None),
        };
        Some(Self { event: event.parse().ok()?, call })
    }

    fn text(self) -> String {
        match self.call {
            Some(call) => format!("{}/{call}", self.event),
            None => self.event.to_string(),
        }
    }
}

/// Stream of a call, or the standalone stream of a session.
#[derive(Default)]
pub(super) struct EventStream {
    pub(super) events: Events,
    /// Open responses for this stream. The last one gets the events; the others stay open without
    /// any, because a client would open an ended one again and again.
    readers: Vec<(u64, Option<Waker>)>,
    /// Number of the last event that a reader has taken.
    pub(super) taken: u64,
    pub(super) is_finished: bool,
}

impl EventStream {
    pub(super) fn push(&mut self, message: ServerJsonRpcMessage) {
        self.events.push(message, self.has_readers());
        self.wake();
    }

    pub(super) fn finish(&mut self) {
        self.is_finished = true;
        self.wake();
    }

    pub(super) fn has_readers(&self) -> bool {
        !self.readers.is_empty()
    }

    pub(super) fn add_reader(&mut self, id: u64) {
        self.readers.push((id, None));
    }

    pub(super) fn remove_reader(&mut self, id: u64) {
        self.readers.retain(|(reader, _)| *reader != id);
        self.wake();
    }

    pub(super) fn wake(&mut self) {
        self.readers.iter_mut().filter_map(|(_, waker)| waker.take()).for_each(Waker::wake);
    }

    /// Takes the next event for a reader. The reader ends with a finished stream.
    pub(super) fn poll(
        &mut self,
        reader: &mut Position,
        context: &Context<'_>,
    ) -> Poll<Option<ServerSseMessage>> {
        let id = |event| EventId { event, call: reader.call }.text();
        if std::mem::take(&mut reader.is_new) {
            return Poll::Ready(Some(ServerSseMessage::priming(id(reader.read), RETRY)));
        }
        if self.readers.last().is_some_and(|(last, _)| *last == reader.id) {
            if std::mem::take(&mut reader.is_passed_over) {
                // The other reader got what was sent until it ended.
                reader.read = self.taken;
            }
            if let Some((number, message)) = self.events.read(reader.read.saturating_add(1)) {
                reader.read = number;
                self.taken = self.taken.max(number);
                return Poll::Ready(Some(ServerSseMessage::new(id(number), message)));
            }
        } else {
            reader.is_passed_over = true;
        }
        if self.is_finished {
            return Poll::Ready(None);
        }
        let own = self.readers.iter_mut().find(|(own, _)| *own == reader.id);
        if let Some((_, waker)) = own {
            *waker = Some(context.waker().clone());
        }
        Poll::Pending
    }
}

/// Position of a reader in a stream.
pub(super) struct Position {
    pub(super) id: u64,
    pub(super) call: Option<u64>,
    /// Number of the last event that was read.
    pub(super) read: u64,
    /// True until the reader has got the id from which it can resume.
    pub(super) is_new: bool,
    /// True if another reader got the events at the last poll.
    pub(super) is_passed_over: bool,
}

/// Response that reads a stream. The session is in use until it is dropped.
pub(super) struct Reader {
    pub(super) session: Arc<Session>,
    pub(super) position: Position,
}

impl Stream for Reader {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Self { session, position } = &mut *self;
        session.poll(position, context)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.session.leave(&self.position);
    }
}
