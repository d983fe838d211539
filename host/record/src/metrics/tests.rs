//! Metrics, read by a strict parser of the text format.

use std::collections::HashSet;
use std::future::{Future as _, poll_fn};
use std::task::Poll;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::{Functions, Toolset};
use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Samples by name and labels, in the order in which they are written.
type Samples = Vec<(String, BTreeMap<String, String>, f64)>;

/// Parses the text format: families with help and type, samples of the current family only, no
/// sample twice, escapes of label values.
fn parse(text: &str) -> Samples {
    let (mut samples, mut seen, mut families) = (Samples::new(), HashSet::new(), HashSet::new());
    let mut family: Option<(String, String)> = None;
    let mut lines = text.strip_suffix('\n').unwrap().split('\n');
    while let Some(line) = lines.next() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let name = help.split(' ').next().unwrap();
            let kind = lines.next().unwrap().strip_prefix(&format!("# TYPE {name} ")).unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind));
            assert!(families.insert(name.to_owned()));
            family = Some((name.to_owned(), kind.to_owned()));
            continue;
        }
        let (name, labels, value) = parse_sample(line);
        let (of, kind) = family.as_ref().unwrap();
        match name.strip_prefix(&**of).unwrap() {
            "" => assert_ne!(kind, "histogram"),
            "_bucket" | "_sum" | "_count" => assert_eq!(kind, "histogram"),
            other => panic!("{other}"),
        }
        assert!(seen.insert((name.clone(), labels.clone())), "{line}");
        samples.push((name, labels, value));
    }
    samples
}

fn parse_sample(line: &str) -> (String, BTreeMap<String, String>, f64) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = line.find(|c| !is_name(c)).unwrap();
    let (name, mut rest) = line.split_at(end);
    let mut labels = BTreeMap::new();
    if let Some(mut left) = rest.strip_prefix('{') {
        loop {
            let (label, after) = left.split_once("=\"").unwrap();
            assert!(label.chars().all(is_name) && !label.is_empty());
            let (value, after) = parse_value(after);
            assert!(labels.insert(label.to_owned(), value).is_none());
            match after.split_at(1) {
                (",", after) => left = after,
                ("}", after) => break rest = after,
                _ => panic!("{line}"),
            }
        }
    }
    (name.to_owned(), labels, rest.strip_prefix(' ').unwrap().parse().unwrap())
}

/// Parses the value of a label up to its closing quote. Returns it and what follows.
fn parse_value(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, text.get(at + 1..).unwrap()),
            '\\' => value.push(match chars.next().unwrap().1 {
                'n' => '\n',
                c @ ('\\' | '"') => c,
                c => panic!("\\{c}"),
            }),
            c => value.push(c),
        }
    }
    panic!("no closing quote: {text}");
}

fn value(samples: &Samples, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let has = |of: &BTreeMap<String, String>| {
        labels.iter().all(|(label, value)| of.get(*label).is_some_and(|found| found == value))
    };
    let mut found = samples.iter().filter(|(of, with, _)| of == name && has(with));
    let first = found.next().map(|(_, _, value)| *value);
    assert!(found.next().is_none(), "{name} {labels:?} is ambiguous");
    first
}

