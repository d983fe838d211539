//! How a model is spoken to, whoever offers it.

mod error;
mod reply;
mod request;

use std::sync::Arc;

use async_trait::async_trait;

pub use error::{ChatError, ChatErrorKind};
pub use reply::{Delta, FinishReason, Reply, ReplyBuilder, ReplyStream, Update};
pub use request::{ChatOptions, ChatRequest, ToolMode};

/// A model behind some provider's interface.
///
/// A client makes one request per call and knows nothing of loops: function calls in a reply are
/// data. It stops when [`ChatRequest::cancellation`] says so, with [`ChatErrorKind::Cancelled`],
/// and also when its future or stream is dropped. No key, header or address with a key in it is in
/// any error or log.
#[async_trait]
pub trait ChatClient: Send + Sync {
    /// What the model is called, for records.
    fn model(&self) -> &str;

    /// Whether the service keeps the conversation by itself, so that no history is needed
    /// (`SES-4`).
    fn keeps_conversation(&self) -> bool {
        false
    }

    /// One whole reply.
    ///
    /// # Errors
    /// [`ChatError`] if there is none.
    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError>;

    /// One reply, piece by piece. Putting the pieces together ([`ReplyBuilder`]) gives what
    /// [`reply`](Self::reply) gives.
    ///
    /// # Errors
    /// [`ChatError`] if the reply does not begin; later errors are in the stream and end it.
    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError>;
}

#[async_trait]
impl<C: ChatClient + ?Sized> ChatClient for Arc<C> {
    fn model(&self) -> &str {
        (**self).model()
    }

    fn keeps_conversation(&self) -> bool {
        (**self).keeps_conversation()
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        (**self).reply(request).await
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        (**self).stream(request).await
    }
}
