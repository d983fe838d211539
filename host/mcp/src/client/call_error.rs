//! Errors of remote tool calls, with the messages that the model sees (`MCP-18` to `MCP-33`).

use cofferdam_tool::{ErrorType, Outcome, ToolError, ToolFailure};
use serde_json::{Map, Value, json};

use super::limits::{MESSAGE_BYTES_MAX, cut};
use super::remote::RequestError;

/// Error of a remote tool call. Its message contains no inner error.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts say it")]
pub enum CallError {
    /// The tool itself reported a failure.
    #[error("{0}")]
    Tool(String),
    #[error("Failed to call tool '{tool}' - connection lost.")]
    ConnectionLost { tool: String },
    #[error("Failed to reconnect to MCP server.")]
    Reconnect { detail: String },
    /// The server answered with an error message.
    #[error("{message}")]
    Protocol { code: i64, message: String },
    /// Any other error. The detail is only for the log.
    #[error("Failed to call tool '{tool}'.")]
    Other { tool: String, detail: String },
    #[error("Tools are not loaded for this server.")]
    NotLoaded,
    #[error("The server does not offer this tool any more.")]
    Gone,
    #[error(
        "MCP server returned an unparseable response to augmented tools/call for '{tool}'; cannot safely retry \
         (server may have started the operation)."
    )]
    Unparseable { tool: String },
    #[error("Failed to call tool '{tool}' - connection lost; task state unknown.")]
    TaskNotKnown { tool: String },
    #[error("MCP connection lost; task state unknown (task_id={task}).")]
    TaskConnectionLost { task: String },
    #[error("MCP server returned a malformed tasks/get response for task '{task}'.")]
    MalformedPoll { task: String },
    #[error("MCP task '{task}' result payload could not be parsed as a CallToolResult.")]
    MalformedPayload { task: String },
    #[error("Tool '{tool}' task {status}: {message}")]
    TaskEnded { tool: String, status: &'static str, message: String },
    #[error("MCP task '{task}' exceeded max_task_wait of {seconds}s.")]
    TaskWait { task: String, seconds: f64 },
    /// The host's `_meta` is invalid (`MCP-7`, `MCP-8`).
    #[error("{0}")]
    Meta(#[from] super::MetaError),
    #[error("The result is larger than {bytes_max} bytes.")]
    TooLarge { bytes_max: u64 },
    #[error(
        "The server sent too many requests while it worked on the call; the connection was ended."
    )]
    Flooded,
    #[error("The server does not read its input.")]
    Unread,
    #[error("The server did not answer within {seconds} seconds.")]
    NoAnswer { seconds: u64 },
    /// The caller canceled the call (`MCP-34`).
    #[error("cancelled")]
    Cancelled,
}

impl CallError {
    /// Converts the error of a plain request (`MCP-20`).
    pub(crate) fn of_request(tool: &str, error: RequestError) -> Self {
        match error {
            RequestError::Lost { .. } => Self::ConnectionLost { tool: tool.to_owned() },
            RequestError::Protocol { code, message, .. } => Self::protocol(code, &message),
            RequestError::Flooded => Self::Flooded,
            RequestError::Unread => Self::Unread,
            RequestError::Other(detail) => Self::Other { tool: tool.to_owned(), detail },
        }
    }

    pub(crate) fn protocol(code: i64, message: &str) -> Self {
        Self::Protocol { code, message: cut(message, MESSAGE_BYTES_MAX).to_owned() }
    }

