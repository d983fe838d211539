//! How a provider is reached, how long it may take, and how much it may send.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use cofferdam_agent::{ChatError, ChatErrorKind};
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::retry::Backoff;
use cofferdam_tool::schema::Dialect;
use reqwest::header::{HeaderName, HeaderValue};

/// Longest time of any kind: more is as good as no limit, and sums stay in range.
const TIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// A provider's interface. Most servers of other makes speak the first one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// Chat Completions of OpenAI, and of everybody who is compatible with it.
    OpenAiChat,
    /// Responses of OpenAI.
    OpenAiResponses,
    /// Messages of Anthropic.
    Anthropic,
}

/// A name that is no provider's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no provider `{name}`; known are openai, responses, anthropic")]
pub struct UnknownProvider {
    /// What was asked for.
    pub name: String,
}

/// How a [`ProviderClient`](crate::ProviderClient) is set up. `Debug` shows neither keys, nor
/// values of headers, nor more of the address than its origin.
#[derive(Clone)]
#[non_exhaustive]
pub struct ProviderSettings {
    /// Which interface is spoken.
    pub provider: Provider,
    /// What the model is called there.
    pub model: String,
    /// The address that the paths of the interface are appended to, as the provider's own clients
    /// take it: with `/v1` for OpenAI, without for Anthropic.
    pub base_url: String,
    /// Whether a key and a conversation may go over `http:` to another machine.
    pub allow_plain_http: bool,
    /// The key, unless the server wants none.
    pub key: Option<SecretText>,
    /// Headers of every request. They do not replace those that the client sets; their values are
    /// treated like keys.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Certificates (DER) of authorities that are believed beside Mozilla's.
    pub authorities: Vec<Vec<u8>>,
    /// How long things may take.
    pub timeouts: ProviderTimeouts,
    /// How large a reply may be.
    pub limits: ReplyLimits,
    /// Retries of requests that were refused for the moment (429, 529, 5xx, 408) and of connections
    /// that broke, as long as no part of a reply was handed on. A provider that is silent for too
    /// long is not asked again. Up to half of each pause is taken off at random. If the provider
    /// asks for a longer pause than the maximum, the error is returned and says so.
    pub retries: Backoff,
    /// Whether the service keeps the conversation (`LOOP-4`). Only OpenAI Responses can.
    pub store: bool,
    /// Most tokens of a reply where the request does not say. Anthropic wants a number; the others
    /// choose for themselves if there is none.
    pub max_output_tokens: Option<u64>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderTimeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the first byte of an answer. A reply that is not streamed begins when the model is
    /// done.
    pub first_byte: Duration,
    /// Between two pieces of an answer.
    pub pause: Duration,
    /// For everything, with tries that failed, waits between them, and the time that the caller
    /// takes to read a stream.
    pub total: Duration,
}

/// How large a reply may be. What is larger is an error, and is not kept until it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReplyLimits {
    /// Bytes of a whole answer; of a streamed one, bytes of its texts, names and arguments
    /// together.
    pub reply_bytes_max: usize,
    /// Bytes of a streamed answer with everything around its texts.
    pub stream_bytes_max: usize,
    /// Bytes of one event of a stream. OpenAI Responses repeats the whole reply in the last one.
    pub event_bytes_max: usize,
    /// Function calls in a reply.
    pub calls_max: usize,
    /// Bytes of the arguments of one call.
    pub arguments_bytes_max: usize,
}

/// Retries of a client that sets nothing else.
pub(super) const RETRIES: Backoff = Backoff {
    retries_max: 3,
    pause: Duration::from_millis(500),
    pause_max: Duration::from_secs(30),
};

impl Provider {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::OpenAiChat, Self::OpenAiResponses, Self::Anthropic];

    /// The name that a person types.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAiChat => "openai",
            Self::OpenAiResponses => "responses",
            Self::Anthropic => "anthropic",
        }
    }

    /// Where the provider itself is.
    #[must_use]
    pub fn base_url(self) -> &'static str {
        match self {
            Self::OpenAiChat | Self::OpenAiResponses => "https://api.openai.com/v1",
            Self::Anthropic => "https://api.anthropic.com",
        }
    }

    /// Returns the dialect that schemas of tools are written in.
    pub(super) fn dialect(self, is_strict: bool) -> Dialect {
        match (self, is_strict) {
            (Self::Anthropic, true) => Dialect::Anthropic,
            (_, true) => Dialect::OpenAiStrict,
            // Without strict mode Anthropic takes what OpenAI takes, and is told more than in
            // strict mode.
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
    /// The provider itself, without a key.
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
            store: false,
            max_output_tokens: None,
        }
    }

    /// With a key.
    #[must_use]
    pub fn with_key(mut self, key: SecretText) -> Self {
        self.key = Some(key);
        self
    }

    /// With a server of another make, or on another machine.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = base_url.into();
        self
    }

    /// With another header of every request.
    ///
    /// # Errors
    /// [`ChatErrorKind::Configuration`] if it cannot be a header. The message does not show the
    /// value.
    pub fn with_header(mut self, name: &str, value: &SecretText) -> Result<Self, ChatError> {
        let refused =
            |what| ChatError::new(ChatErrorKind::Configuration, format!("`{name}` {what}"));
        let name = HeaderName::try_from(name).map_err(|_| refused("is no name of a header"))?;
        let value = HeaderValue::try_from(value.expose())
            .map_err(|_| refused("has a value that no header can have"))?;
        self.headers.push((name, value));
        Ok(self)
    }
}

impl ProviderTimeouts {
    /// The same, with nothing so long that it cannot be added up.
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
    /// A model may think for minutes before it says anything.
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
    /// The longest replies of today's models have some 128 000 tokens: half a megabyte of text, in
    /// events of 300 bytes each.
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
            .finish_non_exhaustive()
    }
}
