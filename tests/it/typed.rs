//! Components whose functions are tools, from their bytes to what a model sees.

mod described;
mod refused;
mod values;

use std::path::Path;
use std::sync::Mutex;

use cofferdam_engine::{Component, LoadEvent, LoadObserver, Plugin, PluginOptions};
use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_tests::{Host, guest};
use cofferdam_tool::{Outcome, Output, PluginName, ToolDefinition, ToolSource};
use serde_json::{Value, json};

async fn echo() -> Host {
    let mut host = Host::new();
    host.load("echo").await;
    host
}

/// Returns the value of a call that succeeds.
async fn value(host: &Host, tool: &str, arguments: &Value) -> Value {
    let completion = host.call(tool, &arguments.to_string()).await;
    match completion.outcome {
        Outcome::Ok(Output::Value(value)) => value,
        other => panic!("{tool}: {other:?} {:?}", completion.record),
    }
}

async fn shown(tool: &str, arguments: Value) -> (String, String) {
    let completion = echo().await.call(tool, &arguments.to_string()).await;
    (completion.outcome.shown().unwrap().text(), completion.record.outcome.to_owned())
}

/// Loads a component as a new process with a cache would.
async fn load(component: &Component, cache: &Path) -> (Plugin, Vec<LoadEvent>) {
    #[derive(Default)]
    struct Events(Mutex<Vec<LoadEvent>>);
    impl LoadObserver for Events {
        fn on_event(&self, event: LoadEvent) {
            self.0.lock().unwrap().push(event);
        }
    }
    let mut config = cofferdam_tests::config();
    config.cache_directory = Some(cache.to_owned());
    let host = Host::with(config);
    let name = PluginName::new("guest").unwrap();
    let options = PluginOptions::new(name, host.grants.clone(), host.limits.clone());
    let events = Events::default();
    let plugin = host.engine.load(component, options, &events).await.expect("the component loads");
    (plugin, events.0.into_inner().unwrap())
}

fn tool(plugin: &Plugin, name: &str) -> ToolDefinition {
    let definitions = plugin.definitions();
    let found = definitions.iter().find(|definition| definition.name.as_str() == name);
    ToolDefinition::clone(found.expect("the tool is there"))
}

#[tokio::test]
async fn functions_are_named_and_the_interface_only_where_it_is_needed() {
    let host = echo().await;
    let names: Vec<_> =
        host.toolset().definitions().map(|definition| definition.name.to_string()).collect();
    for name in ["greet_all", "nested_options", "permission_sets", "ends_count", "clock_count"] {
        assert!(names.iter().any(|found| found == name), "{name} is not in {names:?}");
    }
    assert!(!names.iter().any(|name| name == "count"));
    assert_eq!(
        value(&host, "greet_all", &json!({"names": ["Ann", "Bo"]})).await,
        "Hello, Ann, Bo!"
    );
}

#[tokio::test]
async fn a_result_at_the_top_is_the_outcome() {
    let ok = |text: &str| (text.to_owned(), "ok".to_owned());
    let failure = |error: Value| (json!({ "error": error }).to_string(), "failure".to_owned());
    assert_eq!(shown("text", json!({"text": "hi", "fail": false})).await, ok("hi"));
    assert_eq!(
        shown("text", json!({"text": "no", "fail": true})).await,
        failure(json!({"message": "no"}))
    );
    assert_eq!(shown("nothing", json!({})).await, ok(""));
    assert_eq!(shown("bare_error", json!({"fail": false})).await, ok(""));
    let no_message = json!({"message": "The tool reported a failure without a message."});
    assert_eq!(shown("bare_error", json!({"fail": true})).await, failure(no_message));
    let suggested = json!({"message": "no such order", "suggestion": "list orders"});
    assert_eq!(
        shown("record_error", json!({"suggestion": "list orders"})).await,
        failure(suggested)
    );
    assert_eq!(
        shown("record_error", json!({})).await,
        failure(json!({"message": "no such order"}))
    );
    assert_eq!(
        shown("detailed_error", json!({})).await,
        failure(json!({"message": "refused", "code": 7}))
    );
    let reason = json!({"kind": "not-found", "value": "x"});
    assert_eq!(shown("variant_error", json!({})).await, failure(reason));
}

#[tokio::test]
async fn a_failure_may_say_that_it_is_transient() {
    let completion = echo().await.call("record_error", "{}").await;
    assert_eq!(completion.outcome.transient(), Some(true));
}

