//! Summaries by a model (`SES-19`).

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;

use super::strategies::old_groups;
use super::{CompactionStrategy, Conversation, TokenCounter, TokenEstimate};
use crate::{
    BoxError, ChatClient, ChatOptions, ChatRequest, Message, MessageContent, Role, ToolMode,
};

/// Request to the model for a summary.
const REQUEST: &str = "Summarise the record above for yourself: you will go on with the task and \
                       see the summary in its place. Keep the task, decisions, findings, names, \
                       paths and numbers that still matter, and what is left to do. Write nothing \
                       else.";
/// Maximum bytes of one content that go into a summary.
const PIECE_BYTES_MAX: usize = 16 * 1024;

/// Replaces old groups by a summary that a model writes.
///
/// If the model fails or gives no summary, nothing changes.
#[derive(Clone)]
pub struct Summarize {
    client: Arc<dyn ChatClient>,
    keep: usize,
    slack: usize,
    input_tokens_max: u64,
    request: String,
}

impl Summarize {
    /// Creates a strategy that keeps the newest 4 groups, and acts when there are more than 2 older
    /// ones that can be removed. `client` may be a smaller model than the one that works.
    #[must_use]
    pub fn new(client: impl ChatClient + 'static) -> Self {
        let (client, request) = (Arc::new(client), REQUEST.to_owned());
        Self { client, keep: 4, slack: 2, input_tokens_max: 100_000, request }
    }

    /// Sets the number of newest groups that are retained.
    #[must_use]
    pub fn keep(mut self, groups: usize) -> Self {
        self.keep = groups;
        self
    }

    /// Sets the number of older groups that do not yet lead to a summary.
    #[must_use]
    pub fn slack(mut self, groups: usize) -> Self {
        self.slack = groups;
        self
    }

    /// Sets the estimated maximum size of one request for a summary in tokens. A longer record is
    /// summarized in several requests, each of which continues the summary so far.
    #[must_use]
    pub fn input_tokens_max(mut self, tokens: u64) -> Self {
        self.input_tokens_max = tokens;
        self
    }

    /// Sets what the model is asked to do with the record of the conversation.
    #[must_use]
    pub fn request(mut self, request: impl Into<String>) -> Self {
        self.request = request.into();
        self
    }

    async fn ask(
        &self,
        record: &str,
        conversation: &mut Conversation<'_>,
    ) -> Result<String, BoxError> {
        let request = ChatRequest {
            messages: vec![Arc::new(Message::user(format!("{record}\n{}", self.request)))],
            options: ChatOptions { tool_choice: Some(ToolMode::None), ..ChatOptions::default() },
            cancellation: conversation.cancellation(),
            ..ChatRequest::default()
        };
        let reply = self.client.reply(request).await?;
        if let Some(usage) = reply.usage {
            conversation.add_usage(usage);
        }
        let text: String = reply.messages.iter().map(Message::text).collect();
        if text.trim().is_empty() { Err("the model gave no summary".into()) } else { Ok(text) }
    }
}

#[async_trait]
impl CompactionStrategy for Summarize {
    async fn compact(&self, conversation: &mut Conversation<'_>) -> Result<(), BoxError> {
        let old = old_groups(conversation, self.keep, |_| true);
        let can_go =
            |index: &&usize| conversation.groups().get(**index).is_some_and(|group| !group.stays);
        if old.iter().filter(can_go).count() <= self.slack {
            return Ok(());
        }
        let counter = TokenEstimate::default();
        let mut record = String::new();
        if let Some(summary) = conversation.summary() {
            describe(summary, &mut record);
        }
        for index in &old {
            let mut piece = String::new();
            let messages = conversation.groups().get(*index).into_iter();
            messages
                .flat_map(|group| group.messages())
                .for_each(|message| describe(message, &mut piece));
            let tokens = counter.text(&record).saturating_add(counter.text(&piece));
            if tokens > self.input_tokens_max && !record.is_empty() {
                let summary = self.ask(&record, conversation).await?;
                record.clear();
                describe(&Message::user(summary), &mut record);
            }
            record.push_str(&piece);
        }
        let summary = self.ask(&record, conversation).await?;
        conversation.summarize(&old, &summary);
        Ok(())
    }
}

/// Describes a message as a string, because providers accept calls and results only if their
/// functions are declared.
fn describe(message: &Message, record: &mut String) {
    for content in &message.contents {
        // Writing into a string cannot fail.
        let _ = match content {
            MessageContent::Text(text) => {
                writeln!(record, "{}: {}", speaker(message.role), piece(&text.text))
            }
            MessageContent::FunctionCall(call) => {
                writeln!(record, "You called {} with {}", call.name, piece(&call.arguments))
            }
            MessageContent::FunctionResult(result) => {
                writeln!(record, "Result: {}", piece(&result.result))
            }
            _ => Ok(()),
        };
    }
}

fn speaker(role: Role) -> &'static str {
    match role {
        Role::System => "Instructions",
        Role::User => "Person",
        Role::Assistant => "You",
        Role::Tool => "Tool",
    }
}

fn piece(text: &str) -> &str {
    text.get(..text.floor_char_boundary(PIECE_BYTES_MAX)).unwrap_or(text)
}
