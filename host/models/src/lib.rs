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

#[cfg(feature = "anthropic")]
mod anthropic;
mod body;
mod decode;
mod endpoint;
mod fault;
mod fields;
mod interface;
mod names;
#[cfg(feature = "openai")]
mod openai_chat;
#[cfg(feature = "openai")]
mod openai_responses;
#[cfg(feature = "openai")]
mod openai_usage;
mod pieces;
mod prepared;
mod retry;
mod settings;
mod stream;
#[cfg(test)]
#[cfg(all(feature = "anthropic", feature = "openai"))]
mod tests;
mod tools;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_agent::{
    ChatClient, ChatError, ChatErrorKind, ChatRequest, Reply, ReplyBuilder, ReplyStream,
};
use futures_util::StreamExt as _;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use body::Body;
use cofferdam_sse::EventReader;
use decode::Decode;
use endpoint::{EndpointResponse, ModelEndpoint, OutgoingRequest};
use fault::{Fault, checked};
use interface::ModelInterface;
use pieces::Pieces;
use prepared::PreparedRequest;
pub use settings::{
    PlannedRetry, Provider, ProviderSettings, ProviderTimeouts, ReplyLimits, RetryObserver,
    UnknownProvider,
};
use stream::StreamedReply;
use tools::ToolCache;

/// Field that requests reasoning in a form to send back. Models that do not reason reject it.
const INCLUDE: &str = "include";

/// Client of a model behind a provider's API.
///
/// Create a client once and share it: it reuses its connections. It keeps no state of a
/// conversation.
pub struct ProviderClient {
    interface: ModelInterface,
    endpoint: Arc<ModelEndpoint>,
    tools: ToolCache,
    /// True if the provider rejected [`INCLUDE`] because the model does not reason.
    is_plain: AtomicBool,
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
    /// machine without permission; if the key or a header cannot be sent; or if the feature of the
    /// provider's API is off.
    pub fn new(settings: ProviderSettings) -> Result<Self, ChatError> {
        let provider = settings.provider;
        let interface = ModelInterface::of(provider).ok_or_else(|| {
            let message = format!(
                "this program was built without the interface of the provider `{provider}`"
            );
            ChatError::new(ChatErrorKind::Configuration, message)
        })?;
        let endpoint = Arc::new(ModelEndpoint::new(Arc::new(settings))?);
        Ok(Self {
            interface,
            endpoint,
            tools: ToolCache::default(),
            is_plain: AtomicBool::new(false),
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
        let dialect = settings.provider.dialect(request.options.strict_schemas);
        let tools = self.tools.written(self.interface.tool, dialect, &request.tools)?;
        let mut asked = PreparedRequest::new(request, settings, &tools, streams);
        asked.is_plain = self.is_plain.load(Ordering::Relaxed);
        let deadline = self.endpoint.deadline();
        let answer = match self.send(&asked, deadline).await {
            Err(refused) if is_about_reasoning(&refused, &asked) => {
                asked.is_plain = true;
                let answer = self.send(&asked, deadline).await;
                self.is_plain.store(answer.is_ok(), Ordering::Relaxed);
                answer
            }
            answer => answer,
        };
        let answer = answer.map_err(|fault| fault.error)?;
        let decoder = (self.interface.decoder)(settings.store);
        let pieces = Pieces::new(Arc::clone(&asked.names), settings.limits, asked.taken_ids());
        Ok((answer, ReplyReader { decoder, pieces, deadline }))
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

/// Returns whether a request failed because it asked for reasoning of a model that does not reason.
fn is_about_reasoning(refused: &Fault, asked: &PreparedRequest<'_>) -> bool {
    !asked.is_plain
        && asked.settings.provider == Provider::OpenAiResponses
        && refused.parameter.as_deref().is_some_and(|parameter| parameter.starts_with(INCLUDE))
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
