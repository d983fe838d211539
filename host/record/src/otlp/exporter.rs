//! Sending of export requests to a collector.
//!
//! Nothing comes from the environment: no proxy, no certificate, no header. Redirects are not
//! followed, because headers would be sent along.

use std::io::Write as _;
use std::time::{Duration, SystemTime};

use cofferdam_tool::permission::SecretText;
use cofferdam_tool::redact::Redactor;
use cofferdam_tool::retry::Backoff;
use flate2::Compression;
use flate2::write::GzEncoder;
use reqwest::header::{
    CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode, Url};
use serde::Deserialize;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use super::export::SharedHealth;
use super::requests::{TraceRequest, TraceRequests};
use crate::http::{self, root_cause};
use crate::{CallFilter, Log, LogDamage, RecordError};

/// Maximum bytes of a response that are read.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;
/// Maximum characters of a message of the collector.
const MESSAGE_CHARS_MAX: usize = 300;
/// Minimum length of a header value that is redacted in messages, in bytes. Shorter values occur by
/// chance in too many strings.
const SECRET_BYTES_MIN: usize = 8;
/// Longest pause that a collector may ask a continuous export for.
const PAUSE_MAX: Duration = Duration::from_secs(300);
/// Path of requests with spans, appended to the base endpoint.
const TRACES_PATH: [&str; 2] = ["v1", "traces"];

/// Options of an exporter.
#[derive(Clone)]
pub struct OtlpOptions {
    /// Base endpoint of the collector, such as `http://localhost:4318`. `/v1/traces` is appended.
    pub endpoint: String,
    /// Headers of each request, such as `authorization`. Their values are secrets: they appear in
    /// no message. A collector on another machine that gets headers must be an `https:` one.
    pub headers: Vec<(String, SecretText)>,
    /// Name of the service in spans.
    pub service: String,
    /// Certificates of authorities in DER, besides Mozilla's.
    pub authorities: Vec<Vec<u8>>,
    /// Time for one attempt, from connecting to the end of the response.
    pub timeout: Duration,
    /// Pauses between attempts. The number of retries is not limited by it, but by `retry_time`.
    pub backoff: Backoff,
    /// Time after which no further attempt is made. Does not apply to a continuous export.
    pub retry_time: Duration,
}

/// Sends spans to a collector by OTLP/HTTP in JSON, compressed with gzip.
pub struct OtlpExporter {
    client: Client,
    url: Url,
    /// Part of the address that may be shown.
    shown_url: String,
    headers: HeaderMap,
    redactor: Redactor,
    options: OtlpOptions,
}

/// Answer of a collector that has accepted a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SentSpans {
    /// Number of spans that the collector has rejected. They must not be sent again.
    pub rejected: u64,
    /// Message of the collector about them, or a warning.
    pub message: Option<String>,
}

/// Result of exporting a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtlpReport {
    /// Number of spans that were sent.
    pub spans: u64,
    /// Number of those that the collector has rejected.
    pub rejected: u64,
    /// Last message of the collector about rejected spans, or a warning.
    pub message: Option<String>,
    /// Damage of the segments that were read.
    pub damage: LogDamage,
}

/// Error returned when spans cannot be exported.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// The endpoint cannot be used.
    #[error("invalid OTLP endpoint: {0}")]
    Endpoint(String),
    /// A header cannot be sent.
    #[error("the header `{name}` of the OTLP exporter {problem}")]
    Header {
        /// Name of the header.
        name: String,
        /// Problem with it, without its value.
        problem: &'static str,
    },
    /// The HTTP client cannot be built.
    #[error("the HTTP client of the OTLP exporter cannot be built: {0}")]
    Client(String),
    /// The collector cannot be reached, or broke the connection.
    #[error("cannot send spans to {url}: {cause} (after {attempts} attempts)")]
    Connection {
        /// Address of the request.
        url: String,
        /// Cause.
        cause: String,
        /// Number of attempts.
        attempts: u32,
    },
    /// The collector has answered with a status other than success.
    #[error("{url} answered HTTP {status}{message}; {advice}")]
    Status {
        /// Address of the request.
        url: String,
        /// Status.
        status: u16,
        /// Message of the collector after a colon, or nothing.
        message: String,
        /// Advice about the status.
        advice: &'static str,
    },
    /// The log cannot be read.
    #[error(transparent)]
    Log(#[from] RecordError),
    /// The thread that reads the log has ended early.
    #[error("the thread that reads the log has ended early")]
    Reader,
}