fn toolset(source: &str, metrics: &Arc<CallMetrics>) -> Toolset {
    let tool = |name| Declaration::new(name, "A tool.", r#"{"type":"object"}"#);
    let functions = Functions::new(source)
        .with(tool("work"), async |_, _| {
            tokio::time::sleep(Duration::from_millis(3)).await;
            Ok(json!("done"))
        })
        .unwrap()
        .with(tool("fail"), async |_, _| Err(FunctionEnd::failure("It does not work.")))
        .unwrap();
    let mut toolset = Toolset::new();
    toolset.set_sink(Arc::clone(metrics) as Arc<dyn CallSink>);
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

#[tokio::test]
async fn calls_are_counted_by_tool_and_outcome() {
    let metrics = Arc::new(CallMetrics::new(None));
    let tools = toolset("a \"b\"\\\nc", &metrics);
    let context = CallContext::new("c1");
    for _ in 0..3 {
        tools.call("work", Some(b"{}"), &context).await.unwrap();
    }
    tools.call("fail", Some(b"{}"), &context).await.unwrap();
    let _ = tools.call("made\nup\" 9", Some(b"{}"), &context).await;
    let _ = tools.call("work", Some(b"[]"), &context).await;
    let mut open = Box::pin(tools.call("work", Some(b"{}"), &context));
    let is_pending = poll_fn(|task| Poll::Ready(open.as_mut().poll(task).is_pending())).await;
    assert!(is_pending);
    let samples = parse(&metrics.prometheus());
    assert_eq!(value(&samples, "cofferdam_calls_in_progress", &[]), Some(1.0));
    drop(open);

    let gauge = Gauge { name: "x_draining", help: "1 if x drains.", value: 1 };
    let samples = parse(&(metrics.prometheus() + &gauges_text(&[gauge])));
    assert_eq!(value(&samples, "x_draining", &[]), Some(1.0));
    let calls = |tool: &str, outcome: &str| {
        let labels = [("plugin", "a \"b\"\\\nc"), ("tool", tool), ("outcome", outcome)];
        value(&samples, "cofferdam_calls_total", &labels)
    };
    assert_eq!(calls("work", "ok"), Some(3.0));
    assert_eq!(calls("work", "cancelled"), Some(1.0));
    assert_eq!(calls("fail", "failure"), Some(1.0));
    assert_eq!(calls("fail", "ok"), None);
    assert_eq!(value(&samples, "cofferdam_calls_in_progress", &[]), Some(0.0));
    let refusals = |tool: &str, reason: &str| {
        value(&samples, "cofferdam_refusals_total", &[("tool", tool), ("reason", reason)])
    };
    assert_eq!(refusals("", "UnknownTool"), Some(1.0));
    assert_eq!(refusals("work", "InvalidArguments"), Some(1.0));

    let duration = |part: &str, le: Option<&str>| {
        let name = format!("cofferdam_call_duration_seconds_{part}");
        let le = le.map(|le| ("le", le));
        let labels: Vec<_> = [("tool", "work")].into_iter().chain(le).collect();
        value(&samples, &name, &labels).unwrap()
    };
    assert_eq!(duration("count", None), 4.0);
    assert_eq!(duration("bucket", Some("+Inf")), 4.0);
    assert_eq!(duration("bucket", Some("0.00001")), 0.0);
    assert!(duration("bucket", Some("0.002")) <= 1.0);
    assert!(duration("sum", None) >= 0.009);
    let buckets = samples
        .iter()
        .filter(|(name, labels, _)| name.ends_with("_bucket") && labels["tool"] == "work");
    let buckets: Vec<_> = buckets.map(|(_, labels, count)| (&labels["le"], *count)).collect();
    assert_eq!(buckets.len(), BOUNDS.len() + 1);
    assert!(buckets.is_sorted_by(|a, b| a.1 <= b.1), "{buckets:?}");
}

#[tokio::test]
async fn tools_beyond_the_limit_are_counted_together() {
    let metrics = Arc::new(CallMetrics::new(None));
    let tool = |name: String| Declaration::new(&name, "A tool.", r#"{"type":"object"}"#);
    let mut functions = Functions::new("many");
    for index in 0..TOOLS_MAX + 50 {
        functions = functions.with(tool(format!("t{index}")), async |_, _| Ok(json!(1))).unwrap();
    }
    let mut tools = Toolset::new();
    tools.set_sink(Arc::clone(&metrics) as Arc<dyn CallSink>);
    tools.add(Arc::new(functions)).unwrap();
    for index in (0..TOOLS_MAX + 50).chain([0, TOOLS_MAX]) {
        tools.call(&format!("t{index}"), Some(b"{}"), &CallContext::new("c")).await.unwrap();
    }
    let samples = parse(&metrics.prometheus());
    let calls = |tool| value(&samples, "cofferdam_calls_total", &[("tool", tool)]);
    assert_eq!((calls("t0"), calls("t1"), calls("")), (Some(2.0), Some(1.0), Some(51.0)));
    let names = samples.iter().filter(|(name, ..)| name == "cofferdam_calls_total");
    assert_eq!(names.count(), TOOLS_MAX + 1);
}

#[tokio::test]
async fn the_next_sink_gets_the_calls_and_gives_the_numbers() {
    struct Numbers(Mutex<Vec<Option<u64>>>, Option<u64>);
    impl CallSink for Numbers {
        fn begin(&self, _: &ObservedCall<'_>, _: &Map<String, Value>) -> Option<u64> {
            self.1
        }
        fn end(&self, number: Option<u64>, _: &ObservedCall<'_>, _: &Completion) {
            self.0.lock().push(number);
        }
        fn refused(&self, _: &str, _: &RefusedCall, _: &CallContext) {
            self.0.lock().push(Some(u64::MAX));
        }
    }
    for given in [None, Some(7)] {
        let numbers = Arc::new(Numbers(Mutex::default(), given));
        let metrics = Arc::new(CallMetrics::new(Some(Arc::clone(&numbers) as _)));
        let tools = toolset("s", &metrics);
        let context = CallContext::new("c");
        let calls = (0..3).map(|_| tools.call("work", Some(b"{}"), &context));
        let mut calls: Vec<_> = calls.map(Box::pin).collect();
        for call in &mut calls {
            call.as_mut().await.unwrap();
        }
        let _ = tools.call("none", None, &context).await;
        assert_eq!(*numbers.0.lock(), [given, given, given, Some(u64::MAX)]);
    }
}

proptest! {
    #[test]
    fn no_name_breaks_a_line(owner in "\\PC*|[\\x00-\\x7f]*|.*\n.*", tool in ".*") {
        let counts = ToolCounts { outcomes: [1; 4], refused: 1, ..ToolCounts::new("", "") };
        let tools = BTreeMap::from([((owner.clone(), tool.clone()), counts)]);
        let refusals = BTreeMap::from([((tool, "UnknownTool"), 1)]);
        let samples = parse(&text::write(&tools, &refusals, 0));
        prop_assert_eq!(samples.len(), 4 + BOUNDS.len() + 3 + 2 + 1);
        if !owner.contains(['\r', '\u{85}', '\u{2028}', '\u{2029}']) {
            prop_assert_eq!(&samples[0].1["plugin"], &owner);
        }
    }
}
