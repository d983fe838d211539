//! Questions to the operator at the terminal. Every question of this program is asked here.
//!
//! Nothing is asked, and everything is denied, where there is no terminal or `--no-input` was given.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::keyboard::{self, Reads, Typed};

/// Set once, by `--no-input`.
static NO_INPUT: AtomicBool = AtomicBool::new(false);

/// From here on nothing is asked.
pub(crate) fn refuse_all() {
    NO_INPUT.store(true, Ordering::Relaxed);
}

/// Returns whether `--no-input` was given.
pub(crate) fn is_refused() -> bool {
    NO_INPUT.load(Ordering::Relaxed)
}

/// Returns whether an operator is there to answer, and may be asked.
pub(crate) fn is_possible() -> bool {
    !is_refused() && keyboard::is_there()
}

/// Returns the reason why nothing can be asked, for messages.
pub(crate) fn why_impossible() -> &'static str {
    if is_refused() { "--no-input was given" } else { "there is no terminal to ask at" }
}

/// Returns that reason to append to a message about something that was not done; empty where the operator was asked.
pub(crate) fn why_unanswered() -> String {
    if is_possible() { String::new() } else { format!(", for {}", why_impossible()) }
}

/// Asks for a yes or no. For threads that may block.
pub(crate) fn yes(question: &str) -> bool {
    is_yes(&choice(&format!("{question} [y/N]: ")))
}

/// Asks for a yes or no, in a task.
pub(crate) async fn yes_later(question: &str) -> bool {
    is_yes(&choice_later(&format!("{question} [y/N]: ")).await)
}

/// Asks for one of the choices that the question names. Empty at the end of the input. For threads that may block.
pub(crate) fn choice(question: &str) -> String {
    ask(question, Reads::Choice)
}

/// Asks for one of the choices that the question names, in a task. Dropping the future takes the question back.
pub(crate) async fn choice_later(question: &str) -> String {
    ask_later(question, Reads::Choice).await
}

/// Asks for some words, which may be pasted. For threads that may block.
pub(crate) fn text(question: &str) -> String {
    ask(question, Reads::Text)
}

/// Asks for some words, in a task. Dropping the future takes the question back.
pub(crate) async fn text_later(question: &str) -> String {
    ask_later(question, Reads::Text).await
}

fn ask(question: &str, reads: Reads) -> String {
    if !is_possible() {
        return String::new();
    }
    answer(keyboard::read_blocking(question, reads))
}

async fn ask_later(question: &str, reads: Reads) -> String {
    if !is_possible() {
        return String::new();
    }
    answer(keyboard::read_later(question, reads).await)
}

fn answer(typed: Typed) -> String {
    match typed {
        Typed::Line(line) => line.trim().to_owned(),
        Typed::Interrupted | Typed::End => String::new(),
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")
}
