//! OpenAI's Chat Completions API, and the many servers that are nearly compatible.

mod reply;
mod request;

pub(super) use reply::ChatDecoder;
pub(super) use request::{attachment, fields, tool};
