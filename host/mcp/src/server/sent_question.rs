//! Questions that the client gets as requests of the server.

use cofferdam_tool::ask::AskError;
use rmcp::RoleServer;
use rmcp::model::{ClientResult, GetExtensions as _, InputRequest, ServerRequest};
use rmcp::service::{OriginatingRequestId, PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::Value;
use tokio::runtime::Handle;

use super::caller::Caller;

/// A question at the client. It is withdrawn if the call ends before the answer.
pub(super) struct SentQuestion(Option<RequestHandle<RoleServer>>);

impl SentQuestion {
    /// Sends a question to the sender of a request, on the stream of that request.
    pub(super) async fn send(caller: &Caller, question: InputRequest) -> Result<Self, AskError> {
        let mut request = match question {
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            _ => return Err(AskError::Failed("the question has no request".to_owned())),
        };
        // The SDK finds the stream of a request by this id.
        let origin = OriginatingRequestId(caller.request_id().clone());
        request.extensions_mut().insert(origin);
        let options = PeerRequestOptions::no_options();
        let sent = caller.peer().send_cancellable_request(request, options).await;
        sent.map(|sent| Self(Some(sent))).map_err(|error| AskError::Failed(error.to_string()))
    }

    /// Waits for the answer of the client.
    pub(super) async fn answer(&mut self) -> Result<Value, AskError> {
        let received = match &mut self.0 {
            Some(request) => (&mut request.rx).await.unwrap_or(Err(ServiceError::TransportClosed)),
            None => Err(ServiceError::TransportClosed),
        };
        self.0 = None;
        let result: ClientResult = received.map_err(|error| AskError::Failed(error.to_string()))?;
        serde_json::to_value(result).map_err(|error| AskError::Failed(error.to_string()))
    }

    /// Withdraws the question. A client that ignores this keeps a question whose answer has no
    /// effect.
    pub(super) async fn withdraw(mut self, reason: String) {
        if let Some(request) = self.0.take() {
            let _ = request.cancel(Some(reason)).await;
        }
    }
}

impl Drop for SentQuestion {
    fn drop(&mut self) {
        if let (Some(request), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(async move {
                let _ = request.cancel(Some("the call has ended".to_owned())).await;
            });
        }
    }
}
