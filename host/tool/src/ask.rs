//! What a running call asks and tells the one who made it.

use async_trait::async_trait;
use serde_json::{Map, Value};

/// Answers questions of running calls: an MCP client, a person at a terminal.
///
/// Answers come from outside: whoever reads one checks it like any other input.
#[async_trait]
pub trait Asker: Send + Sync {
    /// Whether questions of this kind can be asked at all. A tool that may ask looks first, so that
    /// it can do without.
    fn can_ask(&self, kind: QuestionKind) -> bool;

    /// Asks several questions at once and returns their answers in the same order.
    ///
    /// This may take as long as a person takes, and it may never return: an asker whose caller has
    /// to come back with the answers ends the call instead, and runs it again from its beginning
    /// when it has them. Such a call asks the same questions in the same order and finds the
    /// earlier ones answered.
    ///
    /// # Errors
    /// [`NotAsked`] when a question was not put to anybody or nobody could answer it. That a person
    /// declined is an answer.
    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, NotAsked>;
}

/// One question. Parameters and answer have the form of MCP's request and result of that kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// What the question is called: 1 to 64 characters out of `A-Z a-z 0-9 _ -`, unique within the
    /// call. A call that runs again gives its questions the same names.
    pub name: String,
    /// What is asked for.
    pub kind: QuestionKind,
    /// The parameters of the MCP request.
    pub parameters: Map<String, Value>,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QuestionKind {
    /// Data from a person, as a form (`elicitation/create`).
    Elicitation,
    /// A message of the caller's model (`sampling/createMessage`).
    Sampling,
    /// The places that the caller works in (`roots/list`).
    Roots,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotAsked {
    /// The caller cannot be asked such a thing.
    #[error("the client cannot be asked for {0}")]
    Unsupported(QuestionKind),
    /// The caller refused or failed; in its own words.
    #[error("the client did not answer: {0}")]
    Failed(String),
    /// The answer did not have the form that was asked for, after it was asked again; what was
    /// wrong with it.
    #[error("the answer does not fit the form: {0}")]
    Invalid(String),
}

/// Receives what a tool logs for its caller. Called from within the call: it must not block.
pub trait LogSink: Send + Sync {
    /// Takes one line.
    fn log(&self, call_id: &str, level: LogLevel, message: &str);
}

/// How much a line matters, as in MCP and syslog.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// Every kind.
    pub const ALL: [Self; 3] = [Self::Elicitation, Self::Sampling, Self::Roots];

    /// The word for it in permissions.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Elicitation => "form",
            Self::Sampling => "sample",
            Self::Roots => "roots",
        }
    }

    /// What a plugin does that may ask this, as a verb phrase.
    #[must_use]
    pub fn in_plain_words(self) -> &'static str {
        match self {
            Self::Elicitation => "show forms to the person",
            Self::Sampling => "use the client's model",
            Self::Roots => "learn where the client works",
        }
    }
}

/// Why a word is no kind of question.
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
