//! Spans of calls, replies of models and runs of agents, in OTLP's JSON.

use cofferdam_tool::ToolName;
use serde_json::{Value, json};

use super::index::TracePosition;
use crate::merkle::sha256;
use crate::{CallEntry, LOST, LogEvent, SpanIds, TimedEvent, UtcTime, semconv};

/// Maximum characters of an attribute.
pub(super) const CHARS_MAX: usize = 1024;
/// Maximum number of refused capabilities in a span.
const REFUSALS_MAX: usize = 32;
/// `SPAN_KIND_INTERNAL` of OTLP.
const KIND_INTERNAL: u8 = 1;
/// `SPAN_KIND_SERVER` of OTLP.
const KIND_SERVER: u8 = 2;
/// `SPAN_KIND_CLIENT` of OTLP.
const KIND_CLIENT: u8 = 3;
/// `STATUS_CODE_ERROR` of OTLP.
const STATUS_ERROR: u8 = 2;
/// Reasons for the end of a reply that are not errors. Others are types of errors.
const FINISH_REASONS: [&str; 6] =
    ["stop", "tool_calls", "length", "content_filter", "refusal", "other"];

/// Part of a span that all kinds have.
struct SpanHead<'s> {
    id: &'s str,
    root: &'s str,
    parent: Option<&'s str>,
    /// Ids in the trace of the caller, instead of those that are made of `id`, `root` and `parent`.
    ids: Option<&'s SpanIds>,
    name: String,
    kind: u8,
    start: UtcTime,
    us: u64,
    error: Option<&'s str>,
}

/// Attributes of a span.
#[derive(Default)]
struct Attributes(Vec<Value>);

/// Returns the span of a call.
pub(super) fn of_call(call: &CallEntry, position: &TracePosition) -> Value {
    let error = error_type(call);
    let head = SpanHead {
        id: &call.id,
        root: &position.root,
        parent: position.parent.as_deref(),
        ids: call.trace.as_ref(),
        name: name(semconv::EXECUTE_TOOL, ToolName::new(&*call.tool).ok().map(|_| &*call.tool)),
        kind: match (&call.transport, &call.server_request) {
            (Some(_), _) => KIND_SERVER,
            (None, Some(_)) => KIND_CLIENT,
            (None, None) => KIND_INTERNAL,
        },
        start: call.at,
        us: call.us,
        error,
    };
    span(&head, call_attributes(call, error))
}

/// Returns the span of an event, if it is one that took time.
pub(super) fn of_event(event: &TimedEvent) -> Option<Value> {
    let (kind, name, error, attributes) = match &event.event {
        LogEvent::Model { model, finish, .. } => {
            let is_error = !FINISH_REASONS.contains(&&**finish);
            let error = is_error.then_some(&**finish);
            let attributes = model_attributes(&event.event, error);
            (KIND_CLIENT, name(semconv::CHAT, Some(model)), error, attributes)
        }
        LogEvent::Agent { agent, error, .. } => {
            let attributes = agent_attributes(&event.event);
            let name = name(semconv::INVOKE_AGENT, Some(agent));
            (KIND_INTERNAL, name, error.as_deref(), attributes)
        }
        _ => return None,
    };
    let us = u64::try_from(event.event.duration().as_micros()).unwrap_or(u64::MAX);
    let (id, start) = (&*event.id, event.started());
    let ids = event.event.trace();
    let head = SpanHead { id, root: id, parent: None, ids, name, kind, start, us, error };
    Some(span(&head, attributes))
}

