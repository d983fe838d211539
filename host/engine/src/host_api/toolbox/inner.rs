//! One inner call: what it needs to run on any thread, and the errors that it can end with.

use std::sync::Arc;
use std::time::Instant;

use cofferdam_tool::output::ResourceBody as ToolResourceBody;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Content as ToolContent, ErrorType, Outcome, Output,
    RefusedCall, ToolError, ToolFailure, ToolName, Toolset,
};
use serde_json::Value;
use tokio::runtime::Handle;

use crate::guest::cofferdam::plugin::{tool_calls, toolbox, types};
use crate::guest::{Content, EmbeddedResource, Failure, Link, ResourceBody};
use crate::scheduler::deadline::Deadline;

/// Call of a granted tool that has not begun.
pub(super) struct InnerCall {
    pub(super) toolset: Toolset,
    pub(super) name: String,
    pub(super) arguments_json: String,
    /// Context without a deadline.
    pub(super) context: CallContext,
    /// Deadline of the outer call.
    pub(super) deadline: Arc<Deadline>,
    /// Runtime of the embedder: an inner call is not part of the outer call's computation.
    pub(super) runtime: Handle,
}

/// Result of an inner call, in the form that a guest receives.
pub(super) type InnerResult = Result<Vec<Content>, InnerError>;

/// End of an inner call.
pub(super) struct InnerEnd {
    pub(super) result: InnerResult,
    /// `None` if nothing has run.
    pub(super) record: Option<CallRecord>,
}

/// Error of an inner call.
#[derive(Debug)]
pub(super) enum InnerError {
    /// No tool of this name is granted.
    UnknownTool {
        /// Message for the model.
        message: String,
    },
    /// The arguments do not match the schema. Contains the message of the decoder.
    InvalidArguments(String),
    /// The tool reported a failure, or a limit of the toolset refused the call.
    Failed(Box<ToolFailure>),
    /// The tool ended with an error.
    Ended(Box<ToolError>),
    /// The caller gave up.
    Cancelled,
    /// The call needs the user's approval, which no plugin can give.
    NeedsApproval,
    /// A policy refused the call.
    Denied(Box<ToolFailure>),
    /// Calls are nested too deeply.
    TooDeep,
    /// The guest has started too many calls. Contains the message for the model.
    Limit(String),
}

impl InnerCall {
    /// Begins the call. The future is for a task of its own.
    pub(super) fn run(self) -> impl Future<Output = InnerEnd> + Send + 'static {
        let Self { toolset, name, arguments_json, mut context, deadline, .. } = self;
        context.deadline = Some((Instant::now() + deadline.remaining()).into());
        async move {
            let arguments = Some(arguments_json.as_bytes());
            let ended = toolset.call(&name, arguments, &context).await;
            drop(arguments_json);
            InnerEnd::new(ended)
        }
    }

    /// Returns the record of the call for the case that it is stopped.
    pub(super) fn stopped_record(&self) -> CallRecord {
        let mut record = *Completion::ended(Outcome::Cancelled, &self.context).record;
        record.tool = ToolName::new(&*self.name).ok();
        record
    }
}

impl InnerEnd {
    fn new(ended: Result<Completion, RefusedCall>) -> Self {
        match ended {
            Ok(Completion { outcome, record }) => {
                let result = match outcome {
                    Outcome::Ok(output) => Ok(contents(output)),
                    Outcome::Failure(failure) if record.is_denied => {
                        Err(InnerError::Denied(Box::new(failure)))
                    }
                    Outcome::Failure(failure) => Err(InnerError::Failed(Box::new(failure))),
                    Outcome::Error(error) => Err(InnerError::Ended(Box::new(error))),
                    _ => Err(InnerError::Cancelled),
                };
                Self { result, record: Some(*record) }
            }
            Err(refused) => Self { result: Err(InnerError::refused(&refused)), record: None },
        }
    }

    /// Returns the end of a call whose task has panicked.
    pub(super) fn of_panic(record: Option<CallRecord>) -> Self {
        let error = ToolError::new(ErrorType::PluginUnavailable);
        Self { result: Err(InnerError::Ended(Box::new(error))), record }
    }
}

impl InnerError {
    /// Returns the error for a name that is not among the `granted` ones.
    pub(super) fn unknown_tool<'n>(name: &str, granted: impl Iterator<Item = &'n str>) -> Self {
        // A longer string is no name, and can be very long.
        let message = match ToolName::new(name) {
            Ok(_) => {
                let refused = RefusedCall::UnknownTool {
                    name: name.to_owned(),
                    nearest: ToolName::nearest(name, granted),
                };
                unknown_message(&refused)
            }
            Err(error) => format!("there is no such tool: {error}"),
        };
        Self::UnknownTool { message }
    }

    fn refused(refused: &RefusedCall) -> Self {
        match refused {
            RefusedCall::UnknownTool { .. } => {
                Self::UnknownTool { message: unknown_message(refused) }
            }
            RefusedCall::InvalidArguments(error) => Self::InvalidArguments(error.to_string()),
            _ => Self::Failed(Box::new(ToolFailure::new(refused.to_string()))),
        }
    }
}

