//! Requests to one provider.
//!
//! Nothing comes from the environment: no proxy, no certificate, no key. Redirects are not
//! followed, because the key would be sent along. A request is retried only while no part of its
//! reply has been passed on.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use cofferdam_agent::{ChatError, ChatErrorKind};
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::redact::Redactor;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, StatusCode, Url, redirect};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::body::Body;
use super::fault::{self, Fault, ProviderMessage, ReplyError};
use super::{PlannedRetry, Provider, ProviderSettings, retry};

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const ANTHROPIC_KEY: HeaderName = HeaderName::from_static("x-api-key");
const ANTHROPIC_VERSION: HeaderName = HeaderName::from_static("anthropic-version");
/// Revision of the Anthropic API that this crate implements.
const ANTHROPIC_REVISION: HeaderValue = HeaderValue::from_static("2023-06-01");
/// Header of a response that decides about retries, as in the provider's own clients.
const SHOULD_RETRY: &str = "x-should-retry";
/// Maximum bytes of an error response that are read.
const ERROR_BYTES_MAX: usize = 64 * 1024;
/// Minimum length of a key or header value that is redacted everywhere, in bytes. Shorter values
/// occur by chance in too many strings.
const SECRET_BYTES_MIN: usize = 8;

/// Endpoint of requests, with its credentials.
pub(super) struct ModelEndpoint {
    client: Client,
    url: Url,
    /// Part of the address that may be shown.
    origin: String,
    headers: HeaderMap,
    redactor: Redactor,
    settings: Arc<ProviderSettings>,
}

/// One request, with all its attempts.
pub(super) struct OutgoingRequest<'s> {
    pub(super) body: Bytes,
    pub(super) streams: bool,
    pub(super) deadline: Instant,
    pub(super) cancellation: &'s CancellationToken,
}

/// Response of the provider.
pub(super) enum EndpointResponse {
    Whole(String),
    Events(Body),
}

impl ModelEndpoint {
    pub(super) fn new(settings: Arc<ProviderSettings>) -> Result<Self, ChatError> {
        let url = url(&settings)?;
        let origin = url.origin().ascii_serialization();
        let headers = headers(&settings)?;
        let redactor = redactor(&settings)?;
        let client = client(&settings)?;
        Ok(Self { client, url, origin, headers, redactor, settings })
    }

    pub(super) fn settings(&self) -> &ProviderSettings {
        &self.settings
    }

