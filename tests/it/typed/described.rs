//! Descriptions of typed tools for a model: schemas, docs and the manifest beside the component.

use std::path::PathBuf;

use cofferdam_engine::{Component, LoadError, LoadEvent};
use cofferdam_tests::{Host, guest, root, shared_cache};
use cofferdam_tool::ToolDefinition;
use serde_json::{Value, json};

use super::{load, tool};

async fn echo_tool(name: &str) -> ToolDefinition {
    let (plugin, _) = load(&Component::from_file_ambient(guest("echo")), &shared_cache()).await;
    tool(&plugin, name)
}

/// Compares the published schema of the parameter `value` of a tool of the echo component.
async fn check(name: &str, schema: Value) {
    let definition = echo_tool(name).await;
    assert_eq!(definition.input.published().pointer("/properties/value"), Some(&schema), "{name}");
}

#[tokio::test]
async fn published_schemas() {
    check("bools", json!({"type": "boolean"})).await;
    check("chars", json!({"type": "string", "minLength": 1, "maxLength": 1})).await;
    check("colors", json!({"type": "string", "enum": ["red", "green", "dark-blue"]})).await;
    check("weekdays", json!({"type": "string", "enum": ["monday", "tuesday"]})).await;
    check("options", json!({"type": ["integer", "null"], "format": "uint32"})).await;
    let inner = json!({"type": ["integer", "null"], "format": "uint32"});
    check("nested_options", json!({"type": ["object", "null"], "properties": {"some": inner}}))
        .await;
    let ok = json!({"type": "object", "properties": {"ok": {"type": "integer", "format": "uint32"}},
        "required": ["ok"], "additionalProperties": false});
    let error = json!({"type": "object", "properties": {"error": {"type": "string"}},
        "required": ["error"], "additionalProperties": false});
    let result = json!({"anyOf": [ok, error]});
    check(
        "results",
        json!({"type": "array", "minItems": 1, "maxItems": 1, "prefixItems": [result]}),
    )
    .await;
}

fn person(required: Value) -> Value {
    json!({
        "type": "object",
        "properties": {
            "full_name": {"type": "string"},
            "age": {"type": "integer", "format": "uint8"},
            "nick_name": {"type": ["string", "null"]},
            "favourite": {"type": "string", "enum": ["red", "green", "dark-blue"]},
            "may": {
                "type": "array",
                "items": {"type": "string", "enum": ["read", "write", "run-as-owner"]},
                "uniqueItems": true
            }
        },
        "required": required
    })
}

#[tokio::test]
async fn a_record_is_described_both_ways() {
    let definition = echo_tool("people").await;
    let expected = json!({
        "type": "object",
        "properties": {"value": person(json!(["full_name", "age", "favourite", "may"]))},
        "required": ["value"]
    });
    assert_eq!(definition.input.published(), &expected);
    let promised = person(json!(["full_name", "age", "nick_name", "favourite", "may"]));
    assert_eq!(definition.output.unwrap().published(), &promised);
}

#[tokio::test]
async fn only_a_record_has_an_output_schema() {
    for name in ["texts", "figures", "options", "nothing", "text", "record_error"] {
        assert!(echo_tool(name).await.output.is_none(), "{name}");
    }
}

/// Returns the echo component with its docs, in the section that other toolchains write. The Rust
/// toolchain drops them.
fn documented() -> Vec<u8> {
    let wit = std::fs::read_to_string(root().join("tests/typed/wit/echo.wit")).unwrap();
    let mut resolve = wit_parser::Resolve::default();
    let package = resolve.push_str("echo.wit", &wit).unwrap();
    let docs = wit_parser::PackageMetadata::extract(&resolve, package).encode().unwrap();
    with_custom_section(std::fs::read(guest("echo")).unwrap(), "package-docs", &docs)
}

fn with_custom_section(mut component: Vec<u8>, name: &str, contents: &[u8]) -> Vec<u8> {
    let body = [&[u8::try_from(name.len()).unwrap()], name.as_bytes(), contents].concat();
    component.push(0);
    let mut left = body.len();
    while left > 127 {
        component.push(u8::try_from(left & 127).unwrap() | 128);
        left >>= 7;
    }
    component.push(u8::try_from(left).unwrap());
    component.extend(body);
    component
}

