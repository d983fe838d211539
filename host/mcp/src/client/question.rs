//! Answers to a server's questions.
//!
//! Questions for a user go to the caller that the server is working for, and are declined without
//! one. The embedding program decides about sampling (`MCP-36`). The list of roots is empty: a
//! server need not know the caller's working directories.

use std::borrow::Cow;
use std::sync::Arc;

use cofferdam_tool::CallContext;
use cofferdam_tool::ask::{AskError, Question, QuestionKind};
use cofferdam_tool::redact::Redactor;
use serde_json::{Map, Value, json};

use super::limits::{OWN_MESSAGE_BYTES_MAX, QUESTIONS_MAX};
use super::sampling::{SamplingLimits, SamplingRefused};

/// Maximum number of characters of a server's key in a question's name.
const KEY_CHARS_MAX: usize = 32;

/// Handlers for the questions on one connection.
#[derive(Debug, Default)]
pub struct Questions {
    /// Messages of a model.
    pub sampling: SamplingLimits,
    /// Removes the secrets that the server was given from everything that it says.
    pub redactor: Option<Arc<Redactor>>,
}

impl Questions {
    /// Removes secrets from a string of the server.
    pub(crate) fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        match &self.redactor {
            Some(redactor) => redactor.text(text),
            None => Cow::Borrowed(text),
        }
    }

    /// Answers a sampling request.
    pub(crate) async fn sample(
        &self,
        parameters: Map<String, Value>,
    ) -> Result<Value, SamplingRefused> {
        self.sampling.answer(self.cleaned(parameters)).await
    }

    /// Removes secrets from the parameters of a server's request.
    fn cleaned(&self, parameters: Map<String, Value>) -> Map<String, Value> {
        let Some(redactor) = &self.redactor else { return parameters };
        match redactor.value(Value::Object(parameters)) {
            Value::Object(parameters) => parameters,
            _ => Map::new(),
        }
    }
}

/// Error for a question without an answer, where the protocol has no form to decline it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the server asked for something that it does not get: {0}")]
pub(crate) struct AnswerError(pub(crate) String);

/// Question of a server.
enum ServerQuestion {
    Elicitation(Map<String, Value>),
    Sampling(Map<String, Value>),
    Roots,
}

impl ServerQuestion {
    fn read(request: &Value) -> Result<Self, AnswerError> {
        let parameters = match request.get("params") {
            Some(Value::Object(parameters)) => parameters.clone(),
            _ => Map::new(),
        };
        match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => Ok(Self::Elicitation(parameters)),
            Some("sampling/createMessage") => Ok(Self::Sampling(parameters)),
            Some("roots/list") => Ok(Self::Roots),
            _ => Err(AnswerError("an unknown method".to_owned())),
        }
    }
}

/// Answers the questions of one round of a call, by the server's own keys. All questions for the
/// user are asked at once. Question names include the number of the round, because a server may
/// reuse a key.
pub(crate) async fn answers(
    questions: &Questions,
    asked: Option<&Map<String, Value>>,
    round: usize,
    call: &CallContext,
) -> Result<Map<String, Value>, AnswerError> {
    let bytes =
        asked.map_or(0, |asked| asked.iter().map(|(_, request)| request.to_string().len()).sum());
    if bytes > OWN_MESSAGE_BYTES_MAX {
        return Err(AnswerError(format!("questions of {bytes} bytes")));
    }
    let asked = asked.into_iter().flatten();
    let asked: Vec<_> = asked
        .map(|(key, request)| Ok((key, ServerQuestion::read(request)?)))
        .collect::<Result<_, _>>()?;
    if asked.len() > QUESTIONS_MAX {
        return Err(AnswerError(format!("{} answers at once", asked.len())));
    }
    let for_person = asked.iter().enumerate().filter_map(|(index, (key, asked))| match asked {
        ServerQuestion::Elicitation(parameters) => {
            Some((name(round, index, key), parameters.clone()))
        }
        _ => None,
    });
    let mut of_person = elicit(questions, for_person.collect(), call).await.into_iter();
    let mut answers = Map::new();
    for (key, asked) in asked {
        let answer = match asked {
            ServerQuestion::Elicitation(_) => of_person.next().unwrap_or_else(declined),
            ServerQuestion::Sampling(parameters) => {
                let answer = questions.sample(parameters).await;
                answer.map_err(|refused| AnswerError(refused.to_string()))?
            }
            ServerQuestion::Roots => no_roots(),
        };
        answers.insert(key.clone(), answer);
    }
    Ok(answers)
}

/// Returns the name of a question: the letters and digits of its key, after numbers that
/// distinguish it from the other questions of the call.
fn name(round: usize, index: usize, key: &str) -> String {
    let fits = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let key: String = key.chars().filter(fits).take(KEY_CHARS_MAX).collect();
    format!("{round}-{index}-{key}")
}

/// Asks the user the named questions. Returns one answer per question.
pub(crate) async fn elicit(
    of_connection: &Questions,
    questions: Vec<(String, Map<String, Value>)>,
    call: &CallContext,
) -> Vec<Value> {
    let count = questions.len();
    let can_ask =
        |asker: &&Arc<dyn cofferdam_tool::ask::Asker>| asker.can_ask(QuestionKind::Elicitation);
    let is_form = |question: &(String, Map<String, Value>)| {
        question.1.get("mode").is_none_or(|mode| mode == "form")
    };
    // The host does not open web pages (URL mode) for a server, and has not announced support for
    // it.
    let asker = call.asker.as_ref().filter(can_ask).filter(|_| questions.iter().all(is_form));
    let (Some(asker), 1..) = (asker, count) else { return vec![declined(); count] };
    let questions = questions.into_iter().map(|(name, parameters)| Question {
        name,
        kind: QuestionKind::Elicitation,
        parameters: of_connection.cleaned(parameters),
    });
    match asker.ask(questions.collect()).await {
        Ok(answers) if answers.len() == count => answers.into_iter().map(checked).collect(),
        Err(AskError::Unsupported(_)) => vec![declined(); count],
        Ok(_) | Err(_) => vec![cancelled(); count],
    }
}

/// Returns the answer if it has a valid form, otherwise a cancellation.
fn checked(answer: Value) -> Value {
    let action = answer.get("action").and_then(Value::as_str);
    if matches!(action, Some("accept" | "decline" | "cancel")) { answer } else { cancelled() }
}

pub(crate) fn declined() -> Value {
    json!({"action": "decline"})
}

fn cancelled() -> Value {
    json!({"action": "cancel"})
}

pub(crate) fn no_roots() -> Value {
    json!({"roots": []})
}
