//! The thread that writes the log.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::capture::cut;
use crate::cleaner::Cleaner;
use crate::directory::LogDirectory;
use crate::entry::{CallLineKind, LINE_VERSION, PayloadDigest, micros};
use crate::event::LogEvent;
use crate::exchange::ModelExchange;
use crate::lines::EventLine;
use crate::note::SigningKey;
use crate::payloads::{PayloadStore, RawPayload};
use crate::queue::{BeginItem, EndItem, EventItem, LogQueue, QueueBatch, QueueItem, RefusedItem};
use crate::recorder::RecorderHealth;
use crate::retention::{RetentionLimits, compress, prune};
use crate::sealer::seal_orphans;
use crate::segment_writer::{ClosedSegment, LostRecords, SegmentWriter};
use crate::time::ClockAnchor;
use crate::{CallEntry, EvidenceError, PayloadKind, RecordError, SpanIds, UtcTime};

/// Time between two syncs to disk.
const SYNC_TIME: Duration = Duration::from_secs(1);
/// Time between two attempts to create a segment.
const RETRY_TIME: Duration = SYNC_TIME;
/// Time after which the log is brought within its limits although nothing is recorded, so that a
/// host without calls keeps nothing longer than it may.
const UPKEEP_TIME: Duration = Duration::from_secs(24 * 3600);
/// Maximum bytes of a string of an event.
const EVENT_STRING_BYTES_MAX: usize = 1024;

/// Writes the items of the queue.
pub(crate) struct LogWriter {
    pub(crate) directory: LogDirectory,
    pub(crate) process: String,
    pub(crate) key: Arc<SigningKey>,
    pub(crate) queue: Arc<LogQueue>,
    pub(crate) health: Arc<Mutex<RecorderHealth>>,
    pub(crate) cleaner: Cleaner,
    pub(crate) payloads: PayloadStore,
    pub(crate) limits: RetentionLimits,
    pub(crate) segment_bytes_max: u64,
    pub(crate) segment: Option<SegmentWriter>,
    pub(crate) state: WriterState,
}

/// State of the thread besides its segment.
#[derive(Default)]
pub(crate) struct WriterState {
    /// Calls that have begun.
    open: HashMap<u64, CallInProgress>,
    unsynced: Option<Instant>,
    retry: Option<Instant>,
    /// Number of calls and events that were dropped since the last line that says so.
    dropped: u64,
    /// Number of those before.
    dropped_before: u64,
    previous: Option<String>,
    /// Time at which the log was last brought within its limits.
    upkept: Option<Instant>,
    upkeep: Option<JoinHandle<()>>,
    flushes: Vec<SyncSender<()>>,
    /// True if lines of the batch were written.
    has_written: bool,
    /// True if something has failed since the start of the batch.
    has_failed: bool,
    /// Names of the call that is written, for one search through all of them.
    names: String,
}

/// A call that has begun.
struct CallInProgress {
    begin: Box<BeginItem>,
    arguments: Option<PayloadDigest>,
    /// Time in the `begin` line, if one was written.
    written: Option<UtcTime>,
}

impl LogWriter {
    /// Runs until the queue is closed and empty.
    pub(crate) fn run(mut self) {
        self.start_upkeep(None);
        let mut spare = Vec::new();
        loop {
            let QueueBatch { mut items, dropped, is_closed } = self.queue.take(self.due(), spare);
            self.state.dropped += dropped;
            self.write_batch(&mut items);
            self.tick();
            spare = items;
            if is_closed {
                return self.close();
            }
        }
    }

    /// Returns the time of the next work without a batch.
    fn due(&self) -> Option<Instant> {
        let sync = self.state.unsynced.map(|since| since + SYNC_TIME);
        let seal = self.segment.as_ref().and_then(SegmentWriter::seal_due);
        let spent = self.segment.as_ref().map(SegmentWriter::spent_at);
        let upkeep = self.state.upkept.map(|last| last + UPKEEP_TIME);
        [sync, seal, spent, upkeep].into_iter().flatten().min()
    }

