//! Call logs of workers that `cofferdam log collect` copies to one directory.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use super::Nats;
use crate::wire::{ANSWER_MAX, Pipe, Signal, send_signal};

/// Worker that gives out its log, which is in a state directory of its own.
fn recording_worker(nats: &Nats, state: &Path) -> Pipe {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).env("XDG_STATE_HOME", state);
    command.args(["worker", "--offer-records", "--cluster", &nats.url()]);
    command.arg("--plugin").arg(guest("text"));
    let worker = Pipe::of(&mut piped(command));
    worker.has_said("is ready with");
    worker
}

fn piped(mut command: Command) -> Command {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn log(arguments: &[&str], directory: &Path) -> Output {
    let mut command = Command::new(binary());
    command.env_clear().arg("log").args(arguments).arg("--directory").arg(directory);
    command.output().unwrap()
}

fn objects(output: &Output) -> Vec<Value> {
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// Waits until the collected calls have these numbers of outcomes.
fn has_outcomes(directory: &Path, wanted: &Value) {
    let started = Instant::now();
    loop {
        let mut outcomes = json!({});
        for call in objects(&log(&["--json", "-n", "1000"], directory)) {
            let count = &mut outcomes[call["outcome"].as_str().unwrap()];
            *count = json!(count.as_u64().unwrap_or(0) + 1);
        }
        if outcomes == *wanted {
            return;
        }
        assert!(started.elapsed() < ANSWER_MAX, "expected {wanted}, found {outcomes}");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
}

#[test]
fn the_calls_of_all_workers_are_in_one_place() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let collected = folder.path().join("collected");
    let url = nats.url();
    let once = ["collect", "--once", "--json", "--cluster", &url];

    let silent = nats.worker(&["text"]);
    let none = log(&once, &collected);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(said.contains("start workers with `--offer-records`"), "{said}");
    assert_eq!(none.status.code(), Some(4));
    drop(silent);

    let states = ["a", "b"].map(|name| folder.path().join(name));
    let [stopped, killed] = states.each_ref().map(|state| recording_worker(&nats, state));
    let mut collector = Command::new(binary());
    collector.env_clear().args(["log", "collect", "--cluster", &url, "--directory"]);
    collector.arg(&collected);
    let collector = Pipe::of(&mut piped(collector));
    collector.has_said("copying the call log");
    collector.has_said("copying the call log");
    let mut gateway = nats.gateway();
    for _ in 0..20 {
        gateway.call("word_count", json!({"text": "to be or not to be"}));
    }
    has_outcomes(&collected, &json!({"ok": 20}));

    // A directory has one collector.
    let second = log(&once, &collected);
    assert_eq!(second.status.code(), Some(4), "{second:?}");

    // A worker that ends waits for the collector.
    send_signal(stopped.pid(), Signal::TERM);
    stopped.end();
    // Dropping it kills it.
    drop(killed);
    let mut verified = objects(&log(&["verify", "--json"], &collected));
    verified.sort_by_key(|log| log["segments_unclosed"].as_u64());
    let facts = |log: &Value| json!([log["is_intact"], log["segments_unclosed"]]);
    let found: Vec<_> = verified.iter().map(facts).collect();
    assert_eq!(found, [json!([true, 0]), json!([true, 1])]);
    assert_eq!(verified[0]["lines_unsealed"], 0);

    // The worker that comes back gives out the rest of the log of the killed one.
    send_signal(collector.pid(), Signal::TERM);
    collector.end();
    let again = recording_worker(&nats, &states[1]);
    gateway.call("word_count", json!({"text": "once more"}));
    let report = log(&once, &collected);
    assert_eq!(report.status.code(), Some(0), "{report:?}");
    let report = &objects(&report)[0];
    assert_eq!((&report["logs"], &report["problems"]), (&json!(1), &json!([])));
    assert!(report["bytes"].as_u64().unwrap() > 0);
    has_outcomes(&collected, &json!({"ok": 21}));
    drop(again);

    // Keys and payloads are not copied.
    let mut copies = std::fs::read_dir(collected.join("logs")).unwrap();
    let copy = copies.next().unwrap().unwrap().path();
    for entry in std::fs::read_dir(&copy).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let is_known = ["public-key", "pruned"].contains(&&*name)
            || [".jsonl", ".jsonl.gz", ".index.json", ".checkpoint"]
                .iter()
                .any(|suffix| name.ends_with(suffix));
        assert!(is_known, "{name}");
    }
}
