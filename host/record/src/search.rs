//! Search of the segments of a log, by several threads.
//!
//! A segment whose zone map excludes all matches is not opened. A line is searched as bytes, and
//! parsed if it may match. Calls without an end are matched with ends of other segments at last.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::blocks::SegmentBlocks;
use crate::directory::LogDirectory;
use crate::entry::CallLineKind;
use crate::filter::{CallBrief, IdCondition, LineFilter};
use crate::payloads::{BLOBS, read_payload};
use crate::segments::{SegmentFile, ZONE_SUFFIX};
use crate::summary::{SegmentSummary, SummarizedSegment, SummaryCache};
use crate::zone::ZoneMap;
use crate::{CallEntry, CallFilter, LOST, PayloadKind, RUNNING, RecordError, UtcTime};

/// Maximum number of threads of a search.
const THREADS_MAX: usize = 8;
/// Maximum bytes of a zone map.
const ZONE_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Start of each line.
pub(crate) const LINE_START: &[u8] = br#"{"v":1,"kind":""#;

/// Receives the calls that a search finds.
pub(crate) trait CallCollector: Send {
    /// Receives a call.
    fn add(&mut self, entry: CallEntry);

    /// Receives the part of a call that can be read without parsing its line. Returns false if the
    /// collector needs the call.
    fn add_brief(&mut self, _call: &CallBrief<'_>) -> bool {
        false
    }

    /// Returns the time before which calls are not wanted any more.
    fn earliest(&self) -> Option<UtcTime> {
        None
    }
}

/// Damage that a search has come across. It is never an error.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct LogDamage {
    /// Segments with a torn line: the process was killed while it wrote.
    pub torn: Vec<String>,
    /// Segments that cannot be read to their end, with the reason.
    pub unreadable: Vec<String>,
    /// Number of lines that are left out because they are not lines of a log.
    pub invalid_lines: u64,
}

impl LogDamage {
    /// Returns sentences about the damage that keeps calls from being found.
    #[must_use]
    pub fn losses(&self) -> Vec<String> {
        let unreadable = self.unreadable.iter();
        let mut losses: Vec<_> = unreadable
            .map(|problem| format!("not all of the log can be read: {problem}"))
            .collect();
        match self.invalid_lines {
            0 => {}
            1 => losses.push("1 line of the log is invalid and left out".to_owned()),
            lines => losses.push(format!("{lines} lines of the log are invalid and left out")),
        }
        losses
    }
}

/// Search of one log.
pub(crate) struct LogSearch<'s> {
    directory: &'s LogDirectory,
    filter: LineFilter<'s>,
    has_payloads: bool,
}

/// Results of one thread.
struct ThreadResult<C> {
    collector: C,
    damage: LogDamage,
    /// Lines of calls without an end in their segment, by process and number.
    begins: HashMap<(String, u64), Vec<u8>>,
    /// Ends without a start in their segment.
    ends: HashSet<(String, u64)>,
    skipped: Vec<SegmentFile>,
    /// Processes and names of segments with a torn line.
    torn: Vec<(String, String)>,
}

/// Ends and starts of the segment that is read.
#[derive(Default)]
struct SegmentPairs {
    begins: HashMap<u64, Vec<u8>>,
    ends: HashSet<u64>,
}

impl<'s> LogSearch<'s> {
    pub(crate) fn new(
        directory: &'s LogDirectory,
        filter: &'s CallFilter,
        id: Option<&'s IdCondition>,
    ) -> Self {
        let has_payloads = filter.text.is_some() && directory.facts(BLOBS).is_some();
        Self { directory, filter: LineFilter::new(filter, id, has_payloads), has_payloads }
    }

    /// Searches all segments, the newest first, with a collector for each thread.
    pub(crate) fn run<C: CallCollector>(
        &self,
        collector: impl Fn() -> C + Sync,
    ) -> Result<(Vec<C>, LogDamage), RecordError> {
        self.run_with(collector, |file, result| self.read_segment(file, zone(file), result))
    }

    /// Searches all segments, with the kept summaries of those whose calls all pass.
    pub(crate) fn summarize<C: SegmentSummary>(
        &self,
        cache: &SummaryCache,
        collector: impl Fn() -> C + Sync,
    ) -> Result<(C, LogDamage), RecordError> {
        let read = |file: &SegmentFile, result: &mut ThreadResult<C>| {
            self.read_summary(file, cache, collector(), result);
        };
        let (collectors, damage) = self.run_with(&collector, read)?;
        let mut all = collector();
        collectors.iter().for_each(|one| all.join(one));
        Ok((all, damage))
    }

