//! Address, timeouts and limits of a provider.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use cofferdam_agent::{ChatError, ChatErrorKind};
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::retry::Backoff;
use cofferdam_tool::schema::Dialect;
use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;

/// Maximum of every timeout: more is as good as no limit, and sums stay in range.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// API of a provider. Most compatible servers implement the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// Chat Completions of OpenAI and of compatible servers.
    OpenAiChat,
    /// Responses of OpenAI.
    OpenAiResponses,
    /// Messages of Anthropic.
    Anthropic,
}

/// Error returned when parsing an unknown provider name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider `{name}`; known are openai, responses, anthropic")]
pub struct UnknownProvider {
    /// The unknown name.
    pub name: String,
}

/// Settings of a [`ProviderClient`](crate::ProviderClient). `Debug` shows neither keys nor header
/// values, and only the origin of the address.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// API to use.
    pub provider: Provider,
    /// Name of the model at the provider.
    pub model: String,
    /// Address that the API's paths are appended to, in the form that the provider's own clients
    /// take: with `/v1` for OpenAI, without it for Anthropic.
    pub base_url: String,
    /// True if a key and a conversation may go over `http:` to another machine.
    pub allow_plain_http: bool,
    /// API key, unless the server requires none.
    pub key: Option<SecretText>,
    /// Headers of every request. They do not replace those that the client sets; their values are
    /// treated like keys.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Certificates (DER) of authorities trusted besides Mozilla's.
    pub authorities: Vec<Vec<u8>>,
    /// Timeouts of requests.
    pub timeouts: ProviderTimeouts,
    /// Limits on the size of a reply.
    pub limits: ReplyLimits,
    /// Retries of requests that failed with a transient status (429, 529, 5xx, 408) and of broken
    /// connections, as long as no part of a reply was passed on. A provider that is silent for too
    /// long is not retried. Each pause is shortened at random by up to half. If the provider asks
    /// for a longer pause than the maximum, the error is returned and says so.
    pub retries: Backoff,
    /// Called before the pause of each retry.
    pub retry_observer: Option<RetryObserver>,
    /// True if the service keeps the conversation (`LOOP-4`). Only OpenAI Responses supports this.
    pub store: bool,
    /// Maximum number of tokens of a reply if the request sets none. Anthropic requires a number;
    /// the others choose one themselves if it is absent.
    pub max_output_tokens: Option<u64>,
    /// True if the sampling parameters of requests are sent. Off by default for Anthropic, whose
    /// current models refuse every request that sets one; the client logs a warning about a
    /// parameter that it does not send.
    pub sampling: bool,
    /// True if the provider may run programs of the model that call the functions of a request.
    /// The functions still run here. OpenAI Responses without `store`, and Anthropic.
    pub hosted_programs: bool,
    /// Use of the provider's prompt cache.
    pub caching: PromptCaching,
}

/// Use of a provider's prompt cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum PromptCaching {
    /// The client asks for no caching. OpenAI caches nevertheless.
    Off,
    /// The provider caches the functions, the instructions and the conversation so far. At
    /// Anthropic, writing to the cache costs a quarter more than a request without it, and reading
    /// costs a tenth.
    #[default]
    Auto,
    /// Like [`Auto`](Self::Auto), and Anthropic keeps the cache for an hour instead of five
    /// minutes, at twice the price of a request without it.
    Hour,
}

/// Receives the retries of requests before they happen. Must not block.
pub type RetryObserver = Arc<dyn Fn(&PlannedRetry<'_>) + Send + Sync>;

/// A retry that follows after a pause.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct PlannedRetry<'a> {
    /// Error of the last attempt.
    pub error: &'a ChatError,
    /// Pause before the retry.
    pub pause: Duration,
    /// Number of the retry, from 1.
    pub number: u32,
    /// Maximum number of retries.
    pub retries_max: u32,
}

/// Timeouts of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderTimeouts {
    /// Time until there is a connection.
    pub connect: Duration,
    /// Time until the first byte of a response. A reply that is not streamed begins when the model
    /// is done.
    pub first_byte: Duration,
    /// Time between two pieces of a response.
    pub pause: Duration,
    /// Total time, including failed attempts, pauses between them, and the time that the caller
    /// takes to read a stream.
    pub total: Duration,
}

/// Limits on the size of a reply. A larger reply is an error, and reading stops at the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyLimits {
    /// Bytes of a whole response; of a streamed one, total bytes of its texts, names and arguments.
    pub reply_bytes_max: usize,
    /// Bytes of a streamed response, including the framing.
    pub stream_bytes_max: usize,
    /// Bytes of one event of a stream. OpenAI Responses repeats the whole reply in the last one.
    pub event_bytes_max: usize,
    /// Number of function calls in a reply.
    pub calls_max: usize,
    /// Bytes of the arguments of one call.
    pub arguments_bytes_max: usize,
}

