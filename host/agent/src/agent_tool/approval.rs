//! Approvals that an agent needs inside of a tool call, as questions to the caller (`LOOP-58`).

use cofferdam_tool::ask::{Asker, Question, QuestionKind};
use cofferdam_tool::text::is_hostile_char;
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::{ApprovalRequest, MessageContent};

/// Bytes of the digest in the name of a question.
const DIGEST_BYTES: usize = 16;

/// Questions of one tool call, which are numbered.
#[derive(Debug, Default)]
pub(super) struct ApprovalQuestions {
    asked: u32,
}

impl ApprovalQuestions {
    /// Returns the number of questions asked.
    pub(super) fn count(&self) -> u32 {
        self.asked
    }

    /// Asks for all approvals at once. Returns `None` if the caller cannot be asked or does not
    /// answer.
    pub(super) async fn ask(
        &mut self,
        agent: &str,
        asker: Option<&dyn Asker>,
        requests: &[ApprovalRequest],
    ) -> Option<Vec<MessageContent>> {
        let asker = asker.filter(|asker| asker.can_ask(QuestionKind::Elicitation))?;
        let questions = requests.iter().map(|request| self.question(agent, request)).collect();
        let answers = match asker.ask(questions).await {
            Ok(answers) => answers,
            Err(error) => {
                tracing::warn!(%error, "an approval for a nested agent was not answered");
                return None;
            }
        };
        let answer = |(index, request): (usize, &ApprovalRequest)| match answers.get(index) {
            Some(answer) if is_approval(answer) => request.approve(),
            _ => request.refuse(None),
        };
        Some(requests.iter().enumerate().map(answer).collect())
    }

    /// Creates the question about a call. A caller that runs the tool again with earlier answers
    /// matches them by name, so the name identifies the call: an answer never approves another one.
    fn question(&mut self, agent: &str, request: &ApprovalRequest) -> Question {
        self.asked = self.asked.saturating_add(1);
        let call = &request.function_call;
        let identity = json!([agent, call.name, call.arguments]).to_string();
        let digest = Sha256::digest(identity);
        let digest = HEXLOWER.encode(digest.get(..DIGEST_BYTES).unwrap_or_default());
        let schema = json!({
            "type": "object",
            "properties": {"approved": {"type": "boolean", "title": "Allow this call"}},
            "required": ["approved"],
        });
        let parameters = Map::from_iter([
            ("message".to_owned(), message(agent, request).into()),
            ("requestedSchema".to_owned(), schema),
        ]);
        let name = format!("approve-{}-{digest}", self.asked);
        Question { name, kind: QuestionKind::Elicitation, parameters }
    }
}

/// Returns the question as the user reads it.
fn message(agent: &str, request: &ApprovalRequest) -> String {
    let call = &request.function_call;
    let arguments = if call.arguments.is_empty() { "{}" } else { call.arguments.as_str() };
    let mut message =
        format!("The agent `{agent}` wants to call `{}` with {arguments}.", call.name);
    for violation in request.violations() {
        message.push_str(&format!("\nAgainst it: {violation}"));
    }
    message.push_str("\nAllow the call?");
    message.chars().flat_map(visible).collect()
}

/// Escapes a character that would hide or reorder others.
fn visible(c: char) -> impl Iterator<Item = char> {
    let escaped = is_hostile_char(c).then(|| c.escape_unicode());
    let plain = escaped.is_none().then_some(c);
    escaped.into_iter().flatten().chain(plain)
}

/// Returns whether the user accepted the form and approved the call; everything else is a refusal.
fn is_approval(answer: &Value) -> bool {
    answer.get("action").is_some_and(|action| action == "accept")
        && answer.pointer("/content/approved") == Some(&Value::Bool(true))
}
