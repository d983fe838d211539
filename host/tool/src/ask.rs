//! Questions and log messages of a running call to its caller.

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Answers questions of running calls, such as an MCP client or a user at a terminal.
///
/// Answers come from outside: a caller must check them like any other input.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Returns whether questions of this kind can be asked at all. A tool checks this first, so
    /// that it can do without.
    fn can_ask(&self, kind: QuestionKind) -> bool;

    /// Asks several questions at once and returns their answers in the same order.
    ///
    /// This takes as long as the user takes, and it may never return: if the client has to come
    /// back with the answers in a new request, the asker ends the call instead, and runs it again
    /// from the beginning once it has them. Such a call asks the same questions in the same order
    /// and receives the earlier answers again.
    ///
    /// # Errors
    /// [`AskError`] if a question could not be put or answered. A user's refusal is an answer, not
    /// an error.
    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError>;

    /// Returns the names of the questions that earlier runs of the call have asked, if a question
    /// ends a call and the client makes it run again. Returns `None` if the user answers while the
    /// call waits, which is the default.
    fn earlier_questions(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns an asker that can tell the user which call asks: the name of its tool, and its
    /// arguments as JSON. By default there is none.
    fn for_call(&self, tool: &str, arguments: &str) -> Option<Arc<dyn Asker>> {
        let _ = (tool, arguments);
        None
    }
}

/// A question. Parameters and answer have the form of MCP's request and result of that kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Name of the question: 1 to 64 characters from `A-Z a-z 0-9 _ -`, unique within the call. A
    /// call that runs again gives its questions the same names.
    pub name: String,
    /// Kind of the question.
    pub kind: QuestionKind,
    /// Parameters of the MCP request.
    pub parameters: Map<String, Value>,
}

impl Question {
    /// Returns a question to the user, with a form, whether a call may run.
    #[must_use]
    pub fn approval(name: impl Into<String>, message: String) -> Self {
        let schema = json!({
            "type": "object",
            "properties": {"allow": {"type": "boolean", "title": "Allow this call"}},
            "required": ["allow"],
        });
        let parameters =
            [("message".to_owned(), message.into()), ("requestedSchema".to_owned(), schema)];
        Self {
            name: name.into(),
            kind: QuestionKind::Elicitation,
            parameters: Map::from_iter(parameters),
        }
    }

    /// Returns whether the answer to [`Question::approval`] allows the call.
    #[must_use]
    pub fn is_allowed(answer: &Value) -> bool {
        answer.get("action").is_some_and(|action| action == "accept")
            && answer.pointer("/content/allow").is_some_and(|allow| allow == true)
    }

    /// Returns the reason that the answer to [`Question::approval`] gives for a denial.
    #[must_use]
    pub fn denial_reason(answer: &Value) -> Option<&str> {
        if Self::is_allowed(answer) {
            return None;
        }
        answer.pointer("/content/reason").and_then(Value::as_str)
    }
}

/// Kind of a question to the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionKind {
    /// Data from the user, by a form (`elicitation/create`).
    Elicitation,
    /// A message from the client's model (`sampling/createMessage`).
    Sampling,
    /// The directories that the client works in (`roots/list`).
    Roots,
}

/// Reason why a question has no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// The client does not support questions of this kind.
    #[error("the client cannot be asked for {0}")]
    Unsupported(QuestionKind),
    /// The client refused or failed; the string is its own message.
    #[error("the client did not answer: {0}")]
    Failed(String),
    /// The answer did not have the requested form even when asked for again; the string says what
    /// was wrong.
    #[error("the answer does not fit the form: {0}")]
    Invalid(String),
}

/// Receives the log messages of a tool for its caller. Called from within the call, so it must not
/// block.
pub trait LogSink: Send + Sync {
    /// Receives one message.
    fn log(&self, call_id: &str, level: LogLevel, message: &str);
}

/// Severity of a log message, as in MCP and syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the words of RFC 5424")]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

impl QuestionKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// Returns the name of the kind in permissions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "form",
            Self::Sampling => "sample",
            Self::Roots => "roots",
        }
    }

    /// Describes the permission to ask this, as a verb phrase about a plugin.
    #[must_use]
    pub fn in_plain_words(self) -> &'static str {
        match self {
            Self::Elicitation => "show forms to the user",
            Self::Sampling => "use the client's model",
            Self::Roots => "learn where the client works",
        }
    }
}

/// Error returned when a word is not a kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a kind of question: write `form`, `sample` or `roots`")]
pub struct UnknownQuestion;

impl std::str::FromStr for QuestionKind {
    type Err = UnknownQuestion;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word).ok_or(UnknownQuestion)
    }
}

impl std::fmt::Display for QuestionKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Elicitation => "input of a person",
            Self::Sampling => "a message of its model",
            Self::Roots => "its roots",
        })
    }
}
