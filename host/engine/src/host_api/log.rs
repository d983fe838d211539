//! Last parts of a guest's standard output and standard error, for the call record.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use parking_lot::Mutex;

use super::output::OutputSink;

/// Keeps the last bytes that were written and drops the rest. Writing never fails, so that a tool
/// that prints a lot works like one that prints nothing.
#[derive(Clone)]
pub(crate) struct LogTail {
    tail: Arc<Mutex<VecDeque<u8>>>,
    bytes_max: usize,
}

impl LogTail {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { tail: Arc::default(), bytes_max }
    }

    /// Returns the retained bytes as a string. Bytes that are not UTF-8 are replaced; control
    /// characters are not replaced, so code that prints the string must escape them.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.tail.lock().make_contiguous()).into_owned()
    }

    /// Adds a line of the host.
    pub(super) fn push_line(&self, line: &str) {
        for part in [line, "\n"] {
            let Ok(()) = self.push(part.as_bytes());
        }
    }
}

impl OutputSink for LogTail {
    type Error = Infallible;

    fn push(&self, bytes: &[u8]) -> Result<(), Infallible> {
        let mut tail = self.tail.lock();
        let tail_bytes =
            bytes.get(bytes.len().saturating_sub(self.bytes_max)..).unwrap_or_default();
        let excess = (tail.len() + tail_bytes.len()).saturating_sub(self.bytes_max);
        tail.drain(..excess);
        tail.extend(tail_bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_retained() {
        let log = LogTail::new(5);
        log.push(b"abc").unwrap();
        assert_eq!(log.text(), "abc");
        log.push(b"defg").unwrap();
        assert_eq!(log.text(), "cdefg");
        log.push(b"0123456789").unwrap();
        assert_eq!(log.text(), "56789");
    }
}
