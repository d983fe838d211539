use std::collections::HashMap;

use cofferdam_record::{CallEntry, CallFilter, Log, LogEvent, LogItem, TraceRequests};
use serde_json::Value;

use super::damage::write;
use super::{Place, call, toolset};

const AT: &str = "2026-11-22T05:36:06";

fn calls(log: &Log, filter: &CallFilter) -> Vec<CallEntry> {
    let calls = log.stream(filter).unwrap().filter_map(|item| match item {
        LogItem::Call(call) => Some(*call),
        _ => None,
    });
    calls.collect()
}

/// Asserts that a stream has the calls that a query has.
pub(super) fn assert_complete(log: &Log, filter: &CallFilter) {
    let mut streamed = calls(log, filter);
    streamed.sort_by(|a, b| (b.at, b.n(), &b.id).cmp(&(a.at, a.n(), &a.id)));
    assert_eq!(streamed, log.query(filter).unwrap().calls);
}

trait Numbered {
    fn n(&self) -> u64;
}

impl Numbered for CallEntry {
    /// Returns the number of the line, which only its JSON shows.
    fn n(&self) -> u64 {
        serde_json::to_value(self).unwrap()["n"].as_u64().unwrap()
    }
}

#[tokio::test]
async fn segments_that_are_written_at_once_are_merged() {
    let place = Place::new();
    let (one, other) = (place.recorder(), place.recorder());
    let (first, second) = (toolset(&one), toolset(&other));
    for round in 0..20 {
        let tools = if round % 2 == 0 { &first } else { &second };
        for tool in ["echo", "fail"] {
            call(tools, tool, "{}", "chat").await;
        }
        one.flush();
        other.flush();
    }
    let log = Log::open(place.path()).unwrap();
    let all = calls(&log, &CallFilter::default());
    assert_eq!(all.len(), 40);
    let ends: Vec<_> = all.iter().map(|call| call.at.micros() as u64 + call.us).collect();
    assert!(ends.is_sorted(), "{ends:?}");
    for filter in [
        CallFilter::default(),
        CallFilter { tool: Some("fail".to_owned()), ..CallFilter::default() },
        CallFilter { since: Some(all[20].at), ..CallFilter::default() },
    ] {
        assert_complete(&log, &filter);
        one.close();
        other.close();
        assert_complete(&log, &filter);
    }
}

#[tokio::test]
async fn events_are_between_the_calls() {
    let place = Place::new();
    let recorder = place.recorder();
    let tools = toolset(&recorder);
    call(&tools, "echo", "{}", "chat").await;
    recorder.event(LogEvent::Model {
        provider: "openai-chat".to_owned(),
        model: "m".to_owned(),
        session: Some("chat".to_owned()),
        input_tokens: Some(3),
        output_tokens: None,
        finish: "stop".to_owned(),
        trace: None,
        exchange: None,
        duration: std::time::Duration::ZERO,
    });
    call(&tools, "fail", "{}", "chat").await;
    recorder.close();
    let log = Log::open(place.path()).unwrap();
    let kinds = |filter: &CallFilter| {
        let word = |item| match item {
            LogItem::Call(call) => call.tool,
            LogItem::Event(event) => event.event.session().unwrap_or_default().to_owned(),
            _ => String::new(),
        };
        log.stream(filter).unwrap().map(word).collect::<Vec<_>>()
    };
    assert_eq!(kinds(&CallFilter::default()), ["echo", "chat", "fail"]);
    let filter = CallFilter { session: Some("other".to_owned()), ..CallFilter::default() };
    assert!(kinds(&filter).is_empty());
    let filter = CallFilter { tool: Some("echo".to_owned()), ..CallFilter::default() };
    assert_eq!(kinds(&filter), ["echo"]);
}

/// Returns the line of a call.
fn line(kind: &str, id: u32, at: u32, us: u32, outer: Option<u32>) -> String {
    let outer = outer.map(|outer| format!(r#""outer":"c{outer}","#)).unwrap_or_default();
    format!(
        r#"{{"v":1,"kind":"{kind}","tool":"t","outcome":"ok","n":1,"at":"{AT}.{at:06}Z","id":"0123abcd-{id}","call":"c{id}",{outer}"us":{us}}}"#
    ) + "\n"
}

#[test]
fn inner_calls_find_the_outer_call_that_ends_after_them() {
    let place = Place::new();
    let lines = [
        // Of the same batch.
        line("call", 3, 12, 3, Some(2)),
        line("call", 2, 11, 5, Some(1)),
        line("call", 1, 10, 9, None),
        // Of an earlier batch than the outer call, which has a `begin` line.
        line("call", 5, 31, 2, Some(4)),
        line("begin", 4, 30, 0, None),
        line("call", 6, 41, 2, Some(4)),
        line("end", 4, 30, 20, None),
        // Of an outer call that is gone.
        line("call", 7, 60, 1, Some(9)),
    ];
    let log = write(&place, "20261122T053606.000000Z-1-0123abcd.jsonl", lines.concat().as_bytes());
    let filter = CallFilter::default();
    let requests = TraceRequests::new(log.stream(&filter).unwrap(), "s").collect::<Vec<_>>();
    assert_eq!((requests.len(), requests[0].spans), (1, 7));
    let body: Value = serde_json::from_str(&requests[0].body).unwrap();
    let spans = body["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
    let attribute = |span: &Value, name: &str| {
        let all = span["attributes"].as_array().unwrap();
        let found = all.iter().find(|one| one["key"] == name).unwrap();
        found["value"]["stringValue"].as_str().unwrap().to_owned()
    };
    let spans: HashMap<_, _> =
        spans.iter().map(|span| (attribute(span, "gen_ai.tool.call.id"), span)).collect();
    for (inner, outer, root) in
        [("c3", "c2", "c1"), ("c2", "c1", "c1"), ("c5", "c4", "c4"), ("c6", "c4", "c4")]
    {
        assert_eq!(spans[inner]["parentSpanId"], spans[outer]["spanId"], "{inner}");
        assert_eq!(spans[inner]["traceId"], spans[root]["traceId"], "{inner}");
    }
    assert!(spans["c7"]["parentSpanId"].is_null());
}
