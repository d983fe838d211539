//! Calls that a server answers with questions first (revision 2026-07-28).

use cofferdam_tool::CallContext;
use serde_json::{Map, Value};

use super::call_error::CallError;
use super::limits::ROUNDS_MAX;
use super::plain::{Resend, send};
use super::question::{Questions, answers};
use super::remote::Remote;
use super::task_options::poll_delay;

/// Sends a request until the server returns something other than questions. Each round repeats the
/// request with only the answers of that round, and with the server's state unchanged.
pub(crate) async fn ask(
    remote: &dyn Remote,
    questions: &Questions,
    tool: &str,
    method: &'static str,
    mut parameters: Map<String, Value>,
    call: &CallContext,
    resend: Resend,
) -> Result<Value, CallError> {
    let failed = |detail: String| CallError::Other { tool: tool.to_owned(), detail };
    for round in 0..ROUNDS_MAX {
        let mut result = send(remote, tool, method, &parameters, call, resend).await?;
        if result.get("resultType").is_none_or(|kind| kind != "input_required") {
            return Ok(result);
        }
        let asked = result
            .get("inputRequests")
            .and_then(Value::as_object)
            .filter(|asked| !asked.is_empty());
        let responses = answers(questions, asked, round, call)
            .await
            .map_err(|error| failed(error.to_string()))?;
        parameters.remove("inputResponses");
        parameters.remove("requestState");
        if responses.is_empty() {
            // The server only wants to be asked again later.
            remote.pause(poll_delay(None)).await;
        } else {
            parameters.insert("inputResponses".to_owned(), Value::Object(responses));
        }
        if let Some(state) = result.as_object_mut().and_then(|result| result.remove("requestState"))
        {
            parameters.insert("requestState".to_owned(), state);
        }
    }
    Err(failed(format!("the server asked for more input {ROUNDS_MAX} times")))
}
