//! Filters of queries, applied to the bytes of a line before it is parsed.

use std::time::Duration;

use memchr::memmem::{self, Finder};

use crate::blocks::{BlockZone, NameKind};
use crate::entry::{CallLineKind, micros};
use crate::position::CallPosition;
use crate::zone::ZoneMap;
use crate::{CallEntry, LOST, RUNNING, TimedEvent, UtcTime};

/// Conditions that a call has to meet, all of them.
#[derive(Debug, Clone, Default)]
pub struct CallFilter {
    /// Name of the tool.
    pub tool: Option<String>,
    /// Name of the plugin.
    pub plugin: Option<String>,
    /// Session.
    pub session: Option<String>,
    /// Outcome: `ok`, `failure`, `error`, `cancelled`, `refused`, `lost` or `running`.
    pub outcome: Option<String>,
    /// Earliest start.
    pub since: Option<UtcTime>,
    /// Latest start.
    pub until: Option<UtcTime>,
    /// Part of a capability that the guest was refused. Any refusal contains the empty string.
    pub refused: Option<String>,
    /// Part of the path of a file that the call changed. Any change contains the empty string.
    pub changed: Option<String>,
    /// Shortest duration.
    pub slower_than: Option<Duration>,
    /// Text that the line or a stored payload contains.
    pub text: Option<String>,
    /// Id that the caller of an outer call gave to it: only calls that this one made.
    pub outer: Option<String>,
    /// Position in the order of the newest first: only calls that come after it.
    pub after: Option<CallPosition>,
    /// Maximum number of calls, of which the newest are returned.
    pub limit: Option<usize>,
}

impl CallFilter {
    /// Returns whether a call passes, for readers of calls as they are recorded. The text is
    /// searched in the call only, not in its payloads.
    #[must_use]
    pub fn matches(&self, entry: &CallEntry) -> bool {
        let lines = LineFilter::new(self, None, true);
        let outcome = self.outcome.as_deref().is_none_or(|wanted| wanted == entry.outcome);
        let has_text = self.text.is_none()
            || serde_json::to_vec(entry).is_ok_and(|line| lines.has_text(&line));
        outcome && has_text && lines.matches(entry)
    }

    /// Returns the latest start that can pass.
    fn latest(&self) -> Option<UtcTime> {
        let after = self.after.as_ref().map(CallPosition::at);
        self.until.into_iter().chain(after).min()
    }
}

/// Condition on the id of a call.
#[derive(Debug, Clone)]
pub(crate) struct IdCondition {
    pub(crate) start: String,
    pub(crate) is_whole: bool,
}

impl IdCondition {
    /// Returns the number in the id.
    fn number(&self) -> Option<u64> {
        self.start.rsplit_once('-')?.1.parse().ok()
    }
}

/// A filter, prepared for searching.
pub(crate) struct LineFilter<'f> {
    filter: &'f CallFilter,
    id: Option<&'f IdCondition>,
    needles: Vec<Finder<'static>>,
    at: Finder<'static>,
    us: Finder<'static>,
    since: Option<String>,
    until: Option<String>,
    has_begins: bool,
    has_payloads: bool,
}

/// Part of a finished call that statistics need.
pub(crate) struct CallBrief<'l> {
    pub(crate) tool: &'l str,
    pub(crate) plugin: Option<&'l str>,
    pub(crate) session: Option<&'l str>,
    pub(crate) outcome: &'l str,
    pub(crate) at: Option<UtcTime>,
    pub(crate) us: u64,
    pub(crate) has_refusal: bool,
    /// The line; empty for a call that was parsed.
    pub(crate) line: &'l [u8],
}

impl<'l> CallBrief<'l> {
    /// Returns the part of a call that was parsed.
    pub(crate) fn of(entry: &'l CallEntry) -> Self {
        Self {
            tool: &entry.tool,
            plugin: entry.plugin.as_deref(),
            session: entry.session.as_deref(),
            outcome: &entry.outcome,
            at: Some(entry.at),
            us: entry.us,
            has_refusal: !entry.refused.is_empty(),
            line: &[],
        }
    }
}

