//! `--json`: the messages of a turn as they stand in a history, and a last line about how it ended.

use cofferdam_agent::{Message, RunError, TokenUsage};
use serde_json::{Value, json};

use super::turn::End;
use crate::print;

/// Prints a message, if messages are printed.
pub(super) fn message(is_json: bool, message: &Message) -> anyhow::Result<()> {
    if is_json { print::result(&serde_json::to_string(message)?) } else { Ok(()) }
}

/// Prints how a turn ended.
pub(super) fn end(end: &End, usage: Option<&TokenUsage>) -> anyhow::Result<()> {
    print::result(&line(end, usage).to_string())
}

fn line(end: &End, usage: Option<&TokenUsage>) -> Value {
    let (outcome, error) = match end {
        End::Answered => ("answered", None),
        End::Unapproved => ("unapproved", None),
        End::Stopped => ("stopped", None),
        End::Failed(error) => (word(error), Some(error.to_string())),
    };
    json!({"type": "end", "outcome": outcome, "error": error, "usage": usage})
}

fn word(error: &RunError) -> &'static str {
    match error {
        RunError::Chat(_) => "no_reply",
        RunError::BudgetExceeded(_) => "budget_exceeded",
        RunError::Calls(_) | RunError::FailClosed(_) => "calls_failed",
        RunError::Cancelled => "stopped",
        _ => "failed",
    }
}