    fn write_batch(&mut self, items: &mut Vec<QueueItem>) {
        let anchor = ClockAnchor::now();
        (self.state.has_written, self.state.has_failed) = (false, false);
        let mut begun = Vec::new();
        for item in items.drain(..) {
            match item {
                QueueItem::Begin(begin) => {
                    begun.push(begin.number);
                    self.begin(begin);
                }
                QueueItem::End(end) => self.end(end, anchor),
                QueueItem::Refused(refused) => self.refused(refused, anchor),
                QueueItem::Event(event) => self.event(*event, anchor),
                QueueItem::Flush(done) => self.state.flushes.push(done),
            }
            if self.segment.as_ref().is_some_and(|open| open.is_full(self.segment_bytes_max)) {
                self.flush();
                self.rotate();
            } else if self.payloads.bytes_written() > self.segment_bytes_max {
                self.start_upkeep(None);
            }
        }
        for number in begun {
            self.write_begin(number, anchor);
        }
        self.write_drops();
        self.flush();
        if !self.state.flushes.is_empty() {
            self.sync();
        }
        if self.state.has_written && !self.state.has_failed {
            self.health(|health| health.is_failing = false);
        }
        self.state.flushes.drain(..).for_each(|done| done.try_send(()).unwrap_or(()));
    }

    /// Keeps a call that has begun. Most calls end in the same batch and need no line of their own.
    fn begin(&mut self, mut begin: Box<BeginItem>) {
        let arguments = self.digest(&std::mem::take(&mut begin.arguments));
        let number = begin.number;
        self.state.open.insert(number, CallInProgress { begin, arguments, written: None });
    }

    /// Writes the `begin` line of a call that is in progress at the end of its batch.
    fn write_begin(&mut self, number: u64, anchor: ClockAnchor) {
        let Some(call) = self.state.open.get(&number) else { return };
        let at = anchor.time(call.begin.at);
        let mut entry = CallEntry {
            v: LINE_VERSION,
            kind: CallLineKind::Begin,
            at,
            arguments: call.arguments.clone(),
            ..CallEntry::default()
        };
        self.add_start(&mut entry, (*call.begin).clone());
        self.clean(&mut entry);
        if self.add_call(&mut entry)
            && let Some(call) = self.state.open.get_mut(&number)
        {
            call.written = Some(at);
        }
    }

    fn end(&mut self, mut end: Box<EndItem>, anchor: ClockAnchor) {
        let Some(CallInProgress { begin, arguments, written }) =
            self.state.open.remove(&end.number)
        else {
            return;
        };
        let entry = &mut CallEntry::default();
        end.fill(entry);
        let EndItem { at, result, payloads, recording, .. } = &mut *end;
        entry.kind = if written.is_some() { CallLineKind::End } else { CallLineKind::Call };
        entry.us = micros(at.saturating_duration_since(begin.at));
        // The wall clock may have been set meanwhile.
        entry.at = written.unwrap_or_else(|| anchor.time(begin.at));
        entry.arguments = arguments;
        self.add_start(entry, *begin);
        self.clean(entry);
        entry.result = result.as_ref().and_then(|result| self.digest(result));
        self.add_payloads(entry, payloads);
        if let Some(recording) = recording.take() {
            match self.payloads.add_recording(recording, &self.cleaner) {
                Ok(digest) => entry.recording = Some(digest),
                Err(error) => self.fail(&error.into()),
            }
        }
        self.add_call(entry);
    }

    /// Adds what is known from the start of a call.
    fn add_start(&self, entry: &mut CallEntry, begin: BeginItem) {
        let BeginItem {
            number, tool, plugin, source, session, call, outer, trace, request, ..
        } = begin;
        entry.trace = trace.as_ref().map(SpanIds::from);
        if let Some(request) = request {
            entry.principal = Some(cut(&request.principal).to_owned());
            entry.client = request.client.as_deref().map(|client| cut(client).to_owned());
            entry.protocol = request.protocol_version.clone();
            entry.transport = Some(request.transport.to_owned());
        }
        entry.id = self.id(number);
        entry.source = if plugin.is_none() && entry.plugin.is_some() { None } else { source };
        if let Some(plugin) = plugin {
            entry.plugin = Some(plugin.name.as_str().to_owned());
            entry.digest = Some(plugin.digest.as_ref().to_owned());
        }
        tool.as_str().clone_into(&mut entry.tool);
        (entry.session, entry.call, entry.outer) = (session, call, outer);
    }

    /// Returns the id of a call.
    fn id(&self, number: u64) -> String {
        let mut id = String::with_capacity(self.process.len() + 21);
        let _ = write!(id, "{}-{number}", self.process);
        id
    }

    fn refused(&mut self, mut refused: Box<RefusedItem>, anchor: ClockAnchor) {
        let RefusedItem { number, at, entry, detail } = &mut *refused;
        entry.at = anchor.time(*at);
        entry.id = self.id(*number);
        self.clean(entry);
        entry.detail = detail.as_ref().and_then(|detail| self.digest(detail));
        self.add_call(entry);
    }

