//! Answers that cannot be read.
//!
//! A server sends no second answer. So a call ends at once if its answer is not valid, for example
//! because of `NaN`, half of a surrogate pair or invalid UTF-8, and the id can be found.

use rmcp::model::{ErrorData, RequestId, ServerJsonRpcMessage};

/// Returns an error for the request that a message answers which cannot be read. If it answers one
/// without a readable id, that is the request of `only`. Returns `None` if the message is not an
/// answer: some servers print other lines.
pub(crate) fn unread_answer(
    text: &[u8],
    only: impl FnOnce() -> Option<RequestId>,
) -> Option<ServerJsonRpcMessage> {
    let text = String::from_utf8_lossy(text);
    let members = members(&text)?;
    let find = |wanted: &str| members.iter().find(|(name, _)| *name == wanted);
    if find("method").is_some() || find("result").or_else(|| find("error")).is_none() {
        return None;
    }
    let id = find("id").and_then(|(_, id)| serde_json::from_str(id).ok()).or_else(only)?;
    let error = ErrorData::internal_error("the server's answer cannot be read", None);
    Some(ServerJsonRpcMessage::error(error, Some(id)))
}

/// Returns the members of an object with the text of their values, which may be invalid. Returns
/// `None` for anything else.
fn members(text: &str) -> Option<Vec<(&str, &str)>> {
    let inside = text.trim().strip_prefix('{')?;
    let (mut members, mut name, mut start, mut level) = (Vec::new(), None, 0, 0_usize);
    let (mut in_string, mut is_escaped) = (false, false);
    for (at, byte) in inside.bytes().enumerate() {
        if in_string {
            in_string = is_escaped || byte != b'"';
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        let is_end = level == 0 && matches!(byte, b',' | b'}');
        match byte {
            b'"' => in_string = true,
            b'{' | b'[' => level += 1,
            b':' if level == 0 && name.is_none() => {
                name = Some(inside.get(start..at)?.trim().trim_matches('"'));
                start = at + 1;
            }
            _ if is_end => {
                if let Some(name) = name.take() {
                    members.push((name, inside.get(start..at)?.trim()));
                }
                start = at + 1;
            }
            b'}' | b']' => level = level.saturating_sub(1),
            _ => {}
        }
        if is_end && byte == b'}' {
            break;
        }
    }
    Some(members)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn answered(line: &[u8]) -> Option<RequestId> {
        assert!(serde_json::from_slice::<ServerJsonRpcMessage>(line).is_err());
        match unread_answer(line, || Some(RequestId::Number(1)))? {
            ServerJsonRpcMessage::Error(error) => error.id,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn answers_that_cannot_be_read_name_their_requests() {
        let deep = [&b"[".repeat(200)[..], &b"]".repeat(200)].concat();
        let values = [
            &br#""a\ud83d""#[..],
            b"\"\xff\"",
            &deep,
            b"{\"x\": [NaN, -Infinity]}",
            br#"{"id": 8, "x": "\"}", "y": NaN}"#,
        ];
        for result in values {
            let line = [&br#"{"jsonrpc":"2.0","id":7,"result":"#[..], result, b"}\n"].concat();
            assert!(serde_json::from_slice::<Value>(&line).is_err());
            assert_eq!(answered(&line), Some(RequestId::Number(7)));
            let line = [&br#"{"result": "#[..], result, br#", "id": "a" }"#].concat();
            assert_eq!(answered(&line), Some(RequestId::String("a".into())));
        }
        assert_eq!(answered(br#"{"id":7,"error":"broken"}"#), Some(RequestId::Number(7)));
    }

    #[test]
    fn an_answer_without_a_readable_id_is_that_to_the_only_request() {
        for line in [&br#"{"id":NaN,"result":{}}"#[..], br#"{"result":{"x":NaN}}"#] {
            assert_eq!(answered(line), Some(RequestId::Number(1)));
            assert!(unread_answer(line, || None).is_none());
        }
    }

    #[test]
    fn lines_that_are_not_answers_are_left_alone() {
        for line in [
            &b"starting ...\n"[..],
            br#"{"id":7,"method":"ping","params":{"x":NaN}}"#,
            br#"{"level":"info","result"#,
            b"{",
            b"}{\"result\":1}",
        ] {
            assert_eq!(answered(line), None);
        }
    }
}
