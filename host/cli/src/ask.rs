//! Questions to the person at the terminal. Nothing is asked, and everything is denied, when there is none.

use std::io::{IsTerminal, Write};

use crate::lines::{self, Line};
use crate::print;

/// How a missing grant was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// For this run.
    Once,
    /// For this run, and written into the configuration.
    Always,
    /// Not at all.
    No,
}

/// Whether a person is there to answer: both ends are a terminal.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Asks for a grant. `can_keep` says whether there is a configuration to write it into.
pub(crate) fn grant(plugin: &str, wish: &str, can_keep: bool) -> Answer {
    let choices = if can_keep { "[o]nce, [a]lways, [N]o" } else { "[o]nce, [N]o" };
    let answer = line(&format!("`{plugin}` asks to {wish}. Grant it? {choices}: "));
    match answer.to_ascii_lowercase().as_str() {
        "o" | "once" => Answer::Once,
        "a" | "always" if can_keep => Answer::Always,
        _ => Answer::No,
    }
}

/// Asks whether to go on.
pub(crate) fn yes(question: &str) -> bool {
    matches!(line(&format!("{question} [y/N]: ")).to_ascii_lowercase().as_str(), "y" | "yes")
}

/// One line; empty at the end of the input. For threads that may block.
pub(crate) fn line(question: &str) -> String {
    show(question);
    trimmed(lines::next_blocking())
}

/// The same for tasks. Who stops waiting has not asked.
pub(crate) async fn line_later(question: &str) -> String {
    show(question);
    trimmed(lines::next().await.ok().flatten())
}

/// Shows the person what is asked, without a line feed. A person who cannot see the question does not answer it either.
pub(crate) fn show(question: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{}", print::printable(question));
    let _ = stderr.flush();
}

fn trimmed(line: Line) -> String {
    line.map(|line| line.trim().to_owned()).unwrap_or_default()
}
