//! Token usage.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Token usage as the provider counts it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenUsage {
    /// Tokens of requests.
    pub input: u64,
    /// Tokens of replies.
    pub output: u64,
    /// Total as reported.
    pub total: u64,
    /// Tokens of requests that the provider found in its cache; part of `input`.
    #[serde(skip_serializing_if = "is_zero")]
    pub cached_input: u64,
    /// Tokens of requests that the provider wrote to its cache, which may cost more; part of
    /// `input`.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_write_input: u64,
    /// Tokens of replies spent on reasoning, which is not shown; part of `output`.
    #[serde(skip_serializing_if = "is_zero")]
    pub reasoning: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde asks for")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.total = self.total.saturating_add(other.total);
        self.cached_input = self.cached_input.saturating_add(other.cached_input);
        self.cache_write_input = self.cache_write_input.saturating_add(other.cache_write_input);
        self.reasoning = self.reasoning.saturating_add(other.reasoning);
    }
}
