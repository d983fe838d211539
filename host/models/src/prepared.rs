//! Parts of a request that are the same for every API.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cofferdam_agent::{
    ChatRequest, FunctionCall, Message, MessageContent, Pairing, Position, Role,
};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use super::ProviderSettings;
use super::adaptation::Adaptation;
use super::loaded_tools::DeferredTools;
use super::names::NameMap;
use super::response_format::WrittenFormat;
use super::tools::WrittenTools;
use super::wire_fields;

/// Maximum length of a call id at the strictest provider.
const ID_CHARS_MAX: usize = 40;

/// A request with everything that is needed to serialize it.
pub(super) struct PreparedRequest<'r> {
    pub(super) request: &'r ChatRequest,
    /// Messages of the request, in which each call has a unique id.
    pub(super) messages: Cow<'r, [Arc<Message>]>,
    pub(super) settings: &'r ProviderSettings,
    pub(super) tools: &'r WrittenTools,
    pub(super) names: Arc<NameMap>,
    pub(super) ids: NameMap,
    /// Host of the server.
    pub(super) host: String,
    pub(super) streams: bool,
    /// Response format of the request, written or described in the instructions.
    pub(super) requested_format: Option<&'r WrittenFormat>,
    /// Functions that the model sees from a result on.
    pub(super) deferred: DeferredTools,
    /// Mark of the ends of parts that the provider caches.
    pub(super) cache_mark: Option<&'r Value>,
    /// True if `tools` are listed only because earlier requests listed them.
    pub(super) is_withheld: bool,
    pub(super) adaptation: Adaptation,
}

impl<'r> PreparedRequest<'r> {
    pub(super) fn new(
        request: &'r ChatRequest,
        settings: &'r ProviderSettings,
        tools: &'r WrittenTools,
        streams: bool,
    ) -> Self {
        let mut names = Arc::clone(&tools.names);
        let mut ids = NameMap::new(ID_CHARS_MAX);
        let messages = with_unique_ids(&request.messages);
        for content in messages.iter().flat_map(|message| &message.contents) {
            let id = match content {
                MessageContent::FunctionCall(call) => {
                    if names.needs(&call.name) {
                        Arc::make_mut(&mut names).add(&call.name);
                    }
                    &call.call_id
                }
                MessageContent::FunctionResult(result) => &result.call_id,
                _ => continue,
            };
            if ids.needs(id) {
                ids.add(id);
            }
        }
        let (host, adaptation) = (settings.host(), Adaptation::default());
        Self {
            request,
            messages,
            settings,
            tools,
            names,
            ids,
            host,
            streams,
            requested_format: None,
            deferred: DeferredTools::default(),
            cache_mark: None,
            is_withheld: false,
            adaptation,
        }
    }

