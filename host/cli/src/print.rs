//! Printing of untrusted text.
//!
//! Plugins, models and files can contain characters that move the cursor, rename the window,
//! reverse a line or are invisible. On a terminal these characters are shown as escapes. Results
//! that go to a pipe are written byte for byte.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::time::Duration;

use anyhow::Context;
pub(crate) use cofferdam::text::{bytes, counted};
pub(crate) use cofferdam_terminal::printable;

/// Prints a result and a line feed on standard output.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    write(text, "\n")
}

/// Prints a part of a result on standard output, without a line feed.
pub(crate) fn more(text: &str) -> anyhow::Result<()> {
    write(text, "")
}

fn write(text: &str, end: &str) -> anyhow::Result<()> {
    let stdout = std::io::stdout();
    let shown = if stdout.is_terminal() { printable(text) } else { Cow::Borrowed(text) };
    let mut stdout = stdout.lock();
    let written =
        stdout.write_all(shown.as_bytes()).and_then(|()| stdout.write_all(end.as_bytes()));
    match written.and_then(|()| stdout.flush()) {
        // The reader, such as `head`, has closed the pipe and needs no more output.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("cannot write to standard output"),
    }
}

/// Prints a note for the operator on standard error.
pub(crate) fn note(text: &str) {
    let mut stderr = std::io::stderr().lock();
    // If standard error is closed, there is no other place to report that.
    let _ = writeln!(stderr, "{}", printable(text));
}

/// Returns `first`, followed by the lines of `text` with a mark before each, so that text of a tool
/// or a model cannot be mistaken for a message of the host.
pub(crate) fn with_prefix(first: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("\n  | {line}")).collect();
    format!("{first}{lines}")
}

/// Returns arguments as they are sent: of a key that occurs twice, only the last value (`ARG-29`).
/// Invalid JSON is returned unchanged; it is never sent.
pub(crate) fn arguments(text: &str) -> Cow<'_, str> {
    match cofferdam_tool::output::parse_json(text) {
        Ok(value) => Cow::Owned(value.to_string()),
        Err(_) => Cow::Borrowed(text),
    }
}

/// Prints an error and its causes in one line.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("error: {error:#}"));
}

/// Formats a duration with a unit.
pub(crate) fn time(time: Duration) -> String {
    let micros = time.as_micros();
    match micros {
        0..1000 => format!("{micros} µs"),
        1000..10_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        10_000..1_000_000 => format!("{} ms", micros / 1000),
        _ => format!("{}.{} s", micros / 1_000_000, micros % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_shown_as_they_are_sent() {
        let text = r#"{"file_name": "harmless", "n": 1.0, "file_name": "a.md"}"#;
        assert_eq!(arguments(text), r#"{"n":1.0,"file_name":"a.md"}"#);
        assert_eq!(arguments("{"), "{");
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(bytes(999), "999 B");
        assert_eq!(bytes(1536), "1.5 KiB");
        assert_eq!(bytes(12 << 20), "12.0 MiB");
    }
}
