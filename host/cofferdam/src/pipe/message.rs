//! Messages of the protocol.

use cofferdam_tool::Annotations;
use cofferdam_tool::ask::LogLevel;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::Progress;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::session::ProgramCall;
use crate::{Error, Result};

/// Message of the program.
pub(super) enum ClientMessage<'l> {
    Hello(Box<Hello>),
    Call(ClientCall<'l>),
    /// A call that is not valid, other than its id.
    InvalidCall {
        id: u64,
        error: Error,
    },
    Cancel {
        id: u64,
    },
    Reply {
        id: u64,
        reply: ClientReply,
    },
    Unknown,
}

/// First message of the program.
#[derive(Deserialize)]
pub(super) struct Hello {
    pub(super) protocol: u64,
    #[serde(default)]
    pub(super) tools: Vec<ClientTool>,
    #[serde(default)]
    pub(super) approves: bool,
    #[serde(default)]
    pub(super) answers: Vec<String>,
}

/// Tool that is a function of the program.
#[derive(Deserialize)]
pub(super) struct ClientTool {
    name: String,
    title: Option<String>,
    description: String,
    input_schema: Box<RawValue>,
    output_schema: Option<Box<RawValue>>,
    #[serde(default)]
    annotations: Annotations,
}

impl ClientTool {
    pub(super) fn declaration(&self) -> Declaration {
        let input = self.input_schema.get();
        Declaration {
            title: self.title.clone(),
            output_schema: self.output_schema.as_ref().map(|schema| schema.get().to_owned()),
            annotations: self.annotations,
            ..Declaration::new(self.name.as_str(), self.description.as_str(), input)
        }
    }
}

/// Call that the program makes.
#[derive(Deserialize)]
pub(super) struct ClientCall<'l> {
    id: u64,
    tool: String,
    #[serde(borrow)]
    arguments: Option<&'l RawValue>,
    session: Option<String>,
    timeout_ms: Option<u64>,
    #[serde(default)]
    dry_run: bool,
    #[serde(default)]
    diff: bool,
    #[serde(default)]
    progress: bool,
}

impl ClientCall<'_> {
    pub(super) fn into_call(self) -> ProgramCall {
        let Self { id, tool, arguments, session, timeout_ms, dry_run, diff, progress } = self;
        let arguments = arguments.map(|arguments| arguments.get().as_bytes().to_vec());
        ProgramCall { id, tool, arguments, session, timeout_ms, dry_run, diff, progress }
    }
}

/// Reply of the program to a request of the host.
#[derive(Debug)]
pub(super) enum ClientReply {
    Returned(FunctionReply),
    Approved(bool),
    Answered(Value),
    /// A reply that cannot be used.
    Invalid(Error),
}

/// Result of a function of the program.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionReply {
    id: u64,
    #[serde(default)]
    pub(super) value: Value,
    pub(super) failure: Option<FunctionFailure>,
    pub(super) error: Option<FunctionError>,
}

/// Failure that a function of the program reports.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionFailure {
    pub(super) message: String,
    pub(super) suggestion: Option<String>,
    pub(super) value: Option<Value>,
}

/// Unexpected error of a function of the program.
#[derive(Debug, Deserialize)]
pub(super) struct FunctionError {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) message: String,
}

#[derive(Deserialize)]
struct MessageType<'l> {
    #[serde(rename = "type", borrow)]
    name: std::borrow::Cow<'l, str>,
}

#[derive(Deserialize)]
struct IdMember {
    id: u64,
}

#[derive(Deserialize)]
struct ApprovalReply {
    id: u64,
    allow: bool,
}

#[derive(Deserialize)]
struct QuestionReply {
    id: u64,
    answer: Value,
}

