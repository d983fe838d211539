//! Collector side: copies the logs of workers.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_record::{
    ChangedFile, CopyError, EvidenceError, FilePart, LogCollection, LogCopy, PruneReport,
    VerifierKey,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{CollectorMessage, LogMessage, read_part};
use crate::ClusterError;
use crate::bus::{Bus, BusMessage, Subscription};
use crate::frame;
use crate::subject::{NodeName, Subjects, Tenant};

/// Time for the answers of all workers.
const LOGS_WAIT: Duration = Duration::from_millis(300);
/// Time for one answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);
/// Time after which a log whose worker does not answer is no longer being written.
const WORKER_GONE: Duration = Duration::from_secs(15);
/// Interval in which all files of a log are looked at, in case the clock of its machine was set
/// back.
const LIST_INTERVAL: Duration = Duration::from_secs(300);
/// Maximum number of answers that wait.
const WAITING_MAX: usize = 4096;
/// Seconds of changes that are looked at again: times of files are whole seconds.
const CHANGES_AGAIN: i64 = 2;
/// Maximum number of logs that are reported because they cannot be copied.
const REFUSED_MAX: usize = 1000;
/// Maximum number of files of one log that are reported because they cannot be copied.
const PROBLEMS_MAX: usize = 100;
/// Maximum number of files that one look at a log returns.
const FILES_MAX: usize = 1_000_000;

/// Copies the logs of the workers of a tenant.
pub struct LogCollector {
    link: Arc<CollectorLink>,
    collection: Arc<LogCollection>,
    logs: BTreeMap<String, KnownLog>,
    /// Digests of logs that cannot be copied.
    refused: BTreeSet<String>,
    running: JoinSet<CollectedLog>,
}

/// Result of one look at a log.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CollectedLog {
    /// Name of the log's key.
    pub name: String,
    /// Name of the copy in the collection.
    pub digest: String,
    /// Bytes that were copied.
    pub bytes: u64,
    /// Problems that were not reported before.
    pub problems: Vec<String>,
}

struct KnownLog {
    log: Arc<tokio::sync::Mutex<FollowedLog>>,
    heard: Instant,
}

/// A log, and what was copied of it.
struct FollowedLog {
    name: String,
    digest: String,
    copy: Arc<Mutex<LogCopy>>,
    /// File behind which changes are wanted.
    after: Option<ChangedFile>,
    listed: Instant,
    /// Times of the last changes of files that are complete.
    complete: HashMap<String, i64>,
    problems: Vec<String>,
}

/// Requests of a collector, and their answers.
struct CollectorLink {
    bus: Arc<dyn Bus>,
    subjects: Subjects,
    node: NodeName,
    requests: Mutex<PendingRequests>,
}

#[derive(Default)]
struct PendingRequests {
    next: u64,
    open: HashMap<u64, mpsc::Sender<BusMessage>>,
}

/// Reason for which a log is not copied any further at the moment.
#[derive(Debug, thiserror::Error)]
enum CollectError {
    #[error("its worker does not answer")]
    Silent,
    #[error("its worker sent an invalid answer")]
    Invalid,
    #[error("its worker cannot read it; the log of that process says why")]
    Unreadable,
    #[error("{0}")]
    Copy(#[from] CopyError),
}

impl LogCollector {
    /// Starts a collector.
    ///
    /// # Errors
    /// If the bus cannot be subscribed to.
    pub async fn start(
        bus: Arc<dyn Bus>,
        tenant: &Tenant,
        collection: LogCollection,
    ) -> Result<Self, ClusterError> {
        let (subjects, node) = (Subjects::new(tenant), NodeName::random());
        let answers = bus.subscribe(&subjects.collector_inboxes(&node), None).await?;
        let link = Arc::new(CollectorLink { bus, subjects, node, requests: Mutex::default() });
        let receiving = Arc::clone(&link).receive(answers);
        link.bus.spawn(Box::pin(receiving));
        let collection = Arc::new(collection);
        let (logs, refused) = (BTreeMap::new(), BTreeSet::new());
        Ok(Self { link, collection, logs, refused, running: JoinSet::new() })
    }

    /// Looks for logs and copies what they have. Waits at most `wait_max` for that, and returns
    /// what was done; the rest goes on until the next look.
    pub async fn collect(&mut self, wait_max: Duration) -> Vec<CollectedLog> {
        let begun = Instant::now();
        let waiting = begun + wait_max;
        let mut reports = self.find_logs().await;
        for known in self.logs.values() {
            let Ok(mut log) = Arc::clone(&known.log).try_lock_owned() else { continue };
            if known.heard.elapsed() >= WORKER_GONE {
                log.copy.lock().release();
            } else if known.heard >= begun {
                let link = Arc::clone(&self.link);
                self.running.spawn(async move { log.collect(&link).await });
            }
        }
        while let Ok(Some(collected)) =
            tokio::time::timeout_at(waiting, self.running.join_next()).await
        {
            // An error means that the task has panicked, which was reported.
            reports.extend(collected);
        }
        reports
    }

