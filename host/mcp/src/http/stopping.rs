//! Requests that a server answers while it stops.

use std::borrow::Cow;

use http::Method;
use serde::Deserialize;

/// Method of a message, which answers have none of.
#[derive(Deserialize)]
struct MethodOfMessage<'m> {
    #[serde(borrow, default)]
    method: Option<Cow<'m, str>>,
}

/// Returns whether a request belongs to calls that have begun, so that it is answered while they
/// end: the answer to a question, a notification, a poll of a task, or the end of a session or of a
/// break in its stream.
pub(super) fn is_part_of_call(method: &Method, body: &[u8]) -> bool {
    if *method != Method::POST {
        return true;
    }
    let Ok(message) = serde_json::from_slice::<MethodOfMessage<'_>>(body) else { return false };
    message
        .method
        .is_none_or(|method| method.starts_with("notifications/") || method.starts_with("tasks/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_belongs_to_calls_is_answered_while_a_server_stops() {
        for (method, body, expected) in [
            (Method::GET, "", true),
            (Method::DELETE, "", true),
            (Method::POST, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, true),
            (Method::POST, r#"{"jsonrpc":"2.0","method":"notifications/cancelled"}"#, true),
            (Method::POST, r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#, true),
            (Method::POST, r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, false),
            (Method::POST, r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, false),
            (Method::POST, r#"[{"jsonrpc":"2.0","id":1,"method":"tasks/get"}]"#, false),
            (Method::POST, "no JSON", false),
        ] {
            assert_eq!(is_part_of_call(&method, body.as_bytes()), expected, "{method} {body}");
        }
    }
}
