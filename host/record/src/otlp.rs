//! Projection of calls to OpenTelemetry: requests of OTLP/HTTP in JSON (`POST /v1/traces`).
//!
//! A span is made of what the log has, after the fact: nothing is measured for it, and no payload
//! is in it. Ids are digests of the ids in the log, so that exporting a call twice gives the same
//! span twice, which collectors can tell. This crate sends nothing.

use std::collections::HashMap;

use cofferdam_tool::ToolName;
use serde_json::{Value, json};

use crate::merkle::sha256;
use crate::{CallEntry, LOST, RUNNING, semconv};

/// Maximum number of spans in a request: about half a megabyte.
const SPANS_MAX: usize = 512;
/// Maximum characters of an attribute.
const CHARS_MAX: usize = 1024;
/// Maximum number of refused capabilities in a span.
const REFUSALS_MAX: usize = 32;
/// Maximum depth of inner calls, as a guard against loops in what callers give as ids.
const DEPTH_MAX: usize = 64;
/// `SPAN_KIND_INTERNAL` of OTLP.
const KIND_INTERNAL: u8 = 1;
/// `STATUS_CODE_ERROR` of OTLP.
const STATUS_ERROR: u8 = 2;

/// Calls by process, session and the id that the caller gave.
type CallIndex<'a> = HashMap<(&'a str, Option<&'a str>, &'a str), Vec<&'a CallEntry>>;

/// Returns the bodies of export requests (`ExportTraceServiceRequest`) with a span for each call
/// that has ended. An inner call belongs to the trace of its outer call if that is among `calls`.
#[must_use]
pub fn trace_requests(calls: &[CallEntry], service: &str) -> Vec<Value> {
    let mut index = CallIndex::new();
    for call in calls {
        let key = (process(call), call.session.as_deref(), &*call.call);
        index.entry(key).or_default().push(call);
    }
    let ended: Vec<_> = calls.iter().filter(|call| call.outcome != RUNNING).collect();
    ended.chunks(SPANS_MAX).map(|calls| request(calls, &index, service)).collect()
}

fn request(calls: &[&CallEntry], index: &CallIndex<'_>, service: &str) -> Value {
    let version = env!("CARGO_PKG_VERSION");
    let resource = vec![
        attribute(semconv::SERVICE_NAME, string(service)),
        attribute(semconv::SERVICE_VERSION, string(version)),
    ];
    let spans: Vec<_> = calls.iter().map(|call| span(call, index)).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "cofferdam-record", "version": version}, "spans": spans}],
    }]})
}

fn span(call: &CallEntry, index: &CallIndex<'_>) -> Value {
    let parent = outer(call, index);
    let start = u64::try_from(call.at.micros()).unwrap_or(0);
    let nanos = |micros: u64| micros.saturating_mul(1000).to_string();
    let error = error_type(call);
    let mut span = json!({
        "traceId": id::<16>("trace", &root(call, index).id),
        "spanId": id::<8>("span", &call.id),
        "name": name(call),
        "kind": KIND_INTERNAL,
        "startTimeUnixNano": nanos(start),
        "endTimeUnixNano": nanos(start.saturating_add(call.us)),
        "attributes": attributes(call, error),
        "status": {},
    });
    if let Some(members) = span.as_object_mut() {
        if let Some(parent) = parent {
            members.insert("parentSpanId".to_owned(), id::<8>("span", &parent.id).into());
        }
        if let Some(error) = error {
            let message: String = error.chars().take(CHARS_MAX).collect();
            members.insert("status".to_owned(), json!({"code": STATUS_ERROR, "message": message}));
        }
    }
    span
}

/// Returns the name of the span. A name that no tool can have, which a model made up, stays out of
/// it: backends keep an index of span names.
fn name(call: &CallEntry) -> String {
    match ToolName::new(call.tool.as_str()) {
        Ok(_) => format!("{} {}", semconv::EXECUTE_TOOL, call.tool),
        Err(_) => semconv::EXECUTE_TOOL.to_owned(),
    }
}

