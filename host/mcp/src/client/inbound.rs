//! Transport that limits a server's own requests before the SDK stores them.
//!
//! The SDK starts a task for each request of a server, and another one for each response, without a
//! limit. So requests are counted here, in front of the SDK: only a few are processed at a time,
//! those above that limit get a cheap error response, and a server that sends too many loses the
//! connection.

use std::sync::Arc;

use rmcp::RoleClient;
use rmcp::model::{ErrorData, GetExtensions as _, JsonRpcMessage, ServerNotification};
use rmcp::service::{InboundStreamOrigin, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;

use super::limits::REQUESTS_IN_FLIGHT_MAX;
use super::running::{ActiveRequests, Verdict};

/// A connection of which each request of the server is counted.
pub(super) struct Inbound<T> {
    pub(super) transport: T,
    pub(super) running: Arc<ActiveRequests>,
    pub(super) server: String,
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Inbound<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), T::Error>> + Send + 'static {
        let answered = match &message {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let (sending, running) = (self.transport.send(message), Arc::clone(&self.running));
        async move {
            let sent = sending.await;
            if let Some(id) = answered {
                running.answered(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            let running = Arc::clone(&self.running);
            let message = tokio::select! {
                biased;
                () = running.closed() => return None,
                message = self.transport.receive() => message?,
            };
            match &message {
                JsonRpcMessage::Request(request) => {
                    let origin = request.request.extensions().get::<InboundStreamOrigin>();
                    match self.running.admit(&request.id, origin) {
                        Verdict::Admitted => return Some(message),
                        Verdict::Busy => {
                            let text = format!(
                                "at most {REQUESTS_IN_FLIGHT_MAX} requests wait for an answer"
                            );
                            let error = ErrorData::invalid_request(text, None);
                            let answer = JsonRpcMessage::error(error, Some(request.id.clone()));
                            tokio::spawn(self.transport.send(answer));
                        }
                        Verdict::Closed => {
                            tracing::warn!(
                                server = self.server,
                                "a server sends too many requests; its connection is closed"
                            );
                            return None;
                        }
                    }
                }
                JsonRpcMessage::Notification(notification) => {
                    if let ServerNotification::CancelledNotification(cancelled) =
                        &notification.notification
                        && let Some(id) = &cancelled.params.request_id
                    {
                        self.running.answered(id);
                    }
                    return Some(message);
                }
                _ => return Some(message),
            }
        }
    }

    async fn close(&mut self) -> Result<(), T::Error> {
        self.transport.close().await
    }
}
