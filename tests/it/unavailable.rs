//! A plugin that cannot be used, beside plugins that can: commands and servers go on without it.

use std::path::PathBuf;
use std::process::Command;

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::json;

use crate::wire::Pipe;

/// Folder with the plugin `text`, a plugin `broken`, and a configuration that names both.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.put("text", &std::fs::read(guest("text")).unwrap());
        folder.put("broken", b"no component");
        let config = "[plugins.text]\ncomponent = \"text.wasm\"\n[plugins.broken]\ncomponent \
            = \"broken.wasm\"\n";
        std::fs::write(folder.config(), config).unwrap();
        folder
    }

    fn config(&self) -> PathBuf {
        self.0.path().join("cofferdam.toml")
    }

    fn put(&self, name: &str, bytes: &[u8]) {
        let fresh = self.0.path().join("fresh");
        std::fs::write(&fresh, bytes).unwrap();
        std::fs::rename(fresh, self.0.path().join(format!("{name}.wasm"))).unwrap();
    }

    /// Runs a command with the configuration. Returns exit code, standard output and standard
    /// error.
    fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("COFFERDAM_CACHE_DIR", shared_cache())
            .stdin(std::process::Stdio::null());
        let output = command.args(arguments).arg("--config").arg(self.config()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn one_broken_plugin_leaves_the_others_usable() {
    let folder = Folder::new();
    let (code, stdout, stderr) = folder.run(&["call", "word_count", r#"{"text":"a b"}"#]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert_eq!(stderr.matches("the plugin `broken` is left out").count(), 1, "{stderr}");
    let (code, stdout, stderr) = folder.run(&["list"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("word_count") && stdout.contains("broken  (unavailable: "), "{stdout}");
    let (code, _, stderr) = folder.run(&["call", "no_such_tool", "{}"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("it may be a tool of `broken`"), "{stderr}");
    std::fs::remove_file(folder.0.path().join("text.wasm")).unwrap();
    assert_eq!(folder.run(&["list"]).0, 4, "nothing loads");
}

#[test]
fn a_changed_plugin_is_unavailable_until_it_is_approved_and_comes_back_without_a_restart() {
    let folder = Folder::new();
    folder.put("broken", &std::fs::read(guest("csv")).unwrap());
    let (code, _, stderr) = folder.run(&["list"]);
    assert_eq!(code, 0, "{stderr}");
    folder.put("broken", &std::fs::read(guest("echo")).unwrap());

    let (code, _, stderr) = folder.run(&["call", "schema", "{}"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("`schema` is a tool of the plugin `broken`"), "{stderr}");
    let mut pipe = Pipe::of_config(&folder.config(), &[]);
    let answer = pipe.call("word_count", json!({ "text": "a b" }));
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let answer = pipe.call("schema", json!({ "file": "/data/a.csv" })).to_string();
    assert!(answer.contains("PluginUnavailable"), "{answer}");
    assert!(!answer.contains(folder.0.path().to_str().unwrap()), "no host path: {answer}");

    assert_eq!(folder.run(&["approve", "broken", "--yes"]).0, 0);
    pipe.has_said("reloaded: broken");
}

#[test]
fn a_plugin_that_never_loaded_is_named_where_its_tool_is_called() {
    let folder = Folder::new();
    let script = folder.0.path().join("script.jsonl");
    std::fs::write(
        &script,
        "{\"calls\":[{\"tool\":\"schema\",\"arguments\":{}}]}\n{\"text\":\"done\"}\n",
    )
    .unwrap();
    let script = script.display().to_string();
    let model = format!("script:{script}");
    for arguments in
        [&["call", "schema", "{}"][..], &["play", &script], &["chat", "hi", "--model", &model]]
    {
        let (_, _, stderr) = folder.run(arguments);
        assert!(
            stderr.contains("it may be a tool of `broken`, left out"),
            "{arguments:?}: {stderr}"
        );
    }
}

#[test]
fn a_broken_plugin_comes_back_when_its_file_is_mended() {
    let folder = Folder::new();
    let mut pipe = Pipe::of_config(&folder.config(), &[]);
    pipe.modern("server/discover", json!({}));
    pipe.has_said("the plugin `broken` is left out");
    let unknown = pipe.call("schema", json!({})).to_string();
    assert!(unknown.contains("broken"), "the plugin is named: {unknown}");
    // The server begins to watch the directory a moment after its start.
    std::thread::sleep(std::time::Duration::from_millis(400));
    folder.put("broken", &std::fs::read(guest("csv")).unwrap());
    pipe.has_said("reloaded: broken");
    let listed = pipe.modern("tools/list", json!({})).to_string();
    assert!(listed.contains("\"schema\""), "{listed}");
}

#[test]
fn inspect_shows_a_component_that_traps_while_it_lists_its_tools() {
    let component = guest("list_traps");
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("COFFERDAM_CACHE_DIR", shared_cache())
        .stdin(std::process::Stdio::null());
    let output = command.arg("inspect").arg(component).output().unwrap();
    let (stdout, stderr) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(4), "{stderr}");
    for part in ["size    ", "digest  sha256:", "Imports:\n  "] {
        assert!(stdout.contains(part), "{stdout}");
    }
    let (_, printed) = stderr.split_once("did not list its tools: Trap.Unreachable").unwrap();
    assert!(printed.contains("; it printed: ") && printed.contains("no tools today"), "{stderr}");
}
