//! Interprets the bytes that a terminal sends while a line is read. Does no I/O: `device`
//! reads from the terminal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::editor::Editor;
use super::keys::{self, Key};
use super::{Input, InputKind, Signal};

/// Time without input that must pass before an answer counts. The operator has not read a question
/// that has just appeared, so input during this time was typed or pasted for something else.
pub(super) const QUIET: Duration = Duration::from_millis(300);

/// State of a line that is being read.
pub(super) struct LineReader {
    kind: InputKind,
    pub(super) editor: Editor,
    bytes: VecDeque<u8>,
    /// True between the marks of a bracketed paste.
    is_pasted: bool,
    /// True if the current paste was rejected as an answer.
    has_dropped_paste: bool,
    /// Time until which all input is discarded.
    quiet_until: Option<Instant>,
    /// True if the last key was Enter. A line feed that follows is part of it.
    was_enter: bool,
}

/// Next action of the caller.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReaderStep {
    /// Draw nothing.
    Wait,
    /// Draw this character, which was appended to the line.
    Appended(char),
    /// Draw the line again.
    Draw,
    /// Explain that a paste was rejected as an answer.
    DroppedPaste,
    /// Send the process a signal.
    Raise(Signal),
    /// Return the input.
    Done(Input),
}

impl LineReader {
    pub(super) fn new(kind: InputKind, prompt: &str, history: Vec<String>, now: Instant) -> Self {
        Self {
            kind,
            editor: Editor::new(prompt, history),
            bytes: VecDeque::new(),
            is_pasted: false,
            has_dropped_paste: false,
            quiet_until: (kind != InputKind::Prompt).then(|| now + QUIET),
            was_enter: false,
        }
    }

    /// Takes bytes that arrived at `now`. Until the question has been quiet for [`QUIET`], discards
    /// all bytes except Ctrl-C, and restarts that time at each call, so that a paste in several
    /// pieces is discarded to its end.
    pub(super) fn take(&mut self, bytes: &[u8], now: Instant) {
        match self.quiet_until {
            Some(until) if now < until => {
                self.quiet_until = Some(now + QUIET);
                self.bytes.extend(bytes.iter().filter(|byte| **byte == INTERRUPT));
            }
            _ => self.bytes.extend(bytes),
        }
    }

    /// Returns the next action, or `None` if more bytes are needed. `more` waits for further bytes
    /// for a short time.
    pub(super) fn step(
        &mut self,
        now: Instant,
        more: &mut dyn FnMut() -> Vec<u8>,
    ) -> Option<ReaderStep> {
        let key = keys::next(&mut self.bytes)?;
        let was_enter = std::mem::replace(&mut self.was_enter, key == Key::Enter);
        Some(match key {
            Key::LineFeed if was_enter => ReaderStep::Wait,
            Key::Enter | Key::LineFeed => self.enter(now, more),
            other => self.key(other),
        })
    }

    fn key(&mut self, key: Key) -> ReaderStep {
        match key {
            Key::PasteStart => {
                self.is_pasted = true;
                ReaderStep::Wait
            }
            Key::PasteEnd => {
                self.is_pasted = false;
                if std::mem::take(&mut self.has_dropped_paste) {
                    ReaderStep::DroppedPaste
                } else {
                    ReaderStep::Draw
                }
            }
            Key::Interrupt => ReaderStep::Raise(Signal::Interrupt),
            // Other keys between the marks are part of the pasted text.
            _ if self.is_pasted => self.pasted(key),
            Key::Char(c) if self.editor.insert(c) => ReaderStep::Appended(c),
            Key::Quit => ReaderStep::Raise(Signal::Quit),
            Key::Suspend => ReaderStep::Raise(Signal::Suspend),
            Key::EndOfInput if self.editor.text().is_empty() => ReaderStep::Done(Input::End),
            Key::EndOfInput => {
                self.editor.press(Key::Delete);
                ReaderStep::Draw
            }
            Key::Char(_) | Key::Tab | Key::Unknown => ReaderStep::Wait,
            Key::Redraw => ReaderStep::Draw,
            key => {
                self.editor.press(key);
                ReaderStep::Draw
            }
        }
    }

    fn pasted(&mut self, key: Key) -> ReaderStep {
        let c = match key {
            Key::Char(c) => c,
            Key::Tab => '\t',
            Key::Enter | Key::LineFeed if self.kind == InputKind::Prompt => '\n',
            Key::Enter | Key::LineFeed => ' ',
            _ => return ReaderStep::Wait,
        };
        if self.kind == InputKind::Choice {
            self.has_dropped_paste = true;
        } else {
            self.editor.insert(c);
        }
        ReaderStep::Wait
    }

    fn enter(&mut self, now: Instant, more: &mut dyn FnMut() -> Vec<u8>) -> ReaderStep {
        if self.is_pasted {
            return self.pasted(Key::Enter);
        }
        if self.bytes.is_empty() {
            self.bytes.extend(more());
        }
        // A carriage return and a line feed are one line ending.
        if self.was_enter && self.bytes.front() == Some(&b'\n') {
            self.bytes.pop_front();
            if self.bytes.is_empty() {
                self.bytes.extend(more());
            }
        }
        if !self.bytes.is_empty() {
            return self.unmarked_paste(now);
        }
        if self.kind == InputKind::Prompt && self.editor.text().ends_with('\\') {
            self.editor.press(Key::End);
            self.editor.press(Key::Backspace);
            self.editor.insert('\n');
            return ReaderStep::Draw;
        }
        ReaderStep::Done(Input::Line(self.editor.text().to_owned()))
    }

