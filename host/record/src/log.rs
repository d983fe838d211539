//! A log, for reading.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::recording::CallRecording;
use serde::{Deserialize, Serialize};

use crate::blocks::SegmentBlocks;
use crate::components::{StoredComponent, read_component};
use crate::copy::copies;
use crate::directory::LogDirectory;
use crate::exchange::{ModelExchange, read_exchange};
use crate::filter::IdCondition;
use crate::item::parse_event;
use crate::minutes::{MinuteCollector, MinuteStats};
use crate::note::SigningKey;
use crate::payloads::read_payload;
use crate::recordings::read_recording;
use crate::retention::{RetentionLimits, prune};
use crate::search::{CallCollector, LogDamage, LogSearch, is_log_line, zone};
use crate::segments::SegmentFile;
use crate::stats::{StatsCollector, StatsKey, ToolStats};
use crate::summary::SummaryCache;
use crate::uses::{PluginUses, UseCollector};
use crate::{
    CallEntry, CallFilter, EvidenceError, LogEvent, LogFollower, LogStream, PayloadKind,
    PruneReport, RecordError, UtcTime,
};

/// A log, which processes may be writing meanwhile.
#[derive(Debug, Clone)]
pub struct Log {
    directory: LogDirectory,
    /// Summaries of closed segments. Clones share them.
    summaries: Arc<SummaryCache>,
}

/// Calls that a query has found.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct CallList {
    /// Calls, the newest first.
    pub calls: Vec<CallEntry>,
    /// Damage of the segments that were read.
    pub damage: LogDamage,
}

/// Events that a query has found.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct EventList {
    /// Events, in the order of segments.
    pub events: Vec<TimedEvent>,
    /// Damage of the segments that were read.
    pub damage: LogDamage,
}

/// An event besides calls, with its time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TimedEvent {
    /// Time at which the event was recorded: the end of one that takes time.
    pub at: UtcTime,
    /// Id of the event in the log: its segment and the number of its line.
    #[serde(skip)]
    pub id: String,
    #[serde(default, skip_serializing)]
    pub(crate) n: u64,
    /// The event.
    #[serde(flatten)]
    pub event: LogEvent,
}

impl TimedEvent {
    /// Returns the time at which the event began.
    #[must_use]
    pub fn started(&self) -> UtcTime {
        self.at.before(self.event.duration())
    }
}

impl Log {
    /// Opens the log of a directory.
    ///
    /// # Errors
    /// If the directory does not exist, or is not the user's own with mode 700.
    pub fn open(directory: impl AsRef<Path>) -> Result<Self, RecordError> {
        Ok(Self::of(LogDirectory::open(directory.as_ref())?))
    }

    pub(crate) fn of(directory: LogDirectory) -> Self {
        Self { directory, summaries: Arc::default() }
    }

