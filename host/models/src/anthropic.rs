//! Anthropic's Messages API.

mod reply;
mod request;

pub(super) use reply::AnthropicDecoder;
pub(super) use request::{fields, tool};