/// End of the attempts to send a request.
pub(super) enum RetryLimit<'r> {
    /// No attempt begins after this time.
    Deadline(Instant),
    /// Attempts are made until the task is aborted. The stop ends a pause; failures are noted.
    Aborted(&'r mut watch::Receiver<bool>, &'r SharedHealth),
}

/// Failure of one attempt.
pub(super) struct AttemptFailure {
    pub(super) error: OtlpError,
    pub(super) is_retryable: bool,
    retry_after: Option<Duration>,
}

/// Response body of an export request (`ExportTraceServiceResponse`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExportResponse {
    partial_success: Option<PartialSuccess>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct PartialSuccess {
    rejected_spans: serde_json::Value,
    error_message: String,
}

/// Response body of a failed request (`google.rpc.Status`).
#[derive(Deserialize)]
struct StatusMessage {
    message: String,
}

impl RetryLimit<'_> {
    /// Waits before the next attempt. Returns false if there is to be none.
    async fn pause(&mut self, pause: Duration, error: &OtlpError) -> bool {
        match self {
            Self::Deadline(deadline) => {
                let is_in_time = Instant::now() + pause < *deadline;
                if is_in_time {
                    tokio::time::sleep(pause).await;
                }
                is_in_time
            }
            Self::Aborted(stop, health) => {
                health.fail(&error.to_string());
                let pause = pause.min(PAUSE_MAX);
                if *stop.borrow() {
                    tokio::time::sleep(pause).await;
                } else {
                    let _ = tokio::time::timeout(pause, stop.changed()).await;
                }
                true
            }
        }
    }
}

impl OtlpOptions {
    /// Returns options for a collector without headers: 10 seconds for an attempt, and a minute of
    /// retries with pauses of 1 to 30 seconds.
    pub fn new(endpoint: impl Into<String>) -> Self {
        Self {
            endpoint: endpoint.into(),
            headers: Vec::new(),
            service: "cofferdam".to_owned(),
            authorities: Vec::new(),
            timeout: Duration::from_secs(10),
            backoff: Backoff {
                retries_max: u32::MAX,
                pause: Duration::from_secs(1),
                pause_max: Duration::from_secs(30),
            },
            retry_time: Duration::from_secs(60),
        }
    }
}

impl std::fmt::Debug for OtlpOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("OtlpOptions")
            .field("headers", &headers)
            .field("service", &self.service)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OtlpExporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OtlpExporter").field("url", &self.shown_url).finish_non_exhaustive()
    }
}

impl OtlpExporter {
    /// Returns an exporter. Nothing is sent yet.
    ///
    /// # Errors
    /// If the endpoint or a header cannot be used.
    pub fn new(options: OtlpOptions) -> Result<Self, OtlpError> {
        let url = url(&options)?;
        let mut shown = url.clone();
        shown.set_query(None);
        Ok(Self {
            client: http::client(&options.authorities, options.timeout)
                .map_err(OtlpError::Client)?,
            headers: headers(&options)?,
            redactor: redactor(&options)?,
            shown_url: shown.to_string(),
            url,
            options,
        })
    }

    /// Sends a request, again after connection errors and the statuses 429, 502, 503 and 504.
    ///
    /// # Errors
    /// If the collector refuses the request, or does not accept it within the
    /// [time for retries](OtlpOptions::retry_time).
    pub async fn send(&self, request: &TraceRequest) -> Result<SentSpans, OtlpError> {
        let deadline = Instant::now() + self.options.retry_time;
        self.deliver(request, RetryLimit::Deadline(deadline)).await
    }

