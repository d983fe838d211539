//! Functions of the program as tools.

use std::sync::Arc;
use std::time::Duration;

use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::{Arguments, CallContext, ErrorType, Functions, ToolError, ToolFailure};
use serde_json::Value;

use super::message::{ClientReply, ClientTool, FunctionReply, HostMessage};
use super::requests::Requests;
use crate::{Error, Result};

/// Name of the source of these tools.
const SOURCE: &str = "program";

/// Returns the functions of the program as a source of tools.
///
/// # Errors
/// Returns an error for a declaration that the rules for plugins reject, and for two functions of
/// one name.
pub(super) fn source(tools: &[ClientTool], requests: &Arc<Requests>) -> Result<Functions> {
    let mut functions = Functions::new(SOURCE);
    let mut names = std::collections::HashSet::new();
    for tool in tools {
        let declaration = tool.declaration();
        let name = declaration.name.clone();
        if !names.insert(name.clone()) {
            return Err(Error::invalid(format!("expected one function `{name}`, found two")));
        }
        let requests = Arc::clone(requests);
        let function = move |arguments: Arguments, context: CallContext| {
            let (requests, name) = (Arc::clone(&requests), name.clone());
            async move { invoke(&requests, &name, arguments, &context).await }
        };
        functions = functions
            .with(declaration, function)
            .map_err(|error| Error::invalid(error.to_string()))?;
    }
    Ok(functions)
}

async fn invoke(
    requests: &Requests,
    tool: &str,
    arguments: Arguments,
    context: &CallContext,
) -> Result<Value, FunctionEnd> {
    let arguments = arguments.into_value();
    // The id of a call that the program makes is a number. A call that a tool makes has another
    // one, and is nested in it.
    let outer = context.outer.as_ref().map(|outer| &outer.call_id);
    let call = outer.unwrap_or(&context.call_id).parse().ok();
    let message = |id| HostMessage::Invoke { id, tool, arguments: &arguments, call };
    let limits = context.limits.as_ref();
    let timeout = limits.and_then(|limits| limits.wall_ms_max).map(Duration::from_millis);
    let timeout = async {
        match timeout {
            Some(timeout) => tokio::time::sleep(timeout).await,
            None => std::future::pending().await,
        }
    };
    let reply = tokio::select! {
        reply = requests.send(message) => reply,
        () = context.cancelled() => None,
        () = timeout => {
            return Err(FunctionEnd::Error(Box::new(ToolError::new(ErrorType::Timeout))));
        }
    };
    match reply {
        Some(ClientReply::Returned(returned)) => ended(returned),
        Some(ClientReply::Invalid(invalid)) => Err(error("InvalidReply", invalid.to_string())),
        Some(_) => Err(error("InvalidReply", "the reply to `invoke` is not a `returned`")),
        None => Err(FunctionEnd::Cancelled),
    }
}

fn ended(returned: FunctionReply) -> Result<Value, FunctionEnd> {
    if let Some(failure) = returned.failure {
        return Err(FunctionEnd::Failure(Box::new(ToolFailure {
            suggestion: failure.suggestion,
            value: failure.value,
            ..ToolFailure::new(failure.message)
        })));
    }
    match returned.error {
        Some(unexpected) => Err(error(&unexpected.kind, unexpected.message)),
        None => Ok(returned.value),
    }
}

fn error(kind: &str, detail: impl Into<String>) -> FunctionEnd {
    FunctionEnd::Error(Box::new(ToolError::host(kind).with_detail(detail)))
}
