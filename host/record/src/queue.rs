//! Bounded queue from the callers to the writer's thread.
//!
//! A push locks, appends and unlocks. The writer sleeps while it collects a batch, so that a push
//! wakes it only if it was idle or the batch is large: waking a thread takes longer than the rest.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use cofferdam_tool::ToolName;
use cofferdam_tool::invoke::McpRequest;
use cofferdam_tool::label::Label;
use cofferdam_tool::record::{FileChange, HostContact, PluginIdentity, Refusal, ServerRequest};
use cofferdam_tool::recording::CallRecording;
use cofferdam_tool::trace::TraceContext;
use parking_lot::{Condvar, Mutex};

use crate::event::LogEvent;
use crate::exchange::ModelExchange;
use crate::payloads::RawPayload;
use crate::{CallEntry, PayloadKind};

/// Maximum number of items in the queue.
const ITEMS_MAX: usize = 65_536;
/// Maximum bytes of the items in the queue.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Bytes after which a batch is written without waiting for more.
const BATCH_BYTES: usize = 256 * 1024;
/// Time after which a batch is written.
const BATCH_TIME: Duration = Duration::from_millis(10);
/// Bytes that an item is counted with besides its payloads.
const ITEM_BYTES: usize = 512;

/// Treatment of a full queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum FullQueue {
    /// The call waits until the writer has taken the queue, which it does at least each time that
    /// it has written what it took before.
    ///
    /// The wait blocks the thread, also that of an asynchronous runtime, because sinks are called
    /// from within the call ([`CallSink`](cofferdam_tool::sink::CallSink)): tasks that are ready on
    /// other threads go on, and those that only this thread can run wait as well. It begins at
    /// 65,536 records or 64 MiB that are not written. The end of a call that has begun never waits.
    /// A disk that is full makes no call wait: what cannot be written is dropped and counted. A
    /// disk that hangs does; [`Drop`](Self::Drop) is for hosts that have to go on then.
    #[default]
    Wait,
    /// The call is not recorded and does not wait. The log says how many were not recorded.
    Drop,
}

/// Something to write.
pub(crate) enum QueueItem {
    Begin(Box<BeginItem>),
    End(Box<EndItem>),
    /// A call that did not start.
    Refused(Box<RefusedItem>),
    Event(Box<EventItem>),
    /// Asks for a message when everything before it is on disk.
    Flush(SyncSender<()>),
}

/// Start of a call.
#[derive(Clone)]
pub(crate) struct BeginItem {
    pub(crate) number: u64,
    pub(crate) at: Instant,
    pub(crate) tool: ToolName,
    pub(crate) plugin: Option<PluginIdentity>,
    /// Name of the source, unless it is a plugin.
    pub(crate) source: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) call: String,
    pub(crate) outer: Option<String>,
    pub(crate) trace: Option<TraceContext>,
    pub(crate) request: Option<Arc<McpRequest>>,
    pub(crate) arguments: RawPayload,
}

/// End of a call: what its entry has besides the start, in a smaller form. Kept small so that
/// allocating it hits the thread-local free list.
pub(crate) struct EndItem {
    pub(crate) number: u64,
    pub(crate) at: Instant,
    pub(crate) outcome: &'static str,
    pub(crate) error: Option<String>,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) files: Vec<FileChange>,
    pub(crate) files_left_out: u64,
    pub(crate) is_dry_run: bool,
    pub(crate) hosts: Vec<HostContact>,
    pub(crate) http_sent_bytes: u64,
    pub(crate) http_received_bytes: u64,
    pub(crate) server_request: Option<Box<ServerRequest>>,
    pub(crate) inner_calls: u64,
    pub(crate) retries: u32,
    pub(crate) questions: u32,
    pub(crate) wait: Duration,
    pub(crate) run: Duration,
    pub(crate) cpu: Duration,
    pub(crate) instructions: Option<u64>,
    pub(crate) memory_peak_bytes: u64,
    pub(crate) label: Option<Label>,
    /// Plugin of a source that could not name it before the call.
    pub(crate) plugin: Option<PluginIdentity>,
    pub(crate) result: Option<RawPayload>,
    /// Payloads that few calls have.
    pub(crate) payloads: Vec<(PayloadKind, RawPayload)>,
    /// Inputs of the call, if it can run again.
    pub(crate) recording: Option<Arc<CallRecording>>,
}