    /// Returns the fields of a call that this server sent and requires back.
    pub(super) fn wire_fields<'c>(&self, call: &'c FunctionCall) -> Option<&'c Map<String, Value>> {
        wire_fields::of(call, &self.host)
    }

    /// Returns the response format that the provider enforces.
    pub(super) fn format(&self) -> Option<&'r WrittenFormat> {
        let is_sent =
            |written: &&WrittenFormat| written.has_native_form && !self.adaptation.without_format;
        self.requested_format.filter(is_sent)
    }

    /// Returns the instructions, with the response format if it is not sent as a field.
    pub(super) fn instructions(&self) -> Option<String> {
        let own = self.request.options.instructions.clone().filter(|own| !own.is_empty());
        let described = self.requested_format.filter(|_| self.format().is_none());
        let described = described.map(|written| written.format.instructions());
        let all: Vec<_> = own.into_iter().chain(described).collect();
        (!all.is_empty()).then(|| all.join("\n"))
    }

    /// Returns the name of the model.
    pub(super) fn model(&self) -> &str {
        self.request.options.model.as_deref().unwrap_or(&self.settings.model)
    }

    /// Returns the sampling temperature to send.
    pub(super) fn temperature(&self) -> Option<f64> {
        self.request.options.temperature.filter(|_| self.settings.sampling)
    }

    /// Returns the share of the probability mass to send.
    pub(super) fn top_p(&self) -> Option<f64> {
        self.request.options.top_p.filter(|_| self.settings.sampling)
    }

    /// Returns the ids of all calls in the conversation.
    pub(super) fn taken_ids(&self) -> HashSet<String> {
        let calls =
            self.request.messages.iter().chain(&*self.messages).flat_map(|message| message.calls());
        calls.map(|call| call.call_id.clone()).collect()
    }

    /// Returns the maximum number of tokens of the reply.
    pub(super) fn max_tokens(&self) -> Option<u64> {
        self.request.options.max_output_tokens.or(self.settings.max_output_tokens)
    }

    /// Returns whether functions are advertised. Without any, a provider rejects a tool choice.
    pub(super) fn has_tools(&self) -> bool {
        self.tools.json.is_some()
    }

    /// Serializes the body: `fields`, the tools, and the fields that the caller adds for this
    /// provider.
    pub(super) fn body(
        &self,
        mut fields: Map<String, Value>,
    ) -> Result<Vec<u8>, serde_json::Error> {
        for (key, value) in &self.request.options.additional {
            if key == "tools" && self.tools.json.is_some() {
                continue;
            }
            match (fields.get_mut(key), value) {
                (None, value) => {
                    fields.insert(key.clone(), value.clone());
                }
                (Some(Value::Object(known)), Value::Object(more)) => {
                    for (key, value) in more {
                        known.entry(key.clone()).or_insert_with(|| value.clone());
                    }
                }
                (Some(_), _) => {}
            }
        }
        serde_json::to_vec(&WithTools { fields, tools: self.tools })
    }
}

struct WithTools<'t> {
    fields: Map<String, Value>,
    tools: &'t WrittenTools,
}

impl Serialize for WithTools<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (key, value) in &self.fields {
            map.serialize_entry(key, value)?;
        }
        if let Some(tools) = &self.tools.json {
            map.serialize_entry("tools", tools)?;
        }
        map.end()
    }
}

/// Returns the messages with a new id for each call whose id an earlier call has, and for its
/// result. A conversation may contain an id more than once; providers reject that or attribute the
/// results to the first call.
fn with_unique_ids(messages: &[Arc<Message>]) -> Cow<'_, [Arc<Message>]> {
    let mut taken = HashSet::new();
    let ids =
        || messages.iter().flat_map(|message| message.calls()).map(|call| call.call_id.as_str());
    if ids().all(|id| taken.insert(id)) {
        return Cow::Borrowed(messages);
    }
    let mut taken: HashSet<String> = taken.into_iter().map(str::to_owned).collect();
    let mut seen = HashSet::new();
    let mut renamed: HashMap<Position, String> = HashMap::new();
    let pairing = Pairing::of(messages);
    for (index, message) in messages.iter().enumerate() {
        for (content_index, content) in message.contents.iter().enumerate() {
            let Some(call) = content.as_call().filter(|call| !seen.insert(call.call_id.as_str()))
            else {
                continue;
            };
            let number = |number: u32| format!("{}_{number}", call.call_id);
            let Some(id) = (2..).map(number).find(|id| !taken.contains(id)) else { continue };
            taken.insert(id.clone());
            if let Some(result_at) = pairing.result_at((index, content_index)) {
                renamed.insert(result_at, id.clone());
            }
            renamed.insert((index, content_index), id);
        }
    }
    let mut messages = messages.to_vec();
    for ((index, content_index), id) in renamed {
        let content = messages
            .get_mut(index)
            .and_then(|message| Arc::make_mut(message).contents.get_mut(content_index));
        match content {
            Some(MessageContent::FunctionCall(call)) => call.call_id = id,
            Some(MessageContent::FunctionResult(result)) => result.call_id = id,
            _ => {}
        }
    }
    Cow::Owned(messages)
}

/// Returns whether a message is a turn of the assistant.
pub(super) fn is_reply(message: &Message) -> bool {
    message.role == Role::Assistant && !message.contents.is_empty()
}

/// Returns the arguments of a call as a JSON string for a provider. Empty arguments become an empty
/// object, because some providers parse the string.
pub(super) fn arguments_text(arguments: &str) -> &str {
    if arguments.trim().is_empty() { "{}" } else { arguments }
}
