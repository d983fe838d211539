//! Batches of JSON-RPC messages, which exist only in revision 2025-03-26.

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream::select_all;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode, header};
use http_body_util::{BodyExt, BodyStream, Full, StreamBody};
use serde_json::json;
use serde_json::value::RawValue;

use super::sessions::session_id;
use super::{Body, HttpService, refusal};
use crate::server::{BATCH_MAX, BATCH_REVISION};

/// Returns whether a request contains a batch.
pub(super) fn is_batch(parts: &Parts, body: &[u8]) -> bool {
    parts.method == Method::POST && body.trim_ascii_start().first() == Some(&b'[')
}

impl HttpService {
    /// Answers each message of a batch as a separate request and returns the answers as events in
    /// sequence.
    pub(super) async fn batch(&self, parts: Parts, body: &[u8], principal: &str) -> Response<Body> {
        let is_older = parts
            .headers
            .get("mcp-protocol-version")
            .is_none_or(|version| version == BATCH_REVISION);
        if !is_older || session_id(&parts.headers).is_none() {
            let message = "a batch is taken within a session of revision 2025-03-26 only; send \
                each message by itself";
            return refusal(StatusCode::BAD_REQUEST, message);
        }
        let messages = match serde_json::from_slice::<Vec<&RawValue>>(body) {
            Ok(messages) if (1..=BATCH_MAX).contains(&messages.len()) => messages,
            Ok(_) => return refusal(StatusCode::BAD_REQUEST, "a batch holds 1 to 64 messages"),
            Err(_) => return refusal(StatusCode::BAD_REQUEST, "the body is not JSON"),
        };
        // The first message was counted with the request.
        if !messages.iter().skip(1).all(|_| self.guard.admits_another(principal)) {
            return refusal(StatusCode::TOO_MANY_REQUESTS, "too many requests");
        }
        let answers = messages.iter().map(|message| {
            self.forward(parts.clone(), Bytes::copy_from_slice(message.get().as_bytes()))
        });
        let answers = join_all(answers).await;
        let mut streams = Vec::new();
        for (message, answer) in messages.into_iter().zip(answers) {
            match answer.status() {
                StatusCode::ACCEPTED => {}
                StatusCode::OK => streams.push(BodyStream::new(events(answer).await)),
                // The session is gone.
                StatusCode::NOT_FOUND => return answer,
                status if status.is_client_error() => {
                    streams.push(BodyStream::new(invalid(message)));
                }
                _ => return answer,
            }
        }
        if streams.is_empty() {
            let mut response = Response::new(Full::new(Bytes::new()).boxed());
            *response.status_mut() = StatusCode::ACCEPTED;
            return response;
        }
        let mut response = Response::new(StreamBody::new(select_all(streams)).boxed());
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        response
    }
}

/// Returns the event with the error of a message that is not a valid one: the other messages of its
/// batch have run, and their answers count.
fn invalid(message: &RawValue) -> Body {
    #[derive(serde::Deserialize)]
    struct MessageId {
        id: serde_json::Value,
    }
    let id = serde_json::from_str::<MessageId>(message.get()).map(|message| message.id);
    let id = id.ok().filter(|id| id.is_string() || id.is_number()).unwrap_or_default();
    let error = json!({"code": -32600, "message": "the message is not a valid request"});
    let answer = json!({"jsonrpc": "2.0", "id": id, "error": error});
    Full::new(Bytes::from(format!("data: {answer}\n\n"))).boxed()
}

/// Converts the answer to one message into events.
async fn events(answer: Response<Body>) -> Body {
    let kind = answer.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if kind.is_some_and(|kind| kind.starts_with("text/event-stream")) {
        return answer.into_body();
    }
    let Ok(body) = answer.into_body().collect().await;
    let mut event = b"data: ".to_vec();
    event.extend(body.to_bytes());
    event.extend(b"\n\n");
    Full::new(Bytes::from(event)).boxed()
}