    /// Handles input right behind the end of a line: several lines were pasted in a terminal that
    /// does not mark pastes.
    fn unmarked_paste(&mut self, now: Instant) -> ReaderStep {
        match self.kind {
            InputKind::Prompt => {
                self.editor.insert('\n');
                ReaderStep::Draw
            }
            InputKind::Text => {
                self.editor.insert(' ');
                ReaderStep::Draw
            }
            InputKind::Choice => {
                let is_interrupted = self.bytes.contains(&INTERRUPT);
                self.bytes.clear();
                self.editor.clear();
                self.quiet_until = Some(now + QUIET);
                if is_interrupted {
                    ReaderStep::Raise(Signal::Interrupt)
                } else {
                    ReaderStep::DroppedPaste
                }
            }
        }
    }
}

/// Ctrl-C.
const INTERRUPT: u8 = 0x03;

#[cfg(test)]
mod tests {
    use super::*;

    const QUESTION: &str = "Allow it? ";

    /// Takes input, each with its time in milliseconds after the question. Returns the steps that
    /// do not draw.
    fn steps(kind: InputKind, comes: &[(u64, &str)]) -> Vec<ReaderStep> {
        let begin = Instant::now();
        let mut reading = LineReader::new(kind, QUESTION, Vec::new(), begin);
        let mut steps = Vec::new();
        for (millis, bytes) in comes {
            let now = begin + Duration::from_millis(*millis);
            reading.take(bytes.as_bytes(), now);
            while let Some(step) = reading.step(now, &mut Vec::new) {
                let is_drawing =
                    matches!(step, ReaderStep::Wait | ReaderStep::Draw | ReaderStep::Appended(_));
                let is_end = matches!(step, ReaderStep::Done(_));
                steps.extend((!is_drawing).then_some(step));
                if is_end {
                    return steps;
                }
            }
        }
        steps
    }

    fn line(text: &str) -> ReaderStep {
        ReaderStep::Done(Input::Line(text.to_owned()))
    }

    #[test]
    fn an_answer_counts_once_the_question_was_quiet_for_a_while() {
        for kind in [InputKind::Choice, InputKind::Text] {
            assert_eq!(steps(kind, &[(0, "y\r"), (299, "y\r")]), []);
            assert_eq!(steps(kind, &[(300, "y\r")]), [line("y")]);
            // Each piece of input extends the quiet time.
            assert_eq!(
                steps(kind, &[(200, "y\r"), (450, "y\r"), (700, "y\r"), (1000, "n\r")]),
                [line("n")]
            );
        }
        assert_eq!(steps(InputKind::Prompt, &[(0, "hello\r")]), [line("hello")]);
    }

    #[test]
    fn pasted_text_is_no_choice() {
        for paste in [
            "\u{1b}[200~y\r\u{1b}[201~",
            "\u{1b}[200~y\u{1b}[201~",
            "y\ry\r",
            "x\r\ny\r\n",
            "a\ny\n",
        ] {
            assert_eq!(
                steps(InputKind::Choice, &[(400, paste)]),
                [ReaderStep::DroppedPaste],
                "{paste:?}"
            );
            let comes = [(400, paste), (1000, "n\r")];
            assert_eq!(
                steps(InputKind::Choice, &comes),
                [ReaderStep::DroppedPaste, line("n")],
                "{paste:?}"
            );
        }
        // Rest of an unmarked paste, which arrives later.
        let comes = [(400, "a\rb"), (600, "\ry\r"), (2000, "n\r")];
        assert_eq!(steps(InputKind::Choice, &comes), [ReaderStep::DroppedPaste, line("n")]);
    }

    #[test]
    fn a_pasted_block_is_one_prompt() {
        for paste in
            ["\u{1b}[200~a\rb\r\ny\u{1b}[201~\r", "a\rb\ry\r", "a\nb\ny\n", "a\r\nb\r\ny\r\n"]
        {
            assert_eq!(steps(InputKind::Prompt, &[(0, paste)]), [line("a\nb\ny")], "{paste:?}");
        }
        assert_eq!(steps(InputKind::Text, &[(400, "\u{1b}[200~a\rb\u{1b}[201~\r")]), [line("a b")]);
        assert_eq!(steps(InputKind::Prompt, &[(0, "a\\\r"), (9, "b\r")]), [line("a\nb")]);
    }

    #[test]
    fn ctrl_c_counts_at_any_time() {
        let raised = ReaderStep::Raise(Signal::Interrupt);
        assert_eq!(steps(InputKind::Choice, &[(0, "y\r\u{3}")]), [raised]);
        let raised = ReaderStep::Raise(Signal::Interrupt);
        assert_eq!(steps(InputKind::Prompt, &[(0, "\u{1b}[200~\u{3}")]), [raised]);
        assert_eq!(steps(InputKind::Prompt, &[(0, "\u{4}")]), [ReaderStep::Done(Input::End)]);
    }
}
