//! Reading of a whole log in order, with memory that does not depend on its length.
//!
//! Lines stand in a segment in the order in which their calls ended. Segments of processes that ran
//! at the same time are merged by that time; a segment is opened when the merge has come to the
//! time of its creation, so that only those are open that were written at the same moment.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::blocks::{BlockZone, SegmentBlocks};
use crate::directory::LogDirectory;
use crate::entry::CallLineKind;
use crate::item::parse_event;
use crate::search::{
    CallCollector, LogDamage, LogSearch, is_log_line, line_kind, number, remove_ended, zone,
};
use crate::segments::{SegmentFile, SegmentLines};
use crate::{CallEntry, CallFilter, LogItem, RecordError, UtcTime};

/// Calls and events of a log, in the order in which they ended. Calls that have not ended come
/// where the last segment of their process ends.
///
/// Memory: for each process that wrote at the same moment half a mebibyte and its longest line (at
/// most 8 MiB), the names of the segments, and the `begin` lines of calls that have not ended.
pub struct LogStream<'s> {
    search: LogSearch<'s>,
    /// Segments that are not open yet, the newest first.
    pending: Vec<SegmentFile>,
    open: Vec<OpenSegment>,
    live: HashSet<String>,
    /// Lines of calls that have begun, by process and number.
    begins: HashMap<(String, u64), Vec<u8>>,
    unfinished: VecDeque<LogItem>,
    damage: LogDamage,
}

/// A segment that is read, with the next item of it that is wanted.
struct OpenSegment {
    file: SegmentFile,
    lines: SegmentLines,
    head: LogItem,
}

impl<'s> LogStream<'s> {
    pub(crate) fn new(
        directory: &'s LogDirectory,
        filter: &'s CallFilter,
    ) -> Result<Self, RecordError> {
        let search = LogSearch::new(directory, filter, None);
        let (pending, live) = search.segments()?;
        Ok(Self {
            search,
            pending,
            open: Vec::new(),
            live,
            begins: HashMap::new(),
            unfinished: VecDeque::new(),
            damage: LogDamage::default(),
        })
    }

    /// Returns the damage of the segments so far. It is never an error.
    #[must_use]
    pub fn damage(&self) -> &LogDamage {
        &self.damage
    }

    /// Opens the segments that may have the next item.
    fn open_due(&mut self) {
        while let Some(at) = self.next_due() {
            let file = self.pending.remove(at);
            self.open(file);
        }
    }

    /// Returns the position of the oldest segment that has to be open before the next item is
    /// known. Segments of one process are read one after the other.
    fn next_due(&self) -> Option<usize> {
        let next = self.open.iter().map(|open| open.head.ended()).min();
        let is_due = |file: &SegmentFile| {
            let is_free = self.open.iter().all(|open| open.file.process() != file.process());
            is_free && next.is_none_or(|next| file.created().is_none_or(|created| created <= next))
        };
        self.pending.iter().rposition(is_due)
    }

    fn open(&mut self, file: SegmentFile) {
        let zone = zone(&file);
        if !self.search.may_match(&file, zone.as_ref(), None) {
            if self.begins.keys().any(|(process, _)| process == file.process()) {
                let _ = remove_ended(&file, &mut self.begins);
            }
            return self.close(&file);
        }
        let filter = self.search.filter();
        let may_have = |block: &BlockZone| filter.may_match_block(block, None) || block.events > 0;
        let lines = match zone.and_then(|zone| SegmentBlocks::open(&file, zone)) {
            Some(blocks) => Ok(blocks.lines(may_have)),
            None => file.lines(),
        };
        match lines {
            Ok(lines) => self.advance(file, lines),
            Err(error) => self.fail(&file, &error),
        }
    }

    /// Reads up to the next item that is wanted, or closes the segment.
    fn advance(&mut self, file: SegmentFile, mut lines: SegmentLines) {
        loop {
            match lines.next_line() {
                Ok(Some(line)) if line.is_whole => {
                    if let Some(head) = self.item(&file, line.bytes) {
                        return self.open.push(OpenSegment { file, lines, head });
                    }
                }
                // A live process is about to write the rest.
                Ok(Some(_)) if self.live.contains(file.process()) => {}
                Ok(Some(_)) => self.damage.torn.push(file.name()),
                Ok(None) => return self.close(&file),
                Err(error) => return self.fail(&file, &error),
            }
        }
    }

    fn item(&mut self, file: &SegmentFile, line: &[u8]) -> Option<LogItem> {
        if !is_log_line(line) {
            self.damage.invalid_lines += 1;
            return None;
        }
        let kind = line_kind(line);
        match kind {
            None => {
                let event = parse_event(file.stem(), line)?;
                return self
                    .search
                    .filter()
                    .matches_event(&event)
                    .then(|| LogItem::Event(Box::new(event)));
            }
            Some(CallLineKind::Begin) if self.search.filter().has_begins() => {
                let key = (file.process().to_owned(), number(line)?);
                self.begins.insert(key, line.to_owned());
            }
            Some(CallLineKind::End) if !self.begins.is_empty() => {
                self.begins.remove(&(file.process().to_owned(), number(line)?));
            }
            _ => {}
        }
        let mut found = None::<CallEntry>;
        if !self.search.read_result(kind, line, &mut found) {
            self.damage.invalid_lines += 1;
        }
        found.map(|call| LogItem::Call(Box::new(call)))
    }

    fn fail(&mut self, file: &SegmentFile, error: &RecordError) {
        if !error.is_not_found() {
            self.damage.unreadable.push(error.to_string());
        }
        self.close(file);
    }

    /// Ends a segment. Behind the last one of its process, no open call can end any more.
    fn close(&mut self, file: &SegmentFile) {
        let process = file.process();
        if self.pending.iter().any(|pending| pending.process() == process) {
            return;
        }
        let mut found = Vec::new();
        for (_, line) in self.begins.extract_if(|(of, _), _| of == process) {
            self.search.add_unfinished(&line, self.live.contains(process), &mut found);
        }
        found.sort_by_key(|call: &CallEntry| (call.at, call.n));
        self.unfinished.extend(found.into_iter().map(|call| LogItem::Call(Box::new(call))));
    }
}

impl Iterator for LogStream<'_> {
    type Item = LogItem;

    fn next(&mut self) -> Option<LogItem> {
        self.open_due();
        if let Some(item) = self.unfinished.pop_front() {
            return Some(item);
        }
        let open = self.open.iter().enumerate();
        let (first, _) = open.min_by(|(_, a), (_, b)| a.key().cmp(&b.key()))?;
        let OpenSegment { file, lines, head } = self.open.swap_remove(first);
        self.advance(file, lines);
        Some(head)
    }
}

impl OpenSegment {
    /// Returns the position in the order of segments.
    fn key(&self) -> (UtcTime, &str) {
        (self.head.ended(), self.file.stem())
    }
}

/// Collects at most one call.
impl CallCollector for Option<CallEntry> {
    fn add(&mut self, entry: CallEntry) {
        *self = Some(entry);
    }
}

impl CallCollector for Vec<CallEntry> {
    fn add(&mut self, entry: CallEntry) {
        self.push(entry);
    }
}

impl std::fmt::Debug for LogStream<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogStream").field("open", &self.open.len()).finish_non_exhaustive()
    }
}