    fn run_with<C: CallCollector>(
        &self,
        collector: impl Fn() -> C + Sync,
        read: impl Fn(&SegmentFile, &mut ThreadResult<C>) + Sync,
    ) -> Result<(Vec<C>, LogDamage), RecordError> {
        let (mut segments, live) = self.segments()?;
        if let Some(id) = self.filter.id() {
            segments.retain(|segment| starts_alike(segment.process(), &id.start));
        }
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = threads.min(THREADS_MAX).min(segments.len().max(1));
        let next = AtomicUsize::new(0);
        let work = || {
            let mut result = ThreadResult::new(collector());
            while let Some(segment) = segments.get(next.fetch_add(1, Ordering::Relaxed)) {
                read(segment, &mut result);
            }
            result
        };
        let results = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads)
                .filter_map(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
                .collect();
            let mut results = vec![work()];
            // A thread that panicked has no results; nothing here panics.
            results.extend(others.into_iter().filter_map(|thread| thread.join().ok()));
            results
        });
        Ok(self.joined(results, &live))
    }

    /// Reads a segment, or uses its summary. `empty` is a collector for a new summary.
    fn read_summary<C: SegmentSummary>(
        &self,
        file: &SegmentFile,
        cache: &SummaryCache,
        empty: C,
        result: &mut ThreadResult<C>,
    ) {
        let zone = zone(file);
        if !zone.as_ref().is_some_and(|zone| self.filter.is_whole(zone)) {
            return self.read_segment(file, zone, result);
        }
        let known = cache.get::<C>(file.stem(), empty.kind());
        let summary = match known {
            Some(known) => known,
            None => {
                let mut own = ThreadResult::new(empty);
                self.read_segment(file, zone, &mut own);
                let is_whole = own.damage == LogDamage::default() && own.torn.is_empty();
                let is_read = is_whole && own.skipped.is_empty();
                result.damage.unreadable.append(&mut own.damage.unreadable);
                result.damage.invalid_lines += own.damage.invalid_lines;
                result.torn.append(&mut own.torn);
                result.skipped.append(&mut own.skipped);
                let ThreadResult { collector, begins, ends, .. } = own;
                let summary = Arc::new(SummarizedSegment { collector, begins, ends });
                if is_read {
                    cache.add(file.stem(), Arc::clone(&summary));
                }
                summary
            }
        };
        result.collector.join(&summary.collector);
        result.begins.extend(summary.begins.iter().map(|(key, line)| (key.clone(), line.clone())));
        result.ends.extend(summary.ends.iter().cloned());
    }

    /// Lists the segments, the newest first, and the processes that may still write. A process that
    /// is gone before the second listing has all of its segments in it.
    pub(crate) fn segments(&self) -> Result<(Vec<SegmentFile>, HashSet<String>), RecordError> {
        let process = |file: &SegmentFile| file.process().to_owned();
        let before = SegmentFile::list_all(self.directory)?;
        let mut live: HashSet<_> = before.iter().filter(|f| f.is_live()).map(process).collect();
        let known: HashSet<_> = before.iter().map(process).collect();
        let mut segments = SegmentFile::list_all(self.directory)?;
        live.extend(segments.iter().map(process).filter(|process| !known.contains(process)));
        // A listing can miss a file that is renamed meanwhile.
        segments.extend(before);
        segments.sort_by(|a, b| b.stem().cmp(a.stem()));
        segments.dedup_by(|later, earlier| later.stem() == earlier.stem());
        Ok((segments, live))
    }

    fn read_segment<C: CallCollector>(
        &self,
        file: &SegmentFile,
        zone: Option<ZoneMap>,
        result: &mut ThreadResult<C>,
    ) {
        if !self.may_match(file, zone.as_ref(), result.collector.earliest()) {
            result.skipped.push(file.clone());
            return;
        }
        let mut pairs = SegmentPairs::default();
        let read = match zone.and_then(|zone| SegmentBlocks::open(file, zone)) {
            Some(blocks) => self.read_blocks(blocks, result, &mut pairs),
            None => self.read_lines(file, result, &mut pairs),
        };
        if let Err(error) = read
            && !error.is_not_found()
        {
            result.damage.unreadable.push(error.to_string());
        }
        let key = |number| (file.process().to_owned(), number);
        result.begins.extend(pairs.begins.into_iter().map(|(number, line)| (key(number), line)));
        result.ends.extend(pairs.ends.into_iter().map(key));
    }

    /// Returns false if no call of the segment can be a result.
    pub(crate) fn may_match(
        &self,
        file: &SegmentFile,
        zone: Option<&ZoneMap>,
        earliest: Option<UtcTime>,
    ) -> bool {
        let since = self.filter.conditions().since.into_iter().chain(earliest).max();
        if let Some(zone) = zone {
            let is_late = zone.to.is_some_and(|to| since.is_none_or(|since| to >= since));
            return is_late && self.filter.may_match_zone(zone);
        }
        // A line is written after its call has begun, so the last change is later than all.
        let facts = file.facts();
        let changed = facts.map(|facts| facts.modified.saturating_add(1));
        since.is_none_or(|since| changed.is_none_or(|at| at >= since.micros() / 1_000_000))
    }

    fn read_lines<C: CallCollector>(
        &self,
        file: &SegmentFile,
        result: &mut ThreadResult<C>,
        pairs: &mut SegmentPairs,
    ) -> Result<(), RecordError> {
        let mut lines = file.lines()?;
        while let Some(block) = lines.next_block()? {
            self.read_block(block, result, pairs);
        }
        if lines.has_torn() {
            result.torn.push((file.process().to_owned(), file.name()));
        }
        Ok(())
    }

    /// Reads the blocks that may have results, the newest first.
    fn read_blocks<C: CallCollector>(
        &self,
        mut blocks: SegmentBlocks,
        result: &mut ThreadResult<C>,
        pairs: &mut SegmentPairs,
    ) -> Result<(), RecordError> {
        let mut failure = Ok(());
        for index in (0..blocks.len()).rev() {
            let earliest = result.collector.earliest();
            match blocks.read_if(index, |zone| self.filter.may_match_block(zone, earliest)) {
                Ok(None) => {}
                Ok(Some(block)) => {
                    self.read_block(block.strip_suffix(b"\n").unwrap_or(block), result, pairs);
                }
                // The other blocks can be read.
                Err(error) => failure = Err(error),
            }
        }
        failure
    }

    /// Reads lines, the newest first: after as many as are wanted, no other has to be parsed.
    fn read_block<C: CallCollector>(
        &self,
        block: &[u8],
        result: &mut ThreadResult<C>,
        pairs: &mut SegmentPairs,
    ) {
        let mut end = block.len();
        for at in memchr::memrchr_iter(b'\n', block) {
            self.read_line(block.get(at + 1..end).unwrap_or_default(), result, pairs);
            end = at;
        }
        self.read_line(block.get(..end).unwrap_or_default(), result, pairs);
    }

    fn read_line<C: CallCollector>(
        &self,
        line: &[u8],
        result: &mut ThreadResult<C>,
        pairs: &mut SegmentPairs,
    ) {
        let kind = line_kind(line);
        if self.filter.has_begins() {
            pairs.add(kind, line);
        }
        if !is_log_line(line) || !self.read_result(kind, line, &mut result.collector) {
            result.damage.invalid_lines += 1;
        }
    }

    /// Gives a call that has ended and that passes the filter to a collector. Returns false if the
    /// line of the call is invalid.
    pub(crate) fn read_result(
        &self,
        kind: Option<CallLineKind>,
        line: &[u8],
        collector: &mut impl CallCollector,
    ) -> bool {
        let is_result = !matches!(kind, None | Some(CallLineKind::Begin));
        let is_read = is_result && !self.filter.has_only_begins() && self.filter.may_match(line);
        !is_read || self.read_call(line, collector)
    }

    /// Returns the prepared filter.
    pub(crate) fn filter(&self) -> &LineFilter<'s> {
        &self.filter
    }

    fn read_call(&self, line: &[u8], collector: &mut impl CallCollector) -> bool {
        if !self.is_wanted(line, collector.earliest()) {
            return true;
        }
        if self.filter.is_exact()
            && let Some(brief) = self.filter.brief(line)
            && collector.add_brief(&brief)
        {
            return true;
        }
        let Some(entry) = CallEntry::parse(line) else { return false };
        if self.filter.matches(&entry) && self.matches_text(line, &entry) {
            collector.add(entry);
        }
        true
    }

    fn is_wanted(&self, line: &[u8], earliest: Option<UtcTime>) -> bool {
        let Some(earliest) = earliest else { return true };
        let at = self.filter.time(line).and_then(|at| std::str::from_utf8(at).ok());
        at.and_then(UtcTime::parse).is_none_or(|at| at >= earliest)
    }

    fn matches_text(&self, line: &[u8], entry: &CallEntry) -> bool {
        if !self.has_payloads || self.filter.has_text(line) {
            return true;
        }
        PayloadKind::ALL.iter().any(|kind| {
            let payload = read_payload(self.directory, entry, *kind).ok().flatten();
            payload.is_some_and(|payload| self.filter.is_in_payload(&payload))
        })
    }

    /// Joins the results of the threads, and adds the calls that have no end in any segment.
    fn joined<C: CallCollector>(
        &self,
        results: Vec<ThreadResult<C>>,
        live: &HashSet<String>,
    ) -> (Vec<C>, LogDamage) {
        let (mut collectors, mut damage) = (Vec::new(), LogDamage::default());
        let (mut begins, mut ends) = (HashMap::new(), HashSet::new());
        let mut skipped = Vec::new();
        for result in results {
            collectors.push(result.collector);
            // A live process is about to write the rest.
            let torn = result.torn.into_iter().filter(|(process, _)| !live.contains(process));
            damage.torn.extend(torn.map(|(_, name)| name));
            damage.unreadable.extend(result.damage.unreadable);
            damage.invalid_lines += result.damage.invalid_lines;
            begins.extend(result.begins);
            ends.extend(result.ends);
            skipped.extend(result.skipped);
        }
        begins.retain(|key, _| !ends.contains(key));
        for file in skipped {
            if begins.keys().any(|(process, _)| process == file.process()) {
                // An end there is enough to know that the call is not lost.
                let _ = remove_ended(&file, &mut begins);
            }
        }
        if let Some(collector) = collectors.first_mut() {
            for ((process, _), line) in &begins {
                self.add_unfinished(line, live.contains(process), collector);
            }
        }
        damage.torn.sort_unstable();
        (collectors, damage)
    }

    /// Gives a call that has begun and has no end to a collector, if it passes the filter.
    pub(crate) fn add_unfinished(
        &self,
        line: &[u8],
        is_live: bool,
        collector: &mut impl CallCollector,
    ) {
        let Some(mut entry) = CallEntry::parse(line) else { return };
        let is_match = self.filter.may_match(line) && self.filter.matches(&entry);
        entry.outcome = if is_live { RUNNING } else { LOST }.to_owned();
        let wanted = self.filter.conditions().outcome.as_ref();
        let is_wanted = wanted.is_none_or(|wanted| *wanted == entry.outcome);
        if is_match && is_wanted && self.matches_text(line, &entry) {
            collector.add(entry);
        }
    }
}