    fn event(&mut self, item: EventItem, anchor: ClockAnchor) {
        let EventItem { at, mut event, exchange, .. } = item;
        if let Some(exchange) = exchange {
            event = self.with_exchange(event, exchange);
        }
        let at = anchor.time(at);
        for text in event.strings() {
            self.cleaner.string(text);
            text.truncate(text.floor_char_boundary(EVENT_STRING_BYTES_MAX));
        }
        match self.segment() {
            Some(segment) => segment.add_event(&EventLine::new(segment.next(), at, event)),
            None => self.state.dropped += 1,
        }
    }

    /// Stores the messages of a model's reply, and adds their digest to it.
    fn with_exchange(&mut self, mut event: LogEvent, messages: ModelExchange) -> LogEvent {
        let stored = self.payloads.add_exchange(messages, &self.cleaner);
        if let LogEvent::Model { exchange, .. } = &mut event {
            *exchange = stored.map_err(|error| self.fail(&error.into())).ok();
        }
        event
    }

    fn write_drops(&mut self) {
        let count = self.state.dropped;
        if count == 0 {
            return;
        }
        if let Some(segment) = self.segment() {
            segment.add_drops(count);
            self.state.dropped = 0;
            self.state.dropped_before = self.state.dropped_before.saturating_add(count);
        }
        self.show_drops();
    }

    fn show_drops(&self) {
        let all = self.state.dropped_before.saturating_add(self.state.dropped);
        self.health(|health| health.dropped = all);
    }

    /// Adds a line about a call. Returns false if there is no segment.
    fn add_call(&mut self, entry: &mut CallEntry) -> bool {
        if let Some(segment) = self.segment() {
            segment.add_call(entry);
            return true;
        }
        // A call that has begun is not lost before its end is.
        self.state.dropped += u64::from(entry.kind != CallLineKind::Begin);
        false
    }

    /// Returns the segment, and creates one if there is none.
    fn segment(&mut self) -> Option<&mut SegmentWriter> {
        let is_waiting = self.state.retry.is_some_and(|retry| Instant::now() < retry);
        if self.segment.is_none() && !is_waiting {
            let previous = self.state.previous.as_deref();
            match SegmentWriter::create(&self.directory, &self.process, previous, &self.key) {
                Ok(segment) => {
                    self.segment = Some(segment);
                    self.state.retry = None;
                }
                Err(error) => {
                    self.state.retry = Some(Instant::now() + RETRY_TIME);
                    self.fail(&error);
                }
            }
        }
        self.segment.as_mut()
    }

    fn digest(&mut self, payload: &RawPayload) -> Option<PayloadDigest> {
        let (digest, error) = self.payloads.add(payload, &self.cleaner);
        if let Some(error) = error {
            self.fail(&error.into());
        }
        digest
    }

    fn add_payloads(&mut self, entry: &mut CallEntry, payloads: &[(PayloadKind, RawPayload)]) {
        for (kind, payload) in payloads {
            let digest = self.digest(payload);
            match kind {
                PayloadKind::Arguments => entry.arguments = digest,
                PayloadKind::Result => entry.result = digest,
                PayloadKind::Stdout => entry.stdout = digest,
                PayloadKind::Stderr => entry.stderr = digest,
                PayloadKind::Detail => entry.detail = digest,
                PayloadKind::Backtrace => entry.backtrace = digest,
                PayloadKind::Diff => entry.diff = digest,
            }
        }
    }

    /// Redacts what a guest, a model or a client has named.
    fn clean(&mut self, entry: &mut CallEntry) {
        // One search through all names shows for most calls that there is nothing to redact.
        let mut all = std::mem::take(&mut self.state.names);
        all.clear();
        for name in names(entry) {
            all.push_str(name);
            all.push('\n');
        }
        if !self.cleaner.is_clean(&all) {
            names(entry).for_each(|name| self.cleaner.string(name));
        }
        self.state.names = all;
    }

    fn flush(&mut self) {
        let Some(segment) = &mut self.segment else { return };
        match segment.flush() {
            Ok(false) => {}
            Ok(true) => {
                self.state.has_written = true;
                self.state.unsynced.get_or_insert_with(Instant::now);
            }
            Err((error, LostRecords { records, drops })) => {
                // Nothing in the log says what the lost lines had counted.
                self.state.dropped_before = self.state.dropped_before.saturating_sub(drops);
                self.state.dropped += records + drops;
                self.show_drops();
                self.fail(&error.into());
            }
        }
    }

    fn sync(&mut self) {
        self.state.unsynced = None;
        let Some(segment) = &self.segment else { return };
        let synced = segment.sync();
        if !segment.exists() {
            // Removed by the user: the next line starts another segment.
            self.state.previous = self.segment.take().map(|gone| gone.stem().to_owned());
        }
        if let Err(error) = synced {
            self.fail(&error.into());
        }
    }

