//! Approximate size of a value: cheaper than serializing it.

use serde_json::Value;

/// Size of every value beside its characters.
const NODE_BYTES: usize = 8;

/// The bytes of a value, about as many as its JSON has.
pub(super) fn bytes(value: &Value) -> usize {
    // A list of the remaining values, because values may be arbitrarily deep.
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
