//! Values of every type, through a real component and back.

use cofferdam_tests::Host;
use cofferdam_tool::{Outcome, Output};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::{echo, value};

async fn comes_back(host: &Host, tool: &str, sent: Value) {
    assert_eq!(value(host, tool, &json!({ "value": sent })).await, sent, "{tool}");
}

#[tokio::test]
async fn every_type_comes_back() {
    let host = echo().await;
    comes_back(&host, "bools", json!(true)).await;
    comes_back(&host, "chars", json!("😀")).await;
    comes_back(&host, "texts", json!("\u{0}\"ä\n")).await;
    comes_back(&host, "bytes", json!("AAECAw==")).await;
    comes_back(&host, "colors", json!("dark-blue")).await;
    comes_back(&host, "weekdays", json!("tuesday")).await;
    comes_back(&host, "permission_sets", json!(["read", "run-as-owner"])).await;
    for option in [json!(null), json!(7)] {
        comes_back(&host, "options", option).await;
    }
    for nested in [json!(null), json!({"some": null}), json!({"some": 7})] {
        comes_back(&host, "nested_options", nested).await;
    }
    for result in [json!([{"ok": 1}]), json!([{"error": "no"}])] {
        comes_back(&host, "results", result).await;
    }
    for figure in [
        json!({"kind": "dot"}),
        json!({"kind": "circle", "value": 1.5}),
        json!({"kind": "rectangle", "value": [1.5, 2.5]}),
        json!({"kind": "labelled", "value": null}),
    ] {
        comes_back(&host, "figures", figure).await;
    }
}

#[tokio::test]
async fn numbers_keep_all_their_digits() {
    let host = echo().await;
    let sent = json!({"a": 255, "b": 65535, "c": u32::MAX, "d": u64::MAX});
    assert_eq!(value(&host, "unsigned", &sent).await, json!([255, 65535, u32::MAX, u64::MAX]));
    let sent = json!({"a": -128, "b": -32768, "c": i32::MIN, "d": i64::MIN});
    assert_eq!(value(&host, "signed", &sent).await, json!([-128, -32768, i32::MIN, i64::MIN]));
    let sent = json!({"single": 0.1, "double": 1e300});
    assert_eq!(value(&host, "floats", &sent).await, json!([0.1, 1e300]));
}

#[tokio::test]
async fn what_is_nearly_right_is_made_right() {
    let host = echo().await;
    let sent = json!({"value": {"kind": "CIRCLE", "value": "1.5", "colour": "red"}});
    assert_eq!(value(&host, "figures", &sent).await, json!({"kind": "circle", "value": 1.5}));
    let person = json!({"full_name": "A", "age": "30", "favourite": "RED", "may": []});
    let expected =
        json!({"full_name": "A", "age": 30, "nick_name": null, "favourite": "red", "may": []});
    assert_eq!(value(&host, "people", &json!({ "value": person })).await, expected);
    assert_eq!(value(&host, "options", &json!({})).await, Value::Null);
}

fn json_of<T: Into<Value> + std::fmt::Debug + 'static>(
    values: impl Strategy<Value = T> + 'static,
) -> BoxedStrategy<Value> {
    values.prop_map(Into::into).boxed()
}

fn optional(values: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![Just(Value::Null), values].boxed()
}

fn many(values: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    json_of(prop::collection::vec(values, 0..4))
}

