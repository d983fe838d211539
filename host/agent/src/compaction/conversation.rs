//! A conversation while strategies shorten it.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use super::group::groups;
use super::{CompactionReport, GroupKind, MessageGroup, TokenCounter};
use crate::{FunctionResult, Message, MessageContent, TokenUsage};

/// Heading of a summary.
const HEADING: &str = "Summary of what has happened so far:";
/// Text that replaces messages that were removed without a summary.
const OMISSION: &str = "Earlier messages of this conversation were left out.";
/// End of a shortened result.
const SHORTENED: &str = "… [shortened]";
/// Key in [`Message::additional_properties`] that marks a summary.
const SUMMARY: &str = "is_summary";

/// A conversation that a [`CompactionStrategy`](super::CompactionStrategy) shortens.
///
/// Groups that must stay (`SES-17`) cannot be removed. A summary is a user message after the
/// leading system messages (`SES-18`); it is not one of the groups.
pub struct Conversation<'a> {
    counter: &'a dyn TokenCounter,
    groups: Vec<MessageGroup>,
    /// Summary, or the note that messages were left out.
    head: Option<Arc<Message>>,
    /// Tokens of everything by the counter, including instructions and functions.
    estimate: u64,
    /// `estimate` before any change.
    estimate_before: u64,
    tokens_before: u64,
    messages_before: usize,
    is_changed: bool,
    is_summarized: bool,
    usage: Option<TokenUsage>,
    cancellation: CancellationToken,
}

/// Tokens of a request before it is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RequestSize {
    /// Tokens of the instructions and functions, by the counter.
    pub(crate) fixed: u64,
    /// Tokens of the whole request (`SES-20`).
    pub(crate) total: u64,
}

impl<'a> Conversation<'a> {
    pub(crate) fn new(
        messages: &[Arc<Message>],
        counter: &'a dyn TokenCounter,
        size: RequestSize,
        cancellation: CancellationToken,
    ) -> Self {
        let mut placed: Vec<_> = messages.iter().cloned().enumerate().collect();
        let head = placed.iter().position(|(_, message)| is_summary(message));
        let head = head.map(|index| placed.remove(index).1);
        let groups = groups(&placed, counter);
        let of_groups = groups.iter().map(|group| group.tokens).sum::<u64>();
        let of_head = head.as_ref().map_or(0, |head| counter.message(head));
        let estimate = size.fixed.saturating_add(of_groups).saturating_add(of_head);
        Self {
            counter,
            groups,
            head,
            estimate,
            estimate_before: estimate,
            tokens_before: size.total,
            messages_before: messages.len(),
            is_changed: false,
            is_summarized: false,
            usage: None,
            cancellation,
        }
    }

    /// Returns the groups in order, without the summary.
    #[must_use]
    pub fn groups(&self) -> &[MessageGroup] {
        &self.groups
    }

    /// Returns the summary or the note that stands for removed messages, if there is one.
    #[must_use]
    pub fn summary(&self) -> Option<&Message> {
        self.head.as_deref()
    }

    /// Returns the tokens of the request in its current form, including instructions and functions
    /// (`SES-20`).
    #[must_use]
    pub fn tokens(&self) -> u64 {
        if !self.is_changed || self.estimate_before == 0 {
            return self.tokens_before;
        }
        // A counter that has counted too few tokens still does.
        let scaled = u128::from(self.estimate) * u128::from(self.tokens_before);
        let scaled = scaled.div_ceil(u128::from(self.estimate_before));
        let scaled = u64::try_from(scaled).unwrap_or(u64::MAX);
        scaled.max(self.estimate)
    }

    /// Returns the token of the run's cancellation, for requests of a strategy.
    #[must_use]
    pub fn cancellation(&self) -> CancellationToken {
        self.cancellation.clone()
    }

    /// Counts tokens that the strategy has used; they become part of the usage of the run.
    pub fn add_usage(&mut self, usage: TokenUsage) {
        *self.usage.get_or_insert_default() += usage;
    }

    /// Removes a group. Returns false if there is no such group or it must stay.
    pub fn remove(&mut self, index: usize) -> bool {
        if !self.take(index) {
            return false;
        }
        if self.head.is_none() {
            self.set_head(Some(Message::user(OMISSION)));
        }
        true
    }

    /// Removes the oldest group that may be removed. Returns false if there is none.
    pub fn remove_oldest(&mut self) -> bool {
        let oldest = self.groups.iter().position(|group| !group.stays);
        oldest.is_some_and(|index| self.remove(index))
    }

