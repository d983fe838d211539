//! Tests of the limits of arguments with variables.

use std::time::{Duration, Instant};

use cofferdam_agent::{Data, Session};
use serde_json::json;

use super::super::store::HiddenValue;
use super::*;

fn store() -> Store {
    Store::new(Session::with_id("s"))
}

#[test]
fn a_value_is_read_once_however_often_it_is_named() {
    let store = store();
    let image =
        Data { media_type: "image/png".into(), data: "A".repeat(3 << 20), ..Data::default() };
    let value = HiddenValue { text: "x".to_owned(), items: vec![image] };
    let id = store.hide(&value, &Label::untrusted()).unwrap();
    let arguments = json!({ "ids": vec![id; 20_000] }).to_string();
    let started = Instant::now();
    let resolved = resolve(&CallArguments::Text(arguments), &store).unwrap();
    // Reading the value for each id copies 60 GB.
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(resolved.label, Label::untrusted());
    let Some(CallArguments::Value(value)) = resolved.arguments else { panic!() };
    assert_eq!(value["ids"].as_array().unwrap().iter().filter(|id| **id == "x").count(), 20_000);
}

#[test]
fn a_value_counts_each_time_that_it_is_inserted() {
    let store = store();
    let value = HiddenValue::text("x".repeat(BYTES_MAX / 8));
    let id = store.hide(&value, &Label::untrusted()).unwrap();
    let resolve = |count| {
        let arguments = json!({ "ids": vec![&id; count] });
        resolve(&CallArguments::Value(arguments), &store).map(|resolved| resolved.label)
    };
    assert_eq!(resolve(8), Ok(Label::untrusted()));
    assert_eq!(resolve(9), Err(UnresolvedVariables::TooLarge));
}

#[test]
fn arguments_that_no_tool_accepts_are_not_read() {
    let store = store();
    let id = store.hide(&HiddenValue::text("x"), &Label::untrusted()).unwrap();
    let of_bytes = |bytes: usize| {
        let text = json!({"a": id, "b": ""}).to_string();
        let text = text.replace(r#""""#, &format!(r#""{}""#, "y".repeat(bytes - text.len())));
        assert_eq!(text.len(), bytes);
        resolve(&CallArguments::Text(text), &store).map(|resolved| resolved.label)
    };
    let bytes_max = 1_048_576;
    assert_eq!(of_bytes(bytes_max), Ok(Label::untrusted()));
    let refused = of_bytes(bytes_max + 1).unwrap_err();
    assert_eq!(refused, UnresolvedVariables::ArgumentsTooLarge { bytes_max });
}
