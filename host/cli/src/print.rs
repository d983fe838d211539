//! Printing of untrusted text.
//!
//! Plugins, models and files can contain characters that move the cursor, rename the window,
//! reverse a line or are invisible. On a terminal these characters are shown as escapes. Results
//! that go to a pipe are written byte for byte.

use std::borrow::Cow;
use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use anyhow::Context;
use cofferdam::pipe::HostMessage;
pub(crate) use cofferdam::text::{bytes, counted};
use cofferdam_engine::cache::CacheError;
pub(crate) use cofferdam_terminal::printable;
use serde_json::json;

use crate::args::log::PagerArgs;
use crate::exit::Exit;
use crate::{pager, progress};

/// Prints a result and a line feed on standard output.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    write(text, "\n")
}

/// Prints a result whose lines without indentation are headings, which are bold on a terminal with
/// color.
pub(crate) fn report(text: &str) -> anyhow::Result<()> {
    if !has_styled_output() {
        return result(text);
    }
    write_all(with_bold_headings(text).as_bytes(), "\n")
}

/// Prints a result that may be long, on a terminal in the user's pager.
pub(crate) fn paged(text: &str, args: &PagerArgs) -> anyhow::Result<()> {
    if uses_pager(args) && pager::show(&printable(text)) { Ok(()) } else { result(text) }
}

/// Prints a [`report`] that may be long, on a terminal in the user's pager.
pub(crate) fn paged_report(text: &str, args: &PagerArgs) -> anyhow::Result<()> {
    if !has_styled_output() {
        return paged(text, args);
    }
    if uses_pager(args) && pager::show(&with_bold_headings(text)) { Ok(()) } else { report(text) }
}

fn uses_pager(args: &PagerArgs) -> bool {
    !args.no_pager && std::io::stdout().is_terminal()
}

fn with_bold_headings(text: &str) -> String {
    let heading = Style::new().bold();
    let line = |line: &str| match line.chars().next() {
        Some(first) if !first.is_whitespace() => painted(line, heading),
        _ => line.to_owned(),
    };
    let lines: Vec<_> = printable(text).lines().map(line).collect();
    lines.join("\n")
}

/// Prints a part of a result on standard output, without a line feed.
pub(crate) fn more(text: &str) -> anyhow::Result<()> {
    write(text, "")
}

fn write(text: &str, end: &str) -> anyhow::Result<()> {
    let is_terminal = std::io::stdout().is_terminal();
    let shown = if is_terminal { printable(text) } else { Cow::Borrowed(text) };
    write_all(shown.as_bytes(), end)
}

/// True once the reader of standard output has closed it.
static IS_CLOSED: AtomicBool = AtomicBool::new(false);

/// Returns whether the reader of standard output has closed it, so that a command without an end
/// can end.
pub(crate) fn is_closed() -> bool {
    IS_CLOSED.load(Ordering::Relaxed)
}

fn write_all(bytes: &[u8], end: &str) -> anyhow::Result<()> {
    let written = progress::write_above(|| {
        let mut stdout = std::io::stdout().lock();
        stdout.write_all(bytes)?;
        stdout.write_all(end.as_bytes())?;
        stdout.flush()
    });
    match written {
        // The reader, such as `head`, has closed the pipe and needs no more output.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {
            IS_CLOSED.store(true, Ordering::Relaxed);
            Ok(())
        }
        other => other.context("cannot write to standard output"),
    }
}

/// Returns whether standard output is a terminal with color.
pub(crate) fn has_styled_output() -> bool {
    let stdout = std::io::stdout();
    stdout.is_terminal() && AutoStream::choice(&stdout) != ColorChoice::Never
}

/// Prints bytes on standard output unchanged. They come from this program, or were escaped and
/// then styled.
pub(crate) fn unescaped(bytes: &[u8]) -> anyhow::Result<()> {
    write_all(bytes, "")
}

/// Prints the JSON form of an error that ended a command before its result.
pub(crate) fn json_error(exit: Exit, message: &str) {
    let error =
        json!({"outcome": "error", "is_error": true, "code": exit.code(), "message": message});
    // The message also goes to standard error.
    let _ = result(&error.to_string());
}

