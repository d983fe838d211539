//! Grants that a person can give while a server runs, when a tool's source asks for more than it
//! was given.

use async_trait::async_trait;
use cofferdam_tool::ask::{Asker as _, NotAsked, Question, QuestionKind};
use serde_json::{Map, Value, json};

use super::interview::{HOST_PREFIX, Interview};

/// Knows what sources lack, and gives it to them when a person has said so.
#[async_trait]
pub trait Grantor: Send + Sync {
    /// What a source asks for and was not granted, as far as a yes alone can grant it; nothing once
    /// a person has declined.
    fn missing(&self, source: &str) -> Vec<MissingGrant>;

    /// Takes a person's answer. A grant takes effect before this returns; the error is for that
    /// person.
    ///
    /// # Errors
    /// Why nothing was granted.
    async fn decide(&self, source: &str, decision: Decision) -> Result<(), String>;

    /// What a person would do to grant a permission that a call was refused, in a sentence without
    /// a place on the host.
    fn how_to_grant(&self, source: &str, permission: &str) -> Option<String>;
}

/// Something that a source asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingGrant {
    /// The permission as it is written in a configuration.
    pub permission: String,
    /// What it lets the source do, as a verb phrase.
    pub in_plain_words: String,
}

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Not now; the question is not asked again while the server runs.
    No,
    /// Until the server ends.
    Once,
    /// Until the server ends, and remembered for later starts.
    Always,
}

/// Asks about what a source lacks. `Ok(true)` if something was granted, so that the call has to
/// look anew for its tool.
pub(super) async fn ask(
    grantor: &dyn Grantor,
    interview: &Interview,
    source: &str,
) -> Result<bool, String> {
    let missing = grantor.missing(source);
    if missing.is_empty() || !interview.can_ask(QuestionKind::Elicitation) {
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
    let answers = match interview.ask(vec![question]).await {
        Ok(answers) => answers,
        Err(NotAsked::Unsupported(_)) => return Ok(false),
        // Nobody said yes; nobody said no either, so it may be asked again.
        Err(_) => return Ok(false),
    };
    let decision = decision(answers.first());
    grantor.decide(source, decision).await?;
    Ok(decision != Decision::No)
}

fn decision(answer: Option<&Value>) -> Decision {
    let is_accepted =
        answer.and_then(|answer| answer.get("action")).is_some_and(|action| action == "accept");
    match answer.and_then(|answer| answer.pointer("/content/grant")).and_then(Value::as_str) {
        Some("once") if is_accepted => Decision::Once,
        Some("always") if is_accepted => Decision::Always,
        _ => Decision::No,
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
            Decision::Once
        );
        assert_eq!(
            decided(json!({"action": "accept", "content": {"grant": "always"}})),
            Decision::Always
        );
        for no in [
            json!({"action": "accept", "content": {"grant": "no"}}),
            json!({"action": "accept", "content": {}}),
            json!({"action": "decline", "content": {"grant": "always"}}),
            json!({"content": {"grant": "always"}}),
            json!(null),
        ] {
            assert_eq!(decided(no.clone()), Decision::No, "{no}");
        }
        assert_eq!(decision(None), Decision::No);
    }
}