/// Call that did not start.
pub(crate) struct RefusedItem {
    pub(crate) number: u64,
    pub(crate) at: Instant,
    pub(crate) entry: CallEntry,
    pub(crate) detail: Option<RawPayload>,
}

/// Event besides calls.
pub(crate) struct EventItem {
    pub(crate) at: Instant,
    pub(crate) event: LogEvent,
    /// Messages of a model's reply, if they are stored.
    pub(crate) exchange: Option<ModelExchange>,
    /// Bytes of strings and messages.
    bytes: usize,
}

/// Queue from the callers to the writer.
#[derive(Default)]
pub(crate) struct LogQueue {
    state: Mutex<QueueState>,
    wake: Condvar,
    room: Condvar,
}

#[derive(Default)]
struct QueueState {
    items: Vec<QueueItem>,
    bytes: usize,
    dropped: u64,
    is_idle: bool,
    is_urgent: bool,
    is_closed: bool,
}

/// Items that were taken out of the queue.
#[derive(Default)]
pub(crate) struct QueueBatch {
    pub(crate) items: Vec<QueueItem>,
    /// Number of calls and events that were dropped since the last batch.
    pub(crate) dropped: u64,
    pub(crate) is_closed: bool,
}

impl QueueItem {
    fn bytes(&self) -> usize {
        let payloads = match self {
            Self::Begin(begin) => begin.arguments.bytes.len(),
            Self::End(end) => {
                let files = end.files.len() * ITEM_BYTES;
                let recording = end.recording.as_ref().map_or(0, |recording| recording.size());
                let payloads = end.payloads.iter().map(|(_, payload)| payload);
                let payloads = payloads.chain(&end.result).map(|payload| payload.bytes.len());
                files + recording + payloads.sum::<usize>()
            }
            Self::Refused(refused) => {
                refused.detail.as_ref().map_or(0, |detail| detail.bytes.len())
            }
            Self::Event(event) => event.bytes,
            Self::Flush(_) => 0,
        };
        payloads + ITEM_BYTES
    }
}

impl EventItem {
    pub(crate) fn new(mut event: LogEvent, exchange: Option<ModelExchange>) -> Self {
        // Strings are cut later, behind redaction, which needs whole secrets.
        let strings: usize = event.strings().iter().map(|string| string.len()).sum();
        let bytes = strings + exchange.as_ref().map_or(0, ModelExchange::bytes);
        Self { at: Instant::now(), event, exchange, bytes }
    }
}

impl LogQueue {
    /// Appends an item. Returns false if it was dropped. The end of a call that has begun always
    /// finds room, so that no call stays open.
    pub(crate) fn push(&self, item: QueueItem, full: FullQueue) -> bool {
        let is_exempt = matches!(item, QueueItem::End(_) | QueueItem::Flush(_));
        let bytes = item.bytes();
        let mut state = self.state.lock();
        while !is_exempt && state.is_full() && !state.is_closed {
            if full == FullQueue::Drop {
                state.dropped += 1;
                return false;
            }
            state.is_urgent = true;
            self.wake.notify_one();
            self.room.wait(&mut state);
        }
        if state.is_closed {
            return false;
        }
        state.bytes += bytes;
        let is_flush = matches!(item, QueueItem::Flush(_));
        state.items.push(item);
        let is_urgent = is_flush || state.bytes >= BATCH_BYTES;
        let wakes = std::mem::replace(&mut state.is_idle, false) || (is_urgent && !state.is_urgent);
        state.is_urgent |= is_urgent;
        drop(state);
        if wakes {
            self.wake.notify_one();
        }
        true
    }

