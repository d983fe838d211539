//! A model that answers by a script, whatever the request.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use cofferdam_agent::{
    ChatClient, ChatError, ChatRequest, Delta, FunctionCall, Message, MessageContent, Reply,
    ReplyStream, Role, TokenUsage, ToolMode, Update,
};
use serde_json::{Value, json};

/// Model of a row. Clones share state.
#[derive(Clone, Default)]
pub(in crate::conformance) struct Model {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    script: Vec<Vec<MessageContent>>,
    /// True if the model repeats its last reply forever.
    repeats: bool,
    usage: HashMap<usize, TokenUsage>,
    conversation_id: Option<String>,
    seen: Mutex<Vec<Seen>>,
}

/// A request that the model received.
#[derive(Clone)]
pub(in crate::conformance) struct Seen {
    pub(in crate::conformance) messages: Vec<Arc<Message>>,
    pub(in crate::conformance) instructions: Option<String>,
    tool_choice: Option<ToolMode>,
    pub(in crate::conformance) tools: Vec<String>,
    conversation_id: Option<String>,
}

impl Seen {
    /// Returns the request as rows write it.
    pub(in crate::conformance) fn written(&self) -> Value {
        json!({
            "messages": self.messages.len(),
            "tool_choice": self.tool_choice.as_ref().map(|mode| match mode {
                ToolMode::Auto => json!("auto"),
                ToolMode::None => json!("none"),
                ToolMode::Required(None) => json!("required"),
                ToolMode::Required(Some(name)) => json!({"required": name}),
            }),
            "tools": self.tools,
            "conversation_id": self.conversation_id,
        })
    }

    /// Returns the texts of its messages.
    pub(in crate::conformance) fn texts(&self) -> Vec<String> {
        self.messages.iter().map(|message| message.text()).collect()
    }
}

impl Model {
    /// Creates a model that gives these replies and then empty ones.
    pub(in crate::conformance) fn new(script: Vec<Vec<MessageContent>>) -> Self {
        Self { inner: Arc::new(Inner { script, ..Inner::default() }) }
    }

    /// Creates a model that always gives this reply.
    pub(in crate::conformance) fn repeating(contents: Vec<MessageContent>) -> Self {
        Self {
            inner: Arc::new(Inner { script: vec![contents], repeats: true, ..Inner::default() }),
        }
    }

    /// Creates the model of a row: `model_script`, `usage`, `conversation_id`.
    pub(in crate::conformance) fn of(row: &super::super::Row) -> Result<Self, String> {
        let script = row.get("model_script").and_then(Value::as_array).cloned().unwrap_or_default();
        let script = script.iter().map(super::contents).collect::<Result<_, _>>()?;
        let mut inner = Inner { script, ..Inner::default() };
        inner.conversation_id =
            row.get("conversation_id").and_then(Value::as_str).map(str::to_owned);
        for (index, usage) in row.get("usage").and_then(Value::as_object).into_iter().flatten() {
            let index = index.parse().map_err(|_| format!("`{index}` is not an index"))?;
            inner.usage.insert(index, usage_of(usage)?);
        }
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Sets the token usage of each call in turn.
    pub(in crate::conformance) fn with_usages(self, usages: Vec<TokenUsage>) -> Self {
        let Inner { script, repeats, .. } = &*self.inner;
        let usage = usages.into_iter().enumerate().collect();
        let inner = Inner { script: script.clone(), repeats: *repeats, usage, ..Inner::default() };
        Self { inner: Arc::new(inner) }
    }

    /// Returns all requests.
    pub(in crate::conformance) fn seen(&self) -> Vec<Seen> {
        self.inner.seen.lock().unwrap().clone()
    }

    fn next(&self, request: ChatRequest) -> Reply {
        let mut seen = self.inner.seen.lock().unwrap();
        let index = seen.len();
        seen.push(Seen {
            messages: request.messages,
            instructions: request.options.instructions,
            tool_choice: request.options.tool_choice,
            tools: request.tools.iter().map(|tool| tool.name.to_string()).collect(),
            conversation_id: request.conversation_id,
        });
        let position = if self.inner.repeats { 0 } else { index };
        let contents = self.inner.script.get(position).cloned().unwrap_or_default();
        Reply {
            messages: vec![Message::new(Role::Assistant, contents)],
            usage: self.inner.usage.get(&index).copied(),
            conversation_id: self.inner.conversation_id.clone(),
            finish: None,
        }
    }
}

/// Parses token usage of a row.
pub(in crate::conformance) fn usage_of(usage: &Value) -> Result<TokenUsage, String> {
    serde_json::from_value(usage.clone()).map_err(|error| error.to_string())
}

#[async_trait]
impl ChatClient for Model {
    fn model(&self) -> &str {
        "scripted"
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        Ok(self.next(request))
    }

    /// Streams in small pieces, as providers do.
    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        let reply = self.next(request);
        let mut deltas = Vec::new();
        for (index, content) in
            reply.messages.iter().flat_map(|message| &message.contents).enumerate()
        {
            match content {
                MessageContent::Text(text) => {
                    deltas.extend(text.text.chars().map(|c| Delta::Text(c.to_string())));
                }
                MessageContent::FunctionCall(call) => {
                    let begun = FunctionCall { arguments: String::new(), ..call.clone() };
                    deltas.push(Delta::Call { index, call: begun });
                    deltas.extend(call.arguments.chars().map(|c| Delta::Call {
                        index,
                        call: FunctionCall { arguments: c.to_string(), ..FunctionCall::default() },
                    }));
                }
                other => deltas.push(Delta::Content(other.clone())),
            }
        }
        let mut updates: Vec<_> = deltas
            .into_iter()
            .map(|delta| Update { deltas: vec![delta], ..Update::default() })
            .collect();
        let Reply { usage, conversation_id, .. } = reply;
        updates.push(Update { usage, conversation_id, ..Update::default() });
        Ok(ReplyStream::new(futures_util::stream::iter(updates.into_iter().map(Ok))))
    }
}
