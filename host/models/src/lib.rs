//! Chat clients for the APIs of OpenAI and Anthropic, and for compatible servers.
//!
//! A [`ProviderClient`] is a [`ChatClient`] for an [agent](cofferdam_agent::Agent). Each family of
//! APIs is a feature: `openai` (Chat Completions, Responses) and `anthropic` (Messages).
//!
//! ```
//! use cofferdam_agent::Agent;
//! use cofferdam_models::{Provider, ProviderClient, ProviderSettings};
//! use cofferdam_tool::permission::SecretText;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let settings = ProviderSettings::new(Provider::OpenAiChat, "gpt-5")
//!     .with_base_url("https://models.example/v1")
//!     .with_key(SecretText::new("sk-0123456789"));
//! let agent = Agent::builder(ProviderClient::new(settings)?).build()?;
//! # let _ = agent;
//! # Ok(())
//! # }
//! ```
//!
//! # Implementation
//!
//! This crate writes and reads the wire formats itself. `genai` loses a whole reply when the
//! arguments of one call are not JSON, which models do get wrong and which the loop handles
//! (`LOOP-13`); `async-openai` supports one of the three APIs and fails on servers that omit the
//! index of a call. The crate needs only a small part of each format; what matters is how it
//! handles replies that deviate from it. So requests are JSON values, and replies are read field by
//! field.
//!
//! Limits on bytes and time apply to every reply, whole or streamed. Arguments of calls are passed
//! on as the model wrote them, valid or not. An incomplete reply is an error, and so is one that
//! reports an error.

#![cfg_attr(
    not(all(feature = "anthropic", feature = "openai")),
    allow(dead_code, reason = "the interfaces share helpers, and not each uses all of them")
)]

mod adaptation;
#[cfg(feature = "anthropic")]
mod anthropic;
mod attachment;
mod body;
mod caching;
mod decode;
mod endpoint;
mod fault;
mod fields;
mod hosted;
mod interface;
mod loaded_tools;
mod names;
#[cfg(feature = "openai")]
mod openai_chat;
#[cfg(feature = "openai")]
mod openai_responses;
#[cfg(feature = "openai")]
mod openai_usage;
mod pieces;
mod prepared;
mod response_format;
mod retry;
mod settings;
mod stream;
#[cfg(test)]
#[cfg(all(feature = "anthropic", feature = "openai"))]
mod tests;
mod tools;
mod unsupported;
mod wire_fields;

use std::fmt;
use std::sync::{Arc, Once, OnceLock};

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_agent::{
    ChatClient, ChatError, ChatErrorKind, ChatRequest, Message, Reply, ReplyBuilder, ReplyStream,
};
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use adaptation::SharedAdaptation;
use body::Body;
use cofferdam_sse::EventReader;
use decode::Decode;
use endpoint::{EndpointResponse, ModelEndpoint, OutgoingRequest};
use fault::{Fault, checked};
use hosted::HostedPrograms;
use interface::ModelInterface;
use loaded_tools::DeferredTools;
use pieces::Pieces;
use prepared::PreparedRequest;
use response_format::FormatCache;
pub use settings::{
    PlannedRetry, PromptCaching, Provider, ProviderSettings, ProviderTimeouts, ReplyLimits,
    RetryObserver, UnknownProvider,
};
use stream::StreamedReply;
use tools::ToolCache;

/// Client of a model behind a provider's API.
///
/// Create a client once and share it: it reuses its connections. It keeps no state of a
/// conversation.
pub struct ProviderClient {
    interface: ModelInterface,
    endpoint: Arc<ModelEndpoint>,
    tools: ToolCache,
    formats: FormatCache,
    adaptation: SharedAdaptation,
    /// Runs for the warning about sampling parameters that are not sent.
    sampling_warning: Once,
}

/// State of reading one reply.
struct ReplyReader {
    decoder: Box<dyn Decode>,
    pieces: Pieces,
    deadline: Instant,
}

impl ProviderClient {
    /// Creates a client. Sends nothing yet.
    ///
    /// # Errors
    /// [`ChatErrorKind::Configuration`] if the base URL is invalid, or is `http:` on another
    /// machine without permission; if the key or a header cannot be sent; if the feature of the
    /// provider's API is off; or if the API runs no programs and the settings ask for them.
    pub fn new(settings: ProviderSettings) -> Result<Self, ChatError> {
        let provider = settings.provider;
        let interface = ModelInterface::of(provider).ok_or_else(|| {
            let message = format!(
                "this program was built without the interface of the provider `{provider}`"
            );
            ChatError::new(ChatErrorKind::Configuration, message)
        })?;
        let tools = ToolCache::new(HostedPrograms::of(&settings)?);
        let endpoint = Arc::new(ModelEndpoint::new(Arc::new(settings))?);
        Ok(Self {
            interface,
            endpoint,
            tools,
            formats: FormatCache::default(),
            adaptation: SharedAdaptation::default(),
            sampling_warning: Once::new(),
        })
    }