    /// Returns the time by which a request that begins now must end.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + self.settings.timeouts.bounded().total
    }

    /// Sends a request and retries it until it succeeds or no retry is allowed.
    pub(super) async fn send(
        &self,
        sending: &OutgoingRequest<'_>,
    ) -> Result<EndpointResponse, Fault> {
        let mut tries = 0_u32;
        loop {
            tries = tries.saturating_add(1);
            let tried =
                self.bounded(sending.cancellation, sending.deadline, self.attempt(sending)).await;
            let mut failed = match tried {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failed)) => failed,
                Err(ended) => return Err(ended.into()),
            };
            let wait = retry::pause(&self.settings.retries, tries, failed.error.retry_after);
            let wait = wait.filter(|wait| {
                failed.is_retried
                    && *wait < sending.deadline.saturating_duration_since(Instant::now())
            });
            let Some(wait) = wait else {
                if let Some(asked) = failed.error.retry_after.filter(|_| failed.is_retried) {
                    failed
                        .error
                        .message
                        .push_str(&format!("; asked to wait {} s", asked.as_secs_f64().ceil()));
                }
                if tries > 1 {
                    failed.error.message.push_str(&format!(" (after {tries} tries)"));
                }
                return Err(failed);
            };
            if let Some(observer) = &self.settings.retry_observer {
                observer(&PlannedRetry {
                    error: &failed.error,
                    pause: wait,
                    number: tries,
                    retries_max: self.settings.retries.retries_max,
                });
            }
            tracing::debug!(provider = %self.settings.provider, kind = ?failed.error.kind, tries, ?wait, "trying again");
            self.bounded(sending.cancellation, sending.deadline, tokio::time::sleep(wait)).await?;
        }
    }

    async fn attempt(&self, sending: &OutgoingRequest<'_>) -> Result<EndpointResponse, Fault> {
        let timeouts = self.settings.timeouts.bounded();
        let first_byte = Instant::now() + timeouts.first_byte;
        let accept = if sending.streams { EVENTS } else { JSON };
        let request = self.client.post(self.url.clone()).headers(self.headers.clone());
        let request = request.header(ACCEPT, accept).body(sending.body.clone());
        let response = match tokio::time::timeout_at(first_byte, request.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(_) => return Err(self.silent(timeouts.first_byte)),
        };
        let status = response.status();
        if !status.is_success() {
            let (headers, body) = (response.headers().clone(), Body::new(response));
            return Err(self.refusal(status, &headers, body).await);
        }
        let is_json = has_type(response.headers(), "application/json");
        let is_page = has_type(response.headers(), "text/html");
        if is_page {
            return Err(self.fault(&ReplyError::Malformed("an HTML page instead of JSON")));
        }
        let limits = self.settings.limits;
        // Some servers never stream, or always do, regardless of the request.
        if is_json || !(sending.streams || has_type(response.headers(), "text/event-stream")) {
            let body = Body::new(response)
                .until_first(first_byte, timeouts.first_byte)
                .read(limits.reply_bytes_max, timeouts.pause);
            let body = body.await.map_err(|broken| self.interrupted(&broken, true))?;
            let text =
                String::from_utf8(body).map_err(|_| ReplyError::Malformed("what is not UTF-8"));
            return text.map(EndpointResponse::Whole).map_err(|broken| self.fault(&broken));
        }
        let mut body = Body::new(response).until_first(first_byte, timeouts.first_byte);
        body.begin(limits.stream_bytes_max, timeouts.pause)
            .await
            .map_err(|broken| self.interrupted(&broken, true))?;
        Ok(EndpointResponse::Events(body))
    }

    async fn refusal(&self, status: StatusCode, headers: &HeaderMap, body: Body) -> Fault {
        let origin = &self.origin;
        if status.is_redirection() {
            let message = format!(
                "{origin} redirects to another address (HTTP {}); redirects are not followed, so set the \
                 base URL to the final address",
                status.as_u16()
            );
            return Fault::new(ChatErrorKind::Configuration, message);
        }
        let body = body.read_part(ERROR_BYTES_MAX, self.settings.timeouts.bounded().pause).await;
        let said = ProviderMessage::read(&String::from_utf8_lossy(&body));
        let kind = fault::kind_of_status(status.as_u16()).unwrap_or(ChatErrorKind::Malformed);
        let text = self.shown(&said.text);
        let separator = if text.is_empty() { "" } else { ": " };
        let message = format!("{origin} answered HTTP {}{separator}{text}", status.as_u16());
        let may_pass = kind.is_transient() && !said.is_lasting;
        let is_retried = match headers.get(SHOULD_RETRY).map(HeaderValue::as_bytes) {
            Some(b"false") => false,
            Some(b"true") => true,
            _ => may_pass,
        };
        let (parameter, code) = (said.parameter, said.code);
        let fault = Fault { is_retried, parameter, code, ..Fault::new(kind, message) };
        fault.after(retry::requested_pause(headers))
    }

    /// Waits for `work` until the caller cancels or the deadline passes.
    pub(super) async fn bounded<T>(
        &self,
        cancellation: &CancellationToken,
        deadline: Instant,
        work: impl Future<Output = T>,
    ) -> Result<T, ChatError> {
        tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(ChatError::cancelled()),
            done = work => Ok(done),
            () = tokio::time::sleep_until(deadline) => {
                let total = self.settings.timeouts.bounded().total;
                let message = format!("{} gave no whole reply within {}", self.origin, seconds(total));
                Err(ChatError::new(ChatErrorKind::Timeout, message))
            }
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Fault {
        let cause = self.shown(&fault::root_cause(error));
        let origin = &self.origin;
        if error.is_builder() {
            return Fault::new(
                ChatErrorKind::Configuration,
                format!("no request can be made: {cause}"),
            );
        }
        let what = if error.is_connect() { "cannot be reached" } else { "broke the connection" };
        Fault::passing(ChatErrorKind::Connection, format!("{origin} {what}: {cause}"))
    }

    fn silent(&self, time: Duration) -> Fault {
        Fault::new(
            ChatErrorKind::Timeout,
            format!("{} said nothing for {}", self.origin, seconds(time)),
        )
    }

    /// Returns the fault for a body that ended early.
    pub(super) fn interrupted(
        &self,
        interrupted: &super::body::Interruption,
        is_retried: bool,
    ) -> Fault {
        use super::body::Interruption;
        match interrupted {
            Interruption::Silent(time) => self.silent(*time),
            Interruption::TooLarge => self.fault(&ReplyError::TooLarge("the reply is")),
            Interruption::Broken(error) => Fault { is_retried, ..self.unreachable(error) },
        }
    }

    /// Returns the fault for a response that cannot be used.
    pub(super) fn fault(&self, broken: &ReplyError) -> Fault {
        let origin = &self.origin;
        match broken {
            ReplyError::Said(said) => {
                let kind = said.kind.unwrap_or(ChatErrorKind::Server);
                let text = self.shown(&said.text);
                Fault::new(kind, format!("{origin} reports an error: {text}"))
            }
            ReplyError::Malformed(what) => {
                Fault::new(ChatErrorKind::Malformed, format!("{origin} sent {what}"))
            }
            ReplyError::TooLarge(what) => Fault::new(
                ChatErrorKind::TooLarge,
                format!("{origin}: {what} larger than the limit"),
            ),
            ReplyError::CutOff => {
                let message = format!("{origin} ended the stream before the reply was complete");
                Fault::new(ChatErrorKind::Connection, message)
            }
        }
    }

    /// Returns a message of the provider in a form that may be shown to the user.
    fn shown(&self, text: &str) -> String {
        fault::shown(text, |text| {
            let mut text = self.redactor.text(text).into_owned();
            if let Some(key) = self.settings.key.as_ref().map(SecretText::expose)
                && key.len() < SECRET_BYTES_MIN
                && !key.is_empty()
            {
                text = text.replace(key, "[secret key]");
            }
            text
        })
    }
}

