//! The label policy of an agent at a gateway, and what the tools of workers may do under it.

use std::path::Path;
use std::process::Command;

use cofferdam_tests::guest;
use serde_json::json;

use super::{Nats, worker};
use crate::script;
use crate::wire::{Pipe, command};

const LABELS: &str = "[labels]\npolicy = true\nauto-hide-untrusted = false\n";

/// Writes an agent that calls `stores`, which lets `files` write the file `out/a`. Returns the
/// configuration of the plugins.
fn scene(folder: &Path) -> String {
    let writes = json!({"script": "write /out/a one"}).to_string();
    let steps = script::arguments(&[&["call", "files", &writes]]);
    let arguments: serde_json::Value = serde_json::from_str(&steps).unwrap();
    let calls = json!({"calls": [{"tool": "stores", "arguments": arguments}]});
    let model = format!("{calls}\n{}\n", json!({"text": "Done."}));
    std::fs::write(folder.join("model.jsonl"), model).unwrap();
    let agent = "name: writer\nmodel: script:model.jsonl\ntools: all\n";
    std::fs::write(folder.join("agent.yaml"), agent).unwrap();
    std::fs::create_dir(folder.join("out")).unwrap();
    let (stores, files) = (guest("stores"), guest("files"));
    format!(
        "[stores.out]\ndirectory = \"out\"\n\
         [plugins.stores]\ncomponent = {stores:?}\ngrants.tools = [\"files\"]\n\
         [plugins.files]\ncomponent = {files:?}\ngrants.files.out = \"read-write\"\n"
    )
}

/// Serves the agent and calls it. Returns whether the file was written.
fn is_written(folder: &Path, mut serve: Command) -> bool {
    let agent = ["--agent", "agent.yaml", "--config", "serve.toml"];
    let mut pipe = Pipe::of(serve.args(agent).current_dir(folder).env("HOME", folder));
    let ended = pipe.call("writer", json!({"task": "Write."}));
    assert_eq!(ended["result"]["content"][0]["text"], "Done.", "{ended}");
    std::fs::remove_file(folder.join("out/a")).is_ok()
}

#[test]
fn calls_between_tools_of_a_worker_are_checked_as_local_ones() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let plugins = scene(folder);
    std::fs::write(folder.join("worker.toml"), &plugins).unwrap();
    let worker =
        Pipe::of(worker(&nats.url()).args(["--config", "worker.toml"]).current_dir(folder));
    worker.has_said("is ready with");
    let allowed = format!("{LABELS}allow-untrusted-tools = [\"files\"]\n");
    let trusted = format!("{LABELS}[labels.sources.stores]\nsource-integrity = \"trusted\"\n");
    for (labels, expected) in [("", true), (LABELS, false), (&allowed, true), (&trusted, true)] {
        std::fs::write(folder.join("serve.toml"), format!("{labels}{plugins}")).unwrap();
        assert_eq!(is_written(folder, command(&[], &[])), expected, "here: {labels}");
        std::fs::write(folder.join("serve.toml"), labels).unwrap();
        let gateway = command(&[], &["--cluster", &nats.url()]);
        assert_eq!(is_written(folder, gateway), expected, "through a gateway: {labels}");
    }
}
