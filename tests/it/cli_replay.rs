//! The binary and recorded calls: replays, other versions, test cases, levels, secrets.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::cli::{Ran, ran};

/// Token that must be in no file of the log.
const CANARY: &str = "sk-canary0123456789abcdefghij";

fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).current_dir(folder).args(arguments);
    ran(command.output().unwrap())
}

/// Runs a command that must succeed, and returns its output.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let ended = run(folder, arguments);
    assert_eq!(ended.code, 0, "{arguments:?}: {}{}", ended.stdout, ended.stderr);
    ended.stdout
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["text", "csv", "crash"] {
        std::fs::copy(guest(name), folder.path().join(format!("{name}.wasm"))).unwrap();
    }
    std::fs::create_dir(folder.path().join("data")).unwrap();
    std::fs::write(folder.path().join("data/x.csv"), "a,b\n1,2\n3,4\n").unwrap();
    folder
}

/// Returns the id of the newest call.
fn newest(folder: &Path) -> String {
    let listed = done(folder, &["log", "--json", "-n", "1"]);
    let call: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    call["id"].as_str().unwrap().to_owned()
}

const COUNT: [&str; 6] = ["call", "word_count", "text=a b", "-p", "text.wasm", "--replayable"];
const SCHEMA: [&str; 8] = [
    "call",
    "schema",
    "file=/data/x.csv",
    "-p",
    "csv.wasm",
    "--mount",
    "data=data:ro",
    "--replayable",
];