    /// Removes the oldest segments of each copy until it is within the limits.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub async fn prune(
        &self,
        bytes_max: u64,
        age_max: Duration,
    ) -> Result<PruneReport, EvidenceError> {
        let collection = Arc::clone(&self.collection);
        let pruning = tokio::task::spawn_blocking(move || collection.prune(bytes_max, age_max));
        pruning.await.unwrap_or(Err(EvidenceError::Interrupted))
    }

    /// Asks all workers for their logs. Returns those that cannot be copied.
    async fn find_logs(&mut self) -> Vec<CollectedLog> {
        let mut refused = Vec::new();
        for key in self.link.logs().await {
            let (name, digest) = (key.name().to_owned(), key.digest());
            let now = Instant::now();
            if let Some(known) = self.logs.get_mut(&digest) {
                known.heard = now;
                continue;
            }
            match self.collection.copy(&key) {
                Ok(copy) => {
                    let log = FollowedLog::new(name, digest.clone(), copy);
                    let log = Arc::new(tokio::sync::Mutex::new(log));
                    self.logs.insert(digest, KnownLog { log, heard: now });
                }
                Err(error)
                    if self.refused.len() < REFUSED_MAX && self.refused.insert(digest.clone()) =>
                {
                    refused.push(CollectedLog {
                        name,
                        digest,
                        problems: vec![error.to_string()],
                        ..CollectedLog::default()
                    });
                }
                Err(_) => {}
            }
        }
        refused
    }
}

impl FollowedLog {
    fn new(name: String, digest: String, copy: LogCopy) -> Self {
        Self {
            name,
            digest,
            copy: Arc::new(Mutex::new(copy)),
            after: None,
            listed: Instant::now(),
            complete: HashMap::new(),
            problems: Vec::new(),
        }
    }

    /// Copies what has changed.
    async fn collect(&mut self, link: &CollectorLink) -> CollectedLog {
        if self.listed.elapsed() >= LIST_INTERVAL {
            (self.after, self.listed) = (None, Instant::now());
        }
        let mut report = CollectedLog {
            name: self.name.clone(),
            digest: self.digest.clone(),
            ..CollectedLog::default()
        };
        let mut problems = Vec::new();
        if let Err(error) = self.copy_changes(link, &mut report.bytes, &mut problems).await {
            problems.push(error.to_string());
        }
        let known = &self.problems;
        report.problems = problems.iter().filter(|it| !known.contains(it)).cloned().collect();
        self.problems = problems;
        report
    }

    async fn copy_changes(
        &mut self,
        link: &CollectorLink,
        bytes: &mut u64,
        problems: &mut Vec<String>,
    ) -> Result<(), CollectError> {
        let log = link.subjects.log(&self.digest);
        for _ in 0..FILES_MAX {
            let (files, is_last) = link.changes(&log, self.after.clone()).await?;
            for file in files {
                if self.after.as_ref().is_some_and(|after| file <= *after) {
                    return Err(CollectError::Invalid);
                }
                self.after = Some(file.clone());
                if self.complete.get(&file.name) == Some(&file.changed) {
                    continue;
                }
                // The other files can be copied.
                match self.copy_file(link, &log, &file, bytes).await {
                    Err(CollectError::Copy(error)) if problems.len() < PROBLEMS_MAX => {
                        problems.push(error.to_string());
                    }
                    copied => copied?,
                }
            }
            if is_last {
                let again =
                    self.after.as_ref().map(|last| last.changed.saturating_sub(CHANGES_AGAIN));
                self.after = again.map(|changed| ChangedFile { changed, name: String::new() });
                return Ok(());
            }
        }
        Err(CollectError::Invalid)
    }

    async fn copy_file(
        &mut self,
        link: &CollectorLink,
        log: &str,
        file: &ChangedFile,
        bytes: &mut u64,
    ) -> Result<(), CollectError> {
        let name = &file.name;
        loop {
            let copied = self.copy.lock().copied(name);
            let Some(offset) = copied else {
                self.complete.insert(name.clone(), file.changed);
                return Ok(());
            };
            let Some(part) = link.read(log, name, offset).await? else { return Ok(()) };
            let (length, is_last) = (part.bytes.len(), part.is_last);
            if length == 0 && !is_last {
                return Err(CollectError::Invalid);
            }
            let (copy, of_file) = (Arc::clone(&self.copy), name.clone());
            let appending = tokio::task::spawn_blocking(move || {
                let mut copy = copy.lock();
                copy.append(&of_file, offset, &part)
            });
            // An error means that the thread has panicked, which was reported.
            appending.await.map_err(|_| CollectError::Invalid)??;
            *bytes += u64::try_from(length).unwrap_or(0);
            if is_last {
                return Ok(());
            }
        }
    }
}