fn seconds(time: Duration) -> String {
    format!("{} s", time.as_secs_f64())
}

fn has_type(headers: &HeaderMap, media_type: &str) -> bool {
    let written = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    written
        .and_then(|written| written.split(';').next())
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case(media_type))
}

fn refused(message: impl Into<String>) -> ChatError {
    ChatError::new(ChatErrorKind::Configuration, message)
}

/// Returns the URL of the API. Error messages never quote the given string, which may contain a
/// key.
fn url(settings: &ProviderSettings) -> Result<Url, ChatError> {
    let mut url = Url::parse(&settings.base_url)
        .map_err(|error| refused(format!("invalid base URL: {error}")))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused(
            "the base URL has a user or a password in it: pass a key or a header instead",
        ));
    }
    let is_loopback = match url.host_str() {
        Some("localhost") => true,
        Some(host) => {
            let host = host.trim_start_matches('[').trim_end_matches(']');
            host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
        }
        None => false,
    };
    match url.scheme() {
        "https" => {}
        "http" if is_loopback || settings.allow_plain_http => {}
        "http" => {
            return Err(refused(
                "the base URL is `http:` on another machine, and every machine on the network path can \
                 read the key and the conversation: use `https:`, or allow plain HTTP for this \
                 provider",
            ));
        }
        _ => return Err(refused("the base URL is neither `https:` nor `http:`")),
    }
    url.set_fragment(None);
    let has_version = url.path().trim_end_matches('/').ends_with("/v1");
    let path: &[&str] = match settings.provider {
        Provider::OpenAiChat => &["chat", "completions"],
        Provider::OpenAiResponses => &["responses"],
        Provider::Anthropic if has_version => &["messages"],
        Provider::Anthropic => &["v1", "messages"],
    };
    let mut segments =
        url.path_segments_mut().map_err(|()| refused("nothing can be appended to the base URL"))?;
    segments.pop_if_empty().extend(path);
    drop(segments);
    Ok(url)
}

fn headers(settings: &ProviderSettings) -> Result<HeaderMap, ChatError> {
    let mut headers = HeaderMap::new();
    for (name, value) in &settings.headers {
        let mut value = value.clone();
        value.set_sensitive(true);
        headers.append(name, value);
    }
    headers.insert(CONTENT_TYPE, JSON);
    headers.remove(ACCEPT);
    if settings.provider == Provider::Anthropic {
        headers.entry(ANTHROPIC_VERSION).or_insert(ANTHROPIC_REVISION);
    }
    if let Some(key) = &settings.key {
        let (name, value) = match settings.provider {
            Provider::Anthropic => (ANTHROPIC_KEY, key.expose().to_owned()),
            _ => (AUTHORIZATION, format!("Bearer {}", key.expose())),
        };
        let value = HeaderValue::try_from(value);
        let mut value =
            value.map_err(|_| refused("the key has characters that no header can have"))?;
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    Ok(headers)
}

fn redactor(settings: &ProviderSettings) -> Result<Redactor, ChatError> {
    let mut secrets: Vec<(&str, SecretText)> = Vec::new();
    secrets.extend(settings.key.iter().map(|key| ("key", key.clone())));
    for (name, value) in &settings.headers {
        // The scheme in front is not a secret, and what follows is one without it.
        let words = value.to_str().unwrap_or_default().split_ascii_whitespace();
        secrets.extend(words.map(|word| (name.as_str(), SecretText::new(word))));
    }
    let long = secrets.iter().filter(|(_, secret)| secret.expose().len() >= SECRET_BYTES_MIN);
    Redactor::new(long.map(|(name, secret)| (*name, secret)))
        .map_err(|unfit| refused(unfit.to_string()))
}

/// Creates the HTTP client, with the same TLS as everywhere: one provider, Mozilla's roots, nothing
/// from the environment.
fn client(settings: &ProviderSettings) -> Result<Client, ChatError> {
    let tls_refused = |error: rustls::Error| refused(format!("TLS cannot be set up: {error}"));
    let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    for authority in &settings.authorities {
        roots.add(authority.clone().into()).map_err(tls_refused)?;
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(tls_refused)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .referer(false)
        .connect_timeout(settings.timeouts.bounded().connect)
        .tcp_nodelay(true)
        .build()
        .map_err(|error| {
            refused(format!("the HTTP client cannot be built: {}", fault::root_cause(&error)))
        })
}