fn attributes(call: &CallEntry, error: Option<&str>) -> Vec<Value> {
    let label = call.label.as_deref().and_then(|label| label.split_once('/'));
    let caller_id = Some(&*call.call).filter(|id| !id.is_empty());
    let files = u64::try_from(call.files.len()).unwrap_or(u64::MAX);
    let strings = [
        (semconv::OPERATION_NAME, Some(semconv::EXECUTE_TOOL)),
        (semconv::TOOL_NAME, Some(&*call.tool)),
        (semconv::TOOL_TYPE, Some(semconv::FUNCTION)),
        (semconv::TOOL_CALL_ID, caller_id),
        (semconv::CONVERSATION_ID, call.session.as_deref()),
        (semconv::ERROR_TYPE, error),
        (semconv::RECORD_ID, Some(&*call.id)),
        (semconv::PLUGIN, call.plugin.as_deref()),
        (semconv::PLUGIN_DIGEST, call.digest.as_deref()),
        (semconv::OUTCOME, Some(&*call.outcome)),
        (semconv::LABEL_INTEGRITY, label.map(|(integrity, _)| integrity)),
        (semconv::LABEL_CONFIDENTIALITY, label.map(|(_, confidentiality)| confidentiality)),
    ];
    let numbers = [
        (semconv::FILES_CHANGED, files.saturating_add(call.files_left_out)),
        (semconv::CPU_US, call.cpu_us),
        (semconv::MEMORY_PEAK, call.memory_peak_bytes),
    ];
    let strings = strings.into_iter().filter_map(|(name, text)| text.map(|t| (name, string(t))));
    let numbers = numbers.into_iter().filter(|(_, number)| *number > 0);
    // 64-bit integers are strings in OTLP's JSON, and have a sign.
    let integer = |number: u64| json!({"intValue": number.min(i64::MAX as u64).to_string()});
    let numbers = numbers.map(|(name, number)| (name, integer(number)));
    let refused: Vec<_> =
        call.refused.iter().take(REFUSALS_MAX).map(|one| string(&one.capability)).collect();
    let refused = (!refused.is_empty())
        .then(|| (semconv::REFUSED, json!({"arrayValue": {"values": refused}})));
    let all = strings.chain(numbers).chain(refused);
    all.map(|(name, value)| attribute(name, value)).collect()
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

/// Returns the call of the tool that made this call. Callers may give an id to several calls, so
/// it has to be the one that was running.
fn outer<'a>(call: &CallEntry, index: &CallIndex<'a>) -> Option<&'a CallEntry> {
    let key = (process(call), call.session.as_deref(), call.outer.as_deref()?);
    let is_around = |outer: &&&CallEntry| {
        let end = outer.at.micros().saturating_add_unsigned(outer.us);
        let is_open = outer.outcome == LOST || outer.outcome == RUNNING;
        outer.id != call.id && outer.at <= call.at && (is_open || call.at.micros() <= end)
    };
    index.get(&key)?.iter().filter(is_around).max_by_key(|outer| outer.at).copied()
}

fn root<'a>(call: &'a CallEntry, index: &CallIndex<'a>) -> &'a CallEntry {
    let mut root = call;
    for _ in 0..DEPTH_MAX {
        match outer(root, index) {
            Some(outer) => root = outer,
            None => break,
        }
    }
    root
}

/// Returns the digits of the process, with which the id starts.
fn process(call: &CallEntry) -> &str {
    call.id.split_once('-').map_or("", |(process, _)| process)
}

/// Returns an id of `N` bytes in hexadecimal digits, which OTLP's JSON uses instead of base64.
fn id<const N: usize>(kind: &str, id: &str) -> String {
    let digest = sha256(&[b"cofferdam ", kind.as_bytes(), b" ", id.as_bytes()]);
    let bytes = digest.as_bytes().first_chunk::<N>();
    bytes.map_or_else(String::new, |bytes| data_encoding::HEXLOWER.encode(bytes))
}

fn attribute(name: &str, value: Value) -> Value {
    json!({"key": name, "value": value})
}

fn string(text: &str) -> Value {
    json!({"stringValue": text.chars().take(CHARS_MAX).collect::<String>()})
}

#[cfg(test)]
mod tests;