/// Prints the message of `cofferdam pipe` that tells a program why the host does not start.
pub(crate) fn pipe_failure(exit: Exit, message: &str) {
    let failed = HostMessage::Failed { message: message.to_owned(), exit: exit as u8 };
    // The message also goes to standard error.
    let _ = serde_json::to_string(&failed).map(|line| result(&line));
}

/// Sets whether to color, for `--color`.
pub(crate) fn set_color(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
    if has_color() {
        cofferdam_terminal::embolden_prompts();
    }
}

/// Returns whether standard error is colored.
fn has_color() -> bool {
    AutoStream::choice(&std::io::stderr()) != ColorChoice::Never
}

/// Beginnings of notes, and their colors.
const LABELS: [(&str, Style); 6] = [
    ("error:", RED),
    ("warning:", YELLOW),
    ("refused:", YELLOW),
    ("not granted:", YELLOW),
    ("to grant it:", GREEN),
    ("note:", CYAN),
];
const RED: Style = AnsiColor::Red.on_default().bold();
const YELLOW: Style = AnsiColor::Yellow.on_default().bold();
const GREEN: Style = AnsiColor::Green.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// Prints a note for the operator on standard error. The word before a colon is colored if it says
/// what kind of note it is.
pub(crate) fn note(text: &str) {
    let text = printable(text);
    let label = LABELS.iter().find(|(label, _)| text.trim_start().starts_with(label));
    match label.filter(|_| has_color()) {
        None => write_note(&text),
        Some((label, style)) => {
            let indent = text.len() - text.trim_start().len();
            let (indent, rest) = text.split_at_checked(indent).unwrap_or(("", &text));
            let rest = rest.strip_prefix(label).unwrap_or(rest);
            write_note(&format!("{indent}{}{rest}", painted(label, *style)));
        }
    }
}

/// Prints a note that matters less, such as a duration.
pub(crate) fn aside(text: &str) {
    let text = printable(text);
    let style = Style::new().dimmed();
    write_note(&if has_color() { painted(&text, style) } else { text.into_owned() });
}

/// Prints a difference on standard error: added lines are green, removed ones red.
pub(crate) fn difference(text: &str) {
    let has_color = has_color();
    for line in printable(text).lines() {
        let style = match line.trim_start().chars().next().filter(|_| has_color) {
            Some('+') => GREEN,
            Some('-') => AnsiColor::Red.on_default(),
            Some('@') => CYAN,
            _ => Style::new(),
        };
        write_note(&painted(line, style));
    }
}

/// Prints the verdict about a test on standard output.
pub(crate) fn verdict(is_ok: bool, title: &str) -> anyhow::Result<()> {
    let (word, style) = if is_ok { ("ok    ", GREEN) } else { ("FAILED", RED) };
    let has_color = AutoStream::choice(&std::io::stdout()) != ColorChoice::Never;
    let style = if has_color { style } else { Style::new() };
    write_all(format!("{} {}\n", painted(word, style), printable(title)).as_bytes(), "")
}

/// Returns text in a style; the plain style adds nothing. The caller has escaped untrusted text.
fn painted(text: &str, style: Style) -> String {
    format!("{style}{text}{style:#}")
}

/// Writes a line to standard error. The caller has escaped untrusted text.
fn write_note(text: &str) {
    // If standard error is closed, there is nowhere to report that.
    let _ = progress::write_above(|| writeln!(std::io::stderr().lock(), "{text}"));
}

/// Returns `first`, followed by the lines of `text` with a mark before each, so that text of a tool
/// or a model cannot be mistaken for a message of the host.
pub(crate) fn with_prefix(first: &str, text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("\n  | {line}")).collect();
    format!("{first}{lines}")
}

/// Returns arguments in the form that is sent: of a key that occurs twice, only the last value
/// (`ARG-29`). Invalid JSON is returned unchanged; it is never sent.
pub(crate) fn arguments(text: &str) -> Cow<'_, str> {
    match cofferdam_tool::output::parse_json(text) {
        Ok(value) => Cow::Owned(value.to_string()),
        Err(_) => Cow::Borrowed(text),
    }
}

/// Prints an error and its causes in one line.
pub(crate) fn error(error: &anyhow::Error) {
    note(&format!("error: {error:#}"));
    if error.chain().any(|cause| cause.is::<CacheError>()) {
        note("  pass --cache-dir DIR for another cache, or --no-cache for none");
    }
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