    /// Sends a span for each call of a log that passes a filter, and for each reply of a model and
    /// each run of an agent if the filter has no condition that only calls can meet. Reads the log
    /// while it sends.
    ///
    /// # Errors
    /// If the log cannot be read, or the collector does not accept a request. What was sent before
    /// stays there; a repeated export sends the same ids.
    pub async fn export(&self, log: &Log, filter: &CallFilter) -> Result<OtlpReport, OtlpError> {
        let (sender, mut receiver) = mpsc::channel(1);
        let (log, filter) = (log.clone(), filter.clone());
        let service = self.options.service.clone();
        let reader = tokio::task::spawn_blocking(move || {
            let mut requests = TraceRequests::new(log.stream(&filter)?, &service);
            for request in requests.by_ref() {
                if sender.blocking_send(request).is_err() {
                    break;
                }
            }
            Ok::<_, RecordError>(requests.damage().clone())
        });
        let mut report = OtlpReport::default();
        while let Some(request) = receiver.recv().await {
            let SentSpans { rejected, message } = self.send(&request).await?;
            report.spans += u64::try_from(request.spans).unwrap_or(u64::MAX);
            report.rejected += rejected;
            report.message = message.or(report.message);
        }
        report.damage = reader.await.map_err(|_| OtlpError::Reader)??;
        Ok(report)
    }

    pub(super) fn options(&self) -> &OtlpOptions {
        &self.options
    }

    /// Sends a request until the collector accepts or refuses it, or the limit is reached.
    pub(super) async fn deliver(
        &self,
        request: &TraceRequest,
        mut limit: RetryLimit<'_>,
    ) -> Result<SentSpans, OtlpError> {
        let text = request.body.clone();
        let compressed = tokio::task::spawn_blocking(move || gzip(text.as_bytes())).await;
        let body = compressed.map_err(|_| OtlpError::Reader)?;
        let mut attempts = 0_u32;
        loop {
            attempts = attempts.saturating_add(1);
            let failure = match self.attempt(body.clone()).await {
                Ok(sent) => return Ok(sent),
                Err(failure) => failure,
            };
            let AttemptFailure { mut error, is_retryable, retry_after } = failure;
            if let OtlpError::Connection { attempts: made, .. } = &mut error {
                *made = attempts;
            }
            let wait = retry_after.unwrap_or_else(|| self.pause(attempts));
            if !is_retryable || !limit.pause(wait, &error).await {
                return Err(error);
            }
        }
    }

    /// Returns the pause after a number of attempts, with a random part, so that exporters that
    /// failed together do not retry together.
    fn pause(&self, attempts: u32) -> Duration {
        let backoff = self.options.backoff;
        let pause = backoff.pause_after(attempts).unwrap_or(backoff.pause_max);
        let mut byte = [0];
        // Without randomness the full pause applies.
        let _no_matter = getrandom::fill(&mut byte);
        pause.mul_f64(1.0 - f64::from(u8::from_ne_bytes(byte)) / 512.0)
    }

    async fn attempt(&self, body: Vec<u8>) -> Result<SentSpans, AttemptFailure> {
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let attempt = async {
            let response = request.send().await?;
            let (status, headers) = (response.status(), response.headers().clone());
            Ok::<_, reqwest::Error>((status, headers, read(response).await?))
        };
        match tokio::time::timeout(self.options.timeout, attempt).await {
            Ok(Ok((status, _, body))) if status.is_success() => Ok(self.accepted(&body)),
            Ok(Ok((status, headers, body))) => Err(self.refused(status, &headers, &body)),
            Ok(Err(error)) => Err(self.broken(root_cause(&error))),
            Err(_) => {
                let seconds = self.options.timeout.as_secs_f64();
                Err(self.broken(format!("the collector gave no answer within {seconds} s")))
            }
        }
    }

    fn accepted(&self, body: &[u8]) -> SentSpans {
        // Collectors that answer with nothing, or with protobuf, have accepted everything.
        let response: ExportResponse = serde_json::from_slice(body).unwrap_or_default();
        let PartialSuccess { rejected_spans, error_message } =
            response.partial_success.unwrap_or_default();
        let written = rejected_spans.as_str().and_then(|number| number.parse().ok());
        SentSpans {
            rejected: written.or(rejected_spans.as_u64()).unwrap_or(0),
            message: (!error_message.is_empty()).then(|| self.shown(&error_message)),
        }
    }

