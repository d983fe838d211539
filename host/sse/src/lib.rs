//! Reader for server-sent events, used for model responses and messages of MCP servers.
//!
//! It follows the HTML standard: unknown fields and comments are ignored, and a line ends with CR,
//! LF or both. Unlike the reader of the `sse-stream` crate, it limits the size of an event and does
//! not fail on unknown fields.
//!
//! ```
//! use cofferdam_sse::EventReader;
//!
//! let mut reader = EventReader::new(1024);
//! reader.push(b"event: greeting\ndata: hel")?;
//! assert_eq!(reader.next_event(), None);
//! reader.push(b"lo\n\n")?;
//! let event = reader.next_event().unwrap();
//! assert_eq!((event.kind.as_str(), event.data.as_str()), ("greeting", "hello"));
//! # Ok::<(), cofferdam_sse::TooLarge>(())
//! ```

use std::collections::VecDeque;
use std::sync::Arc;

/// Byte order mark that a stream may start with.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Maximum bytes of a line with an `id`. A client sends the value back in a header, and servers
/// accept only some KiB of headers.
const ID_LINE_BYTES_MAX: usize = 4096;

/// A server-sent event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Value of `event`; empty if missing.
    pub kind: String,
    /// Lines of `data`, joined by line feeds.
    pub data: String,
    /// Last value of `id` in the stream, shared by the events that follow it.
    pub id: Option<Arc<str>>,
    /// Last value of `retry` since the previous event, in milliseconds.
    pub retry_ms: Option<u64>,
}

/// Error returned when an event or its `id` exceeds the maximum size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge;

impl std::fmt::Display for TooLarge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an event is too large")
    }
}

impl std::error::Error for TooLarge {}

/// Assembles events from bytes that arrive in pieces of any size.
#[derive(Debug)]
pub struct EventReader {
    bytes_max: usize,
    /// Incomplete line.
    line: Vec<u8>,
    /// Incomplete event.
    event: Event,
    has_data: bool,
    /// True if the last byte was a CR, so that a following LF belongs to the same line ending.
    is_after_cr: bool,
    is_first_line: bool,
    complete: VecDeque<Event>,
}

impl EventReader {
    /// Returns a reader of events of at most `bytes_max` bytes.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            bytes_max,
            line: Vec::new(),
            event: Event::default(),
            has_data: false,
            is_after_cr: false,
            is_first_line: true,
            complete: VecDeque::new(),
        }
    }

    /// Adds bytes of the stream.
    ///
    /// # Errors
    /// If an event is too large, or its `id` is longer than 4 KiB. The reader cannot be used
    /// afterwards.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), TooLarge> {
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

    /// Removes and returns the next complete event.
    pub fn next_event(&mut self) -> Option<Event> {
        self.complete.pop_front()
    }

    /// Returns the event at the end of the stream that no empty line completes. The standard
    /// discards it, but some servers omit that line.
    pub fn take_incomplete(&mut self) -> Option<Event> {
        if !self.line.is_empty() {
            self.end_line();
        }
        self.end_line();
        self.next_event()
    }

    fn extend_line(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        let event = &self.event;
        let id_bytes = event.id.as_ref().map_or(0, |id| id.len());
        let buffered = [self.line.len(), event.data.len(), event.kind.len(), id_bytes];
        let buffered = buffered.into_iter().fold(0, usize::saturating_add);
        if buffered.saturating_add(part.len()) > self.bytes_max {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        if self.line.len() > ID_LINE_BYTES_MAX && self.line.starts_with(b"id:") {
            return Err(TooLarge);
        }
        Ok(())
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_first_line) && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            let mut event = std::mem::take(&mut self.event);
            self.event.id.clone_from(&event.id);
            if std::mem::take(&mut self.has_data) {
                self.complete.push_back(event);
            } else {
                self.event.retry_ms = event.retry_ms.take();
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
            b"id" if !value.contains('\0') => self.event.id = Some(value.into()),
            b"retry" if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.event.retry_ms = value.parse().ok().or(self.event.retry_ms);
            }
            // A comment or an unknown field.
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
            events.extend(std::iter::from_fn(|| reader.next_event()));
        }
        events.extend(reader.take_incomplete());
        events
    }

    fn event(kind: &str, data: &str) -> Event {
        Event { kind: kind.to_owned(), data: data.to_owned(), ..Event::default() }
    }

    #[test]
    fn events_are_read_as_the_standard_says() {
        let text = "\u{feff}: hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\nid: 7\rretry\nunknown: x\n\n\
                    event: without data\n\ndata\n\n:\n\ndata:  two spaces\r\rdata: é\n\ndata: \
                    [DONE]";
        let mut expected = vec![
            event("a", "1\n2"),
            event("", ""),
            event("", " two spaces"),
            event("", "é"),
            event("", "[DONE]"),
        ];
        expected.iter_mut().for_each(|event| event.id = Some("7".into()));
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

    #[test]
    fn an_id_is_short_and_shared() {
        let mut reader = EventReader::new(1 << 20);
        let long = [b"id: ".as_slice(), &[b'x'; 4092], b"\ndata: a\n\ndata: b\n\n"].concat();
        reader.push(&long).unwrap();
        let [first, second] = [(); 2].map(|()| reader.next_event().unwrap().id.unwrap());
        assert!(Arc::ptr_eq(&first, &second) && first.len() == 4092);
        assert_eq!(
            EventReader::new(1 << 20).push(&[b"id: ".as_slice(), &[b'x'; 4093]].concat()),
            Err(TooLarge)
        );
    }

    #[test]
    fn ids_stay_and_pauses_belong_to_the_next_event() {
        let events = read(&[b"id: 1\nretry: 250\n\ndata: a\n\ndata: b\n\nid:\nretry: 1s\ndata: \
                c\n\nid: \0\ndata:\n\n"]);
        let found: Vec<_> =
            events.iter().map(|event| (event.id.as_deref(), event.retry_ms)).collect();
        assert_eq!(
            found,
            [(Some("1"), Some(250)), (Some("1"), None), (Some(""), None), (Some(""), None)]
        );
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
