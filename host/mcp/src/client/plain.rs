//! Requests that may be sent twice (`MCP-19`, `MCP-20`).

use std::time::Duration;

use cofferdam_tool::{Annotations, CallContext};
use serde_json::{Map, Value};

use super::call_error::CallError;
use super::remote::{Remote, RequestError};

/// Requests that are sent again after their connection was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// All requests.
    Always,
    /// Those that the server has certainly not got.
    IfNotSent,
}

impl Resend {
    /// Returns the rule for calls of a tool with these hints. A tool that states nothing is called
    /// again, and so is one that changes nothing.
    #[must_use]
    pub fn of(hints: Annotations) -> Self {
        if hints.idempotent == Some(false) && hints.read_only != Some(true) {
            Self::IfNotSent
        } else {
            Self::Always
        }
    }
}

/// Error of a request that was repeated after the connection was lost.
pub(crate) enum ResendOutcome {
    /// The connection was lost, and the request was not repeated, or lost it again.
    Lost,
    /// Reconnecting failed.
    Reconnect(String),
    /// The request failed on a working connection.
    Failed(RequestError),
    /// The server did not answer in this time.
    NoAnswer(Duration),
}

/// Sends a request. If the connection is lost, reconnects once and repeats the request, unless the
/// server may have done what was asked and `resend` excludes that.
pub(crate) async fn twice(
    remote: &dyn Remote,
    method: &'static str,
    parameters: &Map<String, Value>,
    call: &CallContext,
    resend: Resend,
) -> Result<Value, ResendOutcome> {
    let first = match remote.request(method, parameters.clone(), call).await {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let Some(connection) = first.lost() else { return Err(ResendOutcome::Failed(first)) };
    let reconnected = remote.reconnect(connection).await;
    if resend == Resend::IfNotSent && first.may_be_done() {
        return Err(ResendOutcome::Lost);
    }
    reconnected.map_err(|failed| ResendOutcome::Reconnect(failed.0))?;
    remote.request(method, parameters.clone(), call).await.map_err(|error| match error.lost() {
        Some(_) => ResendOutcome::Lost,
        None => ResendOutcome::Failed(error),
    })
}

/// Sends the request of a plain call.
pub(crate) async fn send(
    remote: &dyn Remote,
    tool: &str,
    method: &'static str,
    parameters: &Map<String, Value>,
    call: &CallContext,
    resend: Resend,
) -> Result<Value, CallError> {
    twice(remote, method, parameters, call, resend).await.map_err(|end| match end {
        ResendOutcome::Lost => CallError::ConnectionLost { tool: tool.to_owned() },
        ResendOutcome::Reconnect(detail) => CallError::Reconnect { detail },
        ResendOutcome::Failed(error) => CallError::of_request(tool, error),
        ResendOutcome::NoAnswer(wait) => CallError::NoAnswer { seconds: wait.as_secs() },
    })
}
