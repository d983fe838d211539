//! Strategies without a model (`SES-19`).

use async_trait::async_trait;

use super::{CompactionStrategy, Conversation, GroupKind};
use crate::BoxError;

/// Keeps the newest groups of a conversation, and removes older ones.
///
/// System messages and messages of context providers do not count; the summary stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlidingWindow {
    groups: usize,
}

/// Removes or shortens old results of tools: of all groups with calls except the newest ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolResults {
    keep: usize,
    /// Maximum characters of an old result; `None` if its group is removed.
    chars_max: Option<usize>,
}

impl SlidingWindow {
    /// Creates a strategy that keeps the newest `groups` groups.
    #[must_use]
    pub fn new(groups: usize) -> Self {
        Self { groups }
    }
}

impl ToolResults {
    /// Removes all groups with calls except the newest `keep`.
    #[must_use]
    pub fn remove(keep: usize) -> Self {
        Self { keep, chars_max: None }
    }

    /// Shortens results in all groups with calls except the newest `keep` to `chars_max`
    /// characters, and leaves out their images. The calls stay.
    #[must_use]
    pub fn shorten(keep: usize, chars_max: usize) -> Self {
        Self { keep, chars_max: Some(chars_max) }
    }
}

/// Returns the indices of all groups that count, except the newest `keep`, oldest first.
pub(super) fn old_groups(
    conversation: &Conversation<'_>,
    keep: usize,
    counts: impl Fn(GroupKind) -> bool,
) -> Vec<usize> {
    let groups = conversation.groups().iter().enumerate();
    let mut indices: Vec<_> = groups
        .filter(|(_, group)| group.is_counted() && counts(group.kind))
        .map(|(index, _)| index)
        .collect();
    indices.truncate(indices.len().saturating_sub(keep));
    indices
}

#[async_trait]
impl CompactionStrategy for SlidingWindow {
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError> {
        let old = old_groups(conversation, self.groups, |_| true);
        old.into_iter().rev().for_each(|index| {
            conversation.remove(index);
        });
        Ok(())
    }
}

#[async_trait]
impl CompactionStrategy for ToolResults {
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError> {
        let old = old_groups(conversation, self.keep, |kind| kind == GroupKind::ToolCall);
        for index in old.into_iter().rev() {
            match self.chars_max {
                Some(chars_max) => conversation.shorten_results(index, chars_max),
                None => {
                    conversation.remove(index);
                }
            }
        }
        Ok(())
    }
}