fn span(head: &SpanHead<'_>, attributes: Attributes) -> Value {
    let start = u64::try_from(head.start.micros()).unwrap_or(0);
    let nanos = |micros: u64| micros.saturating_mul(1000).to_string();
    let mut span = json!({
        "traceId": head.ids.map_or_else(|| id::<16>("trace", head.root), |ids| ids.trace.clone()),
        "spanId": head.ids.map_or_else(|| id::<8>("span", head.id), |ids| ids.span.clone()),
        "name": head.name,
        "kind": head.kind,
        "startTimeUnixNano": nanos(start),
        "endTimeUnixNano": nanos(start.saturating_add(head.us)),
        "attributes": attributes.0,
        "status": {},
    });
    if let Some(members) = span.as_object_mut() {
        let parent = match head.ids {
            Some(ids) => ids.parent.clone(),
            None => head.parent.map(|parent| id::<8>("span", parent)),
        };
        if let Some(parent) = parent {
            members.insert("parentSpanId".to_owned(), parent.into());
        }
        if let Some(error) = head.error {
            let message: String = error.chars().take(CHARS_MAX).collect();
            members.insert("status".to_owned(), json!({"code": STATUS_ERROR, "message": message}));
        }
    }
    span
}

/// Returns the name of a span. A name that no tool can have, which a model made up, stays out of
/// it: backends keep an index of span names.
fn name(operation: &str, of: Option<&str>) -> String {
    match of.filter(|of| !of.is_empty()) {
        Some(of) => format!("{operation} {}", of.chars().take(CHARS_MAX).collect::<String>()),
        None => operation.to_owned(),
    }
}

fn call_attributes(call: &CallEntry, error: Option<&str>) -> Attributes {
    let label = call.label.as_deref().and_then(|label| label.split_once('/'));
    let files = u64::try_from(call.files.len()).unwrap_or(u64::MAX);
    // The conventions have one set of names for both sides of MCP. A span that is the server's has
    // the attributes of the client's request.
    let served = call
        .transport
        .as_deref()
        .map(|transport| (semconv::TOOLS_CALL, call.protocol.as_deref(), transport));
    let sent = call.server_request.as_deref();
    let sent = sent.map(|it| (&*it.method, it.protocol.as_deref(), &*it.transport));
    let mcp = served.or(sent);
    let mut attributes = Attributes::default();
    attributes.strings([
        (semconv::OPERATION_NAME, Some(semconv::EXECUTE_TOOL)),
        (semconv::TOOL_NAME, Some(&*call.tool)),
        (semconv::TOOL_TYPE, Some(semconv::FUNCTION)),
        (semconv::TOOL_CALL_ID, Some(&*call.call).filter(|id| !id.is_empty())),
        (semconv::CONVERSATION_ID, call.session.as_deref()),
        (semconv::ERROR_TYPE, error),
        (semconv::RECORD_ID, Some(&*call.id)),
        (semconv::PLUGIN, call.plugin.as_deref()),
        (semconv::PLUGIN_DIGEST, call.digest.as_deref()),
        (semconv::OUTCOME, Some(&*call.outcome)),
        (semconv::MCP_METHOD, mcp.map(|(method, ..)| method)),
        (semconv::MCP_PROTOCOL, mcp.and_then(|(_, protocol, _)| protocol)),
        (semconv::TRANSPORT, mcp.map(|(.., transport)| transport)),
        (semconv::SERVER, call.server_request.as_ref().and(call.source.as_deref())),
        (semconv::PRINCIPAL, call.principal.as_deref()),
        (semconv::LABEL_INTEGRITY, label.map(|(integrity, _)| integrity)),
        (semconv::LABEL_CONFIDENTIALITY, label.map(|(_, confidentiality)| confidentiality)),
    ]);
    let positive = |number: u64| Some(number).filter(|number| *number > 0);
    attributes.numbers([
        (semconv::FILES_CHANGED, positive(files.saturating_add(call.files_left_out))),
        (semconv::CPU_US, positive(call.cpu_us)),
        (semconv::MEMORY_PEAK, positive(call.memory_peak_bytes)),
    ]);
    let refused: Vec<_> =
        call.refused.iter().take(REFUSALS_MAX).map(|one| &*one.capability).collect();
    attributes.list(semconv::REFUSED, &refused);
    attributes
}

