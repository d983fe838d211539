//! Live updates: calls of the log as they are recorded, as server-sent events.
//!
//! One thread reads the log for all pages, and only while a page is open. An event has at most
//! [`ROWS_MAX`] calls and the number of those that it leaves out, so that a busy host costs a page
//! no more than a quiet one. Payloads are not part of it.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_record::{CallEntry, CallFilter, CallPosition, LogFollower};
use http_body::{Body, Frame};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};

use crate::row::CallRow;
use crate::source::LogSource;

/// Maximum number of open pages with live updates.
const STREAMS_MAX: usize = 16;
/// Maximum number of calls in one event.
const ROWS_MAX: usize = 40;
/// Time between two looks at the log.
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two comments, which show that the connection is open.
pub(crate) const COMMENT_INTERVAL: Duration = Duration::from_secs(15);
/// Number of looks that a slow page may be behind.
const BEHIND_MAX: usize = 16;
/// Number of events that wait to be sent to one page.
const EVENTS_WAITING_MAX: usize = 8;

/// Calls of one look at the log.
type CallBatch = Arc<Vec<CallEntry>>;

/// Reader of the log for all open pages. Clones share its thread.
#[derive(Clone)]
pub(crate) struct LiveCalls {
    source: Arc<LogSource>,
    sender: broadcast::Sender<CallBatch>,
    is_running: Arc<Mutex<bool>>,
    streams: Arc<Semaphore>,
}

/// Events of one page.
pub(crate) struct EventBody(mpsc::Receiver<Bytes>);

impl LiveCalls {
    pub(crate) fn new(source: Arc<LogSource>) -> Self {
        Self {
            source,
            sender: broadcast::channel(BEHIND_MAX).0,
            is_running: Arc::default(),
            streams: Arc::new(Semaphore::new(STREAMS_MAX)),
        }
    }

    /// Starts the events of a page: calls that pass a filter. Calls that were recorded since
    /// `newest`, the first call that the page shows, come first. Returns `None` if too many pages
    /// are open.
    pub(crate) fn stream(
        &self,
        filter: CallFilter,
        newest: Option<CallPosition>,
    ) -> Option<EventBody> {
        let permit = Arc::clone(&self.streams).try_acquire_owned().ok()?;
        let (events, body) = EventBody::channel();
        let (reader, missed_filter) = (self.clone(), filter.clone());
        tokio::spawn(async move {
            // What is recorded after the subscription is read by the thread, so that nothing is
            // missed between the two.
            let reading = tokio::task::spawn_blocking(move || {
                let calls = reader.subscribe();
                let missed = missed_calls(&reader.source, missed_filter, newest.as_ref());
                (calls, missed)
            });
            let Ok((calls, missed)) = reading.await else { return };
            if let Some(event) = event(missed.iter()) {
                let _ = events.send(event).await;
            }
            send_events(filter, calls, events, permit).await;
        });
        Some(body)
    }

    /// Subscribes to the calls that are recorded from now on. Reads the directory.
    fn subscribe(&self) -> broadcast::Receiver<CallBatch> {
        let mut is_running = self.is_running.lock();
        let receiver = self.sender.subscribe();
        if !*is_running {
            let reader = self.clone();
            let follower = reader.follower();
            let thread = std::thread::Builder::new().name("cofferdam-live".to_owned());
            // Without the thread, the page shows what it has.
            *is_running = thread.spawn(move || reader.follow(follower)).is_ok();
        }
        receiver
    }

    fn follower(&self) -> Option<LogFollower> {
        self.source.log().ok().flatten().and_then(|log| log.follow().ok())
    }

    /// Reads the log until no page is open.
    fn follow(&self, mut follower: Option<LogFollower>) {
        loop {
            {
                let mut is_running = self.is_running.lock();
                if self.sender.receiver_count() == 0 {
                    *is_running = false;
                    return;
                }
            }
            follower = follower.or_else(|| self.follower());
            let calls = follower.as_mut().and_then(|follower| follower.poll().ok());
            let calls = calls.unwrap_or_default();
            if !calls.is_empty() {
                let _ = self.sender.send(Arc::new(calls));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns the newest calls that started after `newest`.
fn missed_calls(
    source: &LogSource,
    filter: CallFilter,
    newest: Option<&CallPosition>,
) -> Vec<CallEntry> {
    let since = filter.since.into_iter().chain(newest.map(CallPosition::at)).max();
    let filter = CallFilter { since, limit: Some(ROWS_MAX), ..filter };
    let found = source.log().ok().flatten().and_then(|log| log.query(&filter).ok());
    let mut calls = found.map(|found| found.calls).unwrap_or_default();
    calls.retain(|call| newest.is_none_or(|newest| call.position() > *newest));
    calls.reverse();
    calls
}

async fn send_events(
    filter: CallFilter,
    mut calls: broadcast::Receiver<CallBatch>,
    events: mpsc::Sender<Bytes>,
    permit: OwnedSemaphorePermit,
) {
    let mut comments = tokio::time::interval(COMMENT_INTERVAL);
    loop {
        let event = tokio::select! {
            () = events.closed() => break,
            _ = comments.tick() => Some(Bytes::from_static(b": open\n\n")),
            batch = calls.recv() => match batch {
                Ok(batch) => event(batch.iter().filter(|call| filter.matches(call))),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    // The page loads the list again.
                    Some(Bytes::from_static(b"event: rebase\ndata: \n\n"))
                }
                Err(broadcast::error::RecvError::Closed) => break,
            },
        };
        if let Some(event) = event
            && events.send(event).await.is_err()
        {
            break;
        }
    }
    drop(permit);
}

/// Returns an event with the last of the calls, or `None` if there are none.
fn event<'c>(calls: impl Iterator<Item = &'c CallEntry>) -> Option<Bytes> {
    let calls: Vec<_> = calls.collect();
    let newest = calls.iter().map(|call| call.position()).max()?;
    let left_out = calls.len().saturating_sub(ROWS_MAX);
    let rows: Vec<_> = calls.iter().skip(left_out).map(|call| CallRow::new(call)).collect();
    let data = json!({ "rows": rows, "left_out": left_out });
    Some(Bytes::from(format!("id: {newest}\nevent: calls\ndata: {data}\n\n")))
}

impl EventBody {
    /// Returns a body, and the sender of its events.
    pub(crate) fn channel() -> (mpsc::Sender<Bytes>, Self) {
        let (events, body) = mpsc::channel(EVENTS_WAITING_MAX);
        (events, Self(body))
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
