//! The caller: an MCP client with its user and its model, or a user at a terminal.
//!
//! Each kind of question needs a grant, which the manifest of the plugin requests:
//! `ask = ["form", "sample", "roots"]`. Logging needs none. Many clients cannot answer questions:
//! check [`can_ask`] first, and work without an answer if it returns false.
//!
//! Some clients cannot be asked in the middle of a call. For those, the host ends the call when it
//! asks, and **runs it again from its beginning** when it has the answers; earlier questions are
//! then answered at once. Therefore do the same each time up to the last question, and cause side
//! effects only after it.
//!
//! ```
//! # use cofferdam_sdk::ToolFailure;
//! # fn tool() -> Result<String, ToolFailure> {
//! use cofferdam_sdk::client::{self, Reply};
//! use cofferdam_sdk::json;
//!
//! let schema = json!({"type": "object", "properties": {"really": {"type": "boolean"}}, "required": ["really"]});
//! match client::ask_form("Delete all 12 notes?", schema)? {
//!     Reply::Accepted(form) if form["really"] == true => {}
//!     _ => return Ok("nothing was deleted".to_owned()),
//! }
//! client::log::info("deleting 12 notes");
//! # Ok(String::new())
//! # }
//! ```
//!
//! A component that does not use this module does not import `cofferdam:plugin/client`. In a unit
//! test the client is that of a [`testing::Host`](crate::testing::Host).

pub mod log;

use std::fmt;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::ToolFailure;

/// Kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// Data from the user.
    Form,
    /// A message of the client's model.
    Sample,
    /// The directories or other locations in which the client works.
    Roots,
}

/// Question for [`ask_all`].
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    name: Option<String>,
    request: Request,
}

#[derive(Debug, Clone, PartialEq)]
enum Request {
    Form { message: String, schema: Value },
    Sample(Value),
    Roots,
}

impl Question {
    /// Creates a form for the user: the reason for the question, and a JSON Schema of an object
    /// whose properties are strings, numbers, booleans, or enums of strings. Never use it to ask
    /// for a password or a key: the client shows the input and may store it.
    #[must_use]
    pub fn form(message: impl Into<String>, schema: Value) -> Self {
        Self { name: None, request: Request::Form { message: message.into(), schema } }
    }

    /// Creates a question to the client's model from the parameters of MCP's
    /// `sampling/createMessage`.
    #[must_use]
    pub fn sample(parameters: Value) -> Self {
        Self { name: None, request: Request::Sample(parameters) }
    }

    /// Creates a question for the locations in which the client works.
    #[must_use]
    pub fn roots() -> Self {
        Self { name: None, request: Request::Roots }
    }

    /// Sets the name: 1 to 64 characters from `A-Z a-z 0-9 _ -`, unique within the call. Some
    /// clients show it. The host chooses a name if it is missing.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }
}

/// Answer to a question. It is untrusted input that the host has not checked.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Answer {
    /// Reply to a form.
    Form(Reply),
    /// The model's message: the result of MCP's `sampling/createMessage`.
    Message(Value),
    /// Locations in which the client works.
    Roots(Vec<Root>),
}

/// Reply of the user to a form.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// The user filled in the form. Check the value, because a client may send anything.
    Accepted(Value),
    /// The user declined.
    Declined,
    /// The user closed the form.
    Cancelled,
}

/// Location in which the client works. It is only a name and grants nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Root {
    /// URI, for example `file:///home/user/project`.
    pub uri: String,
    /// Display name.
    pub name: Option<String>,
}

/// Error of a question. `?` turns it into a [`ToolFailure`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The question cannot be asked: the client does not support it, there is no client, or the
    /// caller is another tool.
    Unsupported,
    /// The plugin has no grant for it. The message names the permission and says how to grant it.
    Denied(String),
    /// The question is invalid. The message gives the reason.
    Invalid(String),
    /// A limit of the host is reached. The message names it.
    Limit(String),
    /// The client did not answer, or its answer does not match the question.
    Failed(String),
}

/// Returns whether questions of this kind are granted and the client can answer them.
#[must_use]
pub fn can_ask(kind: Kind) -> bool {
    host::can_ask(kind)
}

/// Asks the user to fill in a form. `schema` is a JSON Schema of an object whose properties are
/// strings, numbers, booleans, or enums of strings.
///
/// # Errors
/// [`Error`].
pub fn ask_form(message: impl Into<String>, schema: Value) -> Result<Reply, Error> {
    match ask(Question::form(message, schema))? {
        Answer::Form(reply) => Ok(reply),
        _ => Err(mismatch()),
    }
}

/// Asks the client's model with one prompt and returns the text of its answer.
///
/// # Errors
/// [`Error`].
pub fn sample(prompt: &str, tokens_max: u32) -> Result<String, Error> {
    let message = json!({"role": "user", "content": {"type": "text", "text": prompt}});
    let answer = sample_with(json!({"messages": [message], "maxTokens": tokens_max}))?;
    text(&answer).ok_or_else(mismatch)
}

/// Asks the client's model with the parameters of MCP's `sampling/createMessage`, and returns its
/// complete result.
///
/// # Errors
/// [`Error`].
pub fn sample_with(parameters: Value) -> Result<Value, Error> {
    match ask(Question::sample(parameters))? {
        Answer::Message(message) => Ok(message),
        _ => Err(mismatch()),
    }
}

