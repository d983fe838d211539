//! Approval of calls that programs of code mode make, by the client.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_code::{ApprovalRequest, CallApprover, Decision};
use serde_json::Value;

use super::message::{ClientReply, HostMessage};
use super::requests::Requests;

/// Client that approves the calls of programs, as it does its own.
pub(super) struct ClientApprover(pub(super) Arc<Requests>);

#[async_trait]
impl CallApprover for ClientApprover {
    async fn approve(&self, request: ApprovalRequest<'_>) -> Decision {
        let tool = request.tool.name.as_str();
        let refused = || Decision::Rejected(format!("the call to '{tool}' was not approved"));
        // A call has the id of the client's call in front of its own.
        let outer = request.call_id.split('.').next().and_then(|id| id.parse().ok());
        let Some(call) = outer else { return refused() };
        let arguments = Value::Object(request.arguments.clone());
        let program = true;
        let message = |id| HostMessage::Approve { id, call, tool, arguments: &arguments, program };
        match self.0.send(message).await {
            Some(ClientReply::Approved(true)) => Decision::Approved,
            _ => refused(),
        }
    }
}
