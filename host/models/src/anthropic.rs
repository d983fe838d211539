//! Anthropic's Messages API.

mod block;
mod reply;
mod request;
mod turns;

pub(super) use reply::AnthropicDecoder;
pub(super) use request::{attachment, fields, tool};

/// Name of this API in reasoning contents, which is that of the provider.
const OF_API: &str = "anthropic";
/// Field of a request, a reply and the record of a call with the container of programs.
const CONTAINER: &str = "container";