fn one_of(names: &[&'static str]) -> BoxedStrategy<Value> {
    json_of(prop::sample::select(names.to_vec()))
}

fn some_of(names: &[&'static str]) -> BoxedStrategy<Value> {
    json_of(prop::sample::subsequence(names.to_vec(), 0..=names.len()))
}

fn under(key: &'static str, values: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    values.prop_map(move |value| json!({ key: value })).boxed()
}

fn record(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let (names, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let object = move |values: Vec<Value>| {
        Value::Object(names.iter().map(|name| (*name).to_owned()).zip(values).collect())
    };
    values.prop_map(object).boxed()
}

fn text() -> BoxedStrategy<Value> {
    json_of(any::<String>())
}

fn double() -> BoxedStrategy<Value> {
    json_of(prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO)
}

fn single() -> BoxedStrategy<Value> {
    let floats = prop::num::f32::NORMAL | prop::num::f32::SUBNORMAL | prop::num::f32::ZERO;
    json_of(floats.prop_map(|value| value.to_string().parse::<f64>().unwrap()))
}

fn base64() -> BoxedStrategy<Value> {
    json_of("([A-Za-z0-9+/]{4}){0,5}([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?")
}

fn color() -> BoxedStrategy<Value> {
    one_of(&["red", "green", "dark-blue"])
}

fn permissions() -> BoxedStrategy<Value> {
    some_of(&["read", "write", "run-as-owner"])
}

fn person() -> BoxedStrategy<Value> {
    record(vec![
        ("full_name", text()),
        ("age", json_of(any::<u8>())),
        ("nick_name", optional(text())),
        ("favourite", color()),
        ("may", permissions()),
    ])
}

fn figure() -> BoxedStrategy<Value> {
    let with = |kind: &'static str, values: BoxedStrategy<Value>| {
        values.prop_map(move |value| json!({"kind": kind, "value": value}))
    };
    prop_oneof![
        Just(json!({"kind": "dot"})),
        with("circle", double()),
        with("rectangle", json_of(vec![double(), double()])),
        with("labelled", optional(text())),
        with("owned-by", person()),
    ]
    .boxed()
}

fn result(ok: BoxedStrategy<Value>, error: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![under("ok", ok), under("error", error)].boxed()
}

fn everything() -> BoxedStrategy<Value> {
    let null = || Just(Value::Null).boxed();
    record(vec![
        ("flag", json_of(any::<bool>())),
        ("small_signed", json_of(any::<i8>())),
        ("small", json_of(any::<u8>())),
        ("short_signed", json_of(any::<i16>())),
        ("short", json_of(any::<u16>())),
        ("word_signed", json_of(any::<i32>())),
        ("word", json_of(any::<u32>())),
        ("long_signed", json_of(any::<i64>())),
        ("long", json_of(any::<u64>())),
        ("single", single()),
        ("double", double()),
        ("letter", json_of(any::<char>().prop_map(String::from))),
        ("text", text()),
        ("data", base64()),
        ("numbers", many(json_of(any::<u32>()))),
        ("rows", many(many(text()))),
        ("pair", json_of(vec![json_of(any::<u8>()), text(), optional(json_of(any::<bool>()))])),
        ("person", person()),
        ("figure", figure()),
        ("figures", many(figure())),
        ("weekday", one_of(&["monday", "tuesday"])),
        ("color", color()),
        ("permissions", permissions()),
        ("maybe", optional(json_of(any::<u64>()))),
        ("maybe_maybe", optional(under("some", optional(json_of(any::<u64>()))))),
        ("maybe_color", optional(color())),
        ("maybe_figure", optional(figure())),
        ("maybe_person", optional(person())),
        ("maybe_list", optional(many(optional(text())))),
        ("outcome", result(json_of(any::<u32>()), text())),
        ("bare_outcome", result(null(), null())),
        ("empty_ok", result(null(), text())),
        ("option_outcome", result(optional(json_of(any::<u8>())), optional(text()))),
    ])
}

/// From text to arguments to component values, into a guest's memory and out of it, to JSON: the
/// value stays the same.
#[test]
fn any_value_comes_back() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut host = Host::new();
    // Generous, because many tests may run at the same time.
    host.limits.wall_ms_max = 10_000;
    runtime.block_on(host.load("echo"));
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..Default::default()
    });
    let ran = runner.run(&everything(), |sent| {
        let completion = runtime.block_on(host.call("all", &json!({ "value": sent }).to_string()));
        prop_assert_eq!(completion.outcome, Outcome::Ok(Output::Value(sent)));
        Ok(())
    });
    ran.unwrap();
}