#[tokio::test]
async fn errors_are_typed_as_for_any_plugin() {
    let ends_as = async |tool: &str, arguments: Value, error_type: &str| {
        let (text, outcome) = shown(tool, arguments).await;
        let message = format!("An unexpected error occurred ({error_type}). Please try again.");
        assert_eq!(text, json!({"error": {"message": message}}).to_string(), "{tool}");
        assert_eq!(outcome, "error");
    };
    ends_as("panics", json!({}), "Trap.Unreachable").await;
    ends_as("not_finite", json!({"divisor": 0}), "InvalidResult").await;
    ends_as("long_text", json!({"length": 1_048_577}), "OutputLimit").await;
    ends_as("blob", json!({"length": 1_000_000}), "OutputLimit").await;
    let (text, _) = shown("long_text", json!({"length": 1_048_576})).await;
    assert_eq!(text.len(), 1_048_576, "exactly the limit passes (RES-18)");
    let (text, _) = shown("blob", json!({"length": 786_432})).await;
    assert_eq!(
        text.len(),
        1_048_576,
        "what host calls may take over is enough for the largest result"
    );
    // Larger than the host copies for a result of the allowed length: refused before copying.
    ends_as("blob", json!({"length": 20_000_000}), "OutputLimit").await;
}

#[tokio::test]
async fn a_busy_loop_times_out() {
    let mut host = Host::new();
    host.limits.wall_ms_max = 100;
    host.load("echo").await;
    assert_eq!(host.call("spins", "{}").await.record.error_type.as_deref(), Some("Timeout"));
}

#[tokio::test]
async fn no_state_survives_a_call() {
    let host = echo().await;
    for _ in 0..2 {
        assert_eq!(value(&host, "ends_count", &json!({})).await, 1);
        assert_eq!(value(&host, "clock_count", &json!({})).await, 1001);
        host.call("panics", "{}").await;
    }
}

#[tokio::test]
async fn a_component_of_another_host_uses_what_it_is_granted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "x").unwrap();
    let store = DirectoryStore::open_ambient(folder.path(), DirectoryOptions::default()).unwrap();
    let mut host = Host::new();
    host.grants.mounts = vec![cofferdam_engine::Mount::new(
        cofferdam_tool::MountName::new("data").unwrap(),
        std::sync::Arc::new(store),
        cofferdam_tool::FileAccess::ReadOnly,
    )];
    host.load("time_server").await;
    let now = value(&host, "get_current_time", &json!({})).await;
    assert!(now.as_str().unwrap().ends_with(" s"), "{now}");
    assert_eq!(value(&host, "list_directory", &json!({"path": "/data"})).await, json!(["a.txt"]));
    let outside = host.call("list_directory", r#"{"path": "/etc"}"#).await;
    assert_eq!(outside.record.outcome, "failure");
}

#[tokio::test]
async fn a_component_that_imports_http_runs_and_what_it_sends_is_judged() {
    let mut host = Host::new();
    host.load("fetch").await;
    assert_eq!(value(&host, "describe", &json!({})).await, "fetches");
    let fetched = host.call("fetch", r#"{"url": "example.com"}"#).await;
    // The guest ignores the answer; the record shows that the request was denied.
    assert_eq!(fetched.record.outcome, "ok", "{:?}", fetched.record);
    assert_eq!(fetched.record.refused[0].capability, "http:GET https://example.com/");
}

#[tokio::test]
async fn a_second_start_compiles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path().join("cache");
    let component = Component::from_file_ambient(guest("time_server"));
    let (_, first) = load(&component, &cache).await;
    assert!(first.iter().any(|event| matches!(event, LoadEvent::Compiling { .. })), "{first:?}");
    let (plugin, second) = load(&component, &cache).await;
    assert_eq!(second, []);
    assert_eq!(plugin.definitions().len(), 2);
}

/// Runs the binary and returns its exit code and standard output.
fn cofferdam(arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = std::process::Command::new(cofferdam_tests::binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", cofferdam_tests::shared_cache());
    let output = command.args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn the_commands_work_as_for_any_plugin() {
    let echo = guest("echo").display().to_string();
    let (code, listed) = cofferdam(&["list", "--plugin", &echo]);
    assert_eq!(code, Some(0));
    assert!(listed.contains("\n  nested_options("), "{listed}");
    let (code, inspected) = cofferdam(&["inspect", "--json", &echo]);
    assert_eq!(code, Some(0));
    let inspected: Value = serde_json::from_str(&inspected).unwrap();
    assert_eq!(inspected["tools"][0]["name"], "greet_all");
    let called = cofferdam(&["call", "figures", r#"{"value":{"kind":"dot"}}"#, "--plugin", &echo]);
    assert_eq!(called, (Some(0), "{\"kind\":\"dot\"}\n".to_owned()));
    assert_eq!(cofferdam(&["call", "variant_error", "--plugin", &echo]).0, Some(1));
    assert_eq!(cofferdam(&["call", "chars", r#"{"value":"ab"}"#, "--plugin", &echo]).0, Some(2));
    assert_eq!(cofferdam(&["call", "panics", "--plugin", &echo]).0, Some(3));
}