/// Default retries.
pub(super) const RETRIES: Backoff = Backoff {
    retries_max: 3,
    pause: Duration::from_millis(500),
    pause_max: Duration::from_secs(30),
};

impl Provider {
    /// All providers.
    pub const ALL: [Self; 3] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic];

    /// Returns the name that users type.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "responses",
            Self::Anthropic => "anthropic",
        }
    }

    /// Returns the provider's own base URL.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }

    /// Returns the dialect in which to write schemas of tools.
    pub(super) fn dialect(self, is_strict: bool) -> Dialect {
        match (self, is_strict) {
            (Self::Anthropic, true) => Dialect::Anthropic,
            (_, true) => Dialect::OpenAiStrict,
            // Outside of strict mode Anthropic accepts OpenAI's dialect, which says more than
            // Anthropic's strict one.
            (_, false) => Dialect::OpenAi,
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let named = Self::ALL.into_iter().find(|provider| provider.name() == name);
        named.ok_or_else(|| UnknownProvider { name: name.to_owned() })
    }
}

impl ProviderSettings {
    /// Creates settings for the provider itself, without a key.
    #[must_use]
    pub fn new(provider: Provider, model: impl Into<String>) -> Self {
        Self {
            provider,
            model: model.into(),
            base_url: provider.base_url().to_owned(),
            allow_plain_http: false,
            key: None,
            headers: Vec::new(),
            authorities: Vec::new(),
            timeouts: ProviderTimeouts::default(),
            limits: ReplyLimits::default(),
            retries: RETRIES,
            retry_observer: None,
            store: false,
            max_output_tokens: None,
            sampling: provider != Provider::Anthropic,
            hosted_programs: false,
            caching: PromptCaching::default(),
        }
    }

    /// Returns the host of the address; empty if the address is invalid.
    pub(super) fn host(&self) -> String {
        let url = reqwest::Url::parse(&self.base_url).ok();
        url.as_ref().and_then(|url| url.host_str()).unwrap_or_default().to_owned()
    }

    /// Sets the key.
    #[must_use]
    pub fn with_key(mut self, key: SecretText) -> Self {
        self.key = Some(key);
        self
    }

    /// Sets another base URL, as for a compatible server.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// Adds a header to every request.
    ///
    /// # Errors
    /// [`ChatErrorKind::Configuration`] if the name or value is not valid in a header. The message
    /// does not show the value.
    pub fn with_header(mut self, name: &str, value: &SecretText) -> Result<Self, ChatError> {
        let refused =
            |what| ChatError::new(ChatErrorKind::Configuration, format!("`{name}` {what}"));
        let name = HeaderName::try_from(name).map_err(|_| refused("is not a name of a header"))?;
        let value = HeaderValue::try_from(value.expose())
            .map_err(|_| refused("has a value that no header can have"))?;
        self.headers.push((name, value));
        Ok(self)
    }
}

impl ProviderTimeouts {
    /// Limits all timeouts so that adding them cannot overflow.
    pub(super) fn bounded(self) -> Self {
        Self {
            connect: self.connect.min(TIME_MAX),
            first_byte: self.first_byte.min(TIME_MAX),
            pause: self.pause.min(TIME_MAX),
            total: self.total.min(TIME_MAX),
        }
    }
}

impl Default for ProviderTimeouts {
    /// Returns defaults that let a model think for minutes before it sends anything.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            pause: Duration::from_secs(120),
            total: Duration::from_secs(900),
        }
    }
}

impl Default for ReplyLimits {
    /// Returns defaults that fit the longest replies of current models: some 128,000 tokens, which
    /// is half a megabyte of text, in events of 300 bytes each.
    fn default() -> Self {
        Self {
            reply_bytes_max: 16 << 20,
            stream_bytes_max: 256 << 20,
            event_bytes_max: 16 << 20,
            calls_max: 128,
            arguments_bytes_max: 4 << 20,
        }
    }
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin =
            reqwest::Url::parse(&self.base_url).map(|url| url.origin().ascii_serialization());
        let headers: Vec<_> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("ProviderSettings")
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("origin", &origin.unwrap_or_default())
            .field("key", &self.key)
            .field("headers", &headers)
            .field("timeouts", &self.timeouts)
            .field("limits", &self.limits)
            .field("retries", &self.retries)
            .field("store", &self.store)
            .field("max_output_tokens", &self.max_output_tokens)
            .field("sampling", &self.sampling)
            .field("hosted_programs", &self.hosted_programs)
            .field("caching", &self.caching)
            .finish_non_exhaustive()
    }
}