    /// Returns the calls that pass a filter, the newest first. Without a limit, all of them are in
    /// memory, with about a kilobyte each; [`stream`](Self::stream) needs less.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn query(&self, filter: &CallFilter) -> Result<CallList, RecordError> {
        self.newest(filter, None)
    }

    /// Returns the calls and events that pass a filter in the order in which they ended, without
    /// holding them all in memory: [`LogStream`] says how much it needs. Its
    /// [`limit`](CallFilter::limit) does not apply. Events pass if the filter has no condition that
    /// only calls can meet.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn stream<'s>(&'s self, filter: &'s CallFilter) -> Result<LogStream<'s>, RecordError> {
        LogStream::new(&self.directory, filter)
    }

    fn newest(
        &self,
        filter: &CallFilter,
        id: Option<&IdCondition>,
    ) -> Result<CallList, RecordError> {
        let collector = || NewestCalls { limit: filter.limit, ..NewestCalls::default() };
        let (collectors, damage) = LogSearch::new(&self.directory, filter, id).run(collector)?;
        let mut newest = collector();
        newest.calls.extend(collectors.into_iter().flat_map(|collector| collector.calls));
        newest.cut();
        Ok(CallList { calls: newest.calls, damage })
    }

    /// Returns the call with an id, or the only one whose id starts like this.
    ///
    /// # Errors
    /// [`RecordError::UnknownId`], with the damage that may be the reason, or
    /// [`RecordError::AmbiguousId`].
    pub fn find(&self, id: &str) -> Result<CallEntry, RecordError> {
        let query = |is_whole| {
            let condition = IdCondition { start: id.to_owned(), is_whole };
            let filter = CallFilter { limit: Some(2), ..CallFilter::default() };
            self.newest(&filter, Some(&condition))
        };
        let whole = query(true)?;
        let CallList { calls, damage } = if whole.calls.is_empty() { query(false)? } else { whole };
        let mut found = calls.into_iter();
        match (found.next(), found.next()) {
            (Some(first), Some(second)) if first.id != second.id => Err(RecordError::AmbiguousId {
                id: id.to_owned(),
                first: first.id,
                second: second.id,
            }),
            (Some(first), _) => Ok(first),
            (None, _) => Err(RecordError::UnknownId { id: id.to_owned(), losses: damage.losses() }),
        }
    }

    /// Returns a stored payload, redacted. `None` if it was not stored or was pruned.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn payload(
        &self,
        entry: &CallEntry,
        kind: PayloadKind,
    ) -> Result<Option<Vec<u8>>, RecordError> {
        read_payload(&self.directory, entry, kind)
    }

    /// Returns the recording with which a call can run again. `None` if the call was not recorded
    /// like this, or the recording was pruned.
    ///
    /// # Errors
    /// If a file cannot be read, or the recording is from another version of the format.
    pub fn recording(&self, entry: &CallEntry) -> Result<Option<CallRecording>, RecordError> {
        read_recording(&self.directory, entry)
    }

    /// Returns the component that a recorded call ran in. `None` if the log does not keep it, or it
    /// was pruned.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn component(
        &self,
        recording: &CallRecording,
    ) -> Result<Option<StoredComponent>, RecordError> {
        read_component(&self.directory, recording)
    }

    /// Returns the request to a model and its reply, redacted. `None` if the event is not a reply,
    /// its messages were not stored, or they were pruned.
    ///
    /// # Errors
    /// If a file cannot be read, or the exchange is from another version of the format.
    pub fn exchange(&self, event: &TimedEvent) -> Result<Option<ModelExchange>, RecordError> {
        read_exchange(&self.directory, event)
    }

    /// Returns counts and durations by tool of the calls that pass a filter, and the damage of the
    /// segments that were read.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn stats(
        &self,
        filter: &CallFilter,
    ) -> Result<(BTreeMap<String, ToolStats>, LogDamage), RecordError> {
        self.stats_by(filter, StatsKey::Tool)
    }

    /// Returns counts and durations of the calls that pass a filter, by a name that calls have, and
    /// the damage of the segments that were read. Calls without a name are left out.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn stats_by(
        &self,
        filter: &CallFilter,
        key: StatsKey,
    ) -> Result<(BTreeMap<String, ToolStats>, LogDamage), RecordError> {
        let search = LogSearch::new(&self.directory, filter, None);
        let (collector, damage) = search.summarize(&self.summaries, || StatsCollector::new(key))?;
        Ok((collector.stats(), damage))
    }

    /// Returns counts and durations of the calls that pass a filter, by the minute of their start.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn stats_by_minute(&self, filter: &CallFilter) -> Result<MinuteStats, RecordError> {
        let search = LogSearch::new(&self.directory, filter, None);
        let (collector, damage) = search.summarize(&self.summaries, MinuteCollector::default)?;
        Ok(collector.stats(damage))
    }

    /// Returns the uses of capabilities in the calls that pass a filter, by plugin, and the damage
    /// of the segments that were read.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn uses(
        &self,
        filter: &CallFilter,
    ) -> Result<(BTreeMap<String, PluginUses>, LogDamage), RecordError> {
        let search = LogSearch::new(&self.directory, filter, None);
        let (collector, damage) = search.summarize(&self.summaries, UseCollector::default)?;
        Ok((collector.plugins(), damage))
    }

    /// Returns the time at which the oldest segment was created.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn began(&self) -> Result<Option<UtcTime>, RecordError> {
        Ok(self.segments()?.first().and_then(SegmentFile::created))
    }

    /// Returns the events besides calls since a time, in the order of segments. Segments that have
    /// not changed since then are not read.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn events(&self, since: Option<UtcTime>) -> Result<EventList, RecordError> {
        self.events_between(since, None)
    }

    /// Returns the events between two times, as [`events`](Self::events). Segments that were
    /// created later are not read.
    ///
    /// # Errors
    /// If the directory cannot be read. Damaged segments are no error.
    pub fn events_between(
        &self,
        since: Option<UtcTime>,
        until: Option<UtcTime>,
    ) -> Result<EventList, RecordError> {
        let mut found = EventList::default();
        let is_old = |segment: &SegmentFile| {
            let facts = segment.facts();
            let changed = facts.map(|facts| facts.modified.saturating_add(1));
            let is_before = |since: UtcTime| {
                changed.is_some_and(|changed| changed < since.micros() / 1_000_000)
            };
            since.is_some_and(is_before)
        };
        for segment in self.segments()? {
            let is_young =
                until.is_some_and(|until| segment.created().is_some_and(|created| created > until));
            if is_old(&segment) || is_young {
                continue;
            }
            let EventList { events, damage } = &mut found;
            let mut add = |line: &[u8]| {
                damage.invalid_lines += u64::from(!is_log_line(line));
                if let Some(event) = parse_event(segment.stem(), line)
                    && since.is_none_or(|since| event.at >= since)
                    && until.is_none_or(|until| event.at <= until)
                {
                    events.push(event);
                }
            };
            let read = match zone(&segment).and_then(|zone| SegmentBlocks::open(&segment, zone)) {
                Some(blocks) => read_event_blocks(blocks, &mut add),
                None => read_lines(&segment, &mut add),
            };
            match read {
                Ok(false) => {}
                // A live process is about to write the rest.
                Ok(true) if segment.is_live() => {}
                Ok(true) => damage.torn.push(segment.name()),
                Err(error) if error.is_not_found() => {}
                Err(error) => damage.unreadable.push(error.to_string()),
            }
        }
        Ok(found)
    }

    /// Returns a follower, which reads the calls that are recorded from now on.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn follow(&self) -> Result<LogFollower, RecordError> {
        LogFollower::new(&self.directory, None)
    }

    /// Removes the oldest payloads and segments until the log is within the limits. Segments of
    /// live processes stay. In a collection, the limits are those of each copy.
    ///
    /// # Errors
    /// If a file cannot be removed.
    pub fn prune(&self, bytes_max: u64, age_max: Duration) -> Result<PruneReport, EvidenceError> {
        let limits = RetentionLimits { bytes_max, age_max };
        let key = SigningKey::load(&self.directory)?.map(Arc::new);
        let mut report = prune(&self.directory, limits, key.as_ref())?;
        for (_, copy) in copies(&self.directory)? {
            report.add(prune(&copy, limits, None)?);
        }
        Ok(report)
    }

    /// Returns the segments, the oldest first.
    ///
    /// # Errors
    /// If the directory cannot be read.
    pub fn segments(&self) -> Result<Vec<SegmentFile>, RecordError> {
        SegmentFile::list_all(&self.directory)
    }
}