impl<'f> LineFilter<'f> {
    /// Prepares a filter. With `payloads`, the text may stand in a payload instead of the line.
    pub(crate) fn new(filter: &'f CallFilter, id: Option<&'f IdCondition>, payloads: bool) -> Self {
        let mut needles = Vec::new();
        for (name, value) in [
            ("tool", &filter.tool),
            ("plugin", &filter.plugin),
            ("session", &filter.session),
            ("outcome", &filter.outcome),
            ("outer", &filter.outer),
        ] {
            // A `begin` line has no outcome.
            if let Some(value) = value
                && (name != "outcome" || !is_unfinished(value))
            {
                needles.push(format!("\"{name}\":{}", json(value)));
            }
        }
        if let Some(IdCondition { start, is_whole }) = id {
            let value = json(start);
            let value = if *is_whole { &*value } else { value.trim_end_matches('"') };
            needles.push(format!("\"id\":{value}"));
        }
        if filter.refused.is_some() {
            needles.push("\"refused\":[".to_owned());
        }
        if filter.changed.is_some() {
            needles.push("\"files\":[".to_owned());
        }
        if let Some(text) = &filter.text
            && !payloads
        {
            needles.push(json(text).trim_matches('"').to_owned());
        }
        let finder = |needle: &String| Finder::new(needle.as_bytes()).into_owned();
        Self {
            filter,
            id,
            needles: needles.iter().map(finder).collect(),
            at: Finder::new("\"at\":\"").into_owned(),
            us: Finder::new("\"us\":").into_owned(),
            since: filter.since.map(|time| time.to_string()),
            until: filter.latest().map(|time| time.to_string()),
            has_begins: filter.outcome.as_deref().is_none_or(is_unfinished),
            has_payloads: payloads,
        }
    }

