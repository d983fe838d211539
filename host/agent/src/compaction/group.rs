//! Groups of messages, the unit in which messages are removed (`SES-16`).

use std::sync::Arc;

use super::TokenCounter;
use crate::history::is_loaded;
use crate::{Message, MessageContent, Pairing, Role};

/// Messages that are retained or removed together.
#[derive(Debug, Clone)]
pub struct MessageGroup {
    /// Kind of the group.
    pub kind: GroupKind,
    /// Tokens of its messages.
    pub tokens: u64,
    /// True if the group must stay (`SES-17`).
    pub stays: bool,
    /// Messages with their positions in the conversation.
    pub(super) messages: Vec<(usize, Arc<Message>)>,
}

/// Kind of a [`MessageGroup`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupKind {
    /// A system message.
    System,
    /// A message that a context provider other than the history added. Its provider adds it to
    /// every run.
    Context,
    /// A user message.
    User,
    /// An assistant message without calls.
    Assistant,
    /// An assistant message with calls, its results, and reasoning between them.
    ToolCall,
}

impl MessageGroup {
    /// Returns the messages in order.
    pub fn messages(&self) -> impl Iterator<Item = &Message> {
        self.messages.iter().map(|(_, message)| message.as_ref())
    }

    /// Returns whether the group is part of the conversation proper, and therefore counted by
    /// strategies that keep a number of groups.
    #[must_use]
    pub fn is_counted(&self) -> bool {
        !matches!(self.kind, GroupKind::System | GroupKind::Context)
    }
}

/// Divides messages into groups, in the order of their first messages.
pub(super) fn groups(
    messages: &[(usize, Arc<Message>)],
    counter: &dyn TokenCounter,
) -> Vec<MessageGroup> {
    let mut groups: Vec<MessageGroup> = Vec::new();
    let firsts = first_messages(messages);
    let mut group_of = vec![0; messages.len()];
    for ((index, (position, message)), first) in messages.iter().enumerate().zip(firsts) {
        let known = (first < index).then(|| group_of.get(first).copied()).flatten();
        let number = known.unwrap_or(groups.len());
        if let Some(slot) = group_of.get_mut(index) {
            *slot = number;
        }
        let message = (*position, Arc::clone(message));
        match groups.get_mut(number) {
            Some(group) => group.add(message, counter),
            None => {
                let kind = GroupKind::User;
                let mut group = MessageGroup { kind, tokens: 0, stays: false, messages: vec![] };
                group.add(message, counter);
                groups.push(group);
            }
        }
    }
    mark_newest(&mut groups);
    groups
}

impl MessageGroup {
    fn add(&mut self, message: (usize, Arc<Message>), counter: &dyn TokenCounter) {
        let kind = kind(&message.1);
        if self.messages.is_empty() || kind == GroupKind::ToolCall {
            self.kind = kind;
        }
        self.stays |= !self.is_counted() || message.1.is_pinned();
        self.tokens = self.tokens.saturating_add(counter.message(&message.1));
        self.messages.push(message);
    }
}

/// Keeps the last group and the newest user message, without which the model does not know what it
/// has to do.
fn mark_newest(groups: &mut [MessageGroup]) {
    if let Some(last) = groups.iter_mut().rfind(|group| group.is_counted()) {
        last.stays = true;
    }
    if let Some(user) = groups.iter_mut().rfind(|group| group.kind == GroupKind::User) {
        user.stays = true;
    }
}

fn kind(message: &Message) -> GroupKind {
    match message.role {
        Role::System => GroupKind::System,
        _ if message.source().is_some() && !is_loaded(message) => GroupKind::Context,
        Role::Tool => GroupKind::ToolCall,
        _ if message.calls().next().is_some() => GroupKind::ToolCall,
        Role::User => GroupKind::User,
        Role::Assistant => GroupKind::Assistant,
    }
}

/// Returns the index of the first message of each message's group.
fn first_messages(messages: &[(usize, Arc<Message>)]) -> Vec<usize> {
    let bare: Vec<_> = messages.iter().map(|(_, message)| Arc::clone(message)).collect();
    let pairing = Pairing::of(&bare);
    let mut firsts: Vec<usize> = (0..bare.len()).collect();
    for (index, message) in bare.iter().enumerate() {
        for (content_index, content) in message.contents.iter().enumerate() {
            let result_at =
                content.as_call().and_then(|_| pairing.result_at((index, content_index)));
            if let Some((result, _)) = result_at {
                join(&mut firsts, index, result);
            }
        }
    }
    // Reasoning belongs to what the model does next.
    for (index, [message, next]) in bare.array_windows().enumerate().rev() {
        if is_only_reasoning(message) && matches!(next.role, Role::Assistant | Role::Tool) {
            join(&mut firsts, index, index + 1);
        }
    }
    firsts
}

/// Joins the groups of two messages.
fn join(firsts: &mut [usize], one: usize, other: usize) {
    let first = |index: usize| firsts.get(index).copied().unwrap_or(index);
    let (one, other) = (first(one), first(other));
    let (low, high) = (one.min(other), one.max(other));
    if low == high {
        return;
    }
    // A group begins at its first message, so no message before `high` belongs to that group.
    firsts.iter_mut().skip(high).filter(|first| **first == high).for_each(|first| *first = low);
}

fn is_only_reasoning(message: &Message) -> bool {
    message.role == Role::Assistant
        && !message.contents.is_empty()
        && message.contents.iter().all(|content| matches!(content, MessageContent::Reasoning(_)))
}
