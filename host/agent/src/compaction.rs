//! Shortening of long runs by summaries.

use std::fmt::Write as _;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{
    BoxError, ChatClient, ChatOptions, ChatRequest, IterationContext, IterationHook, Message,
    MessageContent, Role, ToolMode,
};

/// Request to the model for a summary.
const REQUEST: &str = "Summarise the record above for yourself: you will go on with the task and see the summary in its \
                       place. Keep the task, decisions, findings, names, paths and numbers that \
                       still matter, and what is \
                       left to do. Write nothing else.";
/// Heading of a summary.
const HEADING: &str = "Summary of what has happened so far:";
/// Maximum number of bytes of one content that go into a summary.
const PIECE_BYTES_MAX: usize = 16 * 1024;
/// Source id that marks summaries among messages.
const SOURCE: &str = "compaction";

/// [`IterationHook`] that replaces old messages by a summary when a run becomes long.
///
/// It keeps the system messages, the task (the first user message of the run) and the newest
/// messages. Calls and their results stay together. The response of the run still contains every
/// message. If the model gives no summary, nothing changes.
pub struct Compaction {
    client: Arc<dyn ChatClient>,
    bytes_max: usize,
    messages_kept: usize,
}

impl Compaction {
    /// Creates a hook that summarizes with `client` when the text of all messages exceeds
    /// `bytes_max` bytes. It keeps at least the last `messages_kept` messages.
    pub fn new(client: impl ChatClient + 'static, bytes_max: usize, messages_kept: usize) -> Self {
        Self { client: Arc::new(client), bytes_max, messages_kept }
    }

    async fn summary(&self, old: &[Arc<Message>]) -> Result<String, BoxError> {
        let mut record = String::new();
        old.iter().for_each(|message| describe(message, &mut record));
        let request = ChatRequest {
            messages: vec![Arc::new(Message::user(format!("{record}\n{REQUEST}")))],
            options: ChatOptions { tool_choice: Some(ToolMode::None), ..ChatOptions::default() },
            ..ChatRequest::default()
        };
        let reply = self.client.reply(request).await?;
        let text: String = reply.messages.iter().map(Message::text).collect();
        if text.trim().is_empty() { Err("the model gave no summary".into()) } else { Ok(text) }
    }
}

#[async_trait]
impl IterationHook for Compaction {
    async fn completed(&self, context: &mut IterationContext<'_>) -> Result<(), BoxError> {
        let messages = &mut *context.messages;
        if messages.iter().map(|message| size(message)).sum::<usize>() <= self.bytes_max {
            return Ok(());
        }
        let first = messages.iter().take_while(|message| message.role == Role::System).count();
        let last = first_kept(messages, self.messages_kept);
        let Some(old) = messages.get(first..last) else { return Ok(()) };
        let task = old
            .iter()
            .find(|message| message.role == Role::User && message.source().is_none())
            .cloned();
        // The summary and the task replace the old messages, so there have to be at least three to
        // gain anything.
        if old.len() < 3 {
            return Ok(());
        }
        match self.summary(old).await {
            Ok(summary) => {
                let summary = Message::user(format!("{HEADING}\n{summary}")).from_source(SOURCE);
                messages.splice(first..last, [Arc::new(summary)].into_iter().chain(task));
            }
            // The run can continue as it is. If it is too long for the model, the model reports
            // that.
            Err(error) => tracing::warn!(%error, "the messages of a run were not summarised"),
        }
        Ok(())
    }
}

/// Returns the index of the first message to keep, which is never between a call and its results.
fn first_kept(messages: &[Arc<Message>], kept: usize) -> usize {
    let newest = messages.len().saturating_sub(kept);
    let is_result =
        |at: &usize| messages.get(*at).is_some_and(|message| message.role == Role::Tool);
    (0..=newest).rev().find(|at| !is_result(at)).unwrap_or_default()
}

fn size(message: &Message) -> usize {
    let size = |content: &MessageContent| match content {
        MessageContent::Text(text) => text.text.len(),
        MessageContent::FunctionCall(call) => call.name.len() + call.arguments.len(),
        MessageContent::FunctionResult(result) => result.result.len(),
        MessageContent::Data(data) => data.data.len(),
        _ => 0,
    };
    message.contents.iter().map(size).sum()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reply, ScriptedClient};

    fn call(id: &str) -> Arc<Message> {
        Arc::new(Message::new(Role::Assistant, vec![MessageContent::call(id, "f", "{}")]))
    }

    fn result(id: &str) -> Arc<Message> {
        Arc::new(Message::new(Role::Tool, vec![MessageContent::result(id, "r".repeat(100))]))
    }

    fn long_run() -> Vec<Arc<Message>> {
        let mut messages =
            vec![Arc::new(Message::system("rules")), Arc::new(Message::user("task"))];
        for id in ["1", "2", "3", "4"] {
            messages.extend([call(id), result(id)]);
        }
        messages
    }

    async fn compacted(kept: usize, summary: &str) -> Vec<String> {
        let client = ScriptedClient::new([Reply::text(summary)]);
        let mut messages = long_run();
        let mut context = IterationContext {
            iteration: 3,
            total_usage: None,
            messages: &mut messages,
            response: &Reply::default(),
            is_streaming: false,
            terminate: false,
        };
        Compaction::new(client, 200, kept).completed(&mut context).await.unwrap();
        let shown = |message: &Arc<Message>| {
            let call = message.calls().map(|call| format!("call {}", call.call_id)).next();
            let result =
                message.results().map(|result| format!("result {}", result.call_id)).next();
            call.or(result).unwrap_or_else(|| message.text())
        };
        messages.iter().map(shown).collect()
    }

    #[tokio::test]
    async fn a_summary_takes_the_place_of_what_is_old() {
        let summary = "Summary of what has happened so far:\nall is well";
        let expected = ["rules", summary, "task", "call 4", "result 4"];
        assert_eq!(compacted(2, "all is well").await, expected);
        // A result is never kept without its call.
        assert_eq!(compacted(1, "all is well").await, expected);
    }

    #[tokio::test]
    async fn nothing_is_lost_where_there_is_no_summary() {
        assert_eq!(compacted(2, " ").await.len(), long_run().len());
        assert_eq!(compacted(8, "all is well").await.len(), long_run().len());
    }
}
