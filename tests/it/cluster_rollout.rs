//! Versions of plugins that a gateway offers, on a real NATS server: pins, canaries, and the way
//! back.

use std::process::Command;
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest};
use serde_json::{Value, json};

use crate::cluster::{Nats, worker};
use crate::wire::{ANSWER_MAX, Http, Pipe, command, request};

/// Starts workers with a plugin under the name `tool`, and waits until they are ready.
fn workers(nats: &Nats, plugin: &str, count: usize) -> Vec<Pipe> {
    let component = guest(plugin);
    let component = format!("tool={}", component.display());
    let start = |_| Pipe::of(worker(&nats.url()).args(["--plugin", &component]));
    let workers: Vec<_> = (0..count).map(start).collect();
    workers.iter().for_each(|worker| drop(worker.has_said("is ready with")));
    workers
}

fn fleet(nats: &Nats, more: &[&str]) -> String {
    let mut command = Command::new(binary());
    command.env_clear().args(["fleet", "--cluster", &nats.url()]).args(more);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the version that has a tool.
fn version(nats: &Nats, tool: &str) -> String {
    let versions: Value = serde_json::from_str(&fleet(nats, &["--json"])).unwrap();
    let has_tool = |version: &&Value| version["tools"].as_array().unwrap().contains(&json!(tool));
    let found = versions.as_array().unwrap().iter().find(has_tool);
    found.unwrap_or_else(|| panic!("{versions}"))["version"].as_str().unwrap().to_owned()
}

fn names(listed: &Value) -> Vec<String> {
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn wait_for(mut is_true: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_true() {
        assert!(started.elapsed() < ANSWER_MAX, "the change is not seen");
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn the_fleet_is_listed_by_version() {
    let Some(nats) = Nats::start(&[]) else { return };
    let _text = workers(&nats, "text", 1);
    let _served = workers(&nats, "served", 2);
    let versions: Value = serde_json::from_str(&fleet(&nats, &["--json"])).unwrap();
    let versions = versions.as_array().unwrap();
    let counts: Vec<_> = versions.iter().map(|it| (&it["source"], &it["workers"])).collect();
    assert_eq!(counts, [(&json!("tool"), &json!(2)), (&json!("tool"), &json!(1))]);
    for version in versions {
        assert!(version["digest"].as_str().unwrap().starts_with("sha256:"), "{version}");
    }
    let text = fleet(&nats, &[]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (3, "tool"), "{text}");
    let (echo, words) = (version(&nats, "echo"), version(&nats, "word_count"));
    assert!(lines[1].starts_with(&format!("  {echo}  2 workers, ")), "{text}");
    assert!(lines[2].starts_with(&format!("  {words}  1 worker, ")), "{text}");

    let mut absent = Command::new(binary());
    absent.env_clear().args(["fleet", "--cluster", &nats.url(), "--cluster-tenant", "other"]);
    let output = absent.output().unwrap();
    assert_eq!(output.status.code(), Some(4));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.starts_with("error: no worker answered; start one"), "{error}");
}

#[test]
fn a_pin_decides_and_is_changed_while_the_gateway_runs() {
    let Some(nats) = Nats::start(&[]) else { return };
    let text = workers(&nats, "text", 1);
    let _served = workers(&nats, "served", 2);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("gateway.toml");
    let configure = |version: &str| {
        let table = format!("[cluster.versions.tool]\npin = {version:?}\n");
        let fresh = folder.path().join("fresh");
        std::fs::write(&fresh, table).unwrap();
        std::fs::rename(fresh, &path).unwrap();
    };
    let (echo, words) = (version(&nats, "echo"), version(&nats, "word_count"));
    configure(&words);
    let config = path.display().to_string();
    let mut gateway = Pipe::of(&mut command(&[], &["--cluster", &nats.url(), "--config", &config]));
    // The version of fewer workers.
    wait_for(|| names(&gateway.modern("tools/list", json!({}))).contains(&"word_count".to_owned()));
    let counted = gateway.call("word_count", json!({"text": "a b"}));
    assert_eq!(counted["result"]["isError"], false, "{counted}");
    assert!(!names(&gateway.modern("tools/list", json!({}))).contains(&"echo".to_owned()));

    configure(&echo);
    gateway.has_said("reloaded: the configuration");
    // At once: the gateway knows all versions.
    let listed = names(&gateway.modern("tools/list", json!({})));
    assert!(listed.contains(&"echo".to_owned()), "{listed:?}");
    let echoed = gateway.call("echo", json!({"message": "a"}));
    assert_eq!(echoed["result"]["isError"], false, "{echoed}");

    configure("x");
    let line = gateway.has_said("not reloaded; the previous version stays in use");
    assert!(line.contains("expected a version of 32 hexadecimal digits"), "{line}");
    let echoed = gateway.call("echo", json!({"message": "a"}));
    assert_eq!(echoed["result"]["isError"], false, "{echoed}");

    configure(&words);
    gateway.has_said("reloaded: the configuration");
    drop(text);
    let line = gateway.has_said("warning: no worker has version");
    assert!(line.contains(&words) && line.contains(&format!("{echo} (2 workers)")), "{line}");
    // The tools are those of the version that there is.
    let refused = gateway.call("echo", json!({"message": "a"}))["result"].to_string();
    assert!(refused.contains("the operator has pinned is not available"), "{refused}");
    assert!(refused.contains("Nothing was called"), "{refused}");

    configure(&echo);
    gateway.has_said("reloaded: the configuration");
    let echoed = gateway.call("echo", json!({"message": "a"}));
    assert_eq!(echoed["result"]["isError"], false, "{echoed}");
}

#[test]
fn a_share_of_the_callers_gets_the_canary() {
    let Some(nats) = Nats::start(&[]) else { return };
    let _text = workers(&nats, "text", 1);
    let _served = workers(&nats, "served", 2);
    let (echo, words) = (version(&nats, "echo"), version(&nats, "word_count"));
    let callers: Vec<_> = (0..20)
        .map(|number| (format!("caller-{number}"), cofferdam_mcp::new_token().unwrap()))
        .collect();
    let tokens: String = callers
        .iter()
        .map(|(name, token)| {
            format!("[serve.tokens.{name}]\ndigest = \"{}\"\n", cofferdam_mcp::digest(token))
        })
        .collect();
    let config = |percent: u8| {
        format!(
            "{tokens}[cluster.versions.tool]\npin = \"{echo}\"\ncanary = \"{words}\"\n\
             canary-percent = {percent}\n"
        )
    };
    let url = nats.url();
    let gateway = |percent| Http::of_config(&[], &config(percent), &["--cluster", &url]);
    let is_canary = |gateway: &mut Http, token: &str| {
        gateway.token = token.to_owned();
        let ask = |method: &str, params: Value| {
            let answer = gateway.ask(&request("1", method, params));
            assert_eq!(answer.status, 200, "{answer:?}");
            answer.json()
        };
        let listed = names(&ask("tools/list", json!({})));
        let is_canary = listed.contains(&"word_count".to_owned());
        assert_ne!(is_canary, listed.contains(&"echo".to_owned()), "{listed:?}");
        let call = |tool: &str, arguments: Value| {
            ask("tools/call", json!({"name": tool, "arguments": arguments}))["result"]["isError"]
                .clone()
        };
        // Only the version that the caller was shown can be called.
        assert_eq!(call("word_count", json!({"text": "a b"})), !is_canary);
        assert_eq!(call("echo", json!({"message": "a"})), is_canary);
        is_canary
    };
    let canaries = |gateway: &mut Http| -> Vec<bool> {
        callers.iter().map(|(_, token)| is_canary(gateway, token)).collect()
    };
    let (mut one, mut other) = (gateway(30), gateway(30));
    let of_one = canaries(&mut one);
    let count = of_one.iter().filter(|is_canary| **is_canary).count();
    assert!((1..=12).contains(&count), "{of_one:?}");
    // All gateways agree, and a caller that has the canary keeps it when the share grows.
    assert_eq!(canaries(&mut other), of_one);
    let more = canaries(&mut gateway(60));
    assert!(more.iter().zip(&of_one).all(|(more, one)| *more || !*one), "{more:?}");
    assert!(more.iter().filter(|is_canary| **is_canary).count() > count, "{more:?}");
    assert!(canaries(&mut gateway(100)).iter().all(|is_canary| *is_canary));
    assert!(canaries(&mut gateway(0)).iter().all(|is_canary| !is_canary));
}