fn model_attributes(event: &LogEvent, error: Option<&str>) -> Attributes {
    let mut attributes = Attributes::default();
    let LogEvent::Model { provider, model, session, input_tokens, output_tokens, finish, .. } =
        event
    else {
        return attributes;
    };
    attributes.strings([
        (semconv::OPERATION_NAME, Some(semconv::CHAT)),
        (semconv::PROVIDER_NAME, Some(semconv::provider(provider))),
        (semconv::REQUEST_MODEL, Some(model)),
        (semconv::CONVERSATION_ID, session.as_deref()),
        (semconv::ERROR_TYPE, error),
    ]);
    attributes.numbers([
        (semconv::INPUT_TOKENS, *input_tokens),
        (semconv::OUTPUT_TOKENS, *output_tokens),
    ]);
    if error.is_none() {
        attributes.list(semconv::FINISH_REASONS, &[finish]);
    }
    attributes
}

fn agent_attributes(event: &LogEvent) -> Attributes {
    let mut attributes = Attributes::default();
    let LogEvent::Agent {
        agent, session, provider, model, input_tokens, output_tokens, error, ..
    } = event
    else {
        return attributes;
    };
    attributes.strings([
        (semconv::OPERATION_NAME, Some(semconv::INVOKE_AGENT)),
        (semconv::AGENT_NAME, Some(agent)),
        (semconv::PROVIDER_NAME, provider.as_deref().map(semconv::provider)),
        (semconv::REQUEST_MODEL, model.as_deref()),
        (semconv::CONVERSATION_ID, session.as_deref()),
        (semconv::ERROR_TYPE, error.as_deref()),
    ]);
    attributes.numbers([
        (semconv::INPUT_TOKENS, *input_tokens),
        (semconv::OUTPUT_TOKENS, *output_tokens),
    ]);
    attributes
}

/// Returns the value of `error.type`, which is set for every outcome but success.
fn error_type(call: &CallEntry) -> Option<&str> {
    match &*call.outcome {
        "ok" => None,
        "failure" => Some(semconv::TOOL_ERROR),
        "error" => Some(call.error.as_deref().unwrap_or(semconv::OTHER)),
        outcome @ ("cancelled" | crate::REFUSED | LOST) => Some(outcome),
        _ => Some(semconv::OTHER),
    }
}

impl Attributes {
    fn strings<'a>(&mut self, values: impl IntoIterator<Item = (&'a str, Option<&'a str>)>) {
        let values = values.into_iter().filter_map(|(name, value)| value.map(|v| (name, v)));
        self.0.extend(values.map(|(name, value)| attribute(name, string(value))));
    }

    fn numbers<'a>(&mut self, values: impl IntoIterator<Item = (&'a str, Option<u64>)>) {
        // 64-bit integers are strings in OTLP's JSON, and have a sign.
        let integer = |number: u64| json!({"intValue": number.min(i64::MAX as u64).to_string()});
        let values = values.into_iter().filter_map(|(name, value)| value.map(|v| (name, v)));
        self.0.extend(values.map(|(name, value)| attribute(name, integer(value))));
    }

    fn list(&mut self, name: &str, values: &[&str]) {
        if !values.is_empty() {
            let values: Vec<_> = values.iter().map(|value| string(value)).collect();
            self.0.push(attribute(name, json!({"arrayValue": {"values": values}})));
        }
    }
}

/// Returns an id of `N` bytes in hexadecimal digits, which OTLP's JSON uses instead of base64.
fn id<const N: usize>(kind: &str, id: &str) -> String {
    let digest = sha256(&[b"cofferdam ", kind.as_bytes(), b" ", id.as_bytes()]);
    let bytes = digest.as_bytes().first_chunk::<N>();
    bytes.map_or_else(String::new, |bytes| data_encoding::HEXLOWER.encode(bytes))
}

pub(super) fn attribute(name: &str, value: Value) -> Value {
    json!({"key": name, "value": value})
}

pub(super) fn string(text: &str) -> Value {
    json!({"stringValue": text.chars().take(CHARS_MAX).collect::<String>()})
}