impl<C> ThreadResult<C> {
    fn new(collector: C) -> Self {
        Self {
            collector,
            damage: LogDamage::default(),
            begins: HashMap::new(),
            ends: HashSet::new(),
            skipped: Vec::new(),
            torn: Vec::new(),
        }
    }
}

impl SegmentPairs {
    fn add(&mut self, kind: Option<CallLineKind>, line: &[u8]) {
        match kind {
            Some(CallLineKind::Begin) => {
                if let Some(number) = number(line)
                    && !self.ends.remove(&number)
                {
                    // Of several starts of one call, which only damage makes, the newest counts.
                    self.begins.entry(number).or_insert_with(|| line.to_owned());
                }
            }
            Some(CallLineKind::End) => {
                if let Some(number) = number(line)
                    && self.begins.remove(&number).is_none()
                {
                    self.ends.insert(number);
                }
            }
            _ => {}
        }
    }
}

/// Removes the calls from `begins` that end in a segment.
pub(crate) fn remove_ended(
    file: &SegmentFile,
    begins: &mut HashMap<(String, u64), Vec<u8>>,
) -> Result<(), RecordError> {
    let mut lines = file.lines()?;
    while let Some(line) = lines.next_line()? {
        if line_kind(line.bytes) == Some(CallLineKind::End)
            && let Some(number) = number(line.bytes)
        {
            begins.remove(&(file.process().to_owned(), number));
        }
    }
    Ok(())
}

