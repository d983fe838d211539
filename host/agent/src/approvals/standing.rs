//! What a person has allowed for always in a session.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::same_arguments;
use crate::{FunctionCall, Session};

/// The part of a session's state that holds the rules.
const PART: &str = "standing_approvals";

/// Most rules of one session.
const RULES_MAX: usize = 1000;

/// What is allowed for always.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "allow")]
pub enum Scope {
    /// Every call of a tool.
    Tool {
        /// The tool.
        name: String,
    },
    /// Calls of a tool with exactly these arguments.
    Exactly {
        /// The tool.
        name: String,
        /// The arguments as JSON text, compared as JSON values.
        arguments: String,
    },
}

impl Scope {
    fn covers(&self, call: &FunctionCall) -> bool {
        match self {
            Self::Tool { name } => *name == call.name,
            Self::Exactly { name, arguments } => {
                *name == call.name && same_arguments(arguments, &call.arguments)
            }
        }
    }
}

/// Allows something for always: for the rest of the session, and wherever the session is kept.
pub fn allow_always(session: &Session, scope: Scope) {
    let mut rules = standing_rules(session);
    if rules.contains(&scope) || rules.len() >= RULES_MAX {
        return;
    }
    rules.push(scope);
    // Texts alone: this cannot fail, and if it did the rule would not stand.
    session.set_part(PART, serde_json::to_value(rules).unwrap_or(Value::Null));
}

/// Takes back what was allowed for always. Says whether it was.
pub fn forbid_again(session: &Session, scope: &Scope) -> bool {
    let mut rules = standing_rules(session);
    let before = rules.len();
    rules.retain(|rule| rule != scope);
    let was_allowed = rules.len() < before;
    if was_allowed {
        session.set_part(PART, serde_json::to_value(rules).unwrap_or(Value::Null));
    }
    was_allowed
}

/// What is allowed for always in a session.
#[must_use]
pub fn standing_rules(session: &Session) -> Vec<Scope> {
    serde_json::from_value(session.part(PART)).unwrap_or_default()
}

/// Whether a call is allowed by a rule.
pub(crate) fn is_allowed(session: &Session, call: &FunctionCall) -> bool {
    standing_rules(session).iter().any(|rule| rule.covers(call))
}
