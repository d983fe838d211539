//! Replies of a model, whole or streamed.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use serde_json::{Map, Value};

use crate::hooks::Hooks;
use crate::{
    ChatError, FunctionCall, Message, MessageContent, Reasoning, Role, TextContent, TokenUsage,
};

/// One whole reply of a model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reply {
    /// Messages of the reply; nearly always one of the assistant.
    pub messages: Vec<Message>,
    /// Token usage, if the provider reports it.
    pub usage: Option<TokenUsage>,
    /// Id of the conversation, if the service stores it (`LOOP-4`).
    pub conversation_id: Option<String>,
    /// Reason why the model stopped, if the provider reports it.
    pub finish: Option<FinishReason>,
}

/// Reason why a model stopped. The loop relies on it only where it needs a structured answer and
/// has none (`LOOP-66`), because some providers report a wrong one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The model calls functions.
    ToolCalls,
    /// The reply reached the maximum number of tokens.
    Length,
    /// The provider withheld something.
    ContentFilter,
    /// The model refused to answer; its text says why.
    Refusal,
    /// A reason specific to the provider.
    Other(String),
}

impl FinishReason {
    /// Returns the word for the reason in logs and transcripts: that of the provider for
    /// [`Other`](Self::Other).
    #[must_use]
    pub fn word(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool_calls",
            Self::Length => "length",
            Self::ContentFilter => "content_filter",
            Self::Refusal => "refusal",
            Self::Other(reason) => reason,
        }
    }
}

/// One piece of a streamed reply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Update {
    /// Role of the message that this belongs to; the assistant's by default.
    pub role: Option<Role>,
    /// New content.
    pub deltas: Vec<Delta>,
    /// Token usage; the updates of a reply add up.
    pub usage: Option<TokenUsage>,
    /// Like [`Reply::conversation_id`].
    pub conversation_id: Option<String>,
    /// Like [`Reply::finish`].
    pub finish: Option<FinishReason>,
}

/// New content in an [`Update`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Delta {
    /// Text to append.
    Text(String),
    /// End of the current text, so that text after it is another content. The fields join the
    /// record of the text, for example its citations.
    TextEnd(Map<String, Value>),
    /// Reasoning to append; `opaque` replaces the earlier value.
    Reasoning(Reasoning),
    /// A piece of a function call.
    Call {
        /// Number of the call within the reply. The reply lists calls in the order in which their
        /// numbers first appeared.
        index: usize,
        /// New parts of the call: `call_id` and `name` count if they were empty so far, `arguments`
        /// is appended.
        call: FunctionCall,
    },
    /// Content that arrives as a whole.
    Content(MessageContent),
}

/// Builder for [`Reply`] that combines updates.
#[derive(Debug, Clone, Default)]
pub struct ReplyBuilder {
    role: Option<Role>,
    contents: Vec<MessageContent>,
    /// True if the last content is a text to which nothing is appended.
    is_text_ended: bool,
    /// Number of each call, and its index in `contents`.
    calls: Vec<(usize, usize)>,
    messages: Vec<Message>,
    usage: Option<TokenUsage>,
    conversation_id: Option<String>,
    finish: Option<FinishReason>,
}

