//! Output of `--json`: the messages of a turn as a history stores them, and a last line with the
//! outcome.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use cofferdam_agent::{
    AfterRun, BoxError, ContextProvider, FinishReason, Message, RunError, TokenUsage, UsageMeter,
};
use serde_json::{Value, json};

use super::turn::TurnEnd;
use crate::print;

/// Prints the messages of runs and adds up their usage, including runs that were cut short. Clones
/// share state.
#[derive(Clone)]
pub(super) struct Transcript {
    is_printed: bool,
    used: UsageMeter,
}

/// Notes that the conversation has got messages. Registered before the history, so that it sees the
/// end of a run only after the history has stored it. Clones share state.
#[derive(Clone, Default)]
pub(super) struct StorageMark(Arc<AtomicBool>);

impl StorageMark {
    /// Returns whether the conversation has got messages since the last call of this function. A
    /// run that fails before the first reply, or whose messages cannot be stored, adds none.
    pub(super) fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }
}

#[async_trait]
impl ContextProvider for StorageMark {
    fn source_id(&self) -> &str {
        "storage_mark"
    }

    async fn after_run(&self, _: &mut AfterRun<'_>) -> Result<(), BoxError> {
        self.0.store(true, Ordering::SeqCst);
        Ok(())
    }
}

impl Transcript {
    pub(super) fn new(is_printed: bool) -> Self {
        Self { is_printed, used: UsageMeter::default() }
    }

    /// Prints a message if `--json` is set.
    pub(super) fn message(&self, message: &Message) -> anyhow::Result<()> {
        if self.is_printed { print::result(&serde_json::to_string(message)?) } else { Ok(()) }
    }

    /// Returns the usage since the last call of this function, and resets it.
    pub(super) fn take_used(&self) -> Option<TokenUsage> {
        self.used.take()
    }
}

#[async_trait]
impl ContextProvider for Transcript {
    fn source_id(&self) -> &str {
        "transcript"
    }

    async fn after_run(&self, run: &mut AfterRun<'_>) -> Result<(), BoxError> {
        for message in &run.response.messages {
            self.message(message)?;
        }
        if let Some(usage) = run.response.usage {
            self.used.add(usage);
        }
        Ok(())
    }
}

/// Prints the outcome of a turn.
pub(super) fn end(
    end: &TurnEnd,
    finish: Option<&FinishReason>,
    usage: Option<&TokenUsage>,
) -> anyhow::Result<()> {
    print::result(&line(end, finish, usage).to_string())
}

fn line(end: &TurnEnd, finish: Option<&FinishReason>, usage: Option<&TokenUsage>) -> Value {
    let (outcome, error) = match end {
        TurnEnd::Answered => ("answered", None),
        TurnEnd::Unapproved => ("unapproved", None),
        TurnEnd::Waiting => ("waiting", None),
        TurnEnd::Blocked => ("blocked", None),
        TurnEnd::Unanswered => ("unanswered", None),
        TurnEnd::Stopped => ("stopped", None),
        TurnEnd::Failed(error) => (word(error), Some(error.to_string())),
    };
    let finish = finish.map(FinishReason::word);
    json!({"type": "end", "outcome": outcome, "finish": finish, "error": error, "usage": usage})
}

fn word(error: &RunError) -> &'static str {
    match error {
        RunError::Chat(_) => "no_reply",
        RunError::BudgetExceeded(_) => "budget_exceeded",
        RunError::Calls(_) | RunError::FailClosed(_) => "calls_failed",
        RunError::Cancelled => "stopped",
        RunError::Answer(_) => "invalid_answer",
        _ => "failed",
    }
}