#[tokio::test]
async fn docs_become_descriptions_defaults_and_examples() {
    let component = Component::from_bytes(documented());
    let (plugin, _) = load(&component, &shared_cache()).await;
    assert_eq!(tool(&plugin, "greet_all").description, "At the root.");
    assert_eq!(tool(&plugin, "clock_count").description, "Of `clock`.");
    assert_eq!(tool(&plugin, "ends_count").description, "Counts its calls.");
    assert_eq!(
        tool(&plugin, "spins").description,
        "The function `spins` of `tests:echo/ends@1.0.0`; it has no description."
    );
    let text = tool(&plugin, "text");
    assert_eq!(text.description, "Fails with the text, or returns it.");
    assert_eq!(
        text.input.published(),
        &json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to say.", "examples": ["hello"]},
                "fail": {"type": "boolean", "description": "Whether to fail.", "default": false}
            },
            "required": ["text"]
        })
    );
    let decoded = text.input.decode("text", Some(br#"{"text":"x"}"#), &Default::default()).unwrap();
    assert_eq!(decoded.to_json(), r#"{"text":"x","fail":false}"#);
}

async fn refusal(component: Component) -> String {
    Host::new().try_load(&component).await.expect_err("the component is refused").to_string()
}

#[tokio::test]
async fn docs_that_cannot_be_meant_refuse_the_plugin() {
    let bytes = std::fs::read(guest("time_server")).unwrap();
    let with = |docs: &str| {
        let docs = json!({"worlds": {"w": {"func_exports": {"list-directory": docs}}}});
        Component::from_bytes(with_custom_section(
            bytes.clone(),
            "package-docs",
            format!("\u{1}{docs}").as_bytes(),
        ))
    };
    assert_eq!(
        refusal(with("@default folder = 3")).await,
        "Tool 'list_directory': invalid declaration at '': its docs are about `folder`, which is \
         not a parameter."
    );
    assert_eq!(
        refusal(with("@default path = 3")).await,
        "Tool 'list_directory': invalid declaration at '/properties/path/default': the default does not decode by \
         its own schema: Argument '' must be a string, got a number."
    );
    assert_eq!(
        refusal(with("@default path is 3")).await,
        "Tool 'list_directory': invalid declaration at '': its docs say `@default path is 3`; write \
         `@default name = JSON`."
    );
}

const SIDECAR: &str = r#"
[tools.text]
title = "Say it"
description = "Says something."
annotations = { read-only = true }

[tools.text.parameters.text]
default = "hello"
examples = ["a", "b"]

[tools.people.parameters.value]
description = "Who."
default = { full_name = "A", age = 3, favourite = "red", may = [] }
"#;

#[tokio::test]
async fn a_manifest_overrides_the_docs_field_by_field() {
    let component = Component::from_bytes(documented()).with_manifest(SIDECAR);
    let (plugin, _) = load(&component, &shared_cache()).await;
    let text = tool(&plugin, "text");
    assert_eq!(text.title.as_deref(), Some("Say it"));
    assert_eq!(text.description, "Says something.");
    assert_eq!((text.annotations.read_only, text.annotations.destructive), (Some(true), None));
    let schema = text.input.published();
    let expected = json!({"type": "string", "description": "What to say.", "default": "hello", "examples": ["a", "b"]});
    assert_eq!(schema["properties"]["text"], expected);
    assert_eq!(schema["properties"]["fail"]["default"], false);
    assert_eq!(schema.get("required"), None);
    assert_eq!(
        tool(&plugin, "people").input.published()["properties"]["value"]["description"],
        "Who."
    );
}

/// Returns a folder of the component and a manifest beside it.
fn beside(sidecar: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clock.wasm");
    std::fs::copy(guest("time_server"), &path).unwrap();
    std::fs::write(folder.path().join("clock.toml"), sidecar).unwrap();
    (folder, path)
}

#[tokio::test]
async fn a_manifest_beside_a_component_is_found_and_a_change_compiles_nothing() {
    let text = |words: &str| format!("[tools.get_current_time]\ndescription = \"{words}\"\n");
    let (folder, path) = beside(text("The time.").as_bytes());
    let cache = folder.path().join("cache");
    let component = Component::from_file_ambient(&path);
    let description = async || {
        let (plugin, events) = load(&component, &cache).await;
        let compiled = events.iter().any(|event| matches!(event, LoadEvent::Compiling { .. }));
        (tool(&plugin, "get_current_time").description, compiled)
    };
    assert_eq!(description().await, ("The time.".to_owned(), true));
    assert_eq!(description().await, ("The time.".to_owned(), false));
    std::fs::write(path.with_extension("toml"), text("Now.")).unwrap();
    assert_eq!(description().await, ("Now.".to_owned(), false));
    std::fs::remove_file(path.with_extension("toml")).unwrap();
    let plain = "The function `get-current-time` of `time`; it has no description.";
    assert_eq!(description().await, (plain.to_owned(), false));
}

#[tokio::test]
async fn a_manifest_beside_a_component_that_breaks_a_rule_refuses_the_plugin() {
    let refused = async |sidecar: &[u8]| {
        let (_folder, path) = beside(sidecar);
        refusal(Component::from_file_ambient(path)).await
    };
    assert_eq!(
        refused(b"[tools.get_time]\n").await,
        "has a manifest that is not accepted: line 1:8: the plugin has no tool `get_time`"
    );
    assert_eq!(
        refused(b"[tools.list_directory.parameters.path]\nrequired = true\n").await,
        "has a manifest that is not accepted: line 2:1: unknown field `required`, expected one of `description`, \
         `default`, `examples`"
    );
    assert_eq!(
        refused(b"[tools.list_directory.parameters.path]\ndefault = 5\n").await,
        "Tool 'list_directory': invalid declaration at '/properties/path/default': the default does not decode by \
         its own schema: Argument '' must be a string, got a number."
    );
    assert_eq!(refused(b"\xff").await, "has a manifest beside it that is not UTF-8 text");
    let long = vec![b'#'; 262_145];
    assert!(refused(&long).await.starts_with("has a manifest beside it that is 262145 bytes long"));
}

#[tokio::test]
async fn words_beside_a_plugin_that_declares_its_tools_have_no_effect() {
    let (_folder, path) = beside(b"[tools.nothing]\n");
    std::fs::copy(guest("remember"), &path).unwrap();
    assert!(Host::new().try_load(&Component::from_file_ambient(&path)).await.is_ok());
    // Its permissions apply to every plugin, so an unreadable manifest refuses the component.
    std::fs::write(path.with_extension("toml"), b"\xff").unwrap();
    let error = Host::new().try_load(&Component::from_file_ambient(&path)).await.err().unwrap();
    assert!(matches!(error, LoadError::ManifestUnreadable(_)), "{error}");
}
