//! How much a value takes, about: cheaper than writing it.

use serde_json::Value;

/// What every value costs beside its characters.
const NODE_BYTES: usize = 8;

/// The bytes of a value, about as many as its JSON has.
pub(super) fn bytes(value: &Value) -> usize {
    // A list of what is left, for values are as deep as whoever made them likes.
    let mut left = vec![value];
    let mut bytes: usize = 0;
    while let Some(value) = left.pop() {
        let own = match value {
            Value::String(text) => text.len(),
            Value::Array(list) => {
                left.extend(list);
                0
            }
            Value::Object(object) => {
                left.extend(object.values());
                object.keys().map(|name| name.len() + NODE_BYTES).sum()
            }
            _ => 0,
        };
        bytes = bytes.saturating_add(own).saturating_add(NODE_BYTES);
    }
    bytes
}