    pub(crate) fn conditions(&self) -> &'f CallFilter {
        self.filter
    }

    pub(crate) fn id(&self) -> Option<&'f IdCondition> {
        self.id
    }

    /// Returns whether every line passes that may match. The keys of the names occur once in a
    /// line, and no string contains them, because its quotes are escaped.
    pub(crate) fn is_exact(&self) -> bool {
        let is_any = |part: &Option<String>| part.as_deref().unwrap_or_default().is_empty();
        let has_payloads = self.has_payloads && self.filter.text.is_some();
        let is_part = self.filter.after.is_some();
        is_any(&self.filter.refused) && is_any(&self.filter.changed) && !has_payloads && !is_part
    }

    /// Returns the part of a finished call that statistics need, without parsing the line.
    pub(crate) fn brief<'l>(&self, line: &'l [u8]) -> Option<CallBrief<'l>> {
        let at = self.time(line).and_then(|at| std::str::from_utf8(at).ok());
        Some(CallBrief {
            tool: name_in(line, b"\"tool\":\"")?,
            plugin: optional_name_in(line, b"\"plugin\":\"")?,
            session: optional_name_in(line, b"\"session\":\"")?,
            outcome: name_in(line, b"\"outcome\":\"")?,
            at: at.and_then(UtcTime::parse),
            us: self.us(line),
            has_refusal: memmem::find(line, b"\"refused\":[").is_some(),
            line,
        })
    }

    /// Returns whether calls without an end can pass.
    pub(crate) fn has_begins(&self) -> bool {
        self.has_begins
    }

    /// Returns whether only calls without an end can pass.
    pub(crate) fn has_only_begins(&self) -> bool {
        self.filter.outcome.as_deref().is_some_and(is_unfinished)
    }

    /// Returns false if no call of a segment with this summary can pass.
    pub(crate) fn may_match_zone(&self, zone: &ZoneMap) -> bool {
        let filter = self.filter;
        let named = [
            (&filter.tool, &zone.tools),
            (&filter.plugin, &zone.plugins),
            (&filter.session, &zone.sessions),
        ];
        let has_names = named
            .iter()
            .all(|(name, counts)| name.as_deref().is_none_or(|name| counts.may_have(name)));
        let has_outcome = filter.outcome.as_deref().is_none_or(|outcome| {
            if is_unfinished(outcome) { zone.begins > 0 } else { zone.outcomes.may_have(outcome) }
        });
        let is_in_time = filter.since.is_none_or(|since| zone.to.is_some_and(|to| to >= since))
            && filter.latest().is_none_or(|until| zone.from.is_some_and(|from| from <= until));
        has_names
            && has_outcome
            && is_in_time
            && (filter.refused.is_none() || zone.refused > 0)
            && (filter.changed.is_none() || zone.changed > 0)
            && filter.slower_than.is_none_or(|least| zone.longest_us >= micros(least))
    }

    /// Returns whether all calls of a segment with this summary pass.
    pub(crate) fn is_whole(&self, zone: &ZoneMap) -> bool {
        let CallFilter {
            tool,
            plugin,
            session,
            outcome,
            since,
            until,
            refused,
            changed,
            slower_than,
            text,
            outer,
            after,
            limit: _,
        } = self.filter;
        let is_about_all = [tool, plugin, session, outcome, refused, changed, text, outer]
            .iter()
            .all(|part| part.is_none())
            && slower_than.is_none()
            && after.is_none()
            && self.id.is_none();
        is_about_all
            && since.is_none_or(|since| zone.from.is_some_and(|from| from >= since))
            && until.is_none_or(|until| zone.to.is_some_and(|to| to <= until))
    }

    /// Returns false if no call of a block of a compressed segment can pass, or none that began at
    /// `earliest` or later. The lines about the start and the end of a call have the same names and
    /// the same time, so that either both are read or neither.
    pub(crate) fn may_match_block(&self, block: &BlockZone, earliest: Option<UtcTime>) -> bool {
        if block.is_unknown {
            return true;
        }
        let Some((from, to)) = block.from.zip(block.to) else { return false };
        let CallFilter { tool, plugin, session, since, .. } = self.filter;
        let named =
            [(NameKind::Tool, tool), (NameKind::Plugin, plugin), (NameKind::Session, session)];
        let number = self.id.filter(|id| id.is_whole).and_then(IdCondition::number);
        since.iter().chain(&earliest).all(|since| to >= *since)
            && self.filter.latest().is_none_or(|until| from <= until)
            && named
                .iter()
                .all(|(kind, name)| name.as_deref().is_none_or(|name| block.may_have(*kind, name)))
            && number.is_none_or(|number| block.may_have_number(number))
    }

    /// Returns false for most of the lines that do not pass, without parsing them.
    pub(crate) fn may_match(&self, line: &[u8]) -> bool {
        self.needles.iter().all(|needle| needle.find(line).is_some())
            && self.is_in_time(line)
            && self.is_slow(line)
    }

    fn is_in_time(&self, line: &[u8]) -> bool {
        if self.since.is_none() && self.until.is_none() {
            return true;
        }
        // Times have one length, so that their order is that of their bytes.
        let Some(at) = self.time(line) else { return true };
        self.since.as_deref().is_none_or(|since| at >= since.as_bytes())
            && self.until.as_deref().is_none_or(|until| at <= until.as_bytes())
    }

    /// Returns the bytes of the time of a line.
    pub(crate) fn time<'l>(&self, line: &'l [u8]) -> Option<&'l [u8]> {
        let start = self.at.find(line)? + self.at.needle().len();
        line.get(start..)?.split(|byte| *byte == b'"').next()
    }

    fn is_slow(&self, line: &[u8]) -> bool {
        self.filter.slower_than.is_none_or(|least| self.us(line) >= micros(least))
    }

    fn us(&self, line: &[u8]) -> u64 {
        let start = self.us.find(line).map_or(line.len(), |at| at + self.us.needle().len());
        let digits = line.get(start..).unwrap_or_default();
        let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
        let add =
            |sum: u64, digit: &u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        digits.fold(0, add)
    }

    /// Returns whether a call passes, except for the text.
    pub(crate) fn matches(&self, entry: &CallEntry) -> bool {
        let filter = self.filter;
        let is = |wanted: &Option<String>, found: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| found == Some(wanted))
        };
        let outcome = match entry.kind {
            CallLineKind::Begin => self.has_begins,
            _ => is(&filter.outcome, Some(&entry.outcome)),
        };
        outcome
            && is(&filter.tool, Some(&entry.tool))
            && is(&filter.plugin, entry.plugin.as_deref())
            && is(&filter.session, entry.session.as_deref())
            && is(&filter.outer, entry.outer.as_deref())
            && filter.after.as_ref().is_none_or(|after| entry.position() < *after)
            && filter.since.is_none_or(|since| entry.at >= since)
            && filter.until.is_none_or(|until| entry.at <= until)
            && filter.slower_than.is_none_or(|least| entry.us >= micros(least))
            && filter.refused.as_deref().is_none_or(|part| {
                entry.refused.iter().any(|refusal| refusal.capability.contains(part))
            })
            && filter
                .changed
                .as_deref()
                .is_none_or(|part| entry.files.iter().any(|change| change.path.contains(part)))
            && self.id.is_none_or(|id| {
                if id.is_whole { entry.id == id.start } else { entry.id.starts_with(&id.start) }
            })
    }

    /// Returns whether an event passes. No event passes a condition that only calls can meet.
    pub(crate) fn matches_event(&self, event: &TimedEvent) -> bool {
        let CallFilter { tool, plugin, outcome, refused, changed, text, outer, .. } = self.filter;
        let is_for_calls = [tool, plugin, outcome, refused, changed, text, outer]
            .iter()
            .any(|part| part.is_some());
        let CallFilter { session, since, until, slower_than, .. } = self.filter;
        let at = event.started();
        !is_for_calls
            && self.filter.after.is_none()
            && self.id.is_none()
            && session.as_deref().is_none_or(|session| event.event.session() == Some(session))
            && since.is_none_or(|since| at >= since)
            && until.is_none_or(|until| at <= until)
            && slower_than.is_none_or(|least| event.event.duration() >= least)
    }

    /// Returns whether a line or a payload contains the text of the filter.
    pub(crate) fn has_text(&self, line: &[u8]) -> bool {
        let text = self.filter.text.as_deref().unwrap_or_default();
        memmem::find(line, json(text).trim_matches('"').as_bytes()).is_some()
    }

    /// Returns whether a stored payload contains the text of the filter.
    pub(crate) fn is_in_payload(&self, payload: &[u8]) -> bool {
        let text = self.filter.text.as_deref().unwrap_or_default();
        memmem::find(payload, text.as_bytes()).is_some() || self.has_text(payload)
    }
}

/// Returns a string without escapes that follows a key. `None` if it has escapes.
fn name_in<'l>(line: &'l [u8], key: &[u8]) -> Option<&'l str> {
    let start = memmem::find(line, key)? + key.len();
    let name = line.get(start..)?.split(|byte| *byte == b'"').next()?;
    std::str::from_utf8(name).ok().filter(|name| !name.contains('\\'))
}

/// Returns a string without escapes that follows a key, if the line has the key. `None` if it has
/// escapes. Keys of names stand before the time of a line.
fn optional_name_in<'l>(line: &'l [u8], key: &[u8]) -> Option<Option<&'l str>> {
    let head = memmem::find(line, b"\"at\":\"").and_then(|at| line.get(..at)).unwrap_or(line);
    if memmem::find(head, key).is_none() { Some(None) } else { name_in(head, key).map(Some) }
}

fn is_unfinished(outcome: &str) -> bool {
    [LOST, RUNNING].contains(&outcome)
}

fn json(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
