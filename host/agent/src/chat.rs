//! Interface to chat models, independent of the provider.

mod error;
mod format;
mod reply;
mod request;

use std::sync::Arc;

use async_trait::async_trait;

pub use error::{ChatError, ChatErrorKind};
pub use format::{Effort, ResponseFormat, UnknownEffort};
pub use reply::{Delta, FinishReason, Reply, ReplyBuilder, ReplyStream, Update};
pub use request::{ChatOptions, ChatRequest, ToolMode, finite_number};

/// A model behind a provider's API.
///
/// A client makes one request per call and knows nothing of loops: function calls in a reply are
/// data. It stops with [`ChatErrorKind::Cancelled`] when [`ChatRequest::cancellation`] is canceled,
/// and also when its future or stream is dropped. Errors and logs contain no key, no header, and no
/// address that contains a key.
#[async_trait]
pub trait ChatClient: Send + Sync {
    /// Returns the name of the model, for records.
    fn model(&self) -> &str;

    /// Returns whether the service stores the conversation, so that no history is needed (`SES-4`).
    fn keeps_conversation(&self) -> bool {
        false
    }

    /// Returns whether a request can carry [`ChatOptions::response_format`]. If not, the loop
    /// describes the format in the instructions (`LOOP-67`), and the client ignores the option.
    fn supports_response_format(&self) -> bool {
        false
    }

    /// Requests one whole reply.
    ///
    /// # Errors
    /// [`ChatError`] if there is no reply.
    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError>;

    /// Requests one reply as a stream. Its updates, combined by [`ReplyBuilder`], give the same
    /// reply as [`reply`](Self::reply).
    ///
    /// # Errors
    /// [`ChatError`] if the reply does not begin. Later errors are in the stream and end it.
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

    fn supports_response_format(&self) -> bool {
        (**self).supports_response_format()
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        (**self).reply(request).await
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        (**self).stream(request).await
    }
}
