//! Recorder: receives calls and events, and hands them to the writer's thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cofferdam_tool::redact::Redactor;
use cofferdam_tool::sink::{ApprovalDecision, CallSink, ObservedCall};
use cofferdam_tool::{CallContext, Completion, RefusedCall};
use parking_lot::Mutex;
use serde_json::{Map, Value};

use crate::capture::CallCapture;
use crate::cleaner::Cleaner;
use crate::components::ComponentFiles;
use crate::directory::LogDirectory;
use crate::note::SigningKey;
use crate::payloads::{PayloadStore, process_digits};
use crate::queue::{EventItem, FullQueue, LogQueue, QueueItem};
use crate::retention::RetentionLimits;
use crate::segment_writer::SegmentWriter;
use crate::writer::{LogWriter, WriterState};
use crate::{EvidenceError, LogEvent, LogFollower, ModelExchange, PayloadMode, RecordError};

/// Size at which a segment is replaced.
const SEGMENT_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Smallest limit of a log. Below, a segment would hold a few hundred calls.
const LOG_BYTES_MIN: u64 = 1024 * 1024;

/// Options of a recorder.
#[derive(Debug, Clone)]
pub struct RecordOptions {
    /// Directory of the log. Created with mode 700 if it does not exist.
    pub directory: PathBuf,
    /// Treatment of payloads.
    pub payloads: PayloadMode,
    /// Maximum bytes of a payload. A longer one is cut and marked.
    pub payload_bytes_max: usize,
    /// True to store requests to models and their replies, redacted, so that a conversation can run
    /// again.
    pub stores_conversations: bool,
    /// Maximum bytes of the log.
    pub bytes_max: u64,
    /// Age after which segments and payloads are removed.
    pub age_max: Duration,
    /// Treatment of a full queue.
    pub on_full: FullQueue,
    /// Secrets that are redacted, besides tokens of known shapes.
    pub secrets: Redactor,
}

/// State of a recorder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderHealth {
    /// True if the last attempt to write has failed. Recording resumes when one succeeds.
    pub is_failing: bool,
    /// Last error, which may be over.
    pub error: Option<String>,
    /// Number of calls and events that were not recorded.
    pub dropped: u64,
}

/// Records calls and other events in a log. Dropping it closes the log.
///
/// Its methods copy and enqueue, and do no I/O, except [`flush`](Self::flush) and
/// [`close`](Self::close).
pub struct Recorder {
    queue: Arc<LogQueue>,
    health: Arc<Mutex<RecorderHealth>>,
    directory: LogDirectory,
    process: String,
    next: AtomicU64,
    capture: CallCapture,
    stores_conversations: bool,
    components: ComponentFiles,
    on_full: FullQueue,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl RecordOptions {
    /// Returns options with digests of payloads, at most 1 GiB, and 30 days.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            payloads: PayloadMode::default(),
            payload_bytes_max: 8 * 1024 * 1024,
            stores_conversations: false,
            bytes_max: 1024 * 1024 * 1024,
            age_max: Duration::from_secs(30 * 24 * 3600),
            on_full: FullQueue::default(),
            secrets: Redactor::default(),
        }
    }

    /// Returns the size at which a segment is replaced: small enough that the open segment and the
    /// one that is compressed fit into the reserve.
    fn segment_bytes_max(&self) -> u64 {
        SEGMENT_BYTES_MAX.min(self.bytes_max / 32)
    }
}

