//! Chat Completions of OpenAI, and of the many servers that are nearly compatible.

mod reply;
mod request;

pub(super) use reply::Decoder;
pub(super) use request::{fields, tool};
