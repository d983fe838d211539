//! Questions to the operator at the terminal. Every question of this program is asked here.
//!
//! Without a terminal, or with `--no-input`, nothing is asked and every answer is empty, which
//! denies. Ctrl-C at a question that blocks ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::Exit;
use crate::progress;
use cofferdam_terminal::{Input, InputKind, is_interactive, read_line, read_line_blocking};

/// True after `--no-input`.
static NO_INPUT: AtomicBool = AtomicBool::new(false);

/// True if nothing is asked even at a terminal.
static IS_UNATTENDED: AtomicBool = AtomicBool::new(false);
/// True while a question is on the screen.
static IS_ASKING: AtomicBool = AtomicBool::new(false);

/// Removes the progress bar while a question is on the screen.
struct OnScreen;

impl OnScreen {
    fn begin() -> Self {
        IS_ASKING.store(true, Ordering::Relaxed);
        progress::clear();
        Self
    }
}

impl Drop for OnScreen {
    fn drop(&mut self) {
        IS_ASKING.store(false, Ordering::Relaxed);
    }
}

/// Returns whether a question is on the screen.
pub(crate) fn is_asking() -> bool {
    IS_ASKING.load(Ordering::Relaxed)
}

/// Disables all further questions.
pub(crate) fn refuse_all() {
    NO_INPUT.store(true, Ordering::Relaxed);
}

/// Behaves as without a terminal from now on: nothing is asked.
pub(crate) fn be_unattended() {
    IS_UNATTENDED.store(true, Ordering::Relaxed);
}

/// Returns whether `--no-input` was given.
pub(crate) fn is_refused() -> bool {
    NO_INPUT.load(Ordering::Relaxed)
}

/// Returns whether an operator is at the terminal and may be asked.
pub(crate) fn is_possible() -> bool {
    !is_refused() && !IS_UNATTENDED.load(Ordering::Relaxed) && is_interactive()
}

/// Returns the reason why nothing can be asked, for messages.
pub(crate) fn why_impossible() -> &'static str {
    if is_refused() { "--no-input was given" } else { "there is no terminal to ask at" }
}

/// Returns [`why_impossible`] as the end of a message about something that was not done. Returns an
/// empty string if the operator could be asked.
pub(crate) fn why_unanswered() -> String {
    if is_possible() { String::new() } else { format!(", because {}", why_impossible()) }
}

/// Asks for a yes or no. Blocks the thread.
pub(crate) fn confirm(question: &str) -> bool {
    is_yes(&choice(&format!("{question} [y/N]: ")))
}

/// Asks for a yes or no, in a task.
pub(crate) async fn confirm_async(question: &str) -> bool {
    is_yes(&choice_later(&format!("{question} [y/N]: ")).await)
}

/// Asks for one of the choices that the question names. Returns an empty string at the end of the
/// input. Blocks the thread.
pub(crate) fn choice(question: &str) -> String {
    ask(question, InputKind::Choice)
}

/// Asks for one of the choices that the question names, in a task. Dropping the future withdraws
/// the question.
pub(crate) async fn choice_later(question: &str) -> String {
    ask_later(question, InputKind::Choice).await
}

/// Asks for a string, which may be pasted. Blocks the thread.
pub(crate) fn text(question: &str) -> String {
    ask(question, InputKind::Text)
}

/// Asks for a string, in a task. Dropping the future withdraws the question.
pub(crate) async fn ask_async(question: &str) -> String {
    ask_later(question, InputKind::Text).await
}

fn ask(question: &str, kind: InputKind) -> String {
    if !is_possible() {
        return String::new();
    }
    let _screen = OnScreen::begin();
    match read_line_blocking(question, kind) {
        // The signal has not ended this process, for example because a parent ignores it.
        Input::Interrupted => std::process::exit(Exit::Interrupted as i32),
        typed => answer(typed),
    }
}

async fn ask_later(question: &str, kind: InputKind) -> String {
    if !is_possible() {
        return String::new();
    }
    let _screen = OnScreen::begin();
    answer(read_line(question, kind).await)
}

fn answer(typed: Input) -> String {
    match typed {
        Input::Line(line) => line.trim().to_owned(),
        Input::Interrupted | Input::End => String::new(),
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")
}
