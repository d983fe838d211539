//! Checks of the JSON of a request, and JSON-RPC errors for requests that the SDK refuses.

use http::{Response, StatusCode, header};
use http_body_util::BodyExt as _;
use memchr::memchr2;
use rmcp::model::ClientJsonRpcMessage;
use serde::de::IgnoredAny;

use super::{Body, error_response, refusal};

/// Maximum number of JSON values in a request. A parsed value takes up to 300 bytes of memory, a
/// hundred times as much as the shortest ones take in the request.
pub(super) const VALUES_MAX: usize = 1 << 18;

/// Returns whether a body has more than [`VALUES_MAX`] values, whether or not it is JSON.
pub(super) fn has_too_many_values(body: &[u8]) -> bool {
    // A value takes two bytes at least.
    body.len() > VALUES_MAX * 2 && count_values(body) > VALUES_MAX
}

/// Counts the values of a body. After the first one, each follows a comma, or the opening bracket
/// of an object or array that is not empty.
fn count_values(body: &[u8]) -> usize {
    let mut count = 1_usize;
    let mut rest = body;
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'"' => rest = after_string(after),
            b',' => count = count.saturating_add(1),
            b'[' | b'{' => {
                rest = after.trim_ascii_start();
                let is_empty = matches!(rest.first(), Some(b']' | b'}'));
                count = count.saturating_add(usize::from(!is_empty));
            }
            _ => {}
        }
    }
    count
}

/// Returns the part after the end of a string.
fn after_string(mut text: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', text) {
        let is_escape = text.get(at) == Some(&b'\\');
        text = text.get(at.saturating_add(if is_escape { 2 } else { 1 })..).unwrap_or_default();
        if !is_escape {
            return text;
        }
    }
    &[]
}

/// Returns whether the SDK has answered with an error that is not JSON.
pub(super) fn is_text_error(response: &Response<Body>) -> bool {
    let status = response.status();
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_text = kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"));
    is_text && (status.is_client_error() || status.is_server_error())
}

/// Converts an error in plain text into a JSON-RPC error. One about a posted body that is no
/// message says what is wrong with it.
pub(super) async fn json_error(response: Response<Body>, posted: Option<&[u8]>) -> Response<Body> {
    let status = response.status();
    let (head, text) = response.into_parts();
    let Ok(text) = text.collect().await;
    // Of other refusals, the body is not the reason.
    let is_of_body = matches!(status, StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let invalid = posted.filter(|_| is_of_body).and_then(|body| {
        match serde_json::from_slice::<IgnoredAny>(body) {
            Err(error) => {
                let message = format!("the body is not JSON: {error}");
                Some(error_response(StatusCode::BAD_REQUEST, -32700, &message))
            }
            Ok(_) if serde_json::from_slice::<ClientJsonRpcMessage>(body).is_err() => {
                Some(refusal(StatusCode::BAD_REQUEST, "the body is not a JSON-RPC message"))
            }
            Ok(_) => None,
        }
    });
    let mut converted =
        invalid.unwrap_or_else(|| refusal(status, &String::from_utf8_lossy(&text.to_bytes())));
    if let Some(allowed) = head.headers.get(header::ALLOW) {
        converted.headers_mut().insert(header::ALLOW, allowed.clone());
    }
    converted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_without_those_in_strings() {
        for (json, count) in [
            ("", 1),
            ("1", 1),
            ("[ ]", 1),
            ("[{},{},[1,2]]", 6),
            (r#"{"a":"[{,","b":"\"[,\\"}"#, 3),
            (r#"["unterminated, ["#, 2),
            (r#"["\"#, 2),
        ] {
            assert_eq!(count_values(json.as_bytes()), count, "{json}");
        }
        assert!(has_too_many_values(format!("[{}0]", "0,".repeat(VALUES_MAX)).as_bytes()));
        let many = vec![b'0'; 4 << 20];
        assert!(!has_too_many_values(&many));
    }
}
