//! Components that cannot be typed plugins, with the messages.

use cofferdam_engine::Component;
use cofferdam_tests::Host;
use cofferdam_tool::{CallContext, RefusedCall};
use serde_json::json;

use super::echo;

async fn refusal(wat: &str) -> String {
    let component = Component::from_bytes(wat::parse_str(wat).unwrap());
    match Host::new().try_load(&component).await {
        Ok(_) => panic!("the component is taken"),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_component_that_exports_protocols_alone() {
    for export in ["wasi:http/incoming-handler@0.2.0", "cofferdam:plugin/tools@9.0.0"] {
        let error =
            refusal(&format!(r#"(component (instance $i) (export "{export}" (instance $i)))"#))
                .await;
        assert_eq!(
            error,
            "exports neither `cofferdam:plugin/tools@0.1.0` nor a function of its own; build it with a Cofferdam \
             SDK, or export plain functions from its WIT world"
        );
    }
    let error = refusal(r#"(component (instance $i) (export "a:b/c" (instance $i)))"#).await;
    assert!(error.starts_with("exports neither"), "{error}");
}

/// Returns a component whose interface `my:own/things` has the resource `thing` and a function over
/// it.
fn over_a_resource(function: &str, parameter: &str) -> String {
    format!(
        r#"(component
            (type $inner (resource (rep i32)))
            (core module $m (func (export "f") (param i32)))
            (core instance $m (instantiate $m))
            (component $c
                (import "thing" (type $t (sub resource)))
                (import "f" (func $f (param "{parameter}" (borrow $t))))
                (export $e "thing" (type $t))
                (export "{function}" (func $f) (func (param "{parameter}" (borrow $e)))))
            (func $f (param "{parameter}" (borrow $inner)) (canon lift (core func $m "f")))
            (instance $i (instantiate $c (with "thing" (type $inner)) (with "f" (func $f))))
            (export "my:own/things" (instance $i)))"#
    )
}

#[tokio::test]
async fn a_function_over_a_resource_is_named() {
    assert_eq!(
        refusal(&over_a_resource("use-it", "it")).await,
        "exports the function `my:own/things#use-it`, which cannot be a tool: its parameter `it` holds the resource \
         `thing`, which has no JSON form"
    );
    assert_eq!(
        refusal(&over_a_resource("[method]thing.go", "self")).await,
        "exports the function `my:own/things#[method]thing.go`, which cannot be a tool: it belongs to a resource, \
         and a call cannot hold one"
    );
}

fn functions(names: impl Iterator<Item = String>) -> String {
    let exports: String = names.map(|name| format!(r#"(export "{name}" (func $f))"#)).collect();
    format!(
        r#"(component
            (core module $m (func (export "f")))
            (core instance $m (instantiate $m))
            (func $f (canon lift (core func $m "f")))
            {exports})"#
    )
}

#[tokio::test]
async fn the_limits_of_declarations_hold() {
    let error = refusal(&functions((0..129).map(|n| format!("t{n}x")))).await;
    assert_eq!(error, "the plugin declares 129 tools, at most 128 are allowed");
    let error = refusal(&functions(["sum", "surn"].map(str::to_owned).into_iter())).await;
    assert_eq!(
        error,
        "Tool 'surn': invalid declaration at '': the tool cannot be told from 'sum'."
    );
    let error = refusal(&functions(std::iter::once("a".repeat(129)))).await;
    assert!(error.ends_with("a name must not be longer than 128 characters."), "{error}");
}

/// Returns a component with functions that all take or return a tuple which doubles `levels` times.
fn doubling(levels: usize, signature: &str, functions: usize) -> String {
    let mut types = String::from("(type $t0 (tuple u8 u8))");
    for level in 1..=levels {
        types += &format!("(type $t{level} (tuple $t{0} $t{0}))", level - 1);
    }
    let exports: String =
        (0..functions).map(|n| format!(r#"(export "f{n}x" (func $f))"#)).collect();
    let core_type = if signature.contains("result") { "(result i32)" } else { "(param i32)" };
    format!(
        r#"(component
            (core module $m
                (func (export "f") {core_type} unreachable)
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable))
            (core instance $m (instantiate $m))
            {types}
            (func $f {signature}
                (canon lift
                    (core func $m "f") (memory (core memory $m "memory")) (realloc (core func $m "realloc"))))
            {exports})"#
    )
}

#[tokio::test]
async fn types_that_explode_are_refused_before_they_are_built() {
    assert_eq!(
        refusal(&doubling(15, r#"(param "p" $t15)"#, 1)).await,
        "exports the function `f0x`, which cannot be a tool: its parameter `p` is too large; all types of a function \
         may have 10000 nodes together"
    );
    assert_eq!(
        refusal(&doubling(11, "(result $t11)", 100)).await,
        "exports the function `f6x`, which cannot be a tool: its result is one too many; all types of a plugin may \
         have 50000 nodes together"
    );
}

/// Describing a component runs none of its code, not even the start function of a core module.
#[tokio::test]
async fn a_component_that_traps_when_it_starts_is_described_all_the_same() {
    let wat = r#"(component
        (core module $m (func $s unreachable) (start $s) (func (export "f")))
        (core instance $m (instantiate $m))
        (func $f (canon lift (core func $m "f")))
        (export "f" (func $f)))"#;
    let component = Component::from_bytes(wat::parse_str(wat).unwrap());
    let plugin = Host::new().try_load(&component).await;
    assert!(plugin.is_ok());
}

#[tokio::test]
async fn arguments_that_are_no_values_of_the_types() {
    let host = echo().await;
    let refused = async |tool: &str, arguments: serde_json::Value| match host
        .try_call(tool, &arguments.to_string(), &CallContext::new("test"))
        .await
    {
        Err(RefusedCall::InvalidArguments(invalid)) => invalid.to_string(),
        other => panic!("{tool} {arguments}: {other:?}"),
    };
    assert_eq!(
        refused("signed", json!({"a": 128, "b": 0, "c": 0})).await,
        "Argument 'a' is out of range for an integer. Required argument 'd' was not supplied to \
         'signed'."
    );
    assert_eq!(
        refused("colors", json!({"value": "blue"})).await,
        r#"Argument 'value' must be one of "red", "green", "dark-blue"."#
    );
    assert_eq!(
        refused("people", json!({"value": {"full_name": "A", "favourite": "red", "may": ["fly"]}}))
            .await,
        "Required argument 'value.age' was not supplied to 'people'. \
         Argument 'value.may[0]' must be one of \"read\", \"write\", \"run-as-owner\"."
    );
    assert_eq!(
        refused("floats", json!({"single": 1e39, "double": "NaN"})).await,
        "Argument 'double' is out of range for a number. Argument 'single' is out of range for a \
         number."
    );
    assert_eq!(
        refused("bytes", json!({"value": "?"})).await,
        "Argument 'value' violates 'pattern'."
    );
}
