//! Changes of plugins and configurations while a worker runs, on a real NATS server.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::cluster::{Nats, worker};
use crate::wire::{ANSWER_MAX, Pipe, Signal, call, send_signal};

/// Time after which workers whose tools were replaced take no more calls.
const HANDED_OVER: Duration = Duration::from_secs(14);

/// Folder with a configuration and a plugin, `tool`.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(guest: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.put(&component(guest, 0));
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Replaces a file, as editors do.
    fn replace(&self, name: &str, bytes: &[u8]) {
        let fresh = self.path("fresh");
        std::fs::write(&fresh, bytes).unwrap();
        std::fs::rename(fresh, self.path(name)).unwrap();
    }

    fn put(&self, component: &[u8]) {
        self.replace("tool.wasm", component);
    }

    fn configure(&self, text: &str) {
        self.replace("cofferdam.toml", text.as_bytes());
    }

    fn worker(&self, nats: &Nats, more: &[&str]) -> Pipe {
        let mut command = worker(&nats.url());
        let worker = Pipe::of(command.arg("--config").arg(self.path("cofferdam.toml")).args(more));
        worker.has_said("is ready with");
        worker
    }
}

/// Returns a guest in another version: with a section that changes nothing but the digest.
fn component(name: &str, version: u8) -> Vec<u8> {
    let mut bytes = std::fs::read(guest(name)).unwrap();
    bytes.extend([0, 9, 7]);
    bytes.extend(*b"version");
    bytes.push(version);
    bytes
}

/// Configuration with a plugin whose changes need no consent.
const TOOL: &str = "[plugins.tool]\ncomponent = \"tool.wasm\"\npin = false\n";

fn with_plugin(name: &str) -> String {
    format!("[plugins.{name}]\ncomponent = {:?}\n", guest(name))
}

fn names(gateway: &mut Pipe) -> Vec<String> {
    let listed = gateway.modern("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn wait_for(gateway: &mut Pipe, tool: &str) {
    let started = Instant::now();
    while !names(gateway).contains(&tool.to_owned()) {
        assert!(started.elapsed() < ANSWER_MAX, "`{tool}` is not listed");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Returns the digest of the plugin that a call ran on.
fn digest(gateway: &mut Pipe) -> String {
    let answer = gateway.call("echo", json!({"message": "a"}));
    let receipt = &answer["result"]["_meta"];
    let text = receipt.to_string();
    let at = text.find("sha256:").unwrap_or_else(|| panic!("{answer}"));
    text[at..at + 20].to_owned()
}

/// Calls without a pause, by a gateway of their own.
struct Stream {
    stop: Arc<AtomicBool>,
    calls: JoinHandle<(usize, Vec<Value>)>,
}

impl Stream {
    fn start(mut gateway: Pipe) -> Self {
        wait_for(&mut gateway, "echo");
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let calls = std::thread::spawn(move || {
            let (mut count, mut failed) = (0, Vec::new());
            while !stopped.load(Ordering::Relaxed) {
                let answer = gateway.call("echo", json!({"message": "a"}));
                count += 1;
                if answer["result"]["isError"] != false {
                    failed.push(answer);
                }
            }
            (count, failed)
        });
        Self { stop, calls }
    }

    /// Ends the calls. Returns their number, if none of them failed.
    fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let (count, failed) = self.calls.join().unwrap();
        assert!(failed.is_empty(), "{} of {count} calls failed: {:?}", failed.len(), failed[0]);
        count
    }
}

#[test]
fn changes_reach_gateways_and_no_call_is_lost() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = Folder::with("served");
    folder.configure(TOOL);
    let worker = folder.worker(&nats, &[]);
    let stream = Stream::start(nats.gateway());
    let url = nats.url();
    let mut gateway = Pipe::start(&[], &["--cluster", &url, "--receipts", "full"]);
    wait_for(&mut gateway, "echo");
    let first = digest(&mut gateway);

    folder.put(&component("served", 1));
    worker.has_said("reloaded: tool");
    let started = Instant::now();
    let mut second = digest(&mut gateway);
    while second == first {
        assert!(started.elapsed() < ANSWER_MAX, "the change is not seen");
        second = digest(&mut gateway);
    }

    folder.configure(&(TOOL.to_owned() + &with_plugin("text")));
    worker.has_said("reloaded: the configuration");
    wait_for(&mut gateway, "word_count");

    folder.configure("[plugins.tool]\ncomponent = 7\n");
    let line = worker.has_said("not reloaded; the previous version stays in use");
    assert!(line.contains("cofferdam.toml"), "{line}");
    folder.put(b"no component");
    let line = worker.has_said("not reloaded; the previous version stays in use");
    assert!(line.contains("tool.wasm"), "{line}");
    let counted = gateway.call("word_count", json!({"text": "a b"}));
    assert_eq!(counted["result"]["isError"], false, "{counted}");
    assert_eq!(digest(&mut gateway), second);

    folder.put(&component("served", 2));
    worker.has_said("reloaded: tool");
    folder.configure(&(TOOL.to_owned() + &with_plugin("text") + &with_plugin("csv")));
    worker.has_said("reloaded: the configuration");
    wait_for(&mut gateway, "schema");
    std::thread::sleep(HANDED_OVER);
    let third = digest(&mut gateway);
    assert!(third != second && third != first);
    assert!(stream.end() > 100);
}

/// The first worker ends as soon as the second one is ready: gateways learn of both at once, and
/// the first one still takes their calls until then.
#[test]
fn workers_with_another_version_replace_all_others_and_no_call_is_lost() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folders = [0, 1].map(|version| {
        let folder = Folder::with("served");
        folder.put(&component("served", version));
        folder.configure(TOOL);
        folder
    });
    let mut worker = folders[0].worker(&nats, &[]);
    let stream = Stream::start(nats.gateway());
    let mut gateway = Pipe::start(&[], &["--cluster", &nats.url(), "--receipts", "full"]);
    wait_for(&mut gateway, "echo");
    let mut digests = vec![digest(&mut gateway)];
    for folder in [&folders[1], &folders[0], &folders[1]] {
        let before = std::mem::replace(&mut worker, folder.worker(&nats, &[]));
        send_signal(before.pid(), Signal::TERM);
        assert_eq!(before.end().0, Some(0));
        digests.push(digest(&mut gateway));
    }
    assert!(digests[0] != digests[1] && digests[..2] == digests[2..], "{digests:?}");
    assert!(stream.end() > 100);
}

