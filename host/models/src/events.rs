//! Server-sent events out of bytes that come in any pieces.
//!
//! As the HTML standard has it: unknown fields and comments are passed over, lines end with CR, LF or both. The reader of the
//! `sse-stream` crate, which speaks MCP, gives up at an unknown field and has no limit for one event.

use std::collections::VecDeque;

/// The mark that a stream may begin with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The value of `event`; empty if there is none.
    pub(super) kind: String,
    /// The lines of `data`.
    pub(super) data: String,
}

/// An event is larger than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooLarge;

/// Puts events together.
pub(super) struct EventReader {
    bytes_max: usize,
    /// The line that has no end yet.
    line: Vec<u8>,
    /// The event that has no end yet.
    event: Event,
    has_data: bool,
    /// The last byte was a CR: an LF belongs to it.
    is_after_cr: bool,
    is_first_line: bool,
    whole: VecDeque<Event>,
}

impl EventReader {
    /// A reader of events of at most `bytes_max` bytes.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            is_after_cr: false,
            is_first_line: true,
            whole: VecDeque::new(),
        }
    }

    /// Takes more bytes.
    pub(super) fn push(&mut self, mut bytes: &[u8]) -> Result<(), TooLarge> {
        while let Some((&first, rest)) = bytes.split_first() {
            if std::mem::take(&mut self.is_after_cr) && first == b'\n' {
                bytes = rest;
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\r' | b'\n'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            self.extend_line(part)?;
            let Some((&end, rest)) = rest.split_first() else { return Ok(()) };
            self.is_after_cr = end == b'\r';
            self.end_line();
            bytes = rest;
        }
        Ok(())
    }

    /// The next event that is whole.
    pub(super) fn next(&mut self) -> Option<Event> {
        self.whole.pop_front()
    }

    /// What is there when no more bytes come. By the standard an event without an empty line behind it does not count; some
    /// servers leave out the last one.
    pub(super) fn rest(&mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_line();
        self.next()
    }

    fn extend_line(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        let kept =
            self.line.len().saturating_add(self.event.data.len()).saturating_add(self.event.kind.len());
        if kept.saturating_add(part.len()) > self.bytes_max {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            if std::mem::take(&mut self.has_data) {
                self.whole.push_back(event);
            }
            return;
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let (field, value) = (halves.next().unwrap_or_default(), halves.next().unwrap_or_default());
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&value);
            }
            b"event" => self.event.kind = value.into_owned(),
            // A comment, what reconnecting needs, or a field that nobody knows.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<Event> {
        let mut reader = EventReader::new(1000);
        let mut events = Vec::new();
        for piece in pieces {
            reader.push(piece).unwrap();
            events.extend(std::iter::from_fn(|| reader.next()));
        }
        events.extend(reader.rest());
        events
    }

    fn event(kind: &str, data: &str) -> Event {
        Event { kind: kind.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        let text = "\u{feff}: hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\nid: 7\rretry\nunknown: x\n\n\
                    event: without data\n\ndata\n\n:\n\ndata:  two spaces\r\rdata: é\n\ndata: [DONE]";
        let expected = vec![
            event("a", "1\n2"),
            event("", ""),
            event("", " two spaces"),
            event("", "é"),
            event("", "[DONE]"),
        ];
        assert_eq!(read(&[text.as_bytes()]), expected);
        for at in 0..text.len() {
            let (left, right) = text.as_bytes().split_at(at);
            assert_eq!(read(&[left, right]), expected, "cut at {at}");
        }
    }

    #[test]
    fn an_event_has_a_limit_and_a_stream_has_none() {
        let mut reader = EventReader::new(20);
        for _ in 0..100 {
            reader.push(b": keep-alive\n\ndata: 12345\n\n").unwrap();
        }
        assert_eq!(reader.push(b"data: 1234567890\ndata: 1234567890\n"), Err(TooLarge));
        assert_eq!(EventReader::new(20).push(&[b'x'; 21]), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_the_same_events(
            bytes in proptest::collection::vec(prop_oneof![Just(b'\r'), Just(b'\n'), Just(b':'), Just(b'd'), any::<u8>()], 0..80),
            at in any::<prop::sample::Index>(),
        ) {
            let (left, right) = bytes.split_at(at.index(bytes.len() + 1));
            prop_assert_eq!(read(&[left, right]), read(&[&bytes]));
        }
    }
}
