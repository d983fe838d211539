//! Shortening of conversations that become too long for the model (`SES-16` to `SES-22`).
//!
//! A [`Compaction`] is part of an agent. Before each request to the model, its
//! [`CompactionStrategy`] may remove groups of messages, replace them by a summary, or shorten old
//! results of tools. The response of the run still contains every message, and so does the history
//! of the session. If the run has a session, its [history](crate::History) also stores what
//! replaced the old messages, so that the next run begins with the short conversation.
//!
//! Nothing happens if the service keeps the conversation ([`ChatClient::keeps_conversation`]),
//! because only the service can then shorten it.
//!
//! [`ChatClient::keeps_conversation`]: crate::ChatClient::keeps_conversation

mod conversation;
mod group;
mod limit;
#[cfg(feature = "openai-tokens")]
mod openai;
mod record;
mod strategies;
mod summary;
mod tokens;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use async_trait::async_trait;

pub use conversation::Conversation;
pub(crate) use conversation::RequestSize;
pub use group::{GroupKind, MessageGroup};
pub use limit::{ContextWindow, TokenLimit};
#[cfg(feature = "openai-tokens")]
pub use openai::OpenAiTokens;
pub use record::is_compaction_record;
pub(crate) use record::{CompactionSnapshot, RestoredHistory, restore};
pub use strategies::{SlidingWindow, ToolResults};
pub use summary::Summarize;
pub use tokens::{TokenCounter, TokenEstimate};

use crate::BoxError;

/// Shortens conversations before the requests of a run.
///
/// ```
/// use cofferdam_agent::compaction::{Compaction, Summarize, TokenLimit, ToolResults};
/// use cofferdam_agent::{Agent, Reply, ScriptedClient};
///
/// # fn main() -> Result<(), cofferdam_agent::InvalidAgent> {
/// # let model = ScriptedClient::new([Reply::text("hi")]);
/// # let small_model = model.clone();
/// // Above 100,000 tokens: shorten old results; if that is not enough, summarize.
/// let limit = TokenLimit::new(100_000)
///     .then(ToolResults::shorten(4, 400))
///     .then(Summarize::new(small_model));
/// let compaction = Compaction::new(limit).observer(|report| {
///     println!("{} -> {} tokens", report.tokens_before, report.tokens_after);
/// });
/// let agent = Agent::builder(model).compaction(compaction).build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Compaction {
    pub(crate) strategy: Arc<dyn CompactionStrategy>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) observer: Option<CompactionObserver>,
}

/// A way to shorten a conversation.
///
/// Called before every request, so it decides by itself if there is anything to do.
#[async_trait]
pub trait CompactionStrategy: Send + Sync {
    /// Shortens a conversation, or leaves it unchanged. Dropped when the run is canceled.
    ///
    /// # Errors
    /// Any. It is logged, and the run continues with the conversation unchanged.
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError>;
}

/// Receives the report of each compaction. Must not block.
pub type CompactionObserver = Arc<dyn Fn(&CompactionReport) + Send + Sync>;

/// Size of a conversation before and after a compaction.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactionReport {
    /// Number of messages before.
    pub messages_before: usize,
    /// Number of messages after, the summary included.
    pub messages_after: usize,
    /// Tokens of the request before (`SES-20`).
    pub tokens_before: u64,
    /// Estimated tokens of the request after.
    pub tokens_after: u64,
    /// True if a model wrote a new summary.
    pub is_summarized: bool,
}

impl Compaction {
    /// Creates a compaction that counts tokens by [`TokenEstimate`].
    pub fn new(strategy: impl CompactionStrategy + 'static) -> Self {
        Self {
            strategy: Arc::new(strategy),
            counter: Arc::new(TokenEstimate::default()),
            observer: None,
        }
    }

    /// Sets the counter of tokens.
    #[must_use]
    pub fn counter(mut self, counter: impl TokenCounter + 'static) -> Self {
        self.counter = Arc::new(counter);
        self
    }

    /// Sets the receiver of reports, a [`CompactionObserver`].
    #[must_use]
    pub fn observer(
        mut self,
        observer: impl Fn(&CompactionReport) + Send + Sync + 'static,
    ) -> Self {
        self.observer = Some(Arc::new(observer));
        self
    }
}

impl std::fmt::Debug for Compaction {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compaction").finish_non_exhaustive()
    }
}