    async fn ask(
        &self,
        request: &ChatRequest,
        streams: bool,
    ) -> Result<(EndpointResponse, ReplyReader), ChatError> {
        let settings = self.endpoint.settings();
        if request.conversation_id.is_some() && settings.provider != Provider::OpenAiResponses {
            let message = format!(
                "{} keeps no conversation, and was asked to go on with one",
                settings.provider
            );
            return Err(ChatError::new(ChatErrorKind::Configuration, message));
        }
        unsupported::check(settings.provider, &request.options)?;
        attachment::check(settings.provider, self.interface.attachment, &request.messages)?;
        self.warn_about_sampling(request);
        let format = request.options.response_format.as_ref();
        let format = format.map(|format| self.formats.written(settings.provider, format));
        let dialect = settings.provider.dialect(request.options.strict_schemas);
        let is_withheld = settings.provider == Provider::Anthropic && request.tools.is_empty();
        let listed = if is_withheld { &request.withheld_tools } else { &request.tools };
        let mark = caching::mark(settings, &request.options);
        let write = |deferred: &[String]| {
            self.tools.written(self.interface.tool, dialect, listed, deferred, mark.as_ref())
        };
        let adaptation = self.adaptation.get();
        let deferred = |messages: &[Arc<Message>]| match adaptation.without_deferred {
            true => DeferredTools::default(),
            false => DeferredTools::of(settings.provider, request, messages),
        };
        let tools = write(&deferred(&request.messages).names)?;
        let plain_tools = OnceLock::new();
        let mut asked = PreparedRequest::new(request, settings, &tools, streams);
        asked.requested_format = format.as_deref();
        asked.cache_mark = mark.as_ref();
        asked.is_withheld = is_withheld;
        asked.adaptation = adaptation;
        asked.deferred = deferred(&asked.messages);
        let deadline = self.endpoint.deadline();
        let answer = loop {
            match self.send(&asked, deadline).await {
                Ok(answer) => break answer,
                // Ends, because each part can be left out only once.
                Err(refused) => match asked.adaptation.after(&refused, &asked) {
                    Some(adapted) => {
                        if adapted.without_deferred && !asked.adaptation.without_deferred {
                            let plain = write(&[])?;
                            asked.tools = plain_tools.get_or_init(|| plain);
                            asked.deferred = DeferredTools::default();
                        }
                        asked.adaptation = adapted;
                    }
                    None => return Err(refused.error),
                },
            }
        };
        self.adaptation.add(asked.adaptation);
        let decoder = (self.interface.decoder)(settings.store);
        let pieces = Pieces::new(
            Arc::clone(&asked.names),
            settings.limits,
            asked.taken_ids(),
            asked.host.clone(),
        );
        Ok((answer, ReplyReader { decoder, pieces, deadline }))
    }

    fn warn_about_sampling(&self, request: &ChatRequest) {
        let settings = self.endpoint.settings();
        let options = &request.options;
        let samples = options.temperature.is_some() || options.top_p.is_some();
        if samples && !settings.sampling {
            self.sampling_warning.call_once(|| {
                tracing::warn!(
                    provider = %settings.provider,
                    model = settings.model.as_str(),
                    "sampling parameters are not sent, because current models of this provider \
                     refuse them; set `sampling` for a model that accepts them"
                );
            });
        }
    }

    async fn send(
        &self,
        asked: &PreparedRequest<'_>,
        deadline: Instant,
    ) -> Result<EndpointResponse, Fault> {
        let fields = (self.interface.fields)(asked);
        let refused = |error| {
            Fault::new(
                ChatErrorKind::Configuration,
                format!("the request cannot be written: {error}"),
            )
        };
        let body = asked.body(fields).map_err(refused)?;
        let cancellation = &asked.request.cancellation;
        let sending = OutgoingRequest {
            body: Bytes::from(body),
            streams: asked.streams,
            deadline,
            cancellation,
        };
        self.endpoint.send(&sending).await
    }
}

impl ReplyReader {
    /// Reads a reply that arrived as a whole.
    fn whole(mut self, endpoint: &ModelEndpoint, body: &str) -> Result<Reply, ChatError> {
        let read = checked(body).and_then(|fields| self.decoder.whole(&fields, &mut self.pieces));
        read.map_err(|broken| endpoint.fault(&broken).error)?;
        let mut builder = ReplyBuilder::default();
        builder.add(self.pieces.end());
        Ok(builder.build())
    }

    /// Reads a reply that arrives as a stream of events.
    fn events(
        self,
        endpoint: &Arc<ModelEndpoint>,
        body: Body,
        cancellation: CancellationToken,
    ) -> ReplyStream {
        let streaming = StreamedReply {
            endpoint: Arc::clone(endpoint),
            cancellation,
            deadline: self.deadline,
            body,
            decoder: self.decoder,
            pieces: self.pieces,
            events: EventReader::new(endpoint.settings().limits.event_bytes_max),
            has_ended: false,
        };
        streaming.into_updates()
    }
}

#[async_trait]
impl ChatClient for ProviderClient {
    fn model(&self) -> &str {
        &self.endpoint.settings().model
    }

    fn keeps_conversation(&self) -> bool {
        let settings = self.endpoint.settings();
        settings.store && settings.provider == Provider::OpenAiResponses
    }

    fn supports_response_format(&self) -> bool {
        true
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        let (answer, reading) = self.ask(&request, false).await?;
        match answer {
            EndpointResponse::Whole(body) => reading.whole(&self.endpoint, &body),
            EndpointResponse::Events(body) => {
                let mut updates = reading.events(&self.endpoint, body, request.cancellation);
                let mut builder = ReplyBuilder::default();
                while let Some(update) = updates.next().await {
                    builder.add(update?);
                }
                Ok(builder.build())
            }
        }
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        let (answer, reading) = self.ask(&request, true).await?;
        match answer {
            EndpointResponse::Whole(body) => {
                reading.whole(&self.endpoint, &body).map(ReplyStream::from)
            }
            EndpointResponse::Events(body) => {
                Ok(reading.events(&self.endpoint, body, request.cancellation))
            }
        }
    }
}

impl fmt::Debug for ProviderClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderClient")
            .field("settings", self.endpoint.settings())
            .finish_non_exhaustive()
    }
}