/// Returns false for bytes that no log has as a line. An empty line has nothing to lose.
pub(crate) fn is_log_line(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(LINE_START)
}

/// Returns the kind of a line about a call.
pub(crate) fn line_kind(line: &[u8]) -> Option<CallLineKind> {
    let rest = line.strip_prefix(LINE_START)?;
    let kinds: [(&[u8], CallLineKind); 4] = [
        (b"call\"", CallLineKind::Call),
        (b"begin\"", CallLineKind::Begin),
        (b"end\"", CallLineKind::End),
        (b"refused\"", CallLineKind::Refused),
    ];
    kinds.iter().find(|(word, _)| rest.starts_with(word)).map(|(_, kind)| *kind)
}

/// Returns the number of a call, from the id in its line.
pub(crate) fn number(line: &[u8]) -> Option<u64> {
    let start = memchr::memmem::find(line, b"\"id\":\"")? + 6;
    let id = line.get(start..)?.split(|byte| *byte == b'"').next()?;
    std::str::from_utf8(id).ok()?.rsplit_once('-')?.1.parse().ok()
}

/// Returns the zone map of a compressed segment.
pub(crate) fn zone(file: &SegmentFile) -> Option<ZoneMap> {
    if !file.is_compressed() {
        return None;
    }
    let name = format!("{}{ZONE_SUFFIX}", file.stem());
    let bytes = file.directory().read(&name, ZONE_BYTES_MAX).ok()?;
    serde_json::from_slice(&bytes).ok()
}

fn starts_alike(process: &str, id: &str) -> bool {
    let digits = id.split('-').next().unwrap_or_default();
    process.starts_with(digits)
}
