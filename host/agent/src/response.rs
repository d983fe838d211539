//! What came of a run.

use std::sync::Arc;

use crate::{ApprovalRequest, Content, FinishReason, FunctionCall, Message, TokenUsage};

/// What came of a run (`LOOP-2`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// Every message of model and tools that the run has produced, in order.
    pub messages: Vec<Arc<Message>>,
    /// The sum of what the model calls cost; `None` if no provider said.
    pub usage: Option<TokenUsage>,
    /// The id of the conversation, if the service keeps it.
    pub conversation_id: Option<String>,
    /// Why the model stopped, the last time it did.
    pub finish: Option<FinishReason>,
}

impl Response {
    /// A response that is one text of the assistant.
    #[must_use]
    pub fn text_only(text: impl Into<String>) -> Self {
        Self { messages: vec![Arc::new(Message::assistant(text))], ..Self::default() }
    }

    /// What the model said, the last time it spoke.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.messages.iter().rev().map(|message| message.text());
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// What a person has to say before the run can go on (`LOOP-35`).
    pub fn approval_requests(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.contents().filter_map(|content| match content {
            Content::ApprovalRequest(request) => Some(request),
            _ => None,
        })
    }

    /// The calls that the caller of the run has to make (`LOOP-26`).
    pub fn caller_requests(&self) -> impl Iterator<Item = &FunctionCall> {
        self.contents().filter_map(Content::as_call).filter(|call| call.is_for_caller)
    }

    fn contents(&self) -> impl Iterator<Item = &Content> {
        self.messages.iter().flat_map(|message| &message.contents)
    }
}
