//! HTTP client for servers, as required by rmcp's transport.
//!
//! Requests only go to the configured address: a redirect is followed only if it stays within the
//! origin and preserves the request, so that headers reach no other server. Nothing is read from
//! the environment, neither a proxy nor certificates. Every body has a limit that is checked before
//! it is stored.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cofferdam_sse::{Event, EventReader};
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use http::header::{ACCEPT, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response};
use rmcp::model::{
    ClientJsonRpcMessage, ClientRequest, ErrorData, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::watch;

use super::limits::FRAME_BYTES_MAX;
use super::raw;
use crate::web::{self, ClientError};

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");
const JSON: &str = "application/json";
/// Maximum number of characters of a content type in an error message.
const CONTENT_TYPE_CHARS_MAX: usize = 100;
const EVENTS: &str = "text/event-stream";
/// Maximum number of bytes that are read of an error response, enough for a JSON-RPC error.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Maximum number of redirects within the origin.
const REDIRECTS_MAX: usize = 5;
/// Minimum time before a stream that has ended is opened again, whatever the server wishes.
const RETRY_MS_MIN: u64 = 500;
/// Time before a stream that broke is opened again if the server names none, as for one that ended.
const RETRY_MS: u64 = 1000;
/// Time that the first call waits for the stream on which questions may arrive.
const STREAM_WAIT: Duration = Duration::from_secs(1);

type TransportError = StreamableHttpError<reqwest::Error>;
type Headers = HashMap<HeaderName, HeaderValue>;

/// HTTP client for one server.
#[derive(Clone)]
pub(crate) struct HttpClient {
    client: reqwest::Client,
    own_stream: Arc<OwnStream>,
}

/// Stream of a session-based server for messages that belong to no request. It is opened in the
/// background, and messages that are sent before it is open are lost; some servers send their
/// questions on it.
#[derive(Default)]
struct OwnStream {
    /// True if there is a session and therefore such a stream.
    is_expected: AtomicBool,
    /// True once the stream is open or was refused.
    is_settled: watch::Sender<bool>,
}

impl HttpClient {
    pub(crate) fn new() -> Result<Self, ClientError> {
        let within_origin = Policy::custom(|attempt| {
            let keeps_request = matches!(
                attempt.status(),
                StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT
            );
            let stays = attempt
                .previous()
                .last()
                .is_some_and(|from| from.origin() == attempt.url().origin());
            if keeps_request && stays && attempt.previous().len() <= REDIRECTS_MAX {
                attempt.follow()
            } else {
                attempt.stop()
            }
        });
        let client = web::builder()?.redirect(within_origin).build()?;
        Ok(Self { client, own_stream: Arc::default() })
    }

    /// Resets the state of the stream. Must be called before a connection is opened.
    pub(crate) fn forget_stream(&self) {
        self.own_stream.is_expected.store(false, Ordering::Relaxed);
        self.own_stream.is_settled.send_replace(false);
    }

    /// Waits, for a limited time, until the server can send messages that belong to no request, if
    /// there is a session.
    pub(crate) async fn stream_settled(&self) {
        if self.own_stream.is_expected.load(Ordering::Relaxed) {
            let mut settled = self.own_stream.is_settled.subscribe();
            let _ =
                tokio::time::timeout(STREAM_WAIT, settled.wait_for(|is_settled| *is_settled)).await;
        }
    }

    async fn opened_stream(
        &self,
        request: RequestBuilder,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        let response = request.send().await?;
        if let Some(failed) = challenge(&response) {
            return Err(failed);
        }
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => {
                Err(HttpStatusError::new(status.as_u16(), None).into())
            }
            _ if has_media_type(&response, EVENTS) => Ok(events(response, ReopenRule::Always)),
            _ => Err(StreamableHttpError::UnexpectedContentType(content_type(&response))),
        }
    }
}

fn with_headers(
    mut request: RequestBuilder,
    session: Option<Arc<str>>,
    token: Option<String>,
    headers: Headers,
) -> RequestBuilder {
    // Configured headers must not replace the transport's own.
    for (name, value) in headers {
        if name != SESSION && name != LAST_EVENT && name != ACCEPT {
            request = request.header(name, value);
        }
    }
    if let Some(session) = session {
        request = request.header(SESSION, session.as_ref());
    }
    match token {
        Some(token) => request.bearer_auth(token),
        None => request,
    }
}

