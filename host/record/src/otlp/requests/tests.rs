//! Spans as collectors expect them.

use super::super::index::CallIndex;
use super::super::span::of_call;
use super::*;
use crate::UtcTime;
use crate::otlp::span::CHARS_MAX;
use crate::{CallEntry, RUNNING};

fn call(id: &str, outcome: &str) -> CallEntry {
    CallEntry {
        tool: "add".to_owned(),
        outcome: outcome.to_owned(),
        id: id.to_owned(),
        call: format!("call {id}"),
        at: UtcTime::from_micros(1_700_000_000_000_000),
        us: 9,
        ..CallEntry::default()
    }
}

fn spans(calls: &[CallEntry]) -> Vec<Value> {
    let requests = trace_requests(calls, "assistant");
    let spans = |request: &Value| {
        let scope = &request["resourceSpans"][0]["scopeSpans"][0];
        scope["spans"].as_array().unwrap().clone()
    };
    requests.iter().flat_map(spans).collect()
}

fn value(span: &Value, name: &str) -> Option<Value> {
    let attributes = span["attributes"].as_array().unwrap();
    attributes.iter().find(|one| one["key"] == name).map(|one| one["value"].clone())
}

#[test]
fn a_call_is_a_span_of_the_conventions() {
    let entry = CallEntry {
        plugin: Some("adder".to_owned()),
        digest: Some("ab".repeat(32)),
        session: Some("chat".to_owned()),
        label: Some("untrusted/private".to_owned()),
        cpu_us: 7,
        memory_peak_bytes: 1 << 20,
        ..call("00000001-5", "ok")
    };
    let requests = trace_requests(&[entry], "assistant");
    let ids =
        |kind: &str| requests[0]["resourceSpans"][0]["scopeSpans"][0]["spans"][0][kind].clone();
    let (trace, span) = (ids("traceId"), ids("spanId"));
    assert_eq!((trace.as_str().unwrap().len(), span.as_str().unwrap().len()), (32, 16));
    let text = |name, text| json!({"key": name, "value": {"stringValue": text}});
    let number = |name, text| json!({"key": name, "value": {"intValue": text}});
    let version = env!("CARGO_PKG_VERSION");
    let digest = "ab".repeat(32);
    let expected = json!({"resourceSpans": [{
        "resource": {"attributes": [
            text("service.name", "assistant"),
            text("service.version", version),
        ]},
        "scopeSpans": [{"scope": {"name": "cofferdam-record", "version": version}, "spans": [{
            "traceId": trace,
            "spanId": span,
            "name": "execute_tool add",
            "kind": 1,
            "startTimeUnixNano": "1700000000000000000",
            "endTimeUnixNano": "1700000000000009000",
            "attributes": [
                text("gen_ai.operation.name", "execute_tool"),
                text("gen_ai.tool.name", "add"),
                text("gen_ai.tool.type", "function"),
                text("gen_ai.tool.call.id", "call 00000001-5"),
                text("gen_ai.conversation.id", "chat"),
                text("cofferdam.record.id", "00000001-5"),
                text("cofferdam.plugin", "adder"),
                text("cofferdam.plugin.digest", &digest),
                text("cofferdam.outcome", "ok"),
                text("cofferdam.label.integrity", "untrusted"),
                text("cofferdam.label.confidentiality", "private"),
                number("cofferdam.cpu_us", "7"),
                number("cofferdam.memory.peak", "1048576"),
            ],
            "status": {},
        }]}],
    }]});
    assert_eq!(requests, [expected]);
}

#[test]
fn every_outcome_but_success_has_an_error_type() {
    for (outcome, error, expected) in [
        ("failure", None, "tool_error"),
        ("error", Some("out-of-memory"), "out-of-memory"),
        ("error", None, "_OTHER"),
        ("cancelled", None, "cancelled"),
        ("refused", Some("unknown tool"), "refused"),
        ("lost", None, "lost"),
        ("", None, "_OTHER"),
    ] {
        let entry = CallEntry { error: error.map(str::to_owned), ..call("00000001-1", outcome) };
        let span = &spans(&[entry])[0];
        assert_eq!(value(span, "error.type"), Some(json!({"stringValue": expected})));
        assert_eq!(span["status"], json!({"code": 2, "message": expected}));
    }
    assert_eq!(value(&spans(&[call("00000001-1", "ok")])[0], "error.type"), None);
    assert!(spans(&[call("00000001-1", "running")]).is_empty());
}

#[test]
fn inner_calls_are_in_the_trace_of_their_outer_call() {
    let at = |micros: i64| UtcTime::from_micros(1_700_000_000_000_000 + micros);
    let outer = CallEntry { us: 100, ..call("00000001-1", "ok") };
    let inner = CallEntry {
        outer: Some(outer.call.clone()),
        at: at(10),
        us: 50,
        ..call("00000001-2", "ok")
    };
    let innermost =
        CallEntry { outer: Some(inner.call.clone()), at: at(20), ..call("00000001-3", "ok") };
    let later = CallEntry { at: at(500), ..inner.clone() };
    let elsewhere = CallEntry { id: "00000002-2".to_owned(), ..inner.clone() };
    let spans = spans(&[outer, inner, innermost, later, elsewhere]);
    let of = |index: usize, name: &str| spans[index][name].clone();
    assert_eq!(of(0, "parentSpanId"), Value::Null);
    assert_eq!(of(1, "parentSpanId"), of(0, "spanId"));
    assert_eq!(of(2, "parentSpanId"), of(1, "spanId"));
    assert_eq!(of(2, "traceId"), of(0, "traceId"));
    for index in [3, 4] {
        assert_eq!(of(index, "parentSpanId"), Value::Null);
        assert_ne!(of(index, "traceId"), of(0, "traceId"));
    }
}

#[test]
fn names_that_a_model_made_up_are_not_in_span_names_and_loops_end() {
    let made_up = CallEntry {
        tool: "x y".repeat(1000),
        outer: Some("call 00000001-1".to_owned()),
        us: u64::MAX,
        ..call("00000001-1", "refused")
    };
    let mut other = CallEntry { id: "00000001-2".to_owned(), ..made_up.clone() };
    other.at = UtcTime::from_micros(i64::MIN);
    let spans = spans(&[made_up, other]);
    assert_eq!(spans[0]["name"], "execute_tool");
    let name = value(&spans[0], "gen_ai.tool.name").unwrap();
    assert_eq!(name["stringValue"].as_str().unwrap().len(), CHARS_MAX);
    assert_eq!(spans[1]["startTimeUnixNano"], "0");
}

#[test]
fn requests_have_at_most_512_spans() {
    let calls: Vec<_> = (0..1025).map(|n| call(&format!("00000001-{n}"), "ok")).collect();
    assert_eq!(trace_requests(&calls, "x").len(), 3);
    assert!(trace_requests(&[], "x").is_empty());
}

/// Returns the bodies of export requests with a span for each call that has ended. An inner call
/// belongs to the trace of its outer call if that is among `calls`.
fn trace_requests(calls: &[CallEntry], service: &str) -> Vec<Value> {
    let mut index = CallIndex::default();
    calls.iter().for_each(|call| index.add(call));
    let mut batches = TraceBatches::new(service);
    let ended = calls.iter().filter(|call| call.outcome != RUNNING);
    batches.project(|spans| spans.extend(ended.map(|call| of_call(call, &index.position(call)))));
    std::iter::from_fn(|| batches.next_rest())
        .filter_map(|request| serde_json::from_str(&request.body).ok())
        .collect()
}
