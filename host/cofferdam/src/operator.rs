//! The operator, who runs the host, reads its notes and answers its questions.

use std::sync::Arc;

use async_trait::async_trait;

/// Asks the operator questions.
#[async_trait]
pub trait Prompter: Send + Sync {
    /// Returns whether questions can be answered now.
    fn availability(&self) -> Availability;

    /// Returns whether the operator sees notes immediately and can open an address in one.
    fn can_log_in(&self) -> bool {
        false
    }

    /// Asks for one of the choices that the question names. Returns an empty string without an
    /// answer. Blocks the thread.
    fn choice(&self, question: &str) -> String;

    /// Asks for a string, which may be pasted. Returns an empty string without an answer. Blocks
    /// the thread.
    fn text(&self, question: &str) -> String;

    /// Asks for one of the choices, asynchronously. Dropping the future withdraws the question.
    async fn choice_later(&self, question: &str) -> String;
}

/// Availability of an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Availability {
    /// Questions are answered.
    Available,
    /// There is no terminal or other means of asking.
    Absent,
    /// The operator does not want to be asked.
    Refused,
}

/// Receives notes about the actions of the host and about parts that it leaves out.
pub trait Observer: Send + Sync {
    /// Receives a note of one or more lines. It may contain names that a plugin or a server has
    /// chosen: escape control characters before showing it at a terminal.
    fn note(&self, message: &str);

    /// Receives the state of work that takes a while, and `None` when it has ended. Must not block.
    fn progress(&self, _work: Option<&Work>) {}
}

/// Work that takes a while.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Work {
    /// Description of the work. It may contain names that a plugin has chosen.
    pub label: String,
    /// Number of parts that are done.
    pub done: u32,
    /// Number of all parts.
    pub total: u32,
}

/// Prompter and observer of a host. Clones share both.
#[derive(Clone)]
pub struct Operator {
    prompter: Arc<dyn Prompter>,
    observer: Arc<dyn Observer>,
}

impl Default for Operator {
    /// Returns an operator that answers no questions, and whose notes go to the log as
    /// `cofferdam=info`.
    fn default() -> Self {
        Self::new(Arc::new(UnattendedPrompter), Arc::new(UnattendedPrompter))
    }
}

impl Operator {
    /// Creates an operator.
    #[must_use]
    pub fn new(prompter: Arc<dyn Prompter>, observer: Arc<dyn Observer>) -> Self {
        Self { prompter, observer }
    }

    pub(crate) fn with_prompter(self, prompter: Arc<dyn Prompter>) -> Self {
        Self { prompter, ..self }
    }

    pub(crate) fn with_observer(self, observer: Arc<dyn Observer>) -> Self {
        Self { observer, ..self }
    }

    pub(crate) fn note(&self, message: &str) {
        self.observer.note(message);
    }

    #[cfg(feature = "agent")]
    pub(crate) fn warn_all(&self, warnings: Vec<String>) {
        warnings.iter().for_each(|warning| self.note(&format!("warning: {warning}")));
    }

    pub(crate) fn progress(&self, work: Option<&Work>) {
        self.observer.progress(work);
    }

    pub(crate) fn is_available(&self) -> bool {
        self.prompter.availability() == Availability::Available
    }

    pub(crate) fn is_refused(&self) -> bool {
        self.prompter.availability() == Availability::Refused
    }

    pub(crate) fn can_log_in(&self) -> bool {
        self.prompter.can_log_in()
    }

    pub(crate) fn choice(&self, question: &str) -> String {
        self.prompter.choice(question)
    }

    pub(crate) fn text(&self, question: &str) -> String {
        self.prompter.text(question)
    }

    pub(crate) fn confirm(&self, question: &str) -> bool {
        is_yes(&self.choice(&format!("{question} [y/N]: ")))
    }

    pub(crate) async fn confirm_async(&self, question: &str) -> bool {
        is_yes(&self.prompter.choice_later(&format!("{question} [y/N]: ")).await)
    }
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.to_ascii_lowercase().as_str(), "y" | "yes")
}

/// Prompter and observer of a host without an operator.
pub(crate) struct UnattendedPrompter;

#[async_trait]
impl Prompter for UnattendedPrompter {
    fn availability(&self) -> Availability {
        Availability::Absent
    }

    fn choice(&self, _question: &str) -> String {
        String::new()
    }

    fn text(&self, _question: &str) -> String {
        String::new()
    }

    async fn choice_later(&self, _question: &str) -> String {
        String::new()
    }
}

impl Observer for UnattendedPrompter {
    fn note(&self, message: &str) {
        tracing::info!(target: "cofferdam", "{message}");
    }
}