#[test]
fn a_call_runs_again_without_the_files_that_it_read() {
    let folder = folder();
    let folder = folder.path();
    let called = run(folder, &SCHEMA);
    std::fs::remove_dir_all(folder.join("data")).unwrap();
    let id = newest(folder);
    assert!(called.stderr.contains(&format!("recorded as {id}; ")), "{}", called.stderr);
    let replayed = done(folder, &["replay", &id, "--with", "csv.wasm"]);
    assert!(replayed.starts_with(&format!("{id}  schema  identical (")), "{replayed}");

    // The recording as a file, on a machine without the log.
    let recording = done(folder, &["log", "show", &id, "--recording"]);
    std::fs::remove_dir_all(folder.join("home")).unwrap();
    std::fs::write(folder.join("call.json"), &recording).unwrap();
    done(folder, &["replay", "--recording", "call.json", "--with", "csv.wasm"]);

    for (name, content, message) in [
        ("missing.json", None, "cannot be read"),
        ("text.json", Some("no JSON"), "is not a recording"),
        ("new.json", Some(r#"{"version":2}"#), "has version 2 of the format"),
    ] {
        if let Some(content) = content {
            std::fs::write(folder.join(name), content).unwrap();
        }
        let wrong = run(folder, &["replay", "--recording", name, "--with", "csv.wasm"]);
        assert_eq!(wrong.code, 2, "{}", wrong.stderr);
        assert!(wrong.stderr.contains(message), "{}", wrong.stderr);
    }

    // The file had other content, and another file was read.
    let changed =
        recording.replace(r#"{"text":"a,b\n1,2\n3,4\n"}"#, r#"{"text":"a,c\n1,2\n3,4\n"}"#);
    assert_ne!(changed, recording);
    std::fs::write(folder.join("call.json"), changed).unwrap();
    let differs = run(folder, &["replay", "--recording", "call.json", "--with", "csv.wasm"]);
    assert_eq!(differs.code, 1, "{}", differs.stderr);
    assert!(differs.stdout.contains(r#"result /columns/1/name: "b" → "c""#), "{}", differs.stdout);
    let changed = recording.replace("x.csv", "z.csv").replace("/data/z.csv", "/data/x.csv");
    std::fs::write(folder.join("call.json"), changed).unwrap();
    let differs = run(folder, &["replay", "--recording", "call.json", "--with", "csv.wasm"]);
    assert_eq!(differs.code, 1, "{}", differs.stderr);
    for line in ["outcome: ok → failure", "new input: look up `/data/x.csv`"] {
        assert!(differs.stdout.contains(line), "{}", differs.stdout);
    }
}

#[test]
fn a_clock_that_the_call_did_not_read_shows_the_time_of_the_call() {
    let folder = folder();
    let folder = folder.path();
    done(folder, &COUNT);
    let count = done(folder, &["log", "show", &newest(folder), "--recording"]);
    let count: Value = serde_json::from_str(&count).unwrap();
    let start = count["wall_clock"][0].clone();
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let age = now - Duration::from_nanos(start[0].as_u64().unwrap());
    assert!(start[1] == 0 && age < Duration::from_secs(600), "{start}, {age:?} ago");

    // As if the call had ended with the time of its start, without reading a clock.
    std::fs::copy(guest("time_server"), folder.join("time.wasm")).unwrap();
    done(folder, &["call", "get_current_time", "-p", "time.wasm", "--replayable"]);
    let recording = done(folder, &["log", "show", &newest(folder), "--recording"]);
    let mut recording: Value = serde_json::from_str(&recording).unwrap();
    recording["wall_clock"] = json!([[recording["wall_clock"][0][0], 0]]);
    std::fs::write(folder.join("call.json"), recording.to_string()).unwrap();
    done(folder, &["replay", "--recording", "call.json", "--with", "time.wasm"]);
    // Recordings of earlier versions do not have it.
    recording.as_object_mut().unwrap().remove("wall_clock");
    std::fs::write(folder.join("call.json"), recording.to_string()).unwrap();
    let differs = run(folder, &["replay", "--recording", "call.json", "--with", "time.wasm"]);
    assert!(differs.stdout.contains("new input: read a clock"), "{}", differs.stdout);
}

#[test]
fn calls_run_again_in_another_component() {
    let folder = folder();
    let folder = folder.path();
    for _ in 0..3 {
        done(folder, &COUNT);
    }
    done(folder, &SCHEMA);
    let all = done(folder, &["replay", "--plugin", "text", "--with", "text.wasm"]);
    assert_eq!(all, "3 recorded calls replayed: 3 identical, 0 different\n");
    // The tool is not in the other component.
    let other = run(folder, &["replay", "--plugin", "text", "--with", "csv.wasm", "--json"]);
    assert_eq!(other.code, 4);
    let lines: Vec<Value> =
        other.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 4);
    assert_eq!(lines[0]["error"], "the component has no tool `word_count`");
    assert_eq!(lines[3]["summary"]["failed"].as_array().unwrap().len(), 3);
    // Without a component, the plugin of the configuration.
    std::fs::write(folder.join("c.toml"), "[plugins.text]\ncomponent = \"text.wasm\"\n").unwrap();
    done(folder, &["replay", "--plugin", "text", "--config", "c.toml"]);

    let id = newest(folder);
    std::fs::create_dir(folder.join("builds")).unwrap();
    for (number, name) in ["csv", "csv", "csv", "text", "text"].into_iter().enumerate() {
        let build = folder.join(format!("builds/{number}.wasm"));
        std::fs::copy(guest(name), &build).unwrap();
        let age = Duration::from_secs(100 - u64::try_from(number).unwrap());
        let file = std::fs::File::options().write(true).open(&build).unwrap();
        file.set_modified(SystemTime::now() - age).unwrap();
    }
    let first = run(folder, &["replay", &id, "--bisect", "builds"]);
    assert_eq!((first.code, first.stdout.trim()), (1, "builds/3.wasm"), "{}", first.stderr);
}

#[test]
fn the_log_keeps_the_component_of_recorded_calls() {
    let folder = folder();
    let folder = folder.path();
    done(folder, &COUNT);
    done(folder, &COUNT);
    let id = newest(folder);
    let config = "[plugins.text]\ncomponent = \"text.wasm\"\n";
    std::fs::write(folder.join("c.toml"), config).unwrap();
    std::fs::copy(guest("csv"), folder.join("text.wasm")).unwrap();
    // The file is another plugin now: the recorded component runs, unless another one is named.
    let all = done(folder, &["replay", "--plugin", "text"]);
    assert_eq!(all, "2 recorded calls replayed: 2 identical, 0 different\n");
    let other = run(folder, &["replay", &id, "--config", "c.toml"]);
    assert_eq!(other.code, 4, "{}", other.stderr);
    assert!(other.stdout.contains("the component has no tool `word_count`"), "{}", other.stdout);
    std::fs::remove_file(folder.join("text.wasm")).unwrap();
    done(folder, &["replay", &id, "--config", "c.toml"]);
    // A recording in a file is without the component.
    let recording = done(folder, &["log", "show", &id, "--recording"]);
    std::fs::write(folder.join("call.json"), &recording).unwrap();
    let digest = serde_json::from_str::<Value>(&recording).unwrap()["plugin"]["digest"].clone();
    let alone = run(folder, &["replay", "--recording", "call.json"]);
    assert_eq!(alone.code, 2);
    for part in [digest.as_str().unwrap(), "pass its file, or another version, as --with COMPONENT"]
    {
        assert!(alone.stderr.contains(part), "{}", alone.stderr);
    }
    done(folder, &["log", "prune", "--max-age", "0"]);
    let pruned = run(folder, &["replay", &id]);
    assert_eq!(pruned.code, 2, "{}", pruned.stderr);
}

/// Talks to a model that replies with a script, in the session `talk`.
fn chat(folder: &Path, replies: &[Value], flags: &[&str]) {
    let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
    std::fs::write(folder.join("model.jsonl"), lines.join("\n")).unwrap();
    let chat = ["chat", "Count.", "--model", "script:model.jsonl", "-p", "text.wasm"];
    done(folder, &[&chat[..], &["--session", "talk"], flags].concat());
}

#[test]
fn a_conversation_runs_again_with_the_recorded_model() {
    let folder = folder();
    let folder = folder.path();
    let count = |text: &str| json!({"tool": "word_count", "arguments": {"text": text}});
    let first = [json!({"text": "I count.", "calls": [count("a b")]}), json!({"text": "Two."})];
    chat(folder, &first, &["--replayable"]);
    let unknown = json!({"tool": "letter_count", "arguments": {}});
    let second = [
        json!({"calls": [count("c"), unknown, json!({"tool": "word_count", "arguments": {}})]}),
        json!({"calls": [count("d e f")]}),
        json!({"text": "Three."}),
    ];
    chat(folder, &second, &["--replayable"]);
    let talk = ["replay", "--session", "talk"];
    let replayed = run(folder, &talk);
    let expected = "talk  identical (2 turns, 5 replies of the model, 3 calls)\n";
    assert_eq!((replayed.code, replayed.stdout.as_str()), (0, expected), "{}", replayed.stderr);
    assert!(replayed.stderr.contains("2 results came from the log"), "{}", replayed.stderr);

    // A new version returns something else.
    let component = std::fs::read(folder.join("text.wasm")).unwrap();
    std::fs::write(folder.join("new.wasm"), renamed(&component, b"words", b"wordz")).unwrap();
    let differs = run(folder, &[&talk[..], &["--with", "new.wasm"]].concat());
    assert_eq!(differs.code, 1, "{}{}", differs.stdout, differs.stderr);
    let lines: Vec<_> = differs.stdout.lines().collect();
    assert_eq!(lines[0], "talk  differs (2 turns, 5 replies of the model, 3 calls)");
    assert!(lines[1].starts_with("  turn 1, call 1  word_count  "), "{lines:?}");
    for part in ["result /words: 2 is missing", "turn 2, call 1  ", "turn 2, call 4  "] {
        assert!(differs.stdout.contains(part), "{}", differs.stdout);
    }
    let json = run(folder, &[&talk[..], &["--with", "new.wasm", "--json"]].concat());
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["is_identical"], false);
    assert_eq!(json["conversation"]["differences"][0]["turn"], 1);

    // A component without the tool, for all plugins and for one that did not take part.
    let other = run(folder, &[&talk[..], &["--with", "csv.wasm"]].concat());
    assert_eq!(other.code, 4, "{}", other.stdout);
    assert!(other.stdout.starts_with("talk  incomplete ("), "{}", other.stdout);
    assert!(other.stderr.contains("the component has no tool `word_count`"), "{}", other.stderr);
    let json = run(folder, &[&talk[..], &["--with", "csv.wasm", "--json"]].concat());
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["is_identical"], false);
    let other = run(folder, &[&talk[..], &["--plugin", "csv", "--with", "csv.wasm"]].concat());
    assert_eq!(other.code, 2, "{}{}", other.stdout, other.stderr);
    assert!(other.stderr.contains("no recorded call of the session `talk` is of `csv`"));
}

#[test]
fn a_log_that_is_cut_off_says_so_wherever_it_is_read() {
    let folder = folder();
    let folder = folder.path();
    done(folder, &COUNT);
    let lost = newest(folder);
    let segment = log_files(folder).into_iter().find(|path| is_segment(path)).unwrap();
    done(folder, &COUNT);
    let file = std::fs::File::options().write(true).open(&segment).unwrap();
    file.set_len(100).unwrap();
    let warning = "warning: not all of the log can be read: cannot access `";
    for (arguments, code) in [
        (&["log"][..], 0),
        (&["log", "stats"], 0),
        (&["log", "stats", "--json"], 0),
        (&["log", "events"], 0),
        (&["log", "export"], 0),
        (&["replay"], 4),
        (&["replay", "--json"], 4),
    ] {
        let ended = run(folder, arguments);
        assert_eq!(ended.code, code, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(warning), "{arguments:?}: {}", ended.stderr);
    }
    for arguments in [&["replay", &lost][..], &["log", "show", &lost]] {
        let ended = run(folder, arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
        let both = format!("no call in the log has the id `{lost}`; not all of the log can be");
        assert!(ended.stderr.contains(&both), "{arguments:?}: {}", ended.stderr);
    }
}

/// Returns the files of the log.
fn log_files(folder: &Path) -> Vec<std::path::PathBuf> {
    let directory = done(folder, &["log", "dir"]);
    let entries = std::fs::read_dir(directory.trim()).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn is_segment(path: &Path) -> bool {
    path.to_string_lossy().ends_with(".jsonl.gz")
}

#[test]
fn a_conversation_without_text_says_so() {
    let folder = folder();
    let folder = folder.path();
    let count = json!({"tool": "word_count", "arguments": {"text": "a b"}});
    chat(folder, &[json!({"calls": [count]}), json!({"text": "Two."})], &[]);
    let replayed = run(folder, &["replay", "--session", "talk"]);
    assert_eq!(replayed.code, 2, "{}", replayed.stderr);
    for part in [
        "the log has 2 replies of the model in the session `talk` without their text",
        "record conversations with --replayable",
        "no recorded call that can run again matches",
    ] {
        assert!(replayed.stderr.contains(part), "{}", replayed.stderr);
    }
    let unknown = run(folder, &["replay", "--session", "other"]);
    assert_eq!(unknown.code, 2, "{}", unknown.stderr);
}

#[test]
fn secrets_are_not_in_recorded_conversations() {
    let folder = folder();
    let folder = folder.path();
    let count = json!({"tool": "word_count", "arguments": {"text": CANARY}});
    let replies = [json!({"text": CANARY, "calls": [count]}), json!({"text": "x ".repeat(9000)})];
    chat(folder, &replies, &["--replayable", "--system", CANARY]);
    let directory = done(folder, &["log", "dir"]);
    let found = Command::new("grep").args(["-rlz", CANARY, directory.trim()]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    let replayed = run(folder, &["replay", "--session", "talk"]);
    let note = "secrets were removed from the conversation";
    assert!(replayed.stderr.contains(note), "{}{}", replayed.stdout, replayed.stderr);
}

/// Returns a component in which a string has been replaced by one of the same length.
fn renamed(component: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut renamed = component.to_vec();
    let mut count = 0;
    for at in 0..=component.len() - from.len() {
        if component[at..].starts_with(from) {
            renamed[at..at + to.len()].copy_from_slice(to);
            count += 1;
        }
    }
    assert!(count > 0, "the component has no such string");
    renamed
}

#[test]
fn a_recorded_call_becomes_a_test_case() {
    let folder = folder();
    let folder = folder.path();
    done(folder, &SCHEMA);
    let id = newest(folder);
    std::fs::create_dir(folder.join("plugin")).unwrap();
    std::fs::write(folder.join("plugin/cases.jsonl"), r#"{"tool":"schema","failed":true}"#)
        .unwrap();
    let cases = ["log", "to-case", &id, "--cases", "plugin/cases.jsonl", "--name", "two rows"];
    done(folder, &cases);
    assert!(run(folder, &cases).stderr.contains("has a case of this call already"));
    let test = ["test", "csv.wasm", "--cases", "plugin/cases.jsonl", "--filter", "two rows"];
    assert!(done(folder, &test).ends_with("1 passed, 0 failed\n"));
    let recording = folder.join(format!("plugin/recordings/{id}.json"));
    let text = std::fs::read_to_string(&recording).unwrap();
    std::fs::write(&recording, text.replace("\\\"rows\\\":2", "\\\"rows\\\":3")).unwrap();
    let failed = run(folder, &test);
    assert_eq!(failed.code, 1);
    assert!(failed.stdout.contains("result /rows: 3 → 2"), "{}", failed.stdout);
}

#[test]
fn the_level_decides_which_calls_can_run_again() {
    let folder = folder();
    let folder = folder.path();
    let config = |replay: &str| {
        format!(
            "[records]\nenabled = true\n{replay}\n[plugins.text]\ncomponent = \"text.wasm\"\n\
             [plugins.crash]\ncomponent = \"crash.wasm\"\nreplay = \"off\"\n\
             [plugins.csv]\ncomponent = \"csv.wasm\"\n"
        )
    };
    std::fs::write(folder.join("c.toml"), config("replay = \"failures\"")).unwrap();
    let call = |arguments: &[&str]| {
        run(folder, &[&["call", "--config", "c.toml"], arguments].concat());
        let listed = done(folder, &["log", "--json", "-n", "1"]);
        let call: Value = serde_json::from_str(listed.trim()).unwrap();
        (call["outcome"].as_str().unwrap().to_owned(), call["recording"].is_object())
    };
    assert_eq!(call(&["word_count", "text=a"]), ("ok".to_owned(), false));
    assert_eq!(call(&["schema", "file=/data/x.csv"]), ("failure".to_owned(), true));
    assert_eq!(call(&["panic"]), ("error".to_owned(), false));
    std::fs::write(folder.join("c.toml"), config("replay = \"all\"")).unwrap();
    assert_eq!(call(&["word_count", "text=a"]), ("ok".to_owned(), true));
    std::fs::write(folder.join("c.toml"), config("replay = \"sampled\"")).unwrap();
    assert_eq!(call(&["word_count", "text=a"]), ("ok".to_owned(), true));
    std::fs::write(folder.join("c.toml"), config("replay = \"some\"")).unwrap();
    let wrong = run(folder, &["call", "word_count", "text=a", "--config", "c.toml"]);
    assert_eq!(wrong.code, 2);
    assert!(wrong.stderr.contains("failures"), "{}", wrong.stderr);
    // A trap runs into the same trap.
    run(folder, &["call", "panic", "-p", "crash.wasm", "--replayable"]);
    done(folder, &["replay", &newest(folder), "--with", "crash.wasm"]);
}

#[test]
fn secrets_are_not_in_recordings() {
    let folder = folder();
    let folder = folder.path();
    let lines = format!("name,token\nx,{CANARY}\n");
    std::fs::write(folder.join("data/x.csv"), lines).unwrap();
    let config = "[records]\nenabled = true\ndirectory = \"log\"\nreplay = \"all\"\n\
        [secrets]\nown = { env = \"OWN\" }\n[stores.data]\ndirectory = \"data\"\n\
        [plugins.csv]\ncomponent = \"csv.wasm\"\ngrants.files.data = \"read-only\"\n\
        grants.secrets = [\"own\"]\n";
    std::fs::write(folder.join("c.toml"), config).unwrap();
    std::fs::write(folder.join("data/y.csv"), "a\nmy own canary\n").unwrap();
    for file in ["x", "y"] {
        let mut command = Command::new(binary());
        command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
        command.env("HOME", folder.join("home")).env("OWN", "my own canary").current_dir(folder);
        let file = format!("file=/data/{file}.csv");
        let ended =
            ran(command.args(["call", "schema", &file, "--config", "c.toml"]).output().unwrap());
        assert_eq!(ended.code, 0, "{}", ended.stderr);
    }
    let listed = done(folder, &["log", "--json", "--config", "c.toml"]);
    for line in listed.lines() {
        let call: Value = serde_json::from_str(line).unwrap();
        let id = call["id"].as_str().unwrap();
        let recording = done(folder, &["log", "show", id, "--recording", "--config", "c.toml"]);
        assert!(!recording.contains("canary"), "{recording}");
        assert!(recording.contains("secrets were removed from the recording"), "{recording}");
        // The guest sees what was left.
        let replayed = run(folder, &["replay", id, "--config", "c.toml"]);
        assert!(replayed.code < 2, "{}", replayed.stderr);
        assert!(replayed.stderr.contains("the replay is approximate"), "{}", replayed.stderr);
    }
}

#[test]
fn a_changed_plugin_shows_what_it_does_with_recorded_calls() {
    let folder = folder();
    let folder = folder.path();
    let config = "[records]\nenabled = true\nreplay = \"all\"\n\
                  [plugins.text]\ncomponent = \"text.wasm\"\n";
    std::fs::write(folder.join("c.toml"), config).unwrap();
    done(folder, &["approve", "text", "--config", "c.toml", "--yes"]);
    for text in ["text=a b", "text=c"] {
        done(folder, &["call", "word_count", text, "--config", "c.toml"]);
    }
    // A custom section, which changes the digest and not the code.
    let mut component = std::fs::read(folder.join("text.wasm")).unwrap();
    component.extend_from_slice(b"\x00\x05\x04note");
    std::fs::write(folder.join("text.wasm"), component).unwrap();
    let approved = done(folder, &["approve", "text", "--config", "c.toml", "--yes"]);
    let summary = "2 recorded calls replayed: 2 identical, 0 different";
    assert!(approved.contains(summary), "{approved}");
}

#[test]
fn files_that_a_call_writes_are_compared_by_content() {
    let folder = folder();
    let folder = folder.path();
    std::fs::copy(guest("stores"), folder.join("stores.wasm")).unwrap();
    let steps: &[&[&str]] = &[&["create", "data", "new.txt", "two words"]];
    let arguments = crate::script::arguments(steps);
    let call = ["call", "stores", &arguments, "-p", "stores.wasm", "--mount", "data=data"];
    done(folder, &[&call[..], &["--replayable"]].concat());
    assert!(folder.join("data/new.txt").exists());
    let id = newest(folder);
    std::fs::remove_file(folder.join("data/new.txt")).unwrap();
    done(folder, &["replay", &id, "--with", "stores.wasm"]);
    // Nothing was written again.
    assert!(!folder.join("data/new.txt").exists());
    let recording = done(folder, &["log", "show", &id, "--recording"]);
    let mut value: Value = serde_json::from_str(&recording).unwrap();
    value["written"]["/data/new.txt"] = "0000".into();
    std::fs::write(folder.join("call.json"), value.to_string()).unwrap();
    let differs = run(folder, &["replay", "--recording", "call.json", "--with", "stores.wasm"]);
    assert_eq!(differs.code, 1, "{}", differs.stderr);
    assert!(differs.stdout.contains("file /data/new.txt: content 0000 → "), "{}", differs.stdout);
}

/// A recording is a file that any program can have written.
#[tokio::test]
async fn a_damaged_recording_ends_in_a_result_or_an_error() {
    let folder = folder();
    done(folder.path(), &SCHEMA);
    let id = newest(folder.path());
    let recording = done(folder.path(), &["log", "show", &id, "--recording"]);
    let recording: Value = serde_json::from_str(&recording).unwrap();
    let mut host = cofferdam_tests::Host::new();
    host.load("csv").await;
    let mut count = 0;
    for pointer in pointers(&recording) {
        for value in [
            Value::from(u64::MAX),
            Value::from(0),
            Value::from("é/../\0"),
            Value::Null,
            serde_json::json!([[u64::MAX, u64::MAX], [0, 0]]),
            serde_json::json!({"found": [{"offset": u64::MAX, "content": {"base64": "%"}}]}),
        ] {
            let mut damaged = recording.clone();
            *damaged.pointer_mut(&pointer).unwrap() = value;
            let Ok(damaged) = serde_json::from_value(damaged) else { continue };
            // The time limits of a recording hold, and this one is endless.
            let damaged = std::sync::Arc::new(damaged);
            let replay = cofferdam::replay::run(host.plugin(), &damaged);
            let ended = tokio::time::timeout(Duration::from_secs(20), replay).await;
            assert!(ended.is_ok(), "{pointer} runs for ever");
            count += 1;
        }
    }
    assert!(count > 50, "{count} damaged recordings");
}

/// Returns the pointers of all values below `value`.
fn pointers(value: &Value) -> Vec<String> {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, child)| (key.replace('~', "~0").replace('/', "~1"), child))
            .collect(),
        Value::Array(items) => {
            items.iter().enumerate().map(|(index, child)| (index.to_string(), child)).collect()
        }
        _ => Vec::new(),
    };
    let below = children.into_iter().flat_map(|(key, child)| {
        let rest = pointers(child).into_iter();
        let own = format!("/{key}");
        std::iter::once(own.clone()).chain(rest.map(move |rest| format!("{own}{rest}")))
    });
    below.collect()
}