/// Returns the challenge of a response that requires other credentials.
fn challenge(response: &Response) -> Option<TransportError> {
    let challenge = response.headers().get(WWW_AUTHENTICATE)?.to_str().ok()?.to_owned();
    match response.status() {
        StatusCode::UNAUTHORIZED => {
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
        }
        StatusCode::FORBIDDEN => Some(StreamableHttpError::InsufficientScope(
            InsufficientScopeError::new(challenge, None),
        )),
        _ => None,
    }
}

/// Returns the start of the content type of a response, for an error message.
fn content_type(response: &Response) -> Option<String> {
    let written = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    Some(written.chars().take(CONTENT_TYPE_CHARS_MAX).collect())
}

fn has_media_type(response: &Response, media_type: &str) -> bool {
    let written = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    written
        .and_then(|written| written.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case(media_type))
}

/// Reads a body of at most `bytes_max` bytes.
async fn body(response: Response, bytes_max: usize) -> Result<Vec<u8>, TransportError> {
    let too_large = || StreamableHttpError::ResponseBodyTooLarge { max_size: bytes_max };
    let announced = response.content_length().and_then(|length| usize::try_from(length).ok());
    if announced.is_some_and(|length| length > bytes_max) {
        return Err(too_large());
    }
    let (mut stream, mut body) = (response.bytes_stream(), Vec::new());
    while let Some(chunk) = stream.next().await {
        let chunk = chunk?;
        if chunk.len() > bytes_max.saturating_sub(body.len()) {
            return Err(too_large());
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Condition under which the SDK opens a stream again that broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReopenRule {
    Always,
    AfterEventId,
}

/// Body of a response with events.
struct EventBody<B> {
    bytes: B,
    reader: EventReader,
    is_reopened: bool,
    retry_ms: u64,
}

/// Returns the events of a response. An error ends the stream.
///
/// The SDK pauses before it opens a stream again that ended, but not if the stream broke, and a
/// server could keep it busy. That is why such an error is returned after a pause.
fn events(response: Response, reopen: ReopenRule) -> BoxStream<'static, Result<Sse, SseError>> {
    let body = EventBody {
        bytes: response.bytes_stream(),
        reader: EventReader::new(FRAME_BYTES_MAX),
        is_reopened: reopen == ReopenRule::Always,
        retry_ms: RETRY_MS,
    };
    let events = stream::unfold(Some(body), |body| async {
        let mut body = body?;
        loop {
            if let Some(event) = body.reader.next_event() {
                let event = sse(event);
                body.is_reopened |= event.id.is_some();
                body.retry_ms = event.retry.unwrap_or(body.retry_ms);
                return Some((Ok(event), Some(body)));
            }
            let pushed = match body.bytes.next().await? {
                Ok(chunk) => {
                    body.reader.push(&chunk).map_err(|error| SseError::Body(Box::new(error)))
                }
                Err(error) => Err(SseError::Body(Box::new(error))),
            };
            if let Err(error) = pushed {
                if body.is_reopened {
                    tokio::time::sleep(Duration::from_millis(body.retry_ms)).await;
                }
                return Some((Err(error), None));
            }
        }
    });
    events.boxed()
}

fn sse(event: Event) -> Sse {
    let Event { kind, data, id, retry_ms } = event;
    Sse {
        event: Some(kind).filter(|kind| !kind.is_empty()),
        data: Some(raw::text(data)),
        id: id.map(|id| id.to_string()),
        retry: retry_ms.map(|wait_ms| wait_ms.max(RETRY_MS_MIN)),
    }
}

/// Converts the HTTP error of a server that does not know `server/discover` to a JSON-RPC error,
/// whose code lets the SDK fall back to the handshake. Old servers report this in any form.
fn old_server(
    message: &ClientJsonRpcMessage,
    status: StatusCode,
    body: &[u8],
) -> Option<ServerJsonRpcMessage> {
    let ClientJsonRpcMessage::Request(request) = message else { return None };
    let is_probe = matches!(request.request, ClientRequest::DiscoverRequest(_));
    // Some servers fail at methods that they do not know.
    let may_be_unknown = status.is_client_error()
        || status == StatusCode::INTERNAL_SERVER_ERROR
        || status.is_success();
    let is_denied = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if !is_probe || !may_be_unknown || is_denied {
        return None;
    }
    let error = match serde_json::from_slice(body) {
        Ok(ServerJsonRpcMessage::Error(error)) => error.error,
        _ => ErrorData::invalid_request(format!("HTTP {status}"), None),
    };
    Some(ServerJsonRpcMessage::error(error, Some(request.id.clone())))
}

// The limit of the SDK for events is not used: `FRAME_BYTES_MAX` applies to every body.
impl StreamableHttpClient for HttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, TransportError> {
        let has_session = session.is_some();
        let request = self.client.post(uri.as_ref());
        let request = with_headers(request, session, token, headers)
            .header(ACCEPT, format!("{JSON}, {EVENTS}"))
            .header(CONTENT_TYPE, JSON)
            .body(serde_json::to_vec(&message)?);
        let response = request.send().await?;
        if let Some(failed) = challenge(&response) {
            return Err(failed);
        }
        let status = response.status();
        let request = match &message {
            ClientJsonRpcMessage::Request(request) => Some(&request.id),
            _ => None,
        };
        let has_no_answer = matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT);
        if has_no_answer && request.is_none() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response
            .headers()
            .get(SESSION)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        if session.is_some() {
            self.own_stream.is_expected.store(true, Ordering::Relaxed);
        }
        if !status.is_success() || has_no_answer {
            return refused(&message, response, session).await;
        }
        if has_media_type(&response, EVENTS) {
            let events = events(response, ReopenRule::AfterEventId);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        // Notifications and responses get no response; some servers send arbitrary bodies instead
        // of an empty one.
        let Some(request) = request else { return Ok(StreamableHttpPostResponse::Accepted) };
        if !has_media_type(&response, JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(content_type(&response)));
        }
        let body = body(response, FRAME_BYTES_MAX).await?;
        let answer =
            serde_json::from_slice(&body).and_then(|message| raw::message(message, body.len()))?;
        Ok(StreamableHttpPostResponse::Json(answer_to(request, answer)?, session))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<(), TransportError> {
        let request = with_headers(self.client.delete(uri.as_ref()), Some(session), token, headers);
        // A server without sessions answers 405, and other errors are of no use to the caller
        // either.
        request.send().await.map(drop).map_err(TransportError::from)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        token: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, TransportError> {
        let request = with_headers(self.client.get(uri.as_ref()), session, token, headers);
        let mut request = request.header(ACCEPT, EVENTS);
        if let Some(last_event) = last_event {
            request = request.header(LAST_EVENT, last_event);
        }
        let opened = self.opened_stream(request).await;
        self.own_stream.is_settled.send_replace(true);
        opened
    }
}

/// Returns the answer to a request, which a server that cannot read the request does not know the
/// id of. Any other message instead of the answer is an error: the answer would never come.
fn answer_to(
    request: &RequestId,
    answer: ServerJsonRpcMessage,
) -> Result<ServerJsonRpcMessage, TransportError> {
    let id = match &answer {
        ServerJsonRpcMessage::Response(response) => Some(response.id.to_string()),
        ServerJsonRpcMessage::Error(error) => error.id.as_ref().map(ToString::to_string),
        _ => None,
    };
    match answer {
        ServerJsonRpcMessage::Error(error) if id.is_none() => {
            Ok(ServerJsonRpcMessage::error(error.error, Some(request.clone())))
        }
        answer if id == Some(request.to_string()) => Ok(answer),
        _ => {
            let text = Cow::Borrowed("a message that does not answer the request");
            Err(TransportError::UnexpectedServerResponse(text))
        }
    }
}

/// Interprets an unsuccessful response: as a JSON-RPC error if it contains one, else by its status.
async fn refused(
    message: &ClientJsonRpcMessage,
    response: Response,
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, TransportError> {
    let (status, is_json) = (response.status(), has_media_type(&response, JSON));
    let failed = || TransportError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}")));
    if status.is_redirection() {
        return Err(failed());
    }
    let body = body(response, ERROR_BYTES_MAX).await.unwrap_or_default();
    if session.is_none()
        && let Some(answer) = old_server(message, status, &body)
    {
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    let is_for_others = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    if is_json
        && !is_for_others
        && let Ok(answer @ ServerJsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
    {
        let answer = match message {
            ClientJsonRpcMessage::Request(request) => answer_to(&request.id, answer)?,
            _ => answer,
        };
        return Ok(StreamableHttpPostResponse::Json(answer, session));
    }
    if status.is_success() {
        let text = format!("HTTP {status}, which has no answer to the request");
        return Err(TransportError::UnexpectedServerResponse(text.into()));
    }
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(HttpStatusError::new(status.as_u16(), None).into());
    }
    Err(failed())
}