impl<'l> ClientMessage<'l> {
    /// Parses a line.
    ///
    /// # Errors
    /// Returns an error if the line is not a message.
    pub(super) fn parse(line: &'l str) -> Result<Self> {
        let MessageType { name } = members(line, "message")?;
        Ok(match name.as_ref() {
            "call" => match identified(line, "call")? {
                Ok(call) => Self::Call(call),
                Err((id, error)) => Self::InvalidCall { id, error },
            },
            "returned" => Self::reply(line, "returned", |returned: FunctionReply| {
                (returned.id, ClientReply::Returned(returned))
            })?,
            "cancel" => {
                let IdMember { id } = members(line, "cancel")?;
                Self::Cancel { id }
            }
            "approved" => Self::reply(line, "approved", |ApprovalReply { id, allow }| {
                (id, ClientReply::Approved(allow))
            })?,
            "answered" => Self::reply(line, "answered", |QuestionReply { id, answer }| {
                (id, ClientReply::Answered(answer))
            })?,
            "hello" => Self::Hello(members(line, "hello")?),
            _ => Self::Unknown,
        })
    }

    /// Parses a reply to a request of the host. One that is invalid settles its request: values of
    /// functions, such as numbers out of range, must not end the calls of others.
    fn reply<R: Deserialize<'l>>(
        line: &'l str,
        name: &str,
        read: impl FnOnce(R) -> (u64, ClientReply),
    ) -> Result<Self> {
        let (id, reply) = match identified(line, name)? {
            Ok(reply) => read(reply),
            Err((id, error)) => (id, ClientReply::Invalid(error)),
        };
        Ok(Self::Reply { id, reply })
    }
}

/// Parses a message with an id. The error of one that is invalid comes with its id, so that it ends
/// nothing else.
fn identified<'l, T: Deserialize<'l>>(
    line: &'l str,
    name: &str,
) -> Result<std::result::Result<T, (u64, Error)>> {
    match members(line, name) {
        Ok(message) => Ok(Ok(message)),
        Err(error) => match members(line, name) {
            Ok(IdMember { id }) => Ok(Err((id, error))),
            Err(_) => Err(error),
        },
    }
}

/// Parses an object. An array of the members' values is not a message, although serde takes it.
fn members<'l, T: Deserialize<'l>>(line: &'l str, name: &str) -> Result<T> {
    let invalid = |found: &dyn std::fmt::Display| {
        Error::invalid(format!("expected a `{name}` of the pipe protocol: {found}"))
    };
    if !line.trim_start().starts_with('{') {
        return Err(invalid(&"the line is not a JSON object"));
    }
    serde_json::from_str(line).map_err(|error| invalid(&error))
}

/// Message of the host, other than the result of a call. `docs/pipe.md` describes the members.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
#[expect(missing_docs, reason = "`docs/pipe.md` describes the members")]
pub enum HostMessage<'m> {
    /// The host is ready.
    Ready { protocol: u64, version: &'static str, tools: Vec<Value>, unavailable: Vec<Value> },
    /// The host cannot start, or ends.
    Failed { message: String, exit: u8 },
    /// Text for the operator.
    Note { message: &'m str },
    /// Request to run a function of the program.
    Invoke { id: u64, tool: &'m str, arguments: &'m Value, call: Option<u64> },
    /// Request to approve a call.
    Approve {
        id: u64,
        call: u64,
        tool: &'m str,
        arguments: &'m Value,
        /// True if a program of code mode makes the call.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        program: bool,
    },
    /// Question of a tool.
    Ask { id: u64, call: u64, kind: &'static str, parameters: &'m serde_json::Map<String, Value> },
    /// Nothing waits for the answer to a request anymore.
    Revoke { id: u64 },
    /// Progress of a call.
    Progress { id: u64, done: f64, total: Option<f64>, message: Option<String> },
    /// Message of a tool.
    Log { id: u64, level: LogLevel, message: &'m str },
}

impl HostMessage<'_> {
    pub(super) fn failed(error: &Error) -> Self {
        Self::Failed { message: format!("{error:#}"), exit: error.kind().exit_code() }
    }

    pub(super) fn progress(id: u64, progress: Progress) -> Self {
        let Progress { done, total, message } = progress;
        Self::Progress { id, done, total, message }
    }
}
