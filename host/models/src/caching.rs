//! Prompt caches of providers.
//!
//! Anthropic caches the request up to each block that is marked, at most four: the client marks
//! the last function, the instructions and the end of the conversation. OpenAI caches by itself and
//! finds its cache sooner if the requests of a conversation have the same key.

use cofferdam_agent::ChatOptions;
use data_encoding::HEXLOWER;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::prepared::PreparedRequest;
use super::{PromptCaching, Provider, ProviderSettings};

/// Field of a block that marks the end of a part to cache.
const MARK: &str = "cache_control";
/// OpenAI's field for the key of a conversation.
pub(super) const KEY: &str = "prompt_cache_key";
/// Bytes of the hash in a key, which may have 64 characters.
const HASH_BYTES: usize = 20;

/// Returns the mark for blocks of a request; `None` if the request gets none. Requests to which the
/// caller adds marks get no others, because the API accepts only four.
pub(super) fn mark(settings: &ProviderSettings, options: &ChatOptions) -> Option<Value> {
    if settings.provider != Provider::Anthropic || options.additional.iter().any(holds_mark) {
        return None;
    }
    match settings.caching {
        PromptCaching::Off => None,
        PromptCaching::Auto => Some(json!({"type": "ephemeral"})),
        PromptCaching::Hour => Some(json!({"type": "ephemeral", "ttl": "1h"})),
    }
}

fn holds_mark((key, value): (&String, &Value)) -> bool {
    key == MARK
        || match value {
            Value::Object(fields) => fields.iter().any(holds_mark),
            Value::Array(values) => values.iter().filter_map(Value::as_object).any(has_mark),
            _ => false,
        }
}

fn has_mark(fields: &Map<String, Value>) -> bool {
    fields.iter().any(holds_mark)
}

/// Marks a block, if it is an object.
pub(super) fn add_mark(block: Option<&mut Value>, mark: Option<&Value>) {
    if let (Some(block), Some(mark)) = (block.and_then(Value::as_object_mut), mark) {
        block.insert(MARK.to_owned(), mark.clone());
    }
}

/// Returns the key of the conversation for OpenAI's cache. It is a hash, because the id of a
/// session may be a user's name.
pub(super) fn key(asked: &PreparedRequest<'_>) -> Option<String> {
    let session = asked.request.session_id.as_deref()?;
    let is_set = asked.request.options.additional.contains_key(KEY);
    if asked.settings.caching == PromptCaching::Off || is_set {
        return None;
    }
    let hash = Sha256::digest(session);
    Some(HEXLOWER.encode(hash.get(..HASH_BYTES).unwrap_or_default()))
}
