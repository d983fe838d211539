//! OpenAI's Responses API.

mod reply;
mod request;

pub(super) use reply::ResponsesDecoder;
pub(super) use request::{attachment, fields, tool};
