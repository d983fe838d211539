//! Records HTTP requests and their responses, and answers them in a replay.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use cofferdam_network::Allowance;
use cofferdam_tool::recording::{RecordedBytes, RecordedRequest, RecordedResponse};
use futures_util::{StreamExt as _, stream};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, StreamBody};
use wasmtime_wasi_http::p2::bindings::http::types::{
    DnsErrorPayload, ErrorCode, TlsAlertReceivedPayload,
};
use wasmtime_wasi_http::{Error, WasiBody};

use super::playback::{MissingInputs, PlayedResponse};
use super::{CallRecorder, Playback};

/// Maximum bytes of a body that are recorded.
const BODY_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Maximum length of one frame of a played body.
const FRAME_BYTES: usize = 16 * 1024;
/// Maximum time that a played response waits for the request's body.
const BODY_WAIT_MAX: Duration = Duration::from_secs(1);

/// Request that is recorded.
#[derive(Default)]
pub(super) struct RequestDraft {
    method: String,
    url: String,
    headers: Vec<(String, String)>,
    sent: Vec<u8>,
    is_complete: bool,
    response: Option<ResponseDraft>,
}

#[derive(Default)]
struct ResponseDraft {
    status: u16,
    headers: Vec<(String, String)>,
    received: Vec<u8>,
    trailers: Vec<(String, String)>,
    error: Option<String>,
    is_complete: bool,
    is_stalled: bool,
}

/// Part of a body that is recorded.
#[derive(Clone, Copy)]
enum BodySide {
    Sent,
    Received,
}

/// Writes one request into the recording.
#[derive(Clone)]
pub(crate) struct RequestTape {
    recorder: Arc<CallRecorder>,
    index: usize,
}

/// Body that is recorded while it is read.
struct TapedBody {
    body: WasiBody,
    tape: RequestTape,
    side: BodySide,
}

impl From<RequestDraft> for RecordedRequest {
    fn from(draft: RequestDraft) -> Self {
        let RequestDraft { method, url, headers, sent, is_complete, response } = draft;
        let response = response.map(|response| RecordedResponse {
            status: response.status,
            headers: response.headers,
            body: RecordedBytes::new(response.received),
            trailers: response.trailers,
            error: response.error,
            is_complete: response.is_complete,
            is_stalled: response.is_stalled,
        });
        Self { method, url, headers, body: RecordedBytes::new(sent), is_complete, response }
    }
}

impl RequestTape {
    /// Starts the recording of a request, and returns the request with a body that is recorded. The
    /// headers are those of the guest. Returns `None` as the tape if there are too many requests.
    pub(crate) fn start(
        recorder: &Arc<CallRecorder>,
        request: Request<WasiBody>,
    ) -> (Request<WasiBody>, Option<Self>) {
        let (method, url) = (request.method().to_string(), request.uri().to_string());
        let index = recorder.state().requests.len();
        if !recorder.reserve(index, url.len(), "the call sent many requests") {
            return (request, None);
        }
        let headers = recorded_headers(request.headers());
        let mut state = recorder.state();
        state.requests.push(RequestDraft { method, url, headers, ..RequestDraft::default() });
        drop(state);
        let tape = Self { recorder: Arc::clone(recorder), index };
        (request.map(|body| tape.body(body, BodySide::Sent)), Some(tape))
    }

    /// Forgets a request that was refused. Call it before the next one starts.
    pub(crate) fn forget(self) {
        self.recorder.state().requests.truncate(self.index);
    }

    /// Records that the request failed.
    pub(crate) fn fail(&self, code: &ErrorCode) {
        self.change(|draft| {
            let response = draft.response.get_or_insert_default();
            response.error = Some(code_name(code));
        });
    }

    /// Records the head of the response, and returns the response with a body that is recorded.
    pub(crate) fn answer(&self, response: Response<WasiBody>) -> Response<WasiBody> {
        self.change(|draft| {
            draft.response = Some(ResponseDraft {
                status: response.status().as_u16(),
                headers: recorded_headers(response.headers()),
                ..ResponseDraft::default()
            });
        });
        response.map(|body| self.body(body, BodySide::Received))
    }

    fn body(&self, body: WasiBody, side: BodySide) -> WasiBody {
        UnsyncBoxBody::new(TapedBody { body, tape: self.clone(), side })
    }

    fn change(&self, change: impl FnOnce(&mut RequestDraft)) {
        if let Some(draft) = self.recorder.state().requests.get_mut(self.index) {
            change(draft);
        }
    }

    fn add(&self, side: BodySide, data: &[u8]) {
        let draft_length = |draft: &RequestDraft| draft.body_length(side);
        let before = self.recorder.state().requests.get(self.index).map_or(0, draft_length);
        if before.saturating_add(data.len()) > BODY_BYTES_MAX {
            self.recorder.add_gap(format!("a body is longer than {BODY_BYTES_MAX} bytes"));
        } else if self.recorder.reserve(0, data.len(), "the call sent and received much data") {
            self.change(|draft| {
                if let Some(body) = draft.body(side) {
                    body.extend_from_slice(data);
                }
            });
        }
    }

