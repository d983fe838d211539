//! The APIs that this build supports. Each family is a feature of the crate.

use serde_json::{Map, Value};

use super::Provider;
#[cfg(feature = "anthropic")]
use super::anthropic;
use super::attachment::WriteAttachment;
use super::decode::Decode;
use super::prepared::PreparedRequest;
use super::tools::WriteTool;
#[cfg(feature = "openai")]
use super::{openai_chat, openai_responses};

/// Functions that write requests and read replies of one API.
#[derive(Clone, Copy)]
pub(super) struct ModelInterface {
    /// Writes a tool from its name, its description and its schema.
    pub(super) tool: WriteTool,
    /// Writes a request without its tools.
    pub(super) fields: fn(&PreparedRequest<'_>) -> Map<String, Value>,
    /// Writes a file as a part of a message.
    pub(super) attachment: WriteAttachment,
    /// Creates a decoder for one reply. The argument is true if the service keeps the conversation.
    pub(super) decoder: fn(bool) -> Box<dyn Decode>,
}

impl ModelInterface {
    /// Returns the functions for a provider, if its feature is on.
    pub(super) fn of(provider: Provider) -> Option<Self> {
        match provider {
            #[cfg(feature = "openai")]
            Provider::OpenAiChat => Some(Self {
                tool: openai_chat::tool,
                fields: openai_chat::fields,
                attachment: openai_chat::attachment,
                decoder: |_| Box::new(openai_chat::ChatDecoder::default()),
            }),
            #[cfg(feature = "openai")]
            Provider::OpenAiResponses => Some(Self {
                tool: openai_responses::tool,
                fields: openai_responses::fields,
                attachment: openai_responses::attachment,
                decoder: |stores| Box::new(openai_responses::ResponsesDecoder::new(stores)),
            }),
            #[cfg(feature = "anthropic")]
            Provider::Anthropic => Some(Self {
                tool: anthropic::tool,
                fields: anthropic::fields,
                attachment: anthropic::attachment,
                decoder: |_| Box::new(anthropic::AnthropicDecoder::default()),
            }),
            #[allow(unreachable_patterns, reason = "reachable where a feature is off")]
            _ => None,
        }
    }
}
