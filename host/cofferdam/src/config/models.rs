//! `[models.NAME]`: models for `cofferdam chat` and for workflows.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::ops::Range;
use std::time::Duration;

use cofferdam_agent::{Effort, finite_number};
use cofferdam_models::{PromptCaching, ProviderTimeouts};
use serde::Deserialize;
use toml::{Spanned, Value};
use url::{Host, Url};

use super::grants::{SpannedMessage, ValueSource, source, sources};

/// Table of a model.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", expecting = "a table")]
pub struct ModelTable {
    /// Interface of the provider.
    pub(crate) provider: Provider,
    /// Name of the model at the provider; for `script` a file, relative to the configuration.
    pub(crate) model: Spanned<String>,
    /// Base URL, if it is not the provider's own.
    #[serde(default)]
    base_url: Option<Spanned<String>>,
    /// True if the key and the conversation may go over `http:` to another machine.
    #[serde(default)]
    pub(crate) plain_http: bool,
    /// Source of the key.
    #[serde(default)]
    key: Option<Spanned<Value>>,
    /// True if this is the default model.
    #[serde(default)]
    pub(crate) default: bool,
    /// True if the provider should enforce the schemas of the tools.
    #[serde(default)]
    pub(crate) strict: bool,
    /// Maximum number of tokens of one reply.
    #[serde(default)]
    pub(crate) max_output_tokens: Option<u64>,
    /// Sampling temperature.
    #[serde(default, deserialize_with = "finite_number")]
    pub(crate) temperature: Option<f64>,
    /// Share of the probability mass from which tokens are sampled.
    #[serde(default, deserialize_with = "finite_number")]
    pub(crate) top_p: Option<f64>,
    /// Strings that end a reply.
    #[serde(default)]
    pub(crate) stop: Vec<String>,
    /// Seed of the sampling.
    #[serde(default)]
    pub(crate) seed: Option<i64>,
    /// Effort in reasoning.
    #[serde(default)]
    pub(crate) effort: Option<Effort>,
    /// Use of the provider's prompt cache.
    #[serde(default)]
    pub(crate) caching: PromptCaching,
    /// True if the provider may run programs of the model that call tools.
    #[serde(default)]
    pub(crate) hosted_programs: bool,
    /// Tokens of the context window.
    #[serde(default)]
    pub(crate) context_window: Option<NonZeroU64>,
    /// Maximum number of times that a request is sent again after a transient error.
    #[serde(default)]
    pub(crate) retries: Option<Spanned<u32>>,
    /// Timeouts of requests.
    #[serde(default)]
    pub(crate) timeouts: TimeoutTable,
    /// Headers of each request, by name.
    #[serde(default)]
    headers: BTreeMap<String, Spanned<Value>>,
}

/// `[models.NAME.timeouts]`, in seconds. Omitted keys have the values of the client.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct TimeoutTable {
    /// Time until there is a connection.
    connect: Option<NonZeroU32>,
    /// Time until the first byte of an answer.
    first_byte: Option<NonZeroU32>,
    /// Time between two pieces of an answer.
    pause: Option<NonZeroU32>,
    /// Total time, with all attempts.
    total: Option<NonZeroU32>,
}

impl TimeoutTable {
    /// Returns the timeouts, with those of `others` for omitted keys.
    pub(crate) fn over(self, others: ProviderTimeouts) -> ProviderTimeouts {
        let or = |own: Option<NonZeroU32>, other: Duration| {
            own.map_or(other, |seconds| Duration::from_secs(seconds.get().into()))
        };
        let mut timeouts = others;
        timeouts.connect = or(self.connect, others.connect);
        timeouts.first_byte = or(self.first_byte, others.first_byte);
        timeouts.pause = or(self.pause, others.pause);
        timeouts.total = or(self.total, others.total);
        timeouts
    }
}

/// Interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// OpenAI's chat completions API, and compatible services.
    OpenAi,
    /// OpenAI's responses API.
    Responses,
    /// Anthropic's messages API.
    Anthropic,
    /// A file with scripted replies.
    Script,
}

impl Provider {
    /// All providers.
    pub(crate) const ALL: [Self; 4] =
        [Self::OpenAi, Self::Responses, Self::Anthropic, Self::Script];

    /// Returns the name of the provider.
    pub fn word(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Script => "script",
        }
    }
}

/// Returns whether an address is on this machine.
fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

impl ModelTable {
    /// Returns the source of the key. The key itself must not be in the file.
    pub(crate) fn key(&self) -> Result<Option<ValueSource>, SpannedMessage> {
        let Some(written) = &self.key else { return Ok(None) };
        let wrong =
            || (written.span(), "write { secret = \"NAME\" } or { env = \"NAME\" }".to_owned());
        match source(written) {
            Ok(ValueSource::Literal(_)) | Err(_) => Err(wrong()),
            Ok(_) if self.provider == Provider::Script => {
                Err((written.span(), "a script needs no key".to_owned()))
            }
            Ok(source) => Ok(Some(source)),
        }
    }

    /// Returns the sources of the headers, by name.
    pub(crate) fn headers(&self) -> Result<BTreeMap<String, ValueSource>, SpannedMessage> {
        sources(&self.headers)
    }

    /// Returns the base URL, if it is not the provider's own.
    pub(crate) fn base_url(&self) -> Result<Option<&str>, SpannedMessage> {
        let Some(written) = &self.base_url else { return Ok(None) };
        let wrong = |message: &str| (written.span(), message.to_owned());
        if self.provider == Provider::Script {
            return Err(wrong("a script is a file and has no address"));
        }
        match Url::parse(written.get_ref()) {
            Ok(url) if !url.username().is_empty() || url.password().is_some() => {
                Err(wrong("a key does not stand in the address; write key = { secret = \"NAME\" }"))
            }
            Ok(url) if url.scheme() == "http" && !self.plain_http && !is_loopback(&url) => {
                Err(wrong(
                    "every machine on the network path can read the key and the conversation; write \
                     https:, or plain-http = true if you trust the network",
                ))
            }
            Ok(url) if matches!(url.scheme(), "http" | "https") => Ok(Some(written.get_ref())),
            _ => Err(wrong("write an address, such as \"https://models.example.com/v1\"")),
        }
    }

    /// Returns the position of the model in the file, for error messages.
    pub(crate) fn span(&self) -> Range<usize> {
        self.model.span()
    }
}