    fn end(&self, side: BodySide, error: Option<String>) {
        self.change(|draft| match side {
            BodySide::Sent => draft.is_complete = error.is_none(),
            BodySide::Received => {
                if let Some(response) = &mut draft.response {
                    response.is_complete = error.is_none();
                    response.error = error;
                }
            }
        });
    }

    /// Records whether the guest waits for more of the response.
    fn set_stalled(&self, is_stalled: bool) {
        self.change(|draft| {
            if let Some(response) = &mut draft.response {
                response.is_stalled = is_stalled;
            }
        });
    }
}

impl RequestDraft {
    fn body(&mut self, side: BodySide) -> Option<&mut Vec<u8>> {
        match side {
            BodySide::Sent => Some(&mut self.sent),
            BodySide::Received => self.response.as_mut().map(|response| &mut response.received),
        }
    }

    fn body_length(&self, side: BodySide) -> usize {
        match side {
            BodySide::Sent => self.sent.len(),
            BodySide::Received => self.response.as_ref().map_or(0, |answer| answer.received.len()),
        }
    }
}

impl http_body::Body for TapedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        if matches!(this.side, BodySide::Received) {
            this.tape.set_stalled(polled.is_pending());
        }
        let frame = std::task::ready!(polled);
        match &frame {
            Some(Ok(frame)) => {
                if let Some(data) = frame.data_ref() {
                    this.tape.add(this.side, data);
                } else if let Some(trailers) = frame.trailers_ref() {
                    let trailers = recorded_headers(trailers);
                    this.tape.change(|draft| {
                        if let Some(response) = &mut draft.response {
                            response.trailers = trailers;
                        }
                    });
                }
                // A reader that knows the length does not read to the end.
                if this.body.is_end_stream() {
                    this.tape.end(this.side, None);
                }
            }
            Some(Err(error)) => this.tape.end(this.side, Some(error_name(error))),
            None => this.tape.end(this.side, None),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}

/// Answers a request from the recording. Reads the request's body first, so that it is recorded, up
/// to the limit of `allowance`, but does not wait for it longer than a second.
pub(crate) fn played_response(
    playback: &Playback,
    method: &str,
    url: &str,
    mut body: WasiBody,
    allowance: Allowance,
) -> impl Future<Output = Result<Response<WasiBody>, ErrorCode>> + Send + use<> {
    let played = playback.response(method, url);
    let (missing, name) = (Arc::clone(playback.missing()), format!("{method} {url}"));
    async move {
        let reading = tokio::spawn(async move {
            // A body that fails is recorded up to the failure.
            while let Some(Ok(frame)) = body.frame().await {
                if frame.data_ref().is_some_and(|data| !allowance.count_sent(data.len())) {
                    break;
                }
            }
        });
        let _ = tokio::time::timeout(BODY_WAIT_MAX, reading).await;
        match played {
            PlayedResponse::Missing => Err(ErrorCode::ConnectionRefused),
            PlayedResponse::Never => std::future::pending().await,
            PlayedResponse::Response(played) => match (played.status, &played.error) {
                (0, Some(error)) => Err(code_named(error)),
                (0, None) => Err(ErrorCode::ConnectionRefused),
                _ => Ok(response(&played, missing, name)),
            },
        }
    }
}

fn response(
    played: &RecordedResponse,
    missing: Arc<MissingInputs>,
    name: String,
) -> Response<WasiBody> {
    let mut frames: Vec<Result<http_body::Frame<Bytes>, Error>> = Vec::new();
    let mut rest = Bytes::from(played.body.bytes().unwrap_or_default().into_owned());
    while !rest.is_empty() {
        let frame = rest.split_to(rest.len().min(FRAME_BYTES));
        frames.push(Ok(http_body::Frame::data(frame)));
    }
    if !played.trailers.is_empty() {
        frames.push(Ok(http_body::Frame::trailers(played_headers(&played.trailers))));
    }
    let error = played.error.as_deref().map(code_named);
    let (is_complete, is_stalled) = (played.is_complete, played.is_stalled);
    let end = async move {
        match error {
            Some(error) => Some(Err(error.into())),
            None if is_complete => None,
            None if is_stalled => std::future::pending().await,
            None => {
                missing.add(format!("read more of the response to {name}"));
                Some(Err(ErrorCode::HttpResponseIncomplete.into()))
            }
        }
    };
    let end = stream::once(end).filter_map(std::future::ready);
    let body = UnsyncBoxBody::new(StreamBody::new(stream::iter(frames).chain(end)));
    let mut response = Response::new(body);
    *response.status_mut() = http::StatusCode::from_u16(played.status).unwrap_or_default();
    *response.headers_mut() = played_headers(&played.headers);
    response
}

