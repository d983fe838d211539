//! A request that may be sent twice (`MCP-19`, `MCP-20`).

use cofferdam_tool::CallContext;
use serde_json::{Map, Value};

use super::call_error::CallError;
use super::remote::{Remote, RequestError};

/// How a request ends that was sent again after the connection was lost.
pub(crate) enum Twice {
    /// It was lost both times.
    Lost,
    /// There is no connection.
    Reconnect(String),
    /// Something else, with a connection that stands.
    Failed(RequestError),
}

/// Sends a request; when the connection is lost, connects anew once and sends it once more.
pub(crate) async fn twice(
    remote: &dyn Remote,
    method: &'static str,
    parameters: &Map<String, Value>,
    call: &CallContext,
) -> Result<Value, Twice> {
    let first = match remote.request(method, parameters.clone(), call).await {
        Ok(result) => return Ok(result),
        Err(error) => error,
    };
    let Some(connection) = first.lost() else { return Err(Twice::Failed(first)) };
    remote.reconnect(connection).await.map_err(|failed| Twice::Reconnect(failed.0))?;
    remote.request(method, parameters.clone(), call).await.map_err(|error| match error.lost() {
        Some(_) => Twice::Lost,
        None => Twice::Failed(error),
    })
}

/// A plain call's request.
pub(crate) async fn send(
    remote: &dyn Remote,
    tool: &str,
    method: &'static str,
    parameters: &Map<String, Value>,
    call: &CallContext,
) -> Result<Value, CallError> {
    twice(remote, method, parameters, call).await.map_err(|end| match end {
        Twice::Lost => CallError::ConnectionLost { tool: tool.to_owned() },
        Twice::Reconnect(detail) => CallError::Reconnect { detail },
        Twice::Failed(error) => CallError::of_request(tool, error),
    })
}
