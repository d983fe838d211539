//! Responses of runs.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    ApprovalRequest, FinishReason, FunctionCall, Message, MessageContent, Role, TokenUsage,
};

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
    /// Decoded answer, if the run has a response format and the model has answered (`LOOP-65`).
    pub answer: Option<Value>,
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
        let replies = self.messages.iter().rev();
        let replies = replies.filter(|message| message.role == Role::Assistant);
        let mut texts = replies.map(|message| message.text());
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    }

    /// Returns the decoded answer: an object that is valid by the schema of the response format.
    /// `None` if the run has no format, or if it ended before the model answered, for example with
    /// approval requests.
    #[must_use]
    pub fn value(&self) -> Option<&Value> {
        self.answer.as_ref()
    }

    /// Returns the decoded answer as a Rust type; `None` in the cases of [`value`](Self::value).
    ///
    /// # Errors
    /// If the type does not accept a value that is valid by the schema of the response format.
    pub fn value_as<T: DeserializeOwned>(&self) -> Result<Option<T>, serde_json::Error> {
        self.answer.as_ref().map(T::deserialize).transpose()
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