fn recorded_headers(headers: &HeaderMap) -> Vec<(String, String)> {
    let value = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    headers.iter().map(|(name, header)| (name.as_str().to_owned(), value(header))).collect()
}

fn played_headers(recorded: &[(String, String)]) -> HeaderMap {
    let header = |(name, value): &(String, String)| {
        Some((HeaderName::try_from(name).ok()?, HeaderValue::try_from(value).ok()?))
    };
    let mut headers = HeaderMap::new();
    for (name, value) in recorded.iter().filter_map(header) {
        headers.append(name, value);
    }
    headers
}

/// Error codes by their names in recordings.
macro_rules! codes {
    ($($code:ident = $name:literal),* $(,)?) => {
        /// Returns the name of an error code in recordings. Codes that the host does not produce
        /// have the name of a broken connection.
        fn code_name(code: &ErrorCode) -> String {
            match code {
                $(ErrorCode::$code => $name.to_owned(),)*
                ErrorCode::DnsError(_) => "dns-error".to_owned(),
                ErrorCode::TlsAlertReceived(_) => "tls-alert-received".to_owned(),
                ErrorCode::HttpRequestBodySize(max) => sized("http-request-body-size", *max),
                ErrorCode::HttpResponseBodySize(max) => sized("http-response-body-size", *max),
                ErrorCode::HttpResponseHeaderSectionSize(max) => {
                    sized("http-response-header-section-size", max.map(u64::from))
                }
                _ => "connection-terminated".to_owned(),
            }
        }

        /// Returns the error code with this name in recordings.
        fn code_named(name: &str) -> ErrorCode {
            let (name, max) = name.split_once(' ').unwrap_or((name, ""));
            let max = max.parse::<u64>().ok();
            match name {
                $($name => ErrorCode::$code,)*
                "dns-error" => ErrorCode::DnsError(DnsErrorPayload { rcode: None, info_code: None }),
                "tls-alert-received" => ErrorCode::TlsAlertReceived(TlsAlertReceivedPayload {
                    alert_id: None,
                    alert_message: None,
                }),
                "http-request-body-size" => ErrorCode::HttpRequestBodySize(max),
                "http-response-body-size" => ErrorCode::HttpResponseBodySize(max),
                "http-response-header-section-size" => ErrorCode::HttpResponseHeaderSectionSize(
                    max.and_then(|max| u32::try_from(max).ok()),
                ),
                _ => ErrorCode::ConnectionTerminated,
            }
        }
    };
}

codes! {
    HttpRequestMethodInvalid = "http-request-method-invalid",
    HttpRequestUriInvalid = "http-request-uri-invalid",
    HttpRequestDenied = "http-request-denied",
    ConfigurationError = "configuration-error",
    DestinationIpProhibited = "destination-ip-prohibited",
    ConnectionRefused = "connection-refused",
    ConnectionTimeout = "connection-timeout",
    DestinationIpUnroutable = "destination-ip-unroutable",
    DestinationUnavailable = "destination-unavailable",
    TlsCertificateError = "tls-certificate-error",
    TlsProtocolError = "tls-protocol-error",
    DnsTimeout = "dns-timeout",
    ConnectionReadTimeout = "connection-read-timeout",
    ConnectionLimitReached = "connection-limit-reached",
    HttpResponseIncomplete = "http-response-incomplete",
    HttpUpgradeFailed = "http-upgrade-failed",
    HttpProtocolError = "http-protocol-error",
}

fn sized(name: &str, max: Option<u64>) -> String {
    max.map_or_else(|| name.to_owned(), |max| format!("{name} {max}"))
}

/// Returns the name of an error that ends a body.
fn error_name(error: &Error) -> String {
    let code = match error {
        Error::HttpRequestBodySize(max) => ErrorCode::HttpRequestBodySize(*max),
        Error::HttpResponseBodySize(max) => ErrorCode::HttpResponseBodySize(*max),
        Error::ConnectionReadTimeout => ErrorCode::ConnectionReadTimeout,
        Error::HttpResponseIncomplete => ErrorCode::HttpResponseIncomplete,
        Error::HttpProtocolError => ErrorCode::HttpProtocolError,
        _ => ErrorCode::ConnectionTerminated,
    };
    code_name(&code)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_codes_are_read_back() {
        for code in [
            ErrorCode::ConnectionRefused,
            ErrorCode::HttpResponseBodySize(Some(12)),
            ErrorCode::HttpRequestBodySize(None),
            ErrorCode::HttpResponseHeaderSectionSize(Some(7)),
            ErrorCode::DnsError(DnsErrorPayload { rcode: None, info_code: None }),
            ErrorCode::ConnectionTerminated,
        ] {
            assert_eq!(format!("{:?}", code_named(&code_name(&code))), format!("{code:?}"));
        }
    }
}
