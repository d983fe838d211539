//! The library `cofferdam` with a configuration, as embedders use it.

use std::path::Path;
use std::sync::{Arc, Mutex};

use cofferdam::engine::Compiler;
use cofferdam::{CallError, Host, HostBuilder, Observer};
use cofferdam_tests::{binary, guest};
use serde_json::json;

/// Records notes.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Observer for Notes {
    fn note(&self, message: &str) {
        self.0.lock().unwrap().push(message.to_owned());
    }
}

/// Returns a builder with a configuration in `folder`.
fn of_config(folder: &Path, config: &str) -> HostBuilder {
    let path = folder.join("cofferdam.toml");
    std::fs::write(&path, config).unwrap();
    let compiler =
        Compiler::Child { program: binary(), arguments: vec!["cofferdam-compile-child".into()] };
    Host::builder().config_file(path).compiler(compiler).cache_directory(folder.join("cache"))
}

fn plugin(name: &str, keys: &str) -> String {
    format!("[plugins.{name}]\ncomponent = \"{}\"\n{keys}\n", guest(name).display())
}

#[tokio::test]
async fn a_transient_failure_is_retried_as_the_configuration_says() {
    let folder = tempfile::tempdir().unwrap();
    for (keys, attempts) in [("", 1), ("transient-retries = 2", 3)] {
        let host = of_config(folder.path(), &plugin("crash", keys)).build().await.unwrap();
        let error = host.call("fail_transiently", json!({})).await.unwrap_err();
        let CallError::Failure { record, .. } = error else { panic!("{error}") };
        assert_eq!(record.attempts, attempts, "{keys}");
    }
    let error = of_config(folder.path(), &plugin("crash", "transient-retries = 101")).build().await;
    let error = error.err().unwrap().to_string();
    assert!(error.contains("`transient-retries` is 101; at most 100"), "{error}");
}

#[tokio::test]
async fn calls_of_a_plugin_are_limited_together() {
    let folder = tempfile::tempdir().unwrap();
    let config = plugin("crash", "usage = { max-invocations = 3, max-invocation-failures = 1 }")
        + &plugin("text", "usage = { max-invocations = 1 }");
    let host = of_config(folder.path(), &config).build().await.unwrap();
    host.call("word_count", json!({"text": "a b"})).await.unwrap();
    let error = host.call("word_count", json!({"text": "a b"})).await.unwrap_err();
    assert!(error.to_string().contains("maximum"), "{error}");
    host.call("ok", json!({})).await.unwrap();
    host.call("fail_transiently", json!({})).await.unwrap_err();
    // A failure of one tool counts for the other tools of its plugin.
    let error = host.call("ok", json!({})).await.unwrap_err();
    assert!(error.to_string().contains("maximum failure limit"), "{error}");
}

#[tokio::test]
async fn a_plugin_that_does_not_load_leaves_the_others_and_a_note() {
    let folder = tempfile::tempdir().unwrap();
    let config = plugin("text", "") + "[plugins.gone]\ncomponent = \"gone.wasm\"\n";
    let notes = Arc::new(Notes::default());
    let host = of_config(folder.path(), &config).observer(Arc::clone(&notes) as Arc<dyn Observer>);
    let host = host.build().await.unwrap();
    assert_eq!(
        host.call("word_count", json!({"text": "a b"})).await.unwrap().value().unwrap()["words"],
        2
    );
    let names: Vec<_> = host.unavailable().iter().map(|plugin| plugin.name.to_string()).collect();
    assert_eq!(names, ["gone"]);
    let notes = notes.0.lock().unwrap().join("\n");
    assert!(notes.contains("the plugin `gone` is left out"), "{notes}");
}
