//! Items of a log: calls and other events, as readers of whole segments return them.

use crate::entry::CallLineKind;
use crate::search::{LINE_START, line_kind};
use crate::segments::CLOSE_START;
use crate::{CallEntry, RUNNING, TimedEvent, UtcTime};

/// Kinds of lines that are about the log itself.
const OWN_KINDS: [&[u8]; 3] = [b"open\"", b"heads\"", b"drops\""];

/// A call or another event of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum LogItem {
    /// A call. Its outcome is [`RUNNING`] if it has not ended.
    Call(Box<CallEntry>),
    /// An event besides calls.
    Event(Box<TimedEvent>),
}

impl LogItem {
    /// Parses a line of a segment. Returns `None` for lines about the log itself, and for damaged
    /// ones.
    pub(crate) fn parse(stem: &str, line: &[u8]) -> Option<Self> {
        match line_kind(line) {
            Some(kind) => {
                let mut entry = CallEntry::parse(line)?;
                if kind == CallLineKind::Begin {
                    entry.outcome = RUNNING.to_owned();
                }
                Some(Self::Call(Box::new(entry)))
            }
            None => parse_event(stem, line).map(|event| Self::Event(Box::new(event))),
        }
    }

    /// Returns the time at which the item ended. Lines stand in about that order.
    pub(crate) fn ended(&self) -> UtcTime {
        match self {
            Self::Call(call) => call.at.after(call.us),
            Self::Event(event) => event.at,
        }
    }
}

/// Returns whether a line may be that of an event.
pub(crate) fn is_event(line: &[u8]) -> bool {
    let Some(kind) = line.strip_prefix(LINE_START) else { return false };
    // Most lines are about calls, and parsing them as events takes longest.
    line_kind(line).is_none()
        && !line.starts_with(CLOSE_START)
        && !OWN_KINDS.iter().any(|own| kind.starts_with(own))
}

/// Parses the line of an event. Its id is made of the segment and the number of the line.
pub(crate) fn parse_event(stem: &str, line: &[u8]) -> Option<TimedEvent> {
    if !is_event(line) {
        return None;
    }
    let mut event: TimedEvent = serde_json::from_slice(line).ok()?;
    event.id = format!("{stem}/{}", event.n);
    Some(event)
}
