//! Responses of OpenAI.

mod reply;
mod request;

pub(super) use reply::Decoder;
pub(super) use request::{fields, tool};
