//! Sampling: model messages for a server (`MCP-36`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value};

/// Maximum tokens of one message. Requests for more are reduced to it.
const TOKENS_MAX: u64 = 4096;
/// Maximum number of messages for one server. Reconnecting does not reset the count, because the
/// server can force a reconnection.
const REQUESTS_MAX: u32 = 25;

/// Creates messages for servers. Implemented by the embedding program, which is responsible for the
/// cost and for what the messages reveal.
#[async_trait]
pub trait SamplingHandler: Send + Sync {
    /// Answers `sampling/createMessage` with a result of that request. `maxTokens` is at most 4096.
    ///
    /// # Errors
    /// Returns the reason for the refusal, which is sent to the server.
    async fn create_message(&self, parameters: Map<String, Value>) -> Result<Value, String>;
}

/// Sampling handler of one server, with its budget.
#[derive(Default)]
pub struct SamplingLimits {
    handler: Option<Arc<dyn SamplingHandler>>,
    requests: AtomicU32,
}

/// Error of a sampling request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingRefused {
    /// No handler is configured.
    #[error("sampling is not allowed")]
    NoHandler,
    /// The budget is exhausted.
    #[error("sampling is allowed {REQUESTS_MAX} times on one connection")]
    UsedUp,
    /// The handler returned an error.
    #[error("{0}")]
    Failed(String),
}

impl SamplingLimits {
    /// Creates a budget for `handler`. Without a handler, every request is refused.
    #[must_use]
    pub fn new(handler: Option<Arc<dyn SamplingHandler>>) -> Self {
        Self { handler, requests: AtomicU32::new(0) }
    }

    /// Returns whether the host announces sampling to the server.
    #[must_use]
    pub fn is_offered(&self) -> bool {
        self.handler.is_some()
    }

    /// Answers one request.
    ///
    /// # Errors
    /// [`SamplingRefused`]. Only requests that reach the handler count against the budget.
    pub async fn answer(
        &self,
        mut parameters: Map<String, Value>,
    ) -> Result<Value, SamplingRefused> {
        let handler = self.handler.as_ref().ok_or(SamplingRefused::NoHandler)?;
        let counted = self.requests.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| {
            (count < REQUESTS_MAX).then_some(count.saturating_add(1))
        });
        counted.map_err(|_| SamplingRefused::UsedUp)?;
        let asked = parameters.get("maxTokens").and_then(Value::as_u64);
        let tokens = asked.map_or(TOKENS_MAX, |asked| asked.min(TOKENS_MAX));
        parameters.insert("maxTokens".to_owned(), tokens.into());
        handler.create_message(parameters).await.map_err(SamplingRefused::Failed)
    }
}

impl std::fmt::Debug for SamplingLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampling").field("is_offered", &self.is_offered()).finish_non_exhaustive()
    }
}
