//! Questions of running calls on the bus, and their answers, which are bodies of frames.

use cofferdam_tool::ask::{AskError, Question, QuestionKind};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Maximum number of times that one start of a call asks, and of questions that it asks at once: as
/// many as a plugin may ask in all.
pub(crate) const QUESTIONS_MAX: usize = 64;
/// Maximum size of the questions that a call waits for, in bytes. A form has a few hundred.
pub(crate) const QUESTION_BYTES_MAX: usize = 256 * 1024;
/// Maximum size of an answer in bytes, so that it fits into one message with its header.
pub(crate) const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Longest name of a question in bytes.
const NAME_BYTES_MAX: usize = 64;
/// Longest description of a failure, in characters.
const FAILURE_CHARS_MAX: usize = 1024;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct QuestionEntry {
    name: String,
    kind: String,
    parameters: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum AnswerEntry {
    Answers { values: Vec<Value> },
    Unsupported { question: String },
    Failed { cause: String },
    Invalid { problem: String },
}

/// Returns the words for kinds of questions.
pub(crate) fn words(can_ask: impl Fn(QuestionKind) -> bool) -> Vec<String> {
    let kinds = QuestionKind::ALL.into_iter().filter(|kind| can_ask(*kind));
    kinds.map(|kind| kind.as_str().to_owned()).collect()
}

/// Returns the bytes of questions.
///
/// # Errors
/// If they are larger than a call may ask.
pub(crate) fn encode(questions: Vec<Question>) -> Result<Vec<u8>, AskError> {
    let entries = questions.into_iter().map(|question| QuestionEntry {
        name: question.name,
        kind: question.kind.as_str().to_owned(),
        parameters: question.parameters,
    });
    let bytes = serde_json::to_vec(&entries.collect::<Vec<_>>()).unwrap_or_default();
    match bytes.len() {
        0..=QUESTION_BYTES_MAX => Ok(bytes),
        found => Err(AskError::Failed(format!(
            "questions through a gateway have at most {QUESTION_BYTES_MAX} bytes; these have \
             {found}"
        ))),
    }
}

/// Reads questions.
///
/// # Errors
/// What is wrong with the bytes, for the operator.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Question>, String> {
    if bytes.len() > QUESTION_BYTES_MAX {
        return Err(format!("expected at most {QUESTION_BYTES_MAX} bytes, found {}", bytes.len()));
    }
    let entries: Vec<QuestionEntry> =
        serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    if entries.len() > QUESTIONS_MAX {
        return Err(format!("expected at most {QUESTIONS_MAX}, found {}", entries.len()));
    }
    entries.into_iter().map(QuestionEntry::into_question).collect()
}

/// Returns the bytes of an answer. One that is too large becomes a failure.
pub(crate) fn encode_answer(answered: Result<Vec<Value>, AskError>) -> Vec<u8> {
    let bytes = bytes(&match answered {
        Ok(values) => AnswerEntry::Answers { values },
        Err(AskError::Unsupported(kind)) => {
            AnswerEntry::Unsupported { question: kind.as_str().to_owned() }
        }
        Err(AskError::Invalid(problem)) => AnswerEntry::Invalid { problem: short(&problem) },
        Err(AskError::Failed(cause)) => AnswerEntry::Failed { cause: short(&cause) },
        Err(other) => AnswerEntry::Failed { cause: short(&other.to_string()) },
    });
    if bytes.len() <= ANSWER_BYTES_MAX {
        return bytes;
    }
    encode_answer(Err(AskError::Failed(format!(
        "answers through a gateway have at most {ANSWER_BYTES_MAX} bytes; this one has {}",
        bytes.len()
    ))))
}

/// Reads the answer to `count` questions.
///
/// # Errors
/// The failure that the gateway reports, or what is wrong with the bytes.
pub(crate) fn decode_answer(answer: &[u8], count: usize) -> Result<Vec<Value>, AskError> {
    let read = serde_json::from_slice(answer).map_err(|error| {
        AskError::Failed(format!("the answer of the gateway is invalid: {error}"))
    })?;
    match read {
        AnswerEntry::Answers { values } if values.len() == count => Ok(values),
        AnswerEntry::Answers { values } => Err(AskError::Failed(format!(
            "expected {count} answers of the gateway, found {}",
            values.len()
        ))),
        AnswerEntry::Unsupported { question } => Err(match question.parse() {
            Ok(kind) => AskError::Unsupported(kind),
            Err(_) => AskError::Failed("the client cannot be asked for this".to_owned()),
        }),
        AnswerEntry::Failed { cause } => Err(AskError::Failed(short(&cause))),
        AnswerEntry::Invalid { problem } => Err(AskError::Invalid(short(&problem))),
    }
}

impl QuestionEntry {
    fn into_question(self) -> Result<Question, String> {
        let Self { name, kind, parameters } = self;
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err("expected a name of 1 to 64 characters from `A-Z a-z 0-9 _ -`".to_owned());
        }
        let kind = kind.parse::<QuestionKind>().map_err(|error| format!("`{kind}` {error}"))?;
        Ok(Question { name, kind, parameters })
    }
}

fn bytes(answer: &AnswerEntry) -> Vec<u8> {
    serde_json::to_vec(answer).unwrap_or_default()
}

fn short(text: &str) -> String {
    text.chars().take(FAILURE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    proptest! {
        #[test]
        fn no_bytes_cause_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&bytes);
            let _ = decode_answer(&bytes, 1);
        }
    }

    fn question(name: &str, message: &str) -> Question {
        Question::approval(name, message.to_owned())
    }

    #[test]
    fn questions_are_read_as_they_were_written() {
        let asked = vec![
            question("a", "Run?"),
            Question { kind: QuestionKind::Roots, parameters: Map::new(), ..question("b", "") },
        ];
        assert_eq!(decode(&encode(asked.clone()).unwrap()), Ok(asked));
        assert!(encode(vec![question("a", &"x".repeat(QUESTION_BYTES_MAX))]).is_err());
        for (name, kind) in [("cofferdam.approval", "form"), ("", "form"), ("a", "secret")] {
            let entry = json!([{"name": name, "kind": kind, "parameters": {}}]).to_string();
            assert!(decode(entry.as_bytes()).is_err(), "{name} {kind}");
        }
        let many = vec![question("a", ""); QUESTIONS_MAX + 1];
        assert!(decode(&encode(many).unwrap()).is_err());
    }

    #[test]
    fn answers_are_read_as_they_were_written() {
        for answered in [
            Ok(vec![json!({"action": "decline"}), json!(null)]),
            Err(AskError::Unsupported(QuestionKind::Sampling)),
            Err(AskError::Failed("no".to_owned())),
            Err(AskError::Invalid("not a number".to_owned())),
        ] {
            assert_eq!(decode_answer(&encode_answer(answered.clone()), 2), answered);
        }
        let large = encode_answer(Ok(vec![json!("x".repeat(ANSWER_BYTES_MAX))]));
        assert!(large.len() < 300 && decode_answer(&large, 1).is_err());
        let one = encode_answer(Ok(vec![json!(1)]));
        assert!(decode_answer(&one, 2).is_err(), "each question has an answer");
        assert!(decode_answer(b"{\"kind\":\"grant\"}", 1).is_err());
    }
}
