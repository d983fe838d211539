//! Every way in which a call of a remote tool fails, with the text that a model sees (`MCP-18` to
//! `MCP-33`).

use cofferdam_tool::{ErrorType, Outcome, ToolError, ToolFailure};
use serde_json::json;

use super::limits::{MESSAGE_BYTES_MAX, cut};
use super::remote::RequestError;

/// Why there is no result. The text is the message alone and holds no inner value.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "the texts say it")]
pub enum CallError {
    /// The tool said so itself.
    #[error("{0}")]
    Tool(String),
    #[error("Failed to call tool '{tool}' - connection lost.")]
    ConnectionLost { tool: String },
    #[error("Failed to reconnect to MCP server.")]
    Reconnect { detail: String },
    /// The server's own message.
    #[error("{message}")]
    Protocol { code: i64, message: String },
    /// What exactly it was is for the log.
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
    /// `_meta` of the host is none (`MCP-7`, `MCP-8`).
    #[error("{0}")]
    Meta(#[from] super::MetaError),
    #[error("The result is larger than {bytes_max} bytes.")]
    TooLarge { bytes_max: u64 },
    #[error(
        "The server sent too many requests while it worked on the call; the connection was ended."
    )]
    Flooded,
    #[error("The server did not answer within {seconds} seconds.")]
    NoAnswer { seconds: u64 },
    /// The caller gave up (`MCP-34`).
    #[error("cancelled")]
    Cancelled,
}

impl CallError {
    /// What a plain request failed with, when the connection still stands (`MCP-20`).
    pub(crate) fn of_request(tool: &str, error: RequestError) -> Self {
        match error {
            RequestError::Lost { .. } => Self::ConnectionLost { tool: tool.to_owned() },
            RequestError::Protocol { code, message, .. } => Self::protocol(code, &message),
            RequestError::Flooded => Self::Flooded,
            RequestError::Other(detail) => Self::Other { tool: tool.to_owned(), detail },
        }
    }

    pub(crate) fn protocol(code: i64, message: &str) -> Self {
        Self::Protocol { code, message: cut(message, MESSAGE_BYTES_MAX).to_owned() }
    }

    /// The outcome of a call that ended like this. What the tool or its task reported is a failure;
    /// everything else is an error, under a type name that begins with `Mcp.`.
    #[must_use]
    pub fn into_outcome(self) -> Outcome {
        let name = match &self {
            Self::Cancelled => return Outcome::Cancelled,
            Self::Tool(_) | Self::TaskEnded { .. } => {
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
            Self::Other { .. } => "Mcp.Failed",
            Self::NotLoaded | Self::Gone => "Mcp.NotOffered",
            Self::Unparseable { .. }
            | Self::MalformedPoll { .. }
            | Self::MalformedPayload { .. } => "Mcp.InvalidResponse",
            Self::TaskWait { .. } => "Mcp.TaskWait",
            Self::Flooded => "Mcp.TooManyRequests",
            Self::Meta(_) => "Mcp.InvalidMeta",
        };
        let text = self.to_string();
        // A model can tell the words of a server from those of the host.
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

    /// What the log may know beside the text.
    fn detail(&self) -> Option<String> {
        match self {
            Self::Reconnect { detail } | Self::Other { detail, .. } => Some(detail.clone()),
            Self::Protocol { code, message } => Some(format!("error {code}: {message}")),
            other => Some(other.to_string()),
        }
    }
}