    /// Removes the groups at these indices, except those that must stay, and sets a summary of
    /// them, which replaces an earlier summary.
    pub fn summarize(&mut self, indices: &[usize], summary: &str) {
        let mut indices = indices.to_vec();
        indices.sort_unstable();
        indices.into_iter().rev().for_each(|index| {
            self.take(index);
        });
        self.set_head(Some(Message::user(format!("{HEADING}\n{summary}"))));
        self.is_summarized = true;
    }

    /// Replaces the summary by a note that messages were left out.
    pub fn forget_summary(&mut self) {
        if self.head.is_some() {
            self.set_head(Some(Message::user(OMISSION)));
        }
    }

    /// Shortens the results of a group to `chars_max` characters each, and leaves out their images.
    /// Does nothing if there is no such group or it must stay.
    pub fn shorten_results(&mut self, index: usize, chars_max: usize) {
        let Some(group) = self.groups.get_mut(index).filter(|group| !group.stays) else { return };
        let must_shorten = |result: &FunctionResult| {
            is_long(&result.result, chars_max) || !result.items.is_empty()
        };
        let mut is_changed = false;
        for (_, message) in &mut group.messages {
            if !message.results().any(must_shorten) {
                continue;
            }
            is_changed = true;
            for content in &mut Arc::make_mut(message).contents {
                if let MessageContent::FunctionResult(result) = content
                    && must_shorten(result)
                {
                    let start: String = result.result.chars().take(chars_max).collect();
                    result.result = format!("{start}{SHORTENED}");
                    result.items.clear();
                }
            }
        }
        if is_changed {
            let before = group.tokens;
            let counted = group.messages.iter().map(|(_, message)| self.counter.message(message));
            group.tokens = counted.sum();
            self.estimate = self.estimate.saturating_sub(before).saturating_add(group.tokens);
            self.is_changed = true;
        }
    }

    fn take(&mut self, index: usize) -> bool {
        if self.groups.get(index).is_none_or(|group| group.stays) {
            return false;
        }
        let removed = self.groups.remove(index);
        self.estimate = self.estimate.saturating_sub(removed.tokens);
        self.is_changed = true;
        true
    }

    fn set_head(&mut self, message: Option<Message>) {
        let tokens = |head: &Option<Arc<Message>>| {
            head.as_ref().map_or(0, |head| self.counter.message(head))
        };
        let head = message.map(|mut message| {
            message.additional_properties.insert(SUMMARY.to_owned(), true.into());
            Arc::new(message)
        });
        let (before, after) = (tokens(&self.head), tokens(&head));
        self.estimate = self.estimate.saturating_sub(before).saturating_add(after);
        self.head = head;
        self.is_changed = true;
    }

    /// Returns the tokens that strategies have used.
    pub(crate) fn usage(&self) -> Option<TokenUsage> {
        self.usage
    }

    /// Returns the shortened messages; `None` if nothing was changed.
    pub(crate) fn finish(self) -> Option<(Vec<Arc<Message>>, CompactionReport)> {
        if !self.is_changed {
            return None;
        }
        let (tokens_before, tokens_after) = (self.tokens_before, self.tokens());
        let is_leading =
            |group: &&MessageGroup| matches!(group.kind, GroupKind::System | GroupKind::Context);
        let leading: usize =
            self.groups.iter().take_while(is_leading).map(|group| group.messages.len()).sum();
        let mut placed: Vec<_> = self.groups.into_iter().flat_map(|group| group.messages).collect();
        placed.sort_by_key(|(position, _)| *position);
        let mut messages: Vec<_> = placed.into_iter().map(|(_, message)| message).collect();
        if let Some(head) = self.head {
            messages.insert(leading.min(messages.len()), head);
        }
        let messages: Vec<_> = messages.into_iter().filter_map(without_reasoning).collect();
        let report = CompactionReport {
            messages_before: self.messages_before,
            messages_after: messages.len(),
            tokens_before,
            tokens_after,
            is_summarized: self.is_summarized,
        };
        Some((messages, report))
    }
}

fn is_summary(message: &Message) -> bool {
    message.additional_properties.contains_key(SUMMARY)
}

/// Returns whether a result has more than `chars_max` characters and has not been shortened.
fn is_long(result: &str, chars_max: usize) -> bool {
    let start = result.strip_suffix(SHORTENED).unwrap_or(result);
    start.chars().nth(chars_max).is_some()
}

/// Removes reasoning, which providers accept only behind the messages that it followed (`SES-18`).
/// Returns `None` if nothing else is left.
pub(super) fn without_reasoning(mut message: Arc<Message>) -> Option<Arc<Message>> {
    let is_reasoning = |content: &MessageContent| matches!(content, MessageContent::Reasoning(_));
    if message.contents.iter().any(is_reasoning) {
        let contents = &mut Arc::make_mut(&mut message).contents;
        contents.retain(|content| !is_reasoning(content));
        return (!contents.is_empty()).then_some(message);
    }
    Some(message)
}
