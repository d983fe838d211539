//! Worker side: gives out parts of a log.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cofferdam_record::{ChangedFile, LogFiles};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{CollectorMessage, LogMessage, part_message};
use crate::ClusterError;
use crate::bus::{Bus, BusMessage, Subscription};
use crate::frame::{self, HEADER_BYTES_MAX};
use crate::subject::{Subjects, Tenant};

/// Maximum bytes of a part.
const PART_BYTES_MAX: usize = 512 * 1024;
/// Bytes of a message that are not for a part: its header and the checkpoint.
const OVERHEAD_BYTES: usize = 2 * HEADER_BYTES_MAX;
/// Maximum number of files in a message, of about 80 bytes each.
const CHANGES_MAX: usize = 400;
/// Time after which a collector that has not asked is gone.
const COLLECTOR_GONE: Duration = Duration::from_secs(30);
/// Queue group of the workers with one log.
const GROUP: &str = "workers";

/// Gives out parts of a log until it is dropped.
pub struct LogServer {
    state: Arc<ServerState>,
    _stop: DropGuard,
}

struct ServerState {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    files: Arc<LogFiles>,
    progress: Mutex<CollectorProgress>,
    has_progress: Notify,
}

/// Progress of the collector.
#[derive(Default)]
struct CollectorProgress {
    asked: Option<Instant>,
    /// Time in seconds since 1970 behind which changes have to be read before the server ends.
    ended: Option<i64>,
    /// Files that have changed since then and were not read to their end; `None` before the
    /// collector has asked for them.
    unread: Option<BTreeSet<String>>,
}

impl LogServer {
    /// Starts to give out a log to the collectors of a tenant.
    ///
    /// # Errors
    /// If the bus cannot be subscribed to.
    pub async fn start(
        bus: Arc<dyn Bus>,
        tenant: &Tenant,
        files: LogFiles,
    ) -> Result<Self, ClusterError> {
        let subjects = Subjects::new(tenant);
        let log = subjects.log(&files.key().digest());
        let stop = CancellationToken::new();
        let all = bus.subscribe(&subjects.logs(), None).await?;
        let own = bus.subscribe(&log, Some(GROUP)).await?;
        let state = Arc::new(ServerState {
            bus,
            subjects,
            files: Arc::new(files),
            progress: Mutex::default(),
            has_progress: Notify::new(),
        });
        for messages in [all, own] {
            let (of_task, stop) = (Arc::clone(&state), stop.clone());
            let answering = async move {
                stop.run_until_cancelled(of_task.answer_all(messages)).await;
            };
            state.bus.spawn(Box::pin(answering));
        }
        Ok(Self { state, _stop: stop.drop_guard() })
    }

    /// Waits until a collector has read what the log has now, if one has asked a moment ago. The
    /// log must be complete.
    pub async fn finish(&self, wait_max: Duration) {
        let is_collected = |progress: &mut CollectorProgress| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
            // Times of files are whole seconds.
            progress.ended = Some(i64::try_from(now).unwrap_or(i64::MAX).saturating_sub(1));
            progress.asked.is_some_and(|asked| asked.elapsed() < COLLECTOR_GONE)
        };
        if !is_collected(&mut self.state.progress.lock()) {
            return;
        }
        let reading = async {
            loop {
                let progress = self.state.has_progress.notified();
                if self.state.progress.lock().unread.as_ref().is_some_and(BTreeSet::is_empty) {
                    return;
                }
                progress.await;
            }
        };
        if tokio::time::timeout(wait_max, reading).await.is_err() {
            tracing::warn!("the collector has not copied the end of the call log");
        }
    }
}

impl ServerState {
    /// Answers messages one after the other.
    async fn answer_all(self: Arc<Self>, mut messages: Box<dyn Subscription>) {
        while let Some(message) = messages.next().await {
            Arc::clone(&self).answer(message).await;
        }
    }

    async fn answer(self: Arc<Self>, message: BusMessage) {
        let reply = message.reply.filter(|reply| self.subjects.is_collector_inbox(reply));
        let (Some(reply), false) = (reply, message.is_undeliverable) else { return };
        let header = match frame::decode(&message.payload) {
            Ok((header, _)) => header,
            Err(error) => {
                tracing::warn!(%error, "a collector sent an invalid message");
                return;
            }
        };
        let name = match &header {
            CollectorMessage::Read { name, .. } => Some(name.clone()),
            _ => None,
        };
        let state = Arc::clone(&self);
        // An error means that the thread has panicked, which was reported.
        let Ok((answer, body)) = tokio::task::spawn_blocking(move || state.read(header)).await
        else {
            return;
        };
        if let Err(error) = self.bus.publish(&reply, None, frame::encode(&answer, &body)).await {
            tracing::warn!(%error, "a part of the call log was not sent");
            return;
        }
        if let (LogMessage::Part { is_last: true, .. }, Some(name)) = (answer, name) {
            self.note_read(&name).await;
        }
    }

    fn read(&self, message: CollectorMessage) -> (LogMessage, Vec<u8>) {
        self.progress.lock().asked = Some(Instant::now());
        match message {
            CollectorMessage::Logs {} => {
                (LogMessage::Log { key: self.files.key().to_string() }, Vec::new())
            }
            CollectorMessage::Changes { after } => self.changes(after.as_ref()),
            CollectorMessage::Read { name, offset } => {
                let bytes_max = self.bus.message_bytes_max().saturating_sub(OVERHEAD_BYTES);
                match self.files.read(&name, offset, bytes_max.min(PART_BYTES_MAX)) {
                    Ok(Some(part)) => part_message(&part),
                    Ok(None) => (LogMessage::Missing {}, Vec::new()),
                    Err(error) => unreadable(&error),
                }
            }
        }
    }

    fn changes(&self, after: Option<&ChangedFile>) -> (LogMessage, Vec<u8>) {
        let files = match self.files.changes(after, CHANGES_MAX) {
            Ok(files) => files,
            Err(error) => return unreadable(&error),
        };
        let is_last = files.len() < CHANGES_MAX;
        let mut progress = self.progress.lock();
        if let Some(ended) = progress.ended {
            let late = files.iter().filter(|file| file.changed >= ended);
            let late: Vec<_> = late.map(|file| file.name.clone()).collect();
            if is_last || !late.is_empty() {
                progress.unread.get_or_insert_default().extend(late);
                self.has_progress.notify_waiters();
            }
        }
        (LogMessage::Changes { is_last }, serde_json::to_vec(&files).unwrap_or_default())
    }

    /// Notes that a file was sent to its end.
    async fn note_read(&self, name: &str) {
        if self.progress.lock().unread.is_none() {
            return;
        }
        // The process may end now. Without a connection, the collector has got nothing.
        if self.bus.flush().await.is_ok()
            && let Some(unread) = &mut self.progress.lock().unread
        {
            unread.remove(name);
            self.has_progress.notify_waiters();
        }
    }
}

fn unreadable(error: &dyn std::fmt::Display) -> (LogMessage, Vec<u8>) {
    tracing::warn!(%error, "the call log cannot be read for a collector");
    (LogMessage::Unreadable {}, Vec::new())
}
