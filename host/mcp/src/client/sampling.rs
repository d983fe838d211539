//! Messages of a model for a server (`MCP-36`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use serde_json::{Map, Value};

/// Most tokens of one message. What asks for more gets as many.
const TOKENS_MAX: u64 = 4096;
/// Most messages on one connection. Reconnecting does not start anew: that would be for the server
/// to decide.
const REQUESTS_MAX: u32 = 25;

/// Makes messages for servers: part of the embedding program, which answers for what they cost and
/// reveal.
#[async_trait]
pub trait SamplingHandler: Send + Sync {
    /// Answers `sampling/createMessage` with a result of that request. `maxTokens` is at most 4096.
    ///
    /// # Errors
    /// Why there is none; the text goes to the server.
    async fn create_message(&self, parameters: Map<String, Value>) -> Result<Value, String>;
}

/// Whether and how often a server gets messages.
#[derive(Default)]
pub struct Sampling {
    handler: Option<Arc<dyn SamplingHandler>>,
    requests: AtomicU32,
}

/// Why a server gets no message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SamplingRefused {
    /// Nobody makes any.
    #[error("sampling is not allowed")]
    NoHandler,
    /// It had all that it may have.
    #[error("sampling is allowed {REQUESTS_MAX} times on one connection")]
    UsedUp,
    /// The handler gave none.
    #[error("{0}")]
    Failed(String),
}

impl Sampling {
    /// Messages are made by `handler`; without one every request is refused.
    #[must_use]
    pub fn new(handler: Option<Arc<dyn SamplingHandler>>) -> Self {
        Self { handler, requests: AtomicU32::new(0) }
    }

    /// Whether a server is told that it may ask.
    #[must_use]
    pub fn is_offered(&self) -> bool {
        self.handler.is_some()
    }

    /// Answers one request.
    ///
    /// # Errors
    /// [`SamplingRefused`]; only what the handler was asked counts.
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

impl std::fmt::Debug for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampling").field("is_offered", &self.is_offered()).finish_non_exhaustive()
    }
}
