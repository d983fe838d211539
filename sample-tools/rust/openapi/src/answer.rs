//! Makes results of responses.

use cofferdam_sdk::{Content, ToolFailure};
use serde_json::{Value as Json, json};

/// Maximum bytes of a response, whatever the call asks for.
pub(crate) const BYTES_MAX: usize = 512 << 10;
/// Maximum bytes of a response without an argument.
pub(crate) const BYTES_DEFAULT: usize = 64 << 10;
/// Maximum characters of the body of a failure.
const FAILURE_LENGTH_MAX: usize = 2_000;

/// Response of the server.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) media_type: String,
    pub(crate) location: Option<String>,
    /// The body, or its start.
    pub(crate) body: Vec<u8>,
    pub(crate) is_truncated: bool,
}

/// Returns the content of a success. Other statuses are failures of the request of this name.
pub(crate) fn content(request: &str, response: Response) -> Result<Vec<Content>, ToolFailure> {
    match response.status {
        200..=299 => success(response),
        _ => Err(failure(request, &response)),
    }
}

fn success(response: Response) -> Result<Vec<Content>, ToolFailure> {
    let kind = response.media_type.split(';').next().unwrap_or_default().trim().to_lowercase();
    let is_text = kind.is_empty()
        || kind.starts_with("text/")
        || ["json", "xml", "yaml", "javascript", "urlencoded"].iter().any(|it| kind.ends_with(it));
    if response.body.is_empty() {
        return Ok(Vec::new());
    }
    if !is_text {
        return match response.is_truncated {
            false => Ok(vec![Content::blob(kind, response.body)]),
            true => Err(ToolFailure::new(format!(
                "the response is {kind} of more than {} bytes",
                response.body.len()
            ))
            .suggestion("pass a larger `response_bytes_max`")
            .permanent()),
        };
    }
    let text = String::from_utf8_lossy(&response.body).into_owned();
    if response.is_truncated {
        return Ok(vec![Content::json(&json!({"text": text, "truncated": true}))?]);
    }
    let is_json = kind.ends_with("json") && serde_json::from_str::<Json>(&text).is_ok();
    Ok(vec![if is_json { Content::Json(text) } else { Content::Text(text) }])
}

fn failure(request: &str, response: &Response) -> ToolFailure {
    let status = response.status;
    let mut message = format!("{request} was answered with status {status}");
    if let Some(location) = &response.location {
        message = message + ", a redirect to " + location + ", which is not followed";
    }
    let body = String::from_utf8_lossy(&response.body);
    let shown: String = body.chars().take(FAILURE_LENGTH_MAX).collect();
    let is_cut = response.is_truncated || shown.len() < body.len();
    let body = match serde_json::from_str::<Json>(&body) {
        Ok(json) if !is_cut => json,
        _ => Json::from(shown),
    };
    let failure = ToolFailure::new(message.clone()).value(json!({
        "message": message,
        "status": status,
        "body": body,
        "body_truncated": is_cut,
    }));
    match status {
        429 | 502..=504 => failure.transient(),
        _ => failure.permanent(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(status: u16, media_type: &str, body: &[u8], is_truncated: bool) -> Response {
        let (media_type, body) = (media_type.to_owned(), body.to_vec());
        Response { status, media_type, location: None, body, is_truncated }
    }

    const REQUEST: &str = "GET https://a.example/v1/notes";

    #[test]
    fn successes_become_content() {
        let check = |response, expected: Vec<Content>| {
            assert_eq!(content(REQUEST, response).unwrap(), expected);
        };
        let json = "application/json; charset=utf-8";
        check(
            response(200, json, b"{\"a\": 1}", false),
            vec![Content::Json("{\"a\": 1}".to_owned())],
        );
        check(response(200, json, b"{\"a\":", false), vec![Content::text("{\"a\":")]);
        check(response(200, "text/plain", b"\xFFa", false), vec![Content::text("\u{FFFD}a")]);
        check(response(204, "", b"", false), Vec::new());
        check(
            response(200, "image/png", b"\x89", false),
            vec![Content::blob("image/png", *b"\x89")],
        );
        check(
            response(200, json, b"[1, 2", true),
            vec![Content::Json("{\"text\":\"[1, 2\",\"truncated\":true}".to_owned())],
        );
        assert!(content(REQUEST, response(200, "image/png", b"\x89", true)).is_err());
    }

    #[test]
    fn other_statuses_are_failures() {
        let of = |response| content(REQUEST, response).unwrap_err();
        let failure = of(response(404, "application/json", b"{\"code\": 7}", false));
        let message = format!("{REQUEST} was answered with status 404");
        assert_eq!(failure.message(), message);
        assert_eq!(failure.is_transient(), Some(false));
        assert_eq!(
            failure.error_value(),
            Some(
                &json!({"message": message, "status": 404, "body": {"code": 7}, "body_truncated": false})
            )
        );
        let failure = of(response(503, "text/html", "ä".repeat(5_000).as_bytes(), false));
        assert_eq!(failure.is_transient(), Some(true));
        let value = failure.error_value().unwrap();
        assert_eq!(value["body"].as_str().unwrap().chars().count(), FAILURE_LENGTH_MAX);
        assert_eq!(value["body_truncated"], true);
        let moved = Response {
            location: Some("https://b.example/".to_owned()),
            ..response(301, "", b"", false)
        };
        assert!(
            of(moved)
                .message()
                .ends_with("a redirect to https://b.example/, which is not followed")
        );
    }
}
