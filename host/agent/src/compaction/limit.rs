//! Strategies that act above a number of tokens (`SES-19`).

use std::sync::Arc;

use async_trait::async_trait;

use super::{CompactionStrategy, Conversation, ToolResults};
use crate::BoxError;

/// Maximum characters of an old result in a [`ContextWindow`].
const RESULT_CHARS_MAX: usize = 400;

/// Keeps requests within a number of tokens.
///
/// Above the limit it applies its strategies in order until the request is at or below the target.
/// If that is not enough, it removes the oldest groups, and in the end the summary. Only groups
/// that must stay can exceed the limit.
#[derive(Clone)]
pub struct TokenLimit {
    tokens_max: u64,
    target: u64,
    strategies: Vec<Arc<dyn CompactionStrategy>>,
}

impl TokenLimit {
    /// Creates a limit of `tokens_max` tokens. The target is 80 % of it, because each compaction
    /// costs the provider's cache of the conversation, and the next one should not follow at once.
    #[must_use]
    pub fn new(tokens_max: u64) -> Self {
        Self { tokens_max, target: percent(tokens_max, 80), strategies: Vec::new() }
    }

    /// Sets the target in tokens. A target above the limit counts as the limit.
    #[must_use]
    pub fn target(mut self, tokens: u64) -> Self {
        self.target = tokens.min(self.tokens_max);
        self
    }

    /// Adds a strategy after those already added.
    #[must_use]
    pub fn then(mut self, strategy: impl CompactionStrategy + 'static) -> Self {
        self.strategies.push(Arc::new(strategy));
        self
    }
}

#[async_trait]
impl CompactionStrategy for TokenLimit {
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError> {
        if conversation.tokens() <= self.tokens_max {
            return Ok(());
        }
        for strategy in &self.strategies {
            if let Err(error) = strategy.compact(conversation).await {
                tracing::warn!(%error, "a strategy did not shorten the conversation");
            }
            if conversation.tokens() <= self.target {
                return Ok(());
            }
        }
        while conversation.tokens() > self.target && conversation.remove_oldest() {}
        if conversation.tokens() > self.tokens_max {
            conversation.forget_summary();
        }
        if conversation.tokens() > self.tokens_max {
            let (tokens, tokens_max) = (conversation.tokens(), self.tokens_max);
            tracing::warn!(tokens, tokens_max, "the messages that must stay exceed the limit");
        }
        Ok(())
    }
}

/// Keeps requests within the context window of a model.
///
/// Above 50 % of the tokens available for requests it shortens old results; above 80 % it applies
/// its strategies, and removes the oldest groups until 50 % are used.
#[derive(Clone)]
pub struct ContextWindow {
    tokens_max: u64,
    results_percent: u64,
    results: ToolResults,
    whole: TokenLimit,
}

impl ContextWindow {
    /// Creates the strategy for a model with a context window of `window` tokens, of which
    /// `output_max` are reserved for the reply.
    #[must_use]
    pub fn new(window: u64, output_max: u64) -> Self {
        let tokens_max = window.saturating_sub(output_max);
        let whole = TokenLimit::new(percent(tokens_max, 80)).target(percent(tokens_max, 50));
        let results = ToolResults::shorten(4, RESULT_CHARS_MAX);
        Self { tokens_max, results_percent: 50, results, whole }
    }

    /// Sets how old results are shortened, and above which percentage of the available tokens.
    #[must_use]
    pub fn results(mut self, above_percent: u64, results: ToolResults) -> Self {
        (self.results_percent, self.results) = (above_percent, results);
        self
    }

    /// Sets the percentage of the available tokens above which everything else is shortened, and
    /// the percentage that is left afterwards.
    #[must_use]
    pub fn whole(mut self, above_percent: u64, target_percent: u64) -> Self {
        self.whole.tokens_max = percent(self.tokens_max, above_percent);
        self.whole = self.whole.target(percent(self.tokens_max, target_percent));
        self
    }

    /// Adds a strategy to apply before groups are removed.
    #[must_use]
    pub fn then(mut self, strategy: impl CompactionStrategy + 'static) -> Self {
        self.whole = self.whole.then(strategy);
        self
    }
}

#[async_trait]
impl CompactionStrategy for ContextWindow {
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError> {
        if conversation.tokens() > percent(self.tokens_max, self.results_percent) {
            self.results.compact(conversation).await?;
        }
        self.whole.compact(conversation).await
    }
}

fn percent(tokens: u64, percent: u64) -> u64 {
    u64::try_from(u128::from(tokens) * u128::from(percent) / 100).unwrap_or(u64::MAX)
}