    /// Does the work that depends on time: sync, checkpoint, rotation.
    fn tick(&mut self) {
        let now = Instant::now();
        if self.state.unsynced.is_some_and(|since| now >= since + SYNC_TIME) {
            self.sync();
        }
        if let Some(segment) = &mut self.segment
            && segment.seal_due().is_some_and(|due| now >= due)
            && let Err(error) = segment.seal(now)
        {
            self.fail(&error);
        }
        self.rotate();
    }

    /// Replaces a full segment, and prunes after many blobs.
    fn rotate(&mut self) {
        if self.segment.as_ref().is_some_and(|open| open.is_spent(self.segment_bytes_max)) {
            let closed = self.close_segment();
            self.start_upkeep(closed);
        } else if self.payloads.bytes_written() > self.segment_bytes_max
            || self.state.upkept.is_some_and(|last| last.elapsed() >= UPKEEP_TIME)
        {
            self.start_upkeep(None);
        }
    }

    fn close_segment(&mut self) -> Option<ClosedSegment> {
        let segment = self.segment.take()?;
        self.state.previous = Some(segment.stem().to_owned());
        let (closed, result) = segment.close();
        if let Err(error) = &result {
            self.fail(error);
        }
        // Without its last line the segment stays as it is.
        result.is_ok().then_some(closed)
    }

    /// Compresses and prunes in another thread, one at a time, so that the queue does not fill up.
    fn start_upkeep(&mut self, closed: Option<ClosedSegment>) {
        if let Some(upkeep) = self.state.upkeep.take() {
            let _ = upkeep.join();
        }
        self.payloads.reset_bytes_written();
        self.state.upkept = Some(Instant::now());
        let work = self.upkeep(closed);
        let thread = std::thread::Builder::new().name("cofferdam-log-upkeep".to_owned());
        self.state.upkeep = thread.spawn(work).ok();
    }

    fn upkeep(&self, closed: Option<ClosedSegment>) -> impl FnOnce() + Send + 'static {
        let (directory, key) = (self.directory.clone(), Arc::clone(&self.key));
        let (limits, health) = (self.limits, Arc::clone(&self.health));
        move || {
            let sealed = seal_orphans(&directory, &key);
            let compressed = closed.map_or(Ok(()), |closed| compress(&directory, &closed));
            let pruned = prune(&directory, limits, Some(&key));
            let compressed = compressed.map_err(EvidenceError::from);
            if let Err(error) = sealed.and(compressed).and(pruned) {
                report(&health, &error);
            }
        }
    }

    fn close(mut self) {
        self.write_drops();
        self.flush();
        let closed = self.close_segment();
        self.start_upkeep(closed);
        if let Some(upkeep) = self.state.upkeep.take() {
            let _ = upkeep.join();
        }
    }

    fn health(&self, change: impl FnOnce(&mut RecorderHealth)) {
        change(&mut self.health.lock());
    }

    fn fail(&mut self, error: &EvidenceError) {
        self.state.has_failed = true;
        report(&self.health, error);
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.queue.abandon();
        if std::thread::panicking() {
            self.fail(&RecordError::Panic.into());
        }
    }
}

/// Returns what a guest, a model or a client has named. The tool of a call that did not start is a
/// name that a model chose.
fn names(entry: &mut CallEntry) -> impl Iterator<Item = &mut String> {
    let CallEntry {
        tool,
        session,
        call,
        outer,
        source,
        client,
        protocol,
        error,
        refused,
        files,
        hosts,
        server_request,
        ..
    } = entry;
    let names = [session, outer, source, client, protocol, error];
    let of_server = server_request.as_mut().and_then(|request| request.protocol.as_mut());
    let names = names.into_iter().flatten().chain([tool, call]).chain(of_server);
    let refused = refused.iter_mut().flat_map(|refusal| {
        [Some(&mut refusal.capability), refusal.reason.as_mut()].into_iter().flatten()
    });
    let files = files.iter_mut().map(|change| &mut change.path);
    let hosts = hosts.iter_mut().map(|contact| &mut contact.host);
    names.chain(refused).chain(files).chain(hosts)
}

fn report(health: &Mutex<RecorderHealth>, error: &EvidenceError) {
    let mut health = health.lock();
    if !std::mem::replace(&mut health.is_failing, true) {
        tracing::warn!(target: "cofferdam::record", %error, "cannot write the call log");
    }
    health.error = Some(error.to_string());
}