#[test]
fn a_replaced_plugin_is_called_although_it_was_not_called_before() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = Folder::with("served");
    folder.configure(TOOL);
    // The second start finds the plugin in the index and reads no component.
    let first = folder.worker(&nats, &[]);
    send_signal(first.pid(), Signal::TERM);
    assert_eq!(first.end().0, Some(0));
    let worker = folder.worker(&nats, &[]);
    let mut gateway = nats.gateway();
    wait_for(&mut gateway, "echo");
    folder.put(&component("served", 3));
    worker.has_said("reloaded: tool");
    let echoed = gateway.call("echo", json!({"message": "a"}));
    assert_eq!(echoed["result"]["isError"], false, "{echoed}");
}

#[test]
fn a_changed_plugin_needs_consent_on_a_worker() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = Folder::with("served");
    folder.configure(&TOOL.replace("pin = false", "pin = true"));
    let worker = folder.worker(&nats, &[]);
    let mut gateway = nats.gateway();
    wait_for(&mut gateway, "echo");
    folder.put(&component("text", 0));
    let line = worker.has_said("not reloaded; the previous version stays in use");
    assert!(line.contains("has changed since it was accepted"), "{line}");
    assert!(names(&mut gateway).contains(&"echo".to_owned()));
    let mut approve = Command::new(binary());
    approve.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache());
    approve.args(["approve", "tool", "--yes", "--config"]).arg(folder.path("cofferdam.toml"));
    let approved = approve.output().unwrap();
    assert!(approved.status.success(), "{approved:?}");
    worker.has_said("reloaded: tool");
    wait_for(&mut gateway, "word_count");
    assert!(!names(&mut gateway).contains(&"echo".to_owned()));
}

#[test]
fn calls_of_replaced_plugins_end_before_the_worker_does() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = Folder::with("served");
    folder.configure(TOOL);
    let worker = folder.worker(&nats, &["--calls", "2"]);
    let mut gateway = nats.gateway();
    wait_for(&mut gateway, "count");
    let slow = |id: &str, steps| call(id, "count", &json!({"steps": steps, "pause_ms": 100}));
    gateway.send(slow("first", 100).to_string().as_bytes());
    std::thread::sleep(Duration::from_millis(500));
    folder.put(&component("served", 1));
    worker.has_said("reloaded: tool");
    gateway.send(slow("second", 30).to_string().as_bytes());
    std::thread::sleep(Duration::from_millis(500));
    // Another reload, which is interrupted.
    folder.put(&component("served", 2));
    std::thread::sleep(Duration::from_millis(150));
    send_signal(worker.pid(), Signal::TERM);
    for (id, text) in [("second", "counted to 30"), ("first", "counted to 100")] {
        let (_, ended) = gateway.until(&json!(id));
        assert_eq!(ended["result"]["content"][0]["text"], text, "{ended}");
    }
    worker.has_said("ending; calls that still run: 2");
    assert_eq!(worker.end().0, Some(0));
}