/// Returns the locations in which the client works.
///
/// # Errors
/// [`Error`].
pub fn roots() -> Result<Vec<Root>, Error> {
    match ask(Question::roots())? {
        Answer::Roots(roots) => Ok(roots),
        _ => Err(mismatch()),
    }
}

/// Asks one question.
///
/// # Errors
/// [`Error`].
pub fn ask(question: Question) -> Result<Answer, Error> {
    let mut answers = host::ask(vec![question])?;
    answers.pop().ok_or_else(mismatch)
}

/// Asks several questions at once and returns the answers in the same order. A call may ask 64
/// questions in total.
///
/// # Errors
/// [`Error`] if any of the answers is missing.
pub fn ask_all(questions: Vec<Question>) -> Result<Vec<Answer>, Error> {
    host::ask(questions)
}

/// Returns the text of a model's message: of its only item, or of several items joined by line
/// breaks. Returns `None` if there is no text.
#[must_use]
pub fn text(message: &Value) -> Option<String> {
    let content = message.get("content")?;
    let items = match content {
        Value::Array(items) => items.as_slice(),
        one => std::slice::from_ref(one),
    };
    let texts: Vec<_> = items.iter().filter_map(|item| item.get("text")?.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn mismatch() -> Error {
    Error::Failed("the client's answer does not fit the question".to_owned())
}

impl Reply {
    /// Reads the filled-in form. Returns `None` if the user did not fill it in.
    ///
    /// # Errors
    /// [`ToolFailure`] if the form is not a `T`.
    pub fn read<T: DeserializeOwned>(self) -> Result<Option<T>, ToolFailure> {
        match self {
            Self::Accepted(form) => Ok(Some(serde_json::from_value(form)?)),
            Self::Declined | Self::Cancelled => Ok(None),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported => f.write_str("the client cannot be asked this"),
            Self::Denied(text) | Self::Invalid(text) | Self::Limit(text) | Self::Failed(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for Error {}

#[cfg(target_arch = "wasm32")]
mod host {
    use super::{Answer, Error, Kind, Question, Reply, Request, Root, mismatch};
    use crate::guest::bindings::cofferdam::plugin::client;

    pub(super) fn can_ask(kind: Kind) -> bool {
        client::can_ask(match kind {
            Kind::Form => client::Kind::Form,
            Kind::Sample => client::Kind::Sample,
            Kind::Roots => client::Kind::Roots,
        })
    }

    pub(super) fn ask(questions: Vec<Question>) -> Result<Vec<Answer>, Error> {
        let questions: Vec<_> = questions.into_iter().map(question).collect();
        client::ask(&questions)?.into_iter().map(answer).collect()
    }

    fn question(question: Question) -> client::Question {
        let request = match question.request {
            Request::Form { message, schema } => {
                client::Request::Form(client::Form { message, schema: schema.to_string() })
            }
            Request::Sample(parameters) => client::Request::Sample(parameters.to_string()),
            Request::Roots => client::Request::Roots,
        };
        client::Question { name: question.name, request }
    }

    fn answer(answer: client::Answer) -> Result<Answer, Error> {
        let json = |text: String| serde_json::from_str(&text).map_err(|_| mismatch());
        Ok(match answer {
            client::Answer::Accepted(form) => Answer::Form(Reply::Accepted(json(form)?)),
            client::Answer::Declined => Answer::Form(Reply::Declined),
            client::Answer::Cancelled => Answer::Form(Reply::Cancelled),
            client::Answer::Message(message) => Answer::Message(json(message)?),
            client::Answer::Roots(roots) => Answer::Roots(
                roots.into_iter().map(|root| Root { uri: root.uri, name: root.name }).collect(),
            ),
        })
    }

    impl From<client::Error> for Error {
        fn from(error: client::Error) -> Self {
            match error {
                client::Error::Unsupported => Self::Unsupported,
                client::Error::Denied(text) => Self::Denied(text),
                client::Error::Invalid(text) => Self::Invalid(text),
                client::Error::Limit(text) => Self::Limit(text),
                client::Error::Failed(text) => Self::Failed(text),
            }
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod host {
    pub(super) use crate::testing::host::{ask, can_ask};
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_message_is_that_of_its_items() {
        let message = |content: Value| json!({"role": "assistant", "content": content});
        let item = |words: &str| json!({"type": "text", "text": words});
        assert_eq!(text(&message(item("a"))).as_deref(), Some("a"));
        assert_eq!(
            text(&message(json!([item("a"), {"type": "image"}, item("b")]))).as_deref(),
            Some("a\nb")
        );
        assert_eq!(text(&message(json!({"type": "image"}))), None);
        assert_eq!(text(&json!({})), None);
    }

    #[test]
    fn a_reply_is_read_as_a_type() {
        assert_eq!(
            Reply::Accepted(json!({"n": 1})).read::<Value>().unwrap(),
            Some(json!({"n": 1}))
        );
        assert_eq!(Reply::Declined.read::<Value>().unwrap(), None);
        assert!(Reply::Accepted(json!("x")).read::<u8>().is_err());
    }

    #[test]
    fn no_client_can_be_asked_outside_of_a_component() {
        assert!(!can_ask(Kind::Form));
        assert_eq!(roots(), Err(Error::Unsupported));
    }
}
