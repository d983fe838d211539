//! Reads lines and answers that an operator types at a terminal.
//!
//! While a line is read, the terminal is in raw mode and sends each key by itself. The program
//! therefore sees what a line discipline hides: when input arrives, whether more follows
//! immediately, and what was pasted. Input that is pending before a question is discarded, and an
//! answer only counts after the question was on the screen for a while. As a result, input that was
//! typed ahead or pasted for something else answers no question.
//!
//! This crate does not use rustyline or reedline. Both read until a line is complete: the question
//! cannot be withdrawn when a call ends meanwhile, and input behind the end of a line cannot be
//! examined. Also, reedline asks the terminal for the cursor position, and the reply arrives in the
//! input that is discarded here.
//!
//! On Windows, this is not implemented, and nothing is asked: whatever needs an answer is refused.

#[cfg_attr(windows, path = "unattended.rs")]
mod device;
#[cfg(any(unix, test))]
mod editor;
#[cfg(any(unix, test))]
mod keys;
mod markdown;
mod printable;
#[cfg(any(unix, test))]
mod reading;

pub use self::device::{embolden_prompts, is_interactive, read_line, read_line_blocking, restore};
pub use self::markdown::MarkdownStyler;
pub use self::printable::printable;

/// Kind of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputKind {
    /// A prompt of a conversation. It may have several lines, and begins with what was typed ahead.
    Prompt,
    /// A choice. It must be typed, not pasted.
    Choice,
    /// An answer that may be typed or pasted.
    Text,
}

/// Result of reading a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// A line, without its line ending.
    Line(String),
    /// No line: the operator pressed a key that raises a signal, or the caller gave up.
    Interrupted,
    /// The end of the input.
    End,
}

/// Signal that a key raises.
#[cfg(any(unix, test))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signal {
    Interrupt,
    Suspend,
    Quit,
}