/// Reads the lines of the blocks that have events. After a damaged block, the others are read, and
/// its error is returned. No line of a compressed segment is torn.
fn read_event_blocks(
    mut blocks: SegmentBlocks,
    add: &mut impl FnMut(&[u8]),
) -> Result<bool, RecordError> {
    let mut read = Ok(false);
    for index in 0..blocks.len() {
        match blocks.read_if(index, |zone| zone.events > 0) {
            Ok(Some(block)) => block.split(|byte| *byte == b'\n').for_each(&mut *add),
            Ok(None) => {}
            Err(error) => read = Err(error),
        }
    }
    read
}

/// Reads the whole lines of a segment. Returns whether a line is torn.
fn read_lines(segment: &SegmentFile, add: &mut impl FnMut(&[u8])) -> Result<bool, RecordError> {
    let (mut lines, mut is_torn) = (segment.lines()?, false);
    while let Some(line) = lines.next_line()? {
        if line.is_whole {
            add(line.bytes);
        }
        is_torn |= !line.is_whole;
    }
    Ok(is_torn)
}

/// Collector of the newest calls.
#[derive(Default)]
struct NewestCalls {
    calls: Vec<CallEntry>,
    limit: Option<usize>,
    earliest: Option<UtcTime>,
}

impl NewestCalls {
    fn cut(&mut self) {
        self.calls.sort_by(|a, b| (b.at, b.n, &b.id).cmp(&(a.at, a.n, &a.id)));
        if let Some(limit) = self.limit
            && self.calls.len() >= limit
        {
            self.calls.truncate(limit);
            self.earliest = self.calls.last().map(|entry| entry.at);
        }
    }
}

impl CallCollector for NewestCalls {
    fn add(&mut self, entry: CallEntry) {
        self.calls.push(entry);
        if self.limit.is_some_and(|limit| self.calls.len() >= limit.saturating_mul(2).max(64)) {
            self.cut();
        }
    }

    fn earliest(&self) -> Option<UtcTime> {
        self.earliest
    }
}