impl ReplyBuilder {
    /// Adds an update. A change of role begins another message.
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
                Some(MessageContent::Text(TextContent { text, .. })) if !self.is_text_ended => {
                    text.push_str(&more)
                }
                _ => {
                    self.is_text_ended = false;
                    self.contents.push(MessageContent::text(more));
                }
            },
            Delta::TextEnd(fields) => {
                if let Some(MessageContent::Text(text)) = self.contents.last_mut() {
                    text.extra.extend(fields);
                    self.is_text_ended = true;
                }
            }
            Delta::Reasoning(more) => match self.contents.last_mut() {
                Some(MessageContent::Reasoning(reasoning)) => {
                    reasoning.text.push_str(&more.text);
                    reasoning.opaque = more.opaque.or(reasoning.opaque.take());
                    reasoning.extra.extend(more.extra);
                }
                _ => self.contents.push(MessageContent::Reasoning(more)),
            },
            Delta::Call { index, call: more } => {
                let position = self
                    .calls
                    .iter()
                    .find(|(number, _)| *number == index)
                    .map(|(_, position)| *position);
                match position.and_then(|position| self.contents.get_mut(position)) {
                    Some(MessageContent::FunctionCall(call)) => {
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
                        self.contents.push(MessageContent::FunctionCall(more));
                    }
                }
            }
            Delta::Content(content) => {
                self.is_text_ended = false;
                self.contents.push(content);
            }
        }
    }

    fn end_message(&mut self) {
        if !self.contents.is_empty() {
            let contents = std::mem::take(&mut self.contents);
            self.messages.push(Message::new(self.role.unwrap_or(Role::Assistant), contents));
        }
        self.calls.clear();
    }

    /// Returns the reply so far.
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
    /// Creates a reply with one text content.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { messages: vec![Message::assistant(text)], ..Self::default() }
    }

    /// Splits the reply into updates, each one whole message.
    #[must_use]
    pub fn into_updates(self) -> Vec<Update> {
        let updates = self.messages.into_iter().map(|message| {
            let mut calls = 0;
            let delta = |content| match content {
                MessageContent::FunctionCall(call) => {
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

/// A streamed reply. Dropping it ends the request.
///
/// Middleware uses hooks to work on content that has not arrived yet (`MW-5`):
/// [`map_updates`](Self::map_updates), [`map_reply`](Self::map_reply), [`on_end`](Self::on_end).
pub struct ReplyStream {
    inner: Pin<Box<dyn Stream<Item = Result<Update, ChatError>> + Send>>,
    hooks: Hooks<Reply>,
}

impl ReplyStream {
    /// Creates a stream from updates.
    pub fn new(updates: impl Stream<Item = Result<Update, ChatError>> + Send + 'static) -> Self {
        Self { inner: Box::pin(updates), hooks: Hooks::default() }
    }

    /// Applies a function to every update from now on.
    #[must_use]
    pub fn map_updates(mut self, change: impl FnMut(Update) -> Update + Send + 'static) -> Self {
        self.hooks.on_update(change);
        self
    }

    /// Applies a function to the whole reply once it is complete. By then the updates have been
    /// read.
    #[must_use]
    pub fn map_reply(mut self, change: impl FnOnce(Reply) -> Reply + Send + 'static) -> Self {
        self.hooks.on_whole(change);
        self
    }

    /// Calls a function when the stream ends for any reason, including when it is dropped.
    #[must_use]
    pub fn on_end(mut self, end: impl FnOnce() + Send + 'static) -> Self {
        self.hooks.on_end(end);
        self
    }

    /// Applies the hooks to the whole reply.
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
            MessageContent::text("ab"),
            MessageContent::call("y", "second", "{}"),
            MessageContent::call("x", "first", "{}"),
        ];
        assert_eq!(reply.messages, [Message::new(Role::Assistant, expected)]);
        assert_eq!(reply.usage.map(|usage| usage.total), Some(3));
    }

    #[test]
    fn text_after_the_end_of_a_text_is_another_content() {
        let mut builder = ReplyBuilder::default();
        let fields = Map::from_iter([("citations".to_owned(), serde_json::json!([1]))]);
        let text = |text: &str| Delta::Text(text.to_owned());
        let deltas = vec![
            text("a"),
            text("b"),
            Delta::TextEnd(fields.clone()),
            text("c"),
            text("d"),
            Delta::TextEnd(Map::new()),
            call(0, "x", "f", "{}"),
            text("e"),
            text("f"),
        ];
        builder.add(Update { deltas, ..Update::default() });
        let cited = TextContent { text: "ab".to_owned(), extra: fields };
        let expected = vec![
            MessageContent::Text(cited),
            MessageContent::text("cd"),
            MessageContent::call("x", "f", "{}"),
            MessageContent::text("ef"),
        ];
        assert_eq!(builder.build().messages, [Message::new(Role::Assistant, expected)]);
    }

    #[test]
    fn a_reply_survives_being_cut_into_updates() {
        let message = Message::new(
            Role::Assistant,
            vec![MessageContent::text("t"), MessageContent::call("1", "f", "{}")],
        );
        let tool = Message::new(Role::Tool, vec![MessageContent::result("1", "r")]);
        let reply = Reply { messages: vec![message, tool], ..Reply::text("") };
        let mut builder = ReplyBuilder::default();
        reply.clone().into_updates().into_iter().for_each(|update| builder.add(update));
        assert_eq!(builder.build(), reply);
    }
}
