//! What a model answers, whole or piece by piece.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;

use crate::hooks::Hooks;
use crate::{ChatError, Content, FunctionCall, Message, Reasoning, Role, Text, TokenUsage};

/// One whole reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// The messages; nearly always one of the assistant.
    pub messages: Vec<Message>,
    /// What the reply cost, if the provider says.
    pub usage: Option<TokenUsage>,
    /// The id of the conversation, if the service keeps it (`LOOP-4`).
    pub conversation_id: Option<String>,
    /// Why the model stopped, if the provider says.
    pub finish: Option<FinishReason>,
}

/// Why a model stopped. Nothing but what is shown to people depends on it: some providers say the
/// wrong thing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// It was done.
    Stop,
    /// It wants functions called.
    ToolCalls,
    /// The reply was cut off at the most tokens that it may have.
    Length,
    /// The provider withheld something.
    ContentFilter,
    /// A word of the provider's own.
    Other(String),
}

/// A piece of a reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Update {
    /// Whose message it is a piece of; the assistant's if nothing is said.
    pub role: Option<Role>,
    /// What is new.
    pub deltas: Vec<Delta>,
    /// What the reply cost; the sum of a reply's updates is the reply's.
    pub usage: Option<TokenUsage>,
    /// As in [`Reply`].
    pub conversation_id: Option<String>,
    /// As in [`Reply`].
    pub finish: Option<FinishReason>,
}

/// What is new in an update.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Delta {
    /// More text.
    Text(String),
    /// More reasoning; `opaque` replaces what was there.
    Reasoning(Reasoning),
    /// A piece of a function call.
    Call {
        /// Which call of the reply it is a piece of. Calls stand in the reply in the order in which
        /// their numbers appeared.
        index: usize,
        /// What is new: a text in `call_id` or `name` counts if none was there, `arguments` are
        /// appended.
        call: FunctionCall,
    },
    /// A part that comes whole.
    Content(Content),
}

/// Puts the pieces of a reply together.
#[derive(Debug, Clone, Default)]
pub struct ReplyBuilder {
    role: Option<Role>,
    contents: Vec<Content>,
    /// The place in `contents` of each call, by its number.
    calls: Vec<(usize, usize)>,
    messages: Vec<Message>,
    usage: Option<TokenUsage>,
    conversation_id: Option<String>,
    finish: Option<FinishReason>,
}

impl ReplyBuilder {
    /// Takes the next piece. A change of the role begins another message.
    pub fn add(&mut self, update: Update) {
        if let Some(role) = update.role
            && role != *self.role.get_or_insert(role)
        {
            self.end_message();
            self.role = Some(role);
        }
        for delta in update.deltas {
            self.add_delta(delta);
        }
        if let Some(usage) = update.usage {
            *self.usage.get_or_insert_default() += usage;
        }
        self.conversation_id = update.conversation_id.or(self.conversation_id.take());
        self.finish = update.finish.or(self.finish.take());
    }

    fn add_delta(&mut self, delta: Delta) {
        match delta {
            Delta::Text(more) => match self.contents.last_mut() {
                Some(Content::Text(Text { text, .. })) => text.push_str(&more),
                _ => self.contents.push(Content::text(more)),
            },
            Delta::Reasoning(more) => match self.contents.last_mut() {
                Some(Content::Reasoning(reasoning)) => {
                    reasoning.text.push_str(&more.text);
                    reasoning.opaque = more.opaque.or(reasoning.opaque.take());
                    reasoning.extra.extend(more.extra);
                }
                _ => self.contents.push(Content::Reasoning(more)),
            },
            Delta::Call { index, call: more } => {
                let place =
                    self.calls.iter().find(|(number, _)| *number == index).map(|(_, place)| *place);
                match place.and_then(|place| self.contents.get_mut(place)) {
                    Some(Content::FunctionCall(call)) => {
                        call.arguments.push_str(&more.arguments);
                        call.extra.extend(more.extra);
                        for (known, new) in
                            [(&mut call.call_id, more.call_id), (&mut call.name, more.name)]
                        {
                            if known.is_empty() {
                                *known = new;
                            }
                        }
                    }
                    _ => {
                        self.calls.push((index, self.contents.len()));
                        self.contents.push(Content::FunctionCall(more));
                    }
                }
            }
            Delta::Content(content) => self.contents.push(content),
        }
    }

    fn end_message(&mut self) {
        if !self.contents.is_empty() {
            let contents = std::mem::take(&mut self.contents);
            self.messages.push(Message::new(self.role.unwrap_or(Role::Assistant), contents));
        }
        self.calls.clear();
    }

    /// The reply so far.
    #[must_use]
    pub fn build(mut self) -> Reply {
        self.end_message();
        Reply {
            messages: self.messages,
            usage: self.usage,
            conversation_id: self.conversation_id,
            finish: self.finish,
        }
    }
}