impl Recorder {
    /// Opens the log and starts the thread that writes it.
    ///
    /// # Errors
    /// If the directory is not the user's own with mode 700, or cannot be written.
    pub fn open(options: RecordOptions) -> Result<Self, EvidenceError> {
        if options.bytes_max < LOG_BYTES_MIN {
            let (found, min) = (options.bytes_max, LOG_BYTES_MIN);
            return Err(RecordError::TooSmall { option: "bytes_max", found, min }.into());
        }
        let directory = LogDirectory::create(&options.directory)?;
        let key = Arc::new(SigningKey::load_or_create(&directory)?);
        let process = process_digits()?;
        let segment_bytes_max = options.segment_bytes_max();
        let (queue, health) = (Arc::<LogQueue>::default(), Arc::default());
        let payloads = PayloadStore::open(&directory, options.payloads, options.bytes_max)?;
        let components = payloads.components.clone();
        let writer = LogWriter {
            payloads,
            segment: Some(SegmentWriter::create(&directory, &process, None, &key)?),
            directory: directory.clone(),
            process: process.clone(),
            key,
            queue: Arc::clone(&queue),
            health: Arc::clone(&health),
            cleaner: Cleaner::new(options.secrets)?,
            limits: RetentionLimits {
                // Reserve for the open segment, the one that is compressed, and new blobs.
                bytes_max: options.bytes_max - 8 * segment_bytes_max,
                age_max: options.age_max,
            },
            segment_bytes_max,
            state: WriterState::default(),
        };
        let thread = std::thread::Builder::new().name("cofferdam-log".to_owned());
        let thread = thread.spawn(move || writer.run()).map_err(RecordError::Thread)?;
        let capture = CallCapture {
            has_payloads: options.payloads != PayloadMode::None,
            payload_bytes_max: options.payload_bytes_max,
        };
        Ok(Self {
            queue,
            health,
            directory,
            process,
            next: AtomicU64::new(1),
            capture,
            stores_conversations: options.stores_conversations,
            components,
            on_full: options.on_full,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Records an event besides calls.
    pub fn event(&self, event: LogEvent) {
        self.reply(event, None);
    }

    /// Records the reply of a model. Its messages are stored only if the
    /// [options](RecordOptions::stores_conversations) ask for it.
    pub fn reply(&self, event: LogEvent, messages: Option<ModelExchange>) {
        let messages = messages.filter(|_| self.stores_conversations);
        let item = QueueItem::Event(Box::new(EventItem::new(event, messages)));
        self.queue.push(item, self.on_full);
    }

    /// Names the file of a component, which the log keeps once a recording of a call is stored.
    pub fn component_ambient(&self, digest: &str, file: &Path) {
        self.components.add(digest, file);
    }

    /// Returns whether requests to models and their replies are stored.
    #[must_use]
    pub fn stores_conversations(&self) -> bool {
        self.stores_conversations
    }

    /// Returns the id in the log of the call with this number ([`CallRecord::number`]).
    ///
    /// [`CallRecord::number`]: cofferdam_tool::CallRecord::number
    #[must_use]
    pub fn call_id(&self, number: u64) -> String {
        format!("{}-{number}", self.process)
    }

    /// Returns a follower of what this recorder writes from now on, and of nothing that other
    /// processes write in its directory.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn follow(&self) -> Result<LogFollower, RecordError> {
        LogFollower::new(&self.directory, Some(&self.process))
    }

    /// Returns the state of the recorder.
    #[must_use]
    pub fn health(&self) -> RecorderHealth {
        self.health.lock().clone()
    }

    /// Waits until everything that was recorded before is on disk. Check
    /// [`health`](Self::health) for errors.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue.push(QueueItem::Flush(done), self.on_full) {
            let _ = wait.recv();
        }
    }

    /// Writes everything, closes the segment and compresses it. Later calls are not recorded.
    pub fn close(&self) {
        self.queue.close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }
}

impl CallSink for Recorder {
    fn begin(&self, call: &ObservedCall<'_>, arguments: &Map<String, Value>) -> Option<u64> {
        let number = self.number();
        let begin = self.capture.begin(number, call, arguments);
        let is_recorded = self.queue.push(QueueItem::Begin(Box::new(begin)), self.on_full);
        is_recorded.then_some(number)
    }

    fn end(&self, number: Option<u64>, call: &ObservedCall<'_>, completion: &Completion) {
        // The first thing, so that the duration is not that of the copies.
        let now = Instant::now();
        if let Some(number) = number {
            let end = self.capture.end(number, now, call, completion);
            self.queue.push(QueueItem::End(Box::new(end)), self.on_full);
        }
    }

    fn refused(&self, name: &str, refused: &RefusedCall, context: &CallContext) {
        let refused = self.capture.refused(self.number(), name, refused, context);
        self.queue.push(QueueItem::Refused(Box::new(refused)), self.on_full);
    }

    fn decided(&self, decision: &ApprovalDecision<'_>) {
        let &ApprovalDecision { tool, call_id, by, is_allowed, waited } = decision;
        self.event(LogEvent::Approval {
            tool: tool.to_owned(),
            call: call_id.to_owned(),
            by: by.to_owned(),
            decision: if is_allowed { "once" } else { "denied" }.to_owned(),
            waited,
        });
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.close();
    }
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("process", &self.process).finish_non_exhaustive()
    }
}