    /// Waits for a batch, at most until `until`. `spare` is an empty list to fill next.
    pub(crate) fn take(&self, until: Option<Instant>, spare: Vec<QueueItem>) -> QueueBatch {
        let mut state = self.state.lock();
        while state.items.is_empty() && !state.is_closed && state.dropped == 0 {
            state.is_idle = true;
            match until {
                Some(until) if self.wake.wait_until(&mut state, until).timed_out() => break,
                Some(_) => {}
                None => self.wake.wait(&mut state),
            }
        }
        state.is_idle = false;
        let written = Instant::now() + BATCH_TIME;
        while !state.items.is_empty() && !state.is_urgent && !state.is_closed {
            if self.wake.wait_until(&mut state, written).timed_out() {
                break;
            }
        }
        state.is_urgent = false;
        let items = std::mem::replace(&mut state.items, spare);
        state.bytes = 0;
        let dropped = std::mem::take(&mut state.dropped);
        let is_closed = state.is_closed;
        drop(state);
        self.room.notify_all();
        QueueBatch { items, dropped, is_closed }
    }

    /// Accepts nothing more. What is in the queue is still written.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.wake.notify_all();
        self.room.notify_all();
    }

    /// Accepts nothing more, and drops what is in the queue, so that no one waits for it.
    pub(crate) fn abandon(&self) {
        self.close();
        // Dropped without the lock: the items can be many.
        let _ = std::mem::take(&mut self.state.lock().items);
    }
}

impl QueueState {
    fn is_full(&self) -> bool {
        self.items.len() >= ITEMS_MAX || self.bytes >= BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> QueueItem {
        grant("x".to_owned())
    }

    fn grant(permission: String) -> QueueItem {
        let event = LogEvent::Grant { plugin: "p".to_owned(), permission, is_added: true };
        QueueItem::Event(Box::new(EventItem::new(event, None)))
    }

    #[test]
    fn a_full_queue_drops_and_counts() {
        let queue = LogQueue::default();
        for _ in 0..ITEMS_MAX {
            assert!(queue.push(event(), FullQueue::Drop));
        }
        assert!(!queue.push(event(), FullQueue::Drop));
        let batch = queue.take(None, Vec::new());
        assert_eq!((batch.items.len(), batch.dropped), (ITEMS_MAX, 1));
    }

    #[test]
    fn the_strings_of_events_count() {
        let queue = LogQueue::default();
        for _ in 0..8 {
            assert!(queue.push(grant("x".repeat(BYTES_MAX / 8)), FullQueue::Drop));
        }
        assert!(!queue.push(event(), FullQueue::Drop));
    }

    #[test]
    fn no_one_waits_for_a_queue_without_a_writer() {
        let queue = LogQueue::default();
        let (done, wait) = std::sync::mpsc::sync_channel(1);
        assert!(queue.push(QueueItem::Flush(done), FullQueue::Wait));
        for _ in 1..ITEMS_MAX {
            assert!(queue.push(event(), FullQueue::Wait));
        }
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.push(event(), FullQueue::Wait));
            queue.abandon();
            assert!(!waiting.join().unwrap());
        });
        assert!(wait.recv().is_err());
    }

    #[test]
    fn a_full_queue_waits_for_the_writer() {
        let queue = LogQueue::default();
        for _ in 0..ITEMS_MAX {
            assert!(queue.push(event(), FullQueue::Wait));
        }
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| queue.push(event(), FullQueue::Wait));
            assert_eq!(queue.take(None, Vec::new()).items.len(), ITEMS_MAX);
            assert!(waiting.join().unwrap());
        });
        queue.close();
        assert!(!queue.push(event(), FullQueue::Wait));
        assert!(queue.take(None, Vec::new()).is_closed);
    }
}
