//! Requests to all servers.

use serde_json::{Value, json};

/// The revision without a handshake.
pub(crate) const REVISION: &str = "2026-07-28";
const TEXT: &str = "to be or not to be";

/// Returns a request of the protocol.
pub(crate) fn request(id: usize, method: &str, mut parameters: Value) -> Value {
    if let Some(parameters) = parameters.as_object_mut() {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": REVISION,
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        parameters.insert("_meta".to_owned(), meta);
    }
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters})
}

/// Returns the measured call.
pub(crate) fn call(id: usize) -> Value {
    request(id, "tools/call", json!({"name": "echo", "arguments": {"message": TEXT}}))
}

/// Returns whether `text` is an answer to the call.
pub(crate) fn is_answer(text: &str) -> bool {
    text.contains(TEXT)
}