    /// Returns the outcome of the failed call. Failures that the tool or its task reported become
    /// failures; everything else becomes an error, with a type name that starts with `Mcp.`.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        let name = match &self {
            Self::Cancelled => return Outcome::Cancelled,
            Self::Tool(text) => return Outcome::Failure(failure(text)),
            Self::TaskEnded { .. } => {
                return Outcome::Failure(ToolFailure::new(self.to_string()));
            }
            Self::TooLarge { .. } => {
                return Outcome::Error(
                    ToolError::new(ErrorType::OutputLimit).with_detail(self.to_string()),
                );
            }
            Self::NoAnswer { .. } => {
                return Outcome::Error(
                    ToolError::new(ErrorType::Timeout).with_detail(self.to_string()),
                );
            }
            Self::ConnectionLost { .. }
            | Self::TaskNotKnown { .. }
            | Self::TaskConnectionLost { .. } => "Mcp.ConnectionLost",
            Self::Reconnect { .. } => "Mcp.Unreachable",
            Self::Protocol { .. } => "Mcp.Protocol",
            Self::Other { .. } | Self::Unread => "Mcp.Failed",
            Self::NotLoaded | Self::Gone => "Mcp.NotOffered",
            Self::Unparseable { .. }
            | Self::MalformedPoll { .. }
            | Self::MalformedPayload { .. } => "Mcp.InvalidResponse",
            Self::TaskWait { .. } => "Mcp.TaskWait",
            Self::Flooded => "Mcp.TooManyRequests",
            Self::Meta(_) => "Mcp.InvalidMeta",
        };
        let text = self.to_string();
        // The model can tell a message of the server from one of the host.
        let value = match &self {
            Self::Protocol { .. } => json!({ "message": text, "source": "MCP server" }),
            _ => json!({ "message": text }),
        };
        let error = ToolError::host(name).with_error_value(|_| value);
        Outcome::Error(match self.detail() {
            Some(detail) => error.with_detail(detail),
            None => error,
        })
    }

    /// Returns details for the log that the message does not contain.
    fn detail(&self) -> Option<String> {
        match self {
            Self::Reconnect { detail } | Self::Other { detail, .. } => Some(detail.clone()),
            Self::Protocol { code, message } => Some(format!("error {code}: {message}")),
            other => Some(other.to_string()),
        }
    }
}

/// Returns the failure that a tool reports with a message. An error envelope of Cofferdam
/// (`MCP-37`), to which lines of text may be appended, is not wrapped in another one.
fn failure(text: &str) -> ToolFailure {
    let (first, more) = text.split_once('\n').unwrap_or((text, ""));
    let Some(mut error) = enveloped(first) else { return ToolFailure::new(text) };
    let Some(Value::String(message)) = error.get_mut("message") else {
        return ToolFailure::new(text);
    };
    if !more.is_empty() {
        message.push('\n');
        message.push_str(more);
    }
    let mut failure = ToolFailure::new(message.as_str());
    failure.value = Some(Value::Object(error));
    failure
}

/// Returns the error of an envelope `{"error": {…}}`.
fn enveloped(text: &str) -> Option<Map<String, Value>> {
    let Ok(Value::Object(mut envelope)) = serde_json::from_str(text) else { return None };
    match envelope.remove("error") {
        Some(Value::Object(error)) if envelope.is_empty() => Some(error),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let outcome = CallError::Tool(text.to_owned()).into_outcome();
        outcome.shown().unwrap().text()
    }

    #[test]
    fn an_error_envelope_is_not_wrapped_again() {
        let envelope = r#"{"error":{"message":"no such row","suggestion":"list the rows"}}"#;
        assert_eq!(shown(envelope), envelope);
        let refused = format!("{envelope}\nNot granted: store:notes. Add it.");
        let expected = r#"{"error":{"message":"no such row\nNot granted: store:notes. Add it.","suggestion":"list the rows"}}"#;
        assert_eq!(shown(&refused), expected);
    }

    #[test]
    fn other_messages_stay_as_they_are() {
        for text in
            ["no", "", "{\"error\":7}", "{\"error\":{}}", "{\"error\":{\"message\":\"a\"},\"b\":1}"]
        {
            let outcome = CallError::Tool(text.to_owned()).into_outcome();
            assert_eq!(outcome, Outcome::Failure(ToolFailure::new(text)));
        }
    }
}
