//! Responses of runs.

use std::sync::Arc;

use crate::{ApprovalRequest, FinishReason, FunctionCall, Message, MessageContent, TokenUsage};

/// Result of a run (`LOOP-2`).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Response {
    /// All messages of the model and the tools that the run produced, in order.
    pub messages: Vec<Arc<Message>>,
    /// Total usage of the model calls; `None` if no provider reported any.
    pub usage: Option<TokenUsage>,
    /// Id of the conversation, if the service keeps it.
    pub conversation_id: Option<String>,
    /// Reason why the model stopped in its last reply.
    pub finish: Option<FinishReason>,
}

impl Response {
    /// Creates a response with one text content of the assistant.
    #[must_use]
    pub fn text_only(text: impl Into<String>) -> Self {
        Self { messages: vec![Arc::new(Message::assistant(text))], ..Self::default() }
    }

    /// Returns the last text of the model.
    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.messages.iter().rev().map(|message| message.text());
        texts.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Returns the requests that the user has to answer before the run can continue (`LOOP-35`).
    pub fn approval_requests(&self) -> impl Iterator<Item = &ApprovalRequest> {
        self.contents().filter_map(|content| match content {
            MessageContent::ApprovalRequest(request) => Some(request),
            _ => None,
        })
    }

    /// Returns the calls that the caller of the run has to execute (`LOOP-26`).
    pub fn caller_requests(&self) -> impl Iterator<Item = &FunctionCall> {
        self.contents().filter_map(MessageContent::as_call).filter(|call| call.is_for_caller)
    }

    fn contents(&self) -> impl Iterator<Item = &MessageContent> {
        self.messages.iter().flat_map(|message| &message.contents)
    }
}
