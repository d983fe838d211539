//! Grants that the user can give while a server runs, when the source of a tool asks for more than
//! it was granted.

use cofferdam_tool::ask::{AskError, Asker as _, Question, QuestionKind};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::elicitation::{Elicitation, HOST_PREFIX};

/// Knows the grants that sources are missing, and applies the user's decisions.
pub trait Grantor: Send + Sync {
    /// Returns the permissions that a source asks for and was not granted, limited to those that
    /// need no further input and that the user has not declined.
    fn missing(&self, source: &str) -> Vec<MissingGrant>;

    /// Applies the user's decision about the permissions that the user was shown. A grant takes
    /// effect before this returns.
    ///
    /// # Errors
    /// A message for the user if nothing was granted.
    fn decide<'a>(
        &'a self,
        source: &'a str,
        shown: &'a [MissingGrant],
        decision: GrantDecision,
    ) -> BoxFuture<'a, Result<(), String>>;

    /// Returns all permissions that a source asks for and was not granted, whatever they need.
    fn not_granted(&self, source: &str) -> Vec<MissingGrant>;

    /// Describes how the user can grant a permission that a call was refused, in a sentence that
    /// reveals no path of the host.
    fn how_to_grant(&self, source: &str, permission: &str) -> Option<String>;
}

/// Permission that a source asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingGrant {
    /// Permission in the form of a configuration.
    pub permission: String,
    /// Description of what the permission lets the source do, as a verb phrase.
    pub in_plain_words: String,
}

/// Decision of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantDecision {
    /// Decline; the question is not asked again while the server runs.
    No,
    /// Grant until the server ends.
    Once,
    /// Grant until the server ends, and remember it for later starts.
    Always,
}

/// Asks for the permissions that a source is missing. Returns `Ok(true)` if something was granted,
/// so that the call has to look up its tool again.
pub(super) async fn ask(
    grantor: &dyn Grantor,
    elicitation: &Elicitation,
    source: &str,
) -> Result<bool, String> {
    let missing = grantor.missing(source);
    if missing.is_empty() || !elicitation.client_can_ask(QuestionKind::Elicitation) {
        return Ok(false);
    }
    let wishes: Vec<_> = missing
        .iter()
        .map(|missing| format!("- {} ({})", missing.in_plain_words, missing.permission))
        .collect();
    let message = format!("The plugin {source} asks to\n{}\nGrant it?", wishes.join("\n"));
    let question = Question {
        name: format!("{HOST_PREFIX}grant"),
        kind: QuestionKind::Elicitation,
        parameters: Map::from_iter([
            ("message".to_owned(), message.into()),
            (
                "requestedSchema".to_owned(),
                json!({
                    "type": "object",
                    "properties": {"grant": {
                        "type": "string",
                        "title": "Grant it",
                        "enum": ["no", "once", "always"],
                    }},
                    "required": ["grant"],
                }),
            ),
        ]),
    };
    let answers = match elicitation.ask(vec![question]).await {
        Ok(answers) => answers,
        Err(AskError::Unsupported(_)) => return Ok(false),
        // This is neither a yes nor a no, so the question may be asked again.
        Err(_) => return Ok(false),
    };
    let decision = decision(answers.first());
    grantor.decide(source, &missing, decision).await?;
    Ok(decision != GrantDecision::No)
}

fn decision(answer: Option<&Value>) -> GrantDecision {
    let is_accepted =
        answer.and_then(|answer| answer.get("action")).is_some_and(|action| action == "accept");
    match answer.and_then(|answer| answer.pointer("/content/grant")).and_then(Value::as_str) {
        Some("once") if is_accepted => GrantDecision::Once,
        Some("always") if is_accepted => GrantDecision::Always,
        _ => GrantDecision::No,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_accepted_answer_grants() {
        let decided = |answer: Value| decision(Some(&answer));
        assert_eq!(
            decided(json!({"action": "accept", "content": {"grant": "once"}})),
            GrantDecision::Once
        );
        assert_eq!(
            decided(json!({"action": "accept", "content": {"grant": "always"}})),
            GrantDecision::Always
        );
        for no in [
            json!({"action": "accept", "content": {"grant": "no"}}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "decline", "content": {"grant": "always"}}),
            json!({"content": {"grant": "always"}}),
            json!(null),
        ] {
            assert_eq!(decided(no.clone()), GrantDecision::No, "{no}");
        }
        assert_eq!(decision(None), GrantDecision::No);
    }
}
