//! Approximate size of JSON values, which is cheaper to compute than serializing them.

use serde_json::Value;

/// Bytes that each value and each key counts in addition to its characters.
const NODE_BYTES: usize = 8;

/// Returns the size of a value in bytes, which is roughly that of its JSON.
pub(super) fn bytes(value: &Value) -> usize {
    // Iterates with a list instead of recursion, because values can be arbitrarily deep.
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