fn unknown_message(refused: &RefusedCall) -> String {
    match refused {
        RefusedCall::UnknownTool { nearest: Some(nearest), .. } => {
            format!("{refused}; did you mean '{nearest}'?")
        }
        _ => refused.to_string(),
    }
}

/// Converts to the error of `toolbox.call-tool`.
impl From<InnerError> for toolbox::Error {
    fn from(error: InnerError) -> Self {
        match error {
            InnerError::UnknownTool { .. } => Self::UnknownTool,
            InnerError::InvalidArguments(message) => Self::InvalidArguments(message),
            InnerError::Failed(failure) | InnerError::Denied(failure) => {
                Self::Failed(to_guest_failure(*failure))
            }
            InnerError::Ended(error) => Self::Ended(error.type_name().to_owned()),
            InnerError::Cancelled => Self::Ended("Cancelled".to_owned()),
            InnerError::NeedsApproval => Self::Ended(ErrorType::CapabilityDenied.name().to_owned()),
            InnerError::TooDeep => Self::TooDeep,
            InnerError::Limit(message) => Self::Failed(to_guest_failure(ToolFailure::new(message))),
        }
    }
}

/// Converts to the error of a started call.
impl From<InnerError> for tool_calls::Error {
    fn from(error: InnerError) -> Self {
        use tool_calls::ErrorKind;

        let plain = |kind, message: String| Self {
            kind,
            error_type: None,
            message,
            suggestion: None,
            value: None,
            transient: false,
        };
        let reported = |kind, failure: ToolFailure| {
            let Failure { message, suggestion, transient, value } = to_guest_failure(failure);
            let transient = transient.unwrap_or(false);
            Self { kind, error_type: None, message, suggestion, value, transient }
        };
        match error {
            InnerError::UnknownTool { message } => plain(ErrorKind::UnknownTool, message),
            InnerError::InvalidArguments(message) => plain(ErrorKind::InvalidArguments, message),
            InnerError::Failed(failure) => reported(ErrorKind::Failed, *failure),
            InnerError::Denied(failure) => reported(ErrorKind::Denied, *failure),
            InnerError::Ended(error) => {
                let value = error.error_value();
                let message = value.get("message").or(Some(&value)).and_then(Value::as_str);
                Self {
                    error_type: Some(error.type_name().to_owned()),
                    transient: error.transient().unwrap_or(false),
                    value: error.has_own_value().then(|| value.to_string()),
                    ..plain(
                        ErrorKind::Ended,
                        message.map_or_else(|| value.to_string(), str::to_owned),
                    )
                }
            }
            InnerError::Cancelled => Self {
                error_type: Some("Cancelled".to_owned()),
                ..plain(ErrorKind::Ended, "the call was canceled".to_owned())
            },
            InnerError::NeedsApproval => Self {
                error_type: Some(ErrorType::CapabilityDenied.name().to_owned()),
                suggestion: Some("call the tool directly, not from another tool".to_owned()),
                ..plain(
                    ErrorKind::Denied,
                    "each call of this tool needs the user's approval".to_owned(),
                )
            },
            InnerError::TooDeep => {
                plain(ErrorKind::TooDeep, "tools call each other too deeply".to_owned())
            }
            InnerError::Limit(message) => plain(ErrorKind::Limit, message),
        }
    }
}

/// Converts an output to the form in which the guest would have returned it.
fn contents(output: Output) -> Vec<Content> {
    match output {
        Output::Value(Value::Null) => Vec::new(),
        Output::Value(Value::String(text)) => vec![Content::Text(text)],
        Output::Value(value) => vec![Content::Json(value.to_string())],
        Output::Contents(contents) => contents.into_iter().filter_map(content).collect(),
    }
}

fn content(content: ToolContent) -> Option<Content> {
    Some(match content {
        ToolContent::Text(text) => Content::Text(text),
        ToolContent::Json(value) => Content::Json(value.to_string()),
        ToolContent::Blob { media_type, data } => Content::Blob(types::Blob { media_type, data }),
        ToolContent::Resource { uri, media_type, body } => {
            let body = match body {
                ToolResourceBody::Text(text) => ResourceBody::Text(text),
                ToolResourceBody::Blob(data) => ResourceBody::Blob(data),
            };
            Content::Resource(EmbeddedResource { uri, media_type, body })
        }
        ToolContent::Link { uri, name, media_type } => {
            Content::Link(Link { uri, name, media_type })
        }
        _ => return None,
    })
}

pub(super) fn to_guest_failure(failure: ToolFailure) -> Failure {
    Failure {
        value: failure.value.map(|value| value.to_string()),
        message: failure.message,
        suggestion: failure.suggestion,
        transient: failure.transient,
    }
}