impl CollectorLink {
    /// Passes answers on until the bus ends.
    async fn receive(self: Arc<Self>, mut answers: Box<dyn Subscription>) {
        while let Some(answer) = answers.next().await {
            let Some(number) = self.subjects.parse_collector_inbox(&answer.subject) else {
                continue;
            };
            let requests = self.requests.lock();
            if let Some(request) = requests.open.get(&number) {
                // More answers than a request can have are dropped.
                let _ = request.try_send(answer);
            }
        }
    }

    /// Sends a message, and returns the receiver of its answers and its number.
    async fn send(
        &self,
        subject: &str,
        message: &CollectorMessage,
    ) -> Result<(u64, mpsc::Receiver<BusMessage>), CollectError> {
        let (sender, answers) = mpsc::channel(WAITING_MAX);
        let number = {
            let mut requests = self.requests.lock();
            requests.next += 1;
            let number = requests.next;
            requests.open.insert(number, sender);
            number
        };
        let reply = self.subjects.collector_inbox(&self.node, number);
        let sent = self.bus.publish(subject, Some(&reply), frame::encode(message, b"")).await;
        if sent.is_err() {
            self.end(number);
            return Err(CollectError::Silent);
        }
        Ok((number, answers))
    }

    fn end(&self, number: u64) {
        self.requests.lock().open.remove(&number);
    }

    /// Sends a message to the workers with a log, and waits for the answer of one.
    async fn ask(
        &self,
        log: &str,
        message: &CollectorMessage,
    ) -> Result<(LogMessage, Bytes), CollectError> {
        let (number, mut answers) = self.send(log, message).await?;
        let answer = tokio::time::timeout(ANSWER_WAIT, answers.recv()).await;
        self.end(number);
        match answer {
            Ok(Some(answer)) if !answer.is_undeliverable => {
                frame::decode(&answer.payload).map_err(|_| CollectError::Invalid)
            }
            _ => Err(CollectError::Silent),
        }
    }

    /// Returns the keys of the logs that workers have.
    async fn logs(&self) -> Vec<VerifierKey> {
        let subject = self.subjects.logs();
        let Ok((number, mut answers)) = self.send(&subject, &CollectorMessage::Logs {}).await
        else {
            return Vec::new();
        };
        let until = Instant::now() + LOGS_WAIT;
        let mut keys: Vec<VerifierKey> = Vec::new();
        while let Ok(Some(answer)) = tokio::time::timeout_at(until, answers.recv()).await {
            if answer.is_undeliverable {
                break;
            }
            let Ok((LogMessage::Log { key }, _)) = frame::decode(&answer.payload) else { continue };
            match VerifierKey::parse(&key) {
                Ok(key) if !keys.contains(&key) => keys.push(key),
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "a worker sent an invalid key"),
            }
        }
        self.end(number);
        keys
    }

    async fn changes(
        &self,
        log: &str,
        after: Option<ChangedFile>,
    ) -> Result<(Vec<ChangedFile>, bool), CollectError> {
        match self.ask(log, &CollectorMessage::Changes { after }).await? {
            (LogMessage::Changes { is_last }, body) => {
                let files = serde_json::from_slice(&body).map_err(|_| CollectError::Invalid)?;
                Ok((files, is_last))
            }
            (LogMessage::Unreadable {}, _) => Err(CollectError::Unreadable),
            _ => Err(CollectError::Invalid),
        }
    }

    /// Reads a part of a file. Returns `None` if it does not exist.
    async fn read(
        &self,
        log: &str,
        name: &str,
        offset: u64,
    ) -> Result<Option<FilePart>, CollectError> {
        let message = CollectorMessage::Read { name: name.to_owned(), offset };
        match self.ask(log, &message).await? {
            (LogMessage::Part { is_last, state, checkpoint_bytes }, body) => {
                let part = read_part(is_last, state, checkpoint_bytes, &body);
                part.map(Some).ok_or(CollectError::Invalid)
            }
            (LogMessage::Missing {}, _) => Ok(None),
            (LogMessage::Unreadable {}, _) => Err(CollectError::Unreadable),
            _ => Err(CollectError::Invalid),
        }
    }
}