impl Reply {
    /// A reply that is one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { messages: vec![Message::assistant(text)], ..Self::default() }
    }

    /// The reply as updates of which each is one whole message.
    #[must_use]
    pub fn into_updates(self) -> Vec<Update> {
        let updates = self.messages.into_iter().map(|message| {
            let mut calls = 0;
            let delta = |content| match content {
                Content::FunctionCall(call) => {
                    calls += 1;
                    Delta::Call { index: calls - 1, call }
                }
                other => Delta::Content(other),
            };
            let deltas = message.contents.into_iter().map(delta).collect();
            Update { role: Some(message.role), deltas, ..Update::default() }
        });
        let mut updates: Vec<_> = updates.collect();
        updates.push(Update {
            usage: self.usage,
            conversation_id: self.conversation_id,
            finish: self.finish,
            ..Update::default()
        });
        updates
    }
}

/// A reply that comes piece by piece. Dropping it ends the request.
///
/// Middleware works on what will come through the hooks (`MW-5`):
/// [`map_updates`](Self::map_updates), [`map_reply`](Self::map_reply), [`on_end`](Self::on_end).
pub struct ReplyStream {
    inner: Pin<Box<dyn Stream<Item = Result<Update, ChatError>> + Send>>,
    hooks: Hooks<Reply>,
}

impl ReplyStream {
    /// A stream of updates.
    pub fn new(updates: impl Stream<Item = Result<Update, ChatError>> + Send + 'static) -> Self {
        Self { inner: Box::pin(updates), hooks: Hooks::default() }
    }

    /// Changes every update that is read from now on.
    #[must_use]
    pub fn map_updates(mut self, change: impl FnMut(Update) -> Update + Send + 'static) -> Self {
        self.hooks.on_update(change);
        self
    }

    /// Changes the whole reply, once it is there. Updates have been read by then.
    #[must_use]
    pub fn map_reply(mut self, change: impl FnOnce(Reply) -> Reply + Send + 'static) -> Self {
        self.hooks.on_whole(change);
        self
    }

    /// Is called when the stream is over, however it ended, also when it is dropped.
    #[must_use]
    pub fn on_end(mut self, end: impl FnOnce() + Send + 'static) -> Self {
        self.hooks.on_end(end);
        self
    }

    /// The whole reply as the hooks want it.
    pub(crate) fn finished(mut self, reply: Reply) -> Reply {
        self.hooks.whole(reply)
    }
}

impl Stream for ReplyStream {
    type Item = Result<Update, ChatError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = ready!(self.inner.as_mut().poll_next(context));
        Poll::Ready(next.map(|update| update.map(|update| self.hooks.update(update))))
    }
}

impl From<Reply> for ReplyStream {
    fn from(reply: Reply) -> Self {
        Self::new(futures_util::stream::iter(reply.into_updates().into_iter().map(Ok)))
    }
}

impl std::fmt::Debug for ReplyStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReplyStream").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: usize, call_id: &str, name: &str, arguments: &str) -> Delta {
        let (call_id, name, arguments) =
            (call_id.to_owned(), name.to_owned(), arguments.to_owned());
        Delta::Call {
            index,
            call: FunctionCall { call_id, name, arguments, ..FunctionCall::default() },
        }
    }

    #[test]
    fn pieces_of_calls_are_put_together_by_their_number() {
        let mut builder = ReplyBuilder::default();
        let deltas = [
            Delta::Text("a".into()),
            Delta::Text("b".into()),
            call(1, "y", "second", ""),
            call(0, "x", "first", "{"),
            call(1, "", "second", "{}"),
            call(0, "x", "", "}"),
        ];
        for delta in deltas {
            builder.add(Update { deltas: vec![delta], ..Update::default() });
        }
        builder.add(Update {
            usage: Some(TokenUsage { total: 3, ..TokenUsage::default() }),
            ..Update::default()
        });
        let reply = builder.build();
        let expected = vec![
            Content::text("ab"),
            Content::call("y", "second", "{}"),
            Content::call("x", "first", "{}"),
        ];
        assert_eq!(reply.messages, [Message::new(Role::Assistant, expected)]);
        assert_eq!(reply.usage.map(|usage| usage.total), Some(3));
    }

    #[test]
    fn a_reply_survives_being_cut_into_updates() {
        let message =
            Message::new(Role::Assistant, vec![Content::text("t"), Content::call("1", "f", "{}")]);
        let tool = Message::new(Role::Tool, vec![Content::result("1", "r")]);
        let reply = Reply { messages: vec![message, tool], ..Reply::text("") };
        let mut builder = ReplyBuilder::default();
        reply.clone().into_updates().into_iter().for_each(|update| builder.add(update));
        assert_eq!(builder.build(), reply);
    }
}
