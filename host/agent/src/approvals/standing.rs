//! Rules for calls that the user has always allowed in a session.

use std::collections::BTreeMap;

use cofferdam_tool::origin::ToolOrigin;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::batch::same_arguments;
use super::path::same_folder;
use super::rules::{ArgumentPattern, allows_arguments, parsed_arguments};
use crate::{ApprovalRequest, FunctionCall, Session};

/// Part of a session's state that holds the rules.
const PART: &str = "standing_approvals";

/// Maximum number of rules per session.
const RULES_MAX: usize = 1000;

/// Scope of a rule: calls of one tool from one origin. A tool of the same name from another plugin
/// or server is not covered.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "allow")]
pub enum Scope {
    /// Every call of a tool.
    Tool {
        /// Name of the tool.
        name: String,
        /// Origin of the tool.
        origin: ToolOrigin,
    },
    /// Calls of a tool with exactly these arguments.
    Exactly {
        /// Name of the tool.
        name: String,
        /// Origin of the tool.
        origin: ToolOrigin,
        /// Arguments as JSON, compared as JSON values.
        arguments: String,
    },
    /// Calls of a tool whose arguments match patterns, and that have no other arguments. Earlier
    /// versions ignore such a rule. Without patterns it covers nothing.
    Matching {
        /// Name of the tool.
        name: String,
        /// Origin of the tool.
        origin: ToolOrigin,
        /// Patterns by the name of the argument.
        arguments: BTreeMap<String, ArgumentPattern>,
    },
}

impl Scope {
    /// Returns the scope of every call of the tool in `request`; `None` if the request does not
    /// give the tool's origin.
    #[must_use]
    pub fn every_call(request: &ApprovalRequest) -> Option<Self> {
        Some(Self::Tool {
            name: request.function_call.name.clone(),
            origin: request.origin.clone()?,
        })
    }

    /// Returns the scope of calls like the one in `request`; `None` if the request does not give
    /// the tool's origin.
    #[must_use]
    pub fn same_call(request: &ApprovalRequest) -> Option<Self> {
        let FunctionCall { name, arguments, .. } = request.function_call.clone();
        Some(Self::Exactly { name, origin: request.origin.clone()?, arguments })
    }

    /// Returns the scope of calls like the one in `request` whose argument `path` names something
    /// in or below the same folder. The arguments in `free` may have any value, all others have to
    /// be equal. Returns `None` if the request does not give the tool's origin, or the argument is
    /// not the plain path of something in a folder (`LOOP-53`). Only for arguments that the tool
    /// reads as paths; the caller should show the user what is free.
    #[must_use]
    pub fn same_folder(request: &ApprovalRequest, path: &str, free: &[&str]) -> Option<Self> {
        let call = &request.function_call;
        let given = parsed_arguments(call)?;
        let folder = same_folder(given.get(path)?.as_str()?)?;
        let others = given.into_iter().filter(|(name, _)| name != path);
        let mut arguments: BTreeMap<_, _> = others
            .map(|(name, value)| match free.contains(&name.as_str()) {
                true => (name, ArgumentPattern::Any),
                false => (name, ArgumentPattern::Equals(value)),
            })
            .collect();
        arguments.insert(path.to_owned(), ArgumentPattern::Path(folder));
        Some(Self::Matching { name: call.name.clone(), origin: request.origin.clone()?, arguments })
    }

    fn covers(&self, call: &FunctionCall, of: &ToolOrigin) -> bool {
        match self {
            Self::Tool { name, origin } => *name == call.name && origin == of,
            Self::Exactly { name, origin, arguments } => {
                *name == call.name && origin == of && same_arguments(arguments, &call.arguments)
            }
            Self::Matching { name, origin, arguments } => {
                *name == call.name
                    && origin == of
                    && !arguments.is_empty()
                    && allows_arguments(arguments, parsed_arguments(call).as_ref())
            }
        }
    }
}

/// Always allows calls of this scope: for the rest of the session, including after it is restored.
pub fn allow_always(session: &Session, scope: Scope) {
    let mut rules = standing_rules(session);
    if rules.contains(&scope) || rules.len() >= RULES_MAX {
        return;
    }
    rules.push(scope);
    // Strings always serialize. If they did not, there would be no rule.
    session.set_part(PART, serde_json::to_value(rules).unwrap_or(Value::Null));
}

/// Removes a rule. Returns whether it existed.
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

/// Returns the standing rules of a session. Rules of earlier versions contained only names; they
/// allow nothing.
#[must_use]
pub fn standing_rules(session: &Session) -> Vec<Scope> {
    let Value::Array(rules) = session.part(PART) else { return Vec::new() };
    rules.into_iter().filter_map(|rule| serde_json::from_value(rule).ok()).collect()
}

/// Returns whether a rule allows a call of a tool from `origin`.
pub(crate) fn is_allowed(session: &Session, call: &FunctionCall, origin: &ToolOrigin) -> bool {
    standing_rules(session).iter().any(|rule| rule.covers(call, origin))
}