    fn refused(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> AttemptFailure {
        let parsed = serde_json::from_slice(body).ok();
        let message = parsed.map_or_else(
            || String::from_utf8_lossy(body).into_owned(),
            |StatusMessage { message }| message,
        );
        let message = match self.shown(message.trim()) {
            message if message.is_empty() => message,
            message => format!(": {message}"),
        };
        let status = status.as_u16();
        let is_retryable = matches!(status, 429 | 502 | 503 | 504);
        AttemptFailure {
            error: OtlpError::Status {
                url: self.shown_url.clone(),
                status,
                message,
                advice: advice(status),
            },
            is_retryable,
            retry_after: retry_after(headers).filter(|_| is_retryable),
        }
    }

    fn broken(&self, cause: String) -> AttemptFailure {
        let error = OtlpError::Connection { url: self.shown_url.clone(), cause, attempts: 1 };
        AttemptFailure { error, is_retryable: true, retry_after: None }
    }

    /// Returns a message of the collector in a form that may be shown to the user.
    fn shown(&self, message: &str) -> String {
        let redacted = self.redactor.text(message);
        let shown = |c: char| if c.is_control() { ' ' } else { c };
        redacted.chars().take(MESSAGE_CHARS_MAX).map(shown).collect()
    }
}

/// Reads the start of a response.
async fn read(mut response: Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() >= RESPONSE_BYTES_MAX {
            body.truncate(RESPONSE_BYTES_MAX);
            break;
        }
    }
    Ok(body)
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(text);
    encoder.finish().unwrap_or_default()
}

fn advice(status: u16) -> &'static str {
    match status {
        300..=399 => "redirects are not followed, so set the endpoint to the final address",
        400 | 422 => "check that the collector accepts OTLP over HTTP in JSON",
        401 | 403 | 407 => "check the `authorization` header of the exporter",
        404 | 405 => "check the endpoint, to which `/v1/traces` is appended",
        413 => "raise the collector's limit for requests to at least 2 MiB",
        415 => "choose a collector that accepts `application/json` with gzip",
        429 | 502 | 503 | 504 => "the collector is overloaded or not ready; try again later",
        _ => "look for the cause in the collector's log",
    }
}

/// Returns the pause that a response asks for: seconds, or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let written = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = written.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(written).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

/// Returns the address of requests. Messages never quote the given string, which may contain a
/// password.
fn url(options: &OtlpOptions) -> Result<Url, OtlpError> {
    let refused = |problem: &str| OtlpError::Endpoint(problem.to_owned());
    let mut url = Url::parse(&options.endpoint).map_err(|error| {
        OtlpError::Endpoint(format!("{error}; write it as `http://localhost:4318`"))
    })?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("it contains a user or a password; pass an `authorization` header"));
    }
    match url.scheme() {
        "https" => {}
        "http" if options.headers.is_empty() || is_loopback(&url) => {}
        "http" => {
            return Err(refused(
                "it is `http:` on another machine, where everybody on the network path can read \
                 the headers; use `https:`, or pass no headers",
            ));
        }
        _ => return Err(refused("it is neither `https:` nor `http:`")),
    }
    url.set_fragment(None);
    let mut segments =
        url.path_segments_mut().map_err(|()| refused("nothing can be appended to it"))?;
    segments.pop_if_empty().extend(TRACES_PATH);
    drop(segments);
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

fn headers(options: &OtlpOptions) -> Result<HeaderMap, OtlpError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &options.headers {
        let refused = |problem| OtlpError::Header { name: name.clone(), problem };
        let key = HeaderName::try_from(name.as_str())
            .map_err(|_| refused("has a name with characters that no header name can have"))?;
        let mut value = HeaderValue::try_from(value.expose())
            .map_err(|_| refused("has a value with characters that no header can have"))?;
        value.set_sensitive(true);
        headers.append(key, value);
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    Ok(headers)
}

fn redactor(options: &OtlpOptions) -> Result<Redactor, OtlpError> {
    let mut secrets: Vec<(&str, SecretText)> = Vec::new();
    for (name, value) in &options.headers {
        // The scheme in front is not a secret, and what follows is one without it.
        let words = value.expose().split_ascii_whitespace();
        let long = words.filter(|word| word.len() >= SECRET_BYTES_MIN);
        secrets.extend(long.map(|word| (name.as_str(), SecretText::new(word))));
    }
    Redactor::new(secrets.iter().map(|(name, secret)| (*name, secret)))
        .map_err(|error| OtlpError::Client(error.to_string()))
}
