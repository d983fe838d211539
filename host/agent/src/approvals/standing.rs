//! What a person has allowed for always in a session.

use cofferdam_tool::origin::ToolOrigin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::same_arguments;
use crate::{ApprovalRequest, FunctionCall, Session};

/// The part of a session's state that holds the rules.
const PART: &str = "standing_approvals";

/// Most rules of one session.
const RULES_MAX: usize = 1000;

/// Calls that are always allowed: those of one tool from one origin. A tool of the same name from
/// another plugin or server is not covered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "allow")]
pub enum Scope {
    /// Every call of a tool.
    Tool {
        /// The tool.
        name: String,
        /// Origin of the tool.
        origin: ToolOrigin,
    },
    /// Calls of a tool with exactly these arguments.
    Exactly {
        /// The tool.
        name: String,
        /// Origin of the tool.
        origin: ToolOrigin,
        /// The arguments as JSON text, compared as JSON values.
        arguments: String,
    },
}

impl Scope {
    /// Every call of the tool that `request` asks about. `None` if the request does not say where
    /// the tool comes from.
    #[must_use]
    pub fn every_call(request: &ApprovalRequest) -> Option<Self> {
        Some(Self::Tool {
            name: request.function_call.name.clone(),
            origin: request.origin.clone()?,
        })
    }

    /// Calls like the one that `request` asks about. `None` if the request does not say where the
    /// tool comes from.
    #[must_use]
    pub fn same_call(request: &ApprovalRequest) -> Option<Self> {
        let FunctionCall { name, arguments, .. } = request.function_call.clone();
        Some(Self::Exactly { name, origin: request.origin.clone()?, arguments })
    }

    fn covers(&self, call: &FunctionCall, of: &ToolOrigin) -> bool {
        match self {
            Self::Tool { name, origin } => *name == call.name && origin == of,
            Self::Exactly { name, origin, arguments } => {
                *name == call.name && origin == of && same_arguments(arguments, &call.arguments)
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

/// Returns the standing rules of a session. Rules of earlier versions were about names; they allow
/// nothing.
#[must_use]
pub fn standing_rules(session: &Session) -> Vec<Scope> {
    let Value::Array(rules) = session.part(PART) else { return Vec::new() };
    rules.into_iter().filter_map(|rule| serde_json::from_value(rule).ok()).collect()
}

/// Returns whether a call of a tool from `origin` is allowed by a rule.
pub(crate) fn is_allowed(session: &Session, call: &FunctionCall, origin: &ToolOrigin) -> bool {
    standing_rules(session).iter().any(|rule| rule.covers(call, origin))
}
