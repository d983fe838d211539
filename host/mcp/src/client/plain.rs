//! Requests that may be sent twice (`MCP-19`, `MCP-20`).

use std::time::Duration;

use cofferdam_tool::CallContext;
use serde_json::{Map, Value};

use super::call_error::CallError;
use super::remote::{Remote, RequestError};

/// Error of a request that was repeated after the connection was lost.
pub(crate) enum ResendOutcome {
    /// The connection was lost both times.
    Lost,
    /// Reconnecting failed.
    Reconnect(String),
    /// The request failed on a working connection.
    Failed(RequestError),
    /// The server did not answer in this time.
    NoAnswer(Duration),
}

/// Sends a request. If the connection is lost, reconnects once and repeats the request.
pub(crate) async fn twice(
    remote: &dyn Remote,
    method: &'static str,
    parameters: &Map<String, Value>,
    call: &CallContext,
) -> Result<Value, ResendOutcome> {
    let first = match remote.request(method, parameters.clone(), call).await {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let Some(connection) = first.lost() else { return Err(ResendOutcome::Failed(first)) };
    remote.reconnect(connection).await.map_err(|failed| ResendOutcome::Reconnect(failed.0))?;
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
) -> Result<Value, CallError> {
    twice(remote, method, parameters, call).await.map_err(|end| match end {
        ResendOutcome::Lost => CallError::ConnectionLost { tool: tool.to_owned() },
        ResendOutcome::Reconnect(detail) => CallError::Reconnect { detail },
        ResendOutcome::Failed(error) => CallError::of_request(tool, error),
        ResendOutcome::NoAnswer(wait) => CallError::NoAnswer { seconds: wait.as_secs() },
    })
}
