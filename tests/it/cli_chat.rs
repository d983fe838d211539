//! `cofferdam chat` with scripted models and real tools, run by a script or another program.
//! `agents` tests agents in files, `terminal` interactive use, `turns` how turns end and what a
//! session keeps of them, `labels` information-flow labels, `provider` a model behind an address.

mod agents;
mod context;
mod input;
mod labels;
mod long;
mod middleware;
mod prompts;
mod provider;
mod terminal;
mod turns;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::wire::{Signal, send_signal};

/// Maximum time to wait for an event. No test needs a tenth of it.
const PATIENCE: Duration = Duration::from_secs(120);

/// Folder with a script for the model and some notes.
struct Scene {
    folder: tempfile::TempDir,
}

struct Ran {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Scene {
    fn new(script: &[Value]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("notes")).unwrap();
        std::fs::write(folder.path().join("notes/a.md"), "one\n").unwrap();
        let lines: Vec<_> = script.iter().map(Value::to_string).collect();
        std::fs::write(folder.path().join("model.jsonl"), lines.join("\n")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("COFFERDAM_CACHE_DIR", shared_cache())
            // The call log is not that of the user who runs the tests.
            .env("XDG_STATE_HOME", self.folder.path().join("state"))
            .current_dir(self.folder.path());
        command.arg("chat").args(arguments).stdin(Stdio::null());
        command
    }

    /// Runs `chat` with the scripted model.
    fn chat(&self, arguments: &[&str]) -> Ran {
        self.run(&[&["--model", "script:model.jsonl"], arguments].concat())
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// Starts `chat` with the scripted model on pipes.
    fn start(&self, arguments: &[&str]) -> Child {
        let mut command = self.command(&[&["--model", "script:model.jsonl"], arguments].concat());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn has(&self, name: &str) -> bool {
        self.path(name).exists()
    }
}

fn ran(output: std::process::Output) -> Ran {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

impl Ran {
    fn lines(&self) -> Vec<Value> {
        self.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Returns the results of calls, in order.
    fn results(&self) -> Vec<String> {
        let lines = self.lines();
        let contents = lines.iter().filter_map(|line| line["contents"].as_array()).flatten();
        let results = contents.filter(|content| content["type"] == "function_result");
        results.map(|result| result["result"].as_str().unwrap().to_owned()).collect()
    }
}

fn plugin(name: &str) -> String {
    guest(name).display().to_string()
}

fn says(text: &str) -> Value {
    json!({"text": text})
}

fn calls(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"tool": tool, "arguments": arguments}], "usage": {"input": 10, "output": 5}})
}

fn deletes() -> Value {
    calls("file_access_delete_file", json!({"file_name": "a.md"}))
}

#[test]
fn text_goes_to_stdout_and_calls_with_their_ends_to_stderr() {
    let scene = Scene::new(&[
        json!({"text": "I count.", "calls": [
            {"tool": "word_count", "arguments": {"text": "a b"}},
            {"tool": "fail"},
            {"tool": "panic", "arguments": {"message": "hidden"}},
            {"tool": "no_such_tool"},
        ]}),
        says("Two words."),
    ]);
    let chat = || scene.chat(&["How many?", "-p", &plugin("text"), "-p", &plugin("crash")]);
    // The first chat may compile a component and say so on standard error.
    chat();
    let ran = chat();
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "I count.\nTwo words.\n"),
        "{}",
        ran.stderr
    );
    let said: Vec<_> = ran.stderr.lines().filter(|line| !line.starts_with("  (")).collect();
    assert_eq!(said[0], r#"> word_count {"text":"a b"}"#);
    assert!(said[1].starts_with("  ok, ") && said[1].ends_with(" ms"), "{}", ran.stderr);
    assert_eq!(said[2], "> fail");
    assert!(said[3].starts_with("  the tool reported a failure: "), "{}", ran.stderr);
    assert_eq!(said[4], r#"> panic {"message":"hidden"}"#);
    assert!(said[5].starts_with("  Trap.Unreachable"), "{}", ran.stderr);
    assert_eq!(said[6], "> no_such_tool");
    assert!(said[7].contains("Requested function \"no_such_tool\" not found."), "{}", ran.stderr);
}

#[test]
fn a_model_has_only_the_tools_that_are_selected() {
    let scene = Scene::new(&[
        json!({"calls": [
            {"tool": "word_count", "arguments": {"text": "a b"}},
            {"tool": "lines_matching", "arguments": {"text": "a", "pattern": "a"}},
        ]}),
        says("Done."),
    ]);
    let ran = scene.chat(&["Go.", "-p", &plugin("text"), "--tools", "word_count", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results = ran.results();
    assert!(results[0].contains("\"words\":2"), "{results:?}");
    assert!(results[1].contains("\"lines_matching\" not found"), "{results:?}");
    let misspelled = scene.chat(&["Go.", "-p", &plugin("text"), "--tools", "word_cont"]);
    assert_eq!(misspelled.code, Some(2), "{}", misspelled.stderr);
}

#[test]
fn rules_of_the_configuration_allow_and_deny_calls_by_their_arguments() {
    let save = |file: &str| json!({"tool": "file_access_save_file", "arguments": {"file_name": file, "content": "x"}});
    let scene = Scene::new(&[
        json!({"calls": [save("drafts/b.md"), save("c.md"), save(".git/config")]}),
        says("Done."),
    ]);
    std::fs::create_dir(scene.path("notes/drafts")).unwrap();
    let rules = r#"
        [files.workspace]
        store = "notes"
        [stores.notes]
        directory = "notes"
        [[agent.approvals]]
        effect = "allow"
        tool = "file_access_save_file"
        arguments = { file_name = { path = "drafts/**" }, content = "any" }
        [[agent.approvals]]
        effect = "deny"
        tool = "*"
        arguments = { file_name = { path = ".git/**" } }
    "#;
    std::fs::write(scene.path("cofferdam.toml"), rules).unwrap();
    let flags = ["Save.", "--config", "cofferdam.toml", "--ask", "always", "--json"];
    let ran = scene.chat(&flags);
    // No user can approve the second call.
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    let results = ran.results();
    assert!(results[0].contains("saved"), "{results:?}");
    assert!(scene.has("notes/drafts/b.md"));
    assert!(!scene.has("notes/c.md") && !scene.has("notes/.git/config"), "{results:?}");

    std::fs::write(scene.path("cofferdam.toml"), rules.replace("drafts/**", "../**")).unwrap();
    let wrong = scene.chat(&flags);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("cofferdam.toml:6:9: approval rule for"), "{}", wrong.stderr);
}

#[test]
fn files_are_sent_with_the_prompt() {
    let scene = Scene::new(&[says("A cat.")]);
    std::fs::write(scene.path("cat.png"), b"\x89PNG\r\n\x1a\n\xff").unwrap();
    std::fs::write(scene.path("core"), b"\xff\xfe\x00").unwrap();
    let flags = ["What is it?", "--attach", "cat.png", "--attach", "notes/a.md", "--json"];
    let ran = scene.chat(&flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let contents = ran.lines()[0]["contents"].clone();
    let image = json!({"type": "data", "media_type": "image/png", "data": "iVBORw0KGgr/"});
    assert_eq!(contents[0], image);
    assert_eq!(contents[1]["text"], "File `a.md`:\none\n");
    assert_eq!(contents[2]["text"], "What is it?");
    for (file, expected) in [("core", "expected an image"), ("none.png", "No such file")] {
        let refused = scene.chat(&["Go.", "--attach", file]);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
}

#[test]
fn settings_of_the_loop_come_from_the_configuration() {
    let scene = Scene::new(&[deletes(), says("Done.")]);
    let settings = "[agent.loop]\nterminate-on-unknown = true\nmax-iterations = 0\n";
    std::fs::write(scene.path("cofferdam.toml"), settings).unwrap();
    let wrong = scene.chat(&["Go.", "--config", "cofferdam.toml"]);
    assert_eq!(wrong.code, Some(2), "{}", wrong.stderr);
    assert!(wrong.stderr.contains("max_iterations must be at least 1."), "{}", wrong.stderr);
    std::fs::write(scene.path("cofferdam.toml"), settings.replace("= 0", "= 5")).unwrap();
    let ended = scene.chat(&["Go.", "--config", "cofferdam.toml", "--json"]);
    // The tool is unknown, because there is no store, so the model is not asked again.
    assert!(ended.results().is_empty() && !ended.stdout.contains("Done."), "{}", ended.stdout);
}

#[test]
fn a_long_conversation_is_summarized_and_stays_summarized() {
    let long = says(&"word ".repeat(400));
    let scene = Scene::new(&vec![long; 10]);
    let flags = ["--session", "long", "--session-dir", "sessions", "--context-window", "8000"];
    let mut child = scene.start(&[&flags[..], &["--json"]].concat());
    let mut stdin = child.stdin.take().unwrap();
    let prompts = format!("/pin The code is 7.\n{}", "go on\n".repeat(9));
    std::io::Write::write_all(&mut stdin, prompts.as_bytes()).unwrap();
    drop(stdin);
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let note = "the older part of the conversation was summarized for the model";
    assert_eq!(ran.stderr.matches(note).count(), 1, "{}", ran.stderr);
    let answers = ran.lines().iter().filter(|line| line["role"] == "assistant").count();
    assert_eq!(answers, 9, "{}", ran.stdout);

    let stored = std::fs::read_to_string(scene.path("sessions/long.jsonl")).unwrap();
    let records: Vec<Value> =
        stored.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let record = records.iter().find(|line| line["contents"] == json!([])).unwrap();
    let compacted = record["additional_properties"]["compaction"]["messages"].to_string();
    assert!(compacted.contains("Summary of what has happened so far:"), "{compacted}");
    assert!(compacted.contains("The code is 7."), "{compacted}");
    let listed = scene.run(&["--sessions", "--session-dir", "sessions"]);
    assert_eq!(listed.stdout, "long  19 messages\n");
    // The next process begins with the summary, so there is nothing to summarize.
    std::fs::write(scene.path("model.jsonl"), says("Again.").to_string()).unwrap();
    let again = scene.chat(&[&["once more"], &flags[..]].concat());
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "Again.\n"), "{}", again.stderr);
    assert!(!again.stderr.contains(note), "{}", again.stderr);
}

#[test]
fn the_transcript_is_the_history_and_a_line_about_the_end() {
    let scene = Scene::new(&[
        calls("file_access_read_file", json!({"file_name": "a.md"})),
        json!({"text": "One.", "usage": {"input": 30, "output": 2}}),
    ]);
    let ran = scene.chat(&["What is in it?", "--files", "notes:ro", "--json"]);
    let lines = ran.lines();
    let roles: Vec<_> = lines.iter().map(|line| line["role"].as_str().unwrap_or("-")).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant", "-"], "{}", ran.stdout);
    assert_eq!(ran.results(), ["one\n"]);
    let usage = json!({"input": 40, "output": 7, "total": 47});
    assert_eq!(
        lines[4],
        json!({
            "type": "end", "outcome": "answered", "finish": "stop", "error": null, "usage": usage,
        })
    );
}

#[test]
fn deleting_needs_approval_and_without_a_person_there_is_none() {
    let scene = Scene::new(&[deletes(), says("Done.")]);
    let refused = scene.chat(&["Tidy up.", "--files", "notes", "--json"]);
    assert_eq!(refused.code, Some(4), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("pass --approve file_access_delete_file or --yes"),
        "{}",
        refused.stderr
    );
    let denied = "Error: Tool call invocation was rejected by user. Nobody is there to approve it.";
    assert_eq!(refused.results(), [denied]);
    assert_eq!(refused.lines().last().unwrap()["outcome"], "unapproved");
    assert!(scene.has("notes/a.md"));
    let approve = ["--approve", "file_access_delete_file"];
    for allowed in [&approve[..], &["--yes"]] {
        std::fs::write(scene.path("notes/a.md"), "again").unwrap();
        let ran = scene.chat(&[&["Tidy up.", "--files", "notes"], allowed].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{}", ran.stderr);
        assert!(!scene.has("notes/a.md"));
    }
    let unknown =
        scene.chat(&["Tidy up.", "--files", "notes", "--approve", "file_access_delete_fil"]);
    assert_eq!(unknown.code, Some(2));
    assert!(
        unknown.stderr.contains("did you mean `file_access_delete_file`?"),
        "{}",
        unknown.stderr
    );
}

#[test]
fn a_dry_run_shows_what_calls_would_change_and_changes_nothing() {
    let scene = Scene::new(&[deletes(), says("Done.")]);
    let ran = scene.chat(&["Tidy up.", "--files", "notes", "--dry-run", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("dry run: these changes were not made\n  deleted workspace/a.md"),
        "{}",
        ran.stderr
    );
    assert!(scene.has("notes/a.md"));
}

#[test]
fn more_can_be_asked_about_than_what_sources_want() {
    let scene = Scene::new(&[
        json!({"calls": [
            {"tool": "file_access_list_files"},
            {"tool": "file_access_save_file", "arguments": {"file_name": "b.md", "content": "x"}},
        ]}),
        says("ok"),
    ]);
    let results =
        |ask: &str| scene.chat(&["Go.", "--files", "notes", "--json", "--ask", ask]).results();
    assert!(!results("changes")[0].starts_with("Error"), "a tool that says it only reads runs");
    assert!(results("changes")[1].starts_with("Error: Tool call invocation was rejected"));
    assert!(results("always")[0].starts_with("Error: Tool call invocation was rejected"));
    assert!(!scene.has("notes/b.md"));
    results("sources");
    assert!(scene.has("notes/b.md"));
}

#[test]
fn the_model_receives_malformed_arguments_and_corrects_itself() {
    let scene = Scene::new(&[
        json!({"calls": [{"tool": "word_count", "arguments_text": "{\"text\": \"a b"}]}),
        calls("word_count", json!({"txt": "a b"})),
        calls("word_count", json!({"text": "a b"})),
        says("Two."),
    ]);
    let ran = scene.chat(&["Count.", "-p", &plugin("text"), "--json"]);
    let results = ran.results();
    assert_eq!(
        results[0],
        "Error: Argument parsing failed. Arguments for 'word_count' are not a JSON object."
    );
    assert!(results[1].contains("Required argument 'text' was not supplied"), "{}", results[1]);
    assert!(results[2].contains("\"words\":2"), "{}", results[2]);
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_session_goes_on_in_the_next_process() {
    let scene = Scene::new(&[says("Hello."), says("Again.")]);
    let session = ["--session", "Träume", "--session-dir", "sessions"];
    scene.chat(&[&["My name is Ada."], &session[..]].concat());
    let second = scene.chat(&[&["Who am I?"], &session[..], &["--json"]].concat());
    assert_eq!(second.lines().len(), 3, "what was said before is not printed again");
    let histories: Vec<_> = std::fs::read_dir(scene.path("sessions"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "jsonl"))
        .collect();
    assert_eq!(histories.len(), 1);
    let history = std::fs::read_to_string(&histories[0]).unwrap();
    let texts: Vec<Value> =
        history.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let texts: Vec<_> =
        texts.iter().map(|message| message["contents"][0]["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["My name is Ada.", "Hello.", "Who am I?", "Hello."]);
    let list = scene.run(&["--sessions", "--session-dir", "sessions"]);
    assert_eq!(list.stdout, "Träume  4 messages\n");
}

#[test]
fn a_session_belongs_to_one_process_and_no_tool_writes_to_it() {
    let scene = Scene::new(&[json!({"text": "late", "delay_ms": 60_000})]);
    let session = ["--session", "s", "--session-dir", "sessions"];
    let mut first = scene.start(&[&["hi"], &session[..]].concat());
    let since = Instant::now();
    while !scene.has("sessions/s.lock") && since.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(200));
    let second = scene.chat(&[&["hi"], &session[..]].concat());
    assert_eq!(second.code, Some(2));
    assert!(
        second.stderr.contains("the session `s` is in use by another process"),
        "{}",
        second.stderr
    );
    first.kill().unwrap();
    first.wait().unwrap();
    for files in [&["--files", "."][..], &["--files", "sessions"]] {
        let ran = scene.chat(&[&["hi"], &session[..], files].concat());
        assert_eq!(ran.code, Some(2));
        assert!(
            ran.stderr.contains("use another directory, or this one for reading only"),
            "{}",
            ran.stderr
        );
    }
    let text = plugin("text");
    let mounted = scene.chat(&[&["hi"], &session[..], &["-p", &text, "-m", "all=."]].concat());
    assert_eq!(mounted.code, Some(2), "{}", mounted.stderr);
}

#[test]
fn what_is_allowed_for_always_is_allowed_to_one_component() {
    let scene = Scene::new(&[calls("word_count", json!({"text": "a b"})), says("Two.")]);
    for folder in ["one", "other", "sessions"] {
        std::fs::create_dir(scene.path(folder)).unwrap();
    }
    // Same tools and names with another digest: an empty custom section is appended.
    let mut component = std::fs::read(guest("text")).unwrap();
    std::fs::write(scene.path("one/text.wasm"), &component).unwrap();
    component.extend([0, 2, 1, b'x']);
    std::fs::write(scene.path("other/text.wasm"), &component).unwrap();
    let chat = |component: &str| {
        let session = ["--session", "s", "--session-dir", "sessions", "--ask", "always", "--json"];
        scene.chat(&[&["Count.", "-p", component], &session[..]].concat())
    };
    let allow = |rule: Value| {
        let state =
            json!({"type": "session", "session_id": "s", "state": {"standing_approvals": [rule]}});
        std::fs::write(scene.path("sessions/s.session.json"), state.to_string()).unwrap();
    };
    // Rules of earlier versions name only the tool.
    allow(json!({"allow": "tool", "name": "word_count"}));
    let asked = chat("one/text.wasm");
    assert_eq!(asked.code, Some(4), "{}", asked.stderr);
    let lines = asked.lines();
    let mut contents = lines.iter().filter_map(|line| line["contents"].as_array()).flatten();
    let request = contents.find(|content| content["type"] == "function_approval_request").unwrap();
    let origin = &request["origin"];
    assert!(origin.as_str().unwrap().starts_with("plugin:text@sha256:"), "{origin}");
    allow(json!({"allow": "tool", "name": "word_count", "origin": origin}));
    let allowed = chat("one/text.wasm");
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    for rule in [
        json!({"allow": "tool", "name": "word_count", "origin": origin}),
        json!({"allow": "exactly", "name": "word_count", "origin": origin, "arguments": r#"{"text":"a b"}"#}),
    ] {
        allow(rule);
        let ran = chat("other/text.wasm");
        assert_eq!(ran.code, Some(4), "{} {}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_budget_and_the_number_of_rounds_end_a_turn() {
    let round = || calls("word_count", json!({"text": "a"}));
    let scene = Scene::new(&[round(), round(), round(), says("end")]);
    let spent = scene.chat(&["Go.", "-p", &plugin("text"), "--budget-tokens", "25", "--json"]);
    assert_eq!(spent.code, Some(3), "{}", spent.stderr);
    let end = spent.lines().pop().unwrap();
    assert_eq!(end["outcome"], "budget_exceeded");
    assert_eq!(end["error"], "Token budget exceeded: total 30 of 25.");
    // Work done before the end is reported, with its cost.
    assert_eq!((spent.results().len(), &end["usage"]["total"]), (1, &json!(30)));
    let rounds = scene.chat(&["Go.", "-p", &plugin("text"), "--max-iterations", "2"]);
    assert_eq!(rounds.code, Some(0));
    assert!(rounds.stdout.contains("Function invocation limit reached"), "{}", rounds.stdout);
    assert_eq!(scene.chat(&["Go.", "--max-iterations", "0"]).code, Some(2));
}

#[test]
fn a_model_that_gives_no_reply_has_an_exit_code() {
    let error = json!({"error": {"kind": "unauthorized", "message": "the key is not known"}});
    let scene = Scene::new(&[error]);
    let ran = scene.chat(&["hi", "--json"]);
    assert_eq!(ran.code, Some(4));
    assert_eq!(ran.stderr, "error: the model gives no reply: the key is not known\n");
    assert_eq!(ran.lines().pop().unwrap()["outcome"], "no_reply");
    let over = Scene::new(&[]).chat(&["hi"]);
    assert!(
        over.stderr.contains("the script model.jsonl is over: all 0 of its replies"),
        "{}",
        over.stderr
    );
}

#[test]
fn lines_of_a_pipe_are_turns_of_one_conversation() {
    let scene = Scene::new(&[says("first"), says("second")]);
    let talk = |lines: &str| {
        use std::io::Write;
        let mut child = scene.start(&[]);
        child.stdin.take().unwrap().write_all(lines.as_bytes()).unwrap();
        ran(child.wait_with_output().unwrap())
    };
    let ended = talk("one\\\nmore\n\ntwo\n/quit\nthree\n");
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "first\nsecond\n"),
        "{}",
        ended.stderr
    );
    let failed = talk("one\ntwo\nthree\nfour\n");
    assert_eq!(
        (failed.code, failed.stdout.as_str()),
        (Some(4), "first\nsecond\n"),
        "{}",
        failed.stderr
    );
}

#[test]
fn ctrl_c_stops_the_model_and_the_tools() {
    for (slow, args) in [
        (json!({"text": "late", "delay_ms": 600_000}), vec![]),
        (calls("sleep", json!({"ms": 600_000})), vec!["-p", "crash", "--timeout", "15m"]),
        (calls("spin", json!({})), vec!["-p", "crash", "--timeout", "15m"]),
    ] {
        let scene = Scene::new(&[slow.clone(), says("never")]);
        let crash = plugin("crash");
        let args: Vec<_> =
            args.into_iter().map(|arg| if arg == "crash" { crash.as_str() } else { arg }).collect();
        let child = scene.start(&[&["Go.", "--json"], &args[..]].concat());
        let started = Instant::now();
        std::thread::sleep(Duration::from_millis(2500));
        send_signal(child.id(), Signal::INT);
        let ran = ran(child.wait_with_output().unwrap());
        assert!(started.elapsed() < PATIENCE, "{slow}");
        assert_eq!(ran.code, Some(130), "{slow} {}", ran.stderr);
        assert!(ran.stderr.contains("stopped"), "{slow} {}", ran.stderr);
        assert_eq!(ran.lines().pop().unwrap()["outcome"], "stopped");
    }
}

#[test]
fn what_is_wrong_with_the_choice_of_a_model_is_said() {
    let scene = Scene::new(&[]);
    std::fs::write(scene.path("bad.jsonl"), "{\"text\":\"a\"}\n{\"txt\":1}\n").unwrap();
    for (arguments, message) in [
        (&["hi"][..], "no model is named; pass --model PROVIDER:MODEL"),
        (&["hi", "--model", "openai:"], "`openai:` names no model"),
        (&["hi", "--model", "opnai:x"], "`opnai:x` names no provider"),
        (
            &["hi", "--model", "mine"],
            "there is no configuration that defines a model `mine`; name one with --config FILE",
        ),
        (&["hi", "--model", "openai:x"], "there is no key for openai: set OPENAI_API_KEY"),
        (&["hi", "--model", "anthropic:x"], "there is no key for anthropic: set ANTHROPIC_API_KEY"),
        (&["hi", "--model", "script:none"], "the script none cannot be read: "),
        (
            &["hi", "--model", "script:bad.jsonl"],
            "bad.jsonl:2: not a reply of a scripted model: unknown field",
        ),
        (
            &["hi", "--model", "script:model.jsonl", "--base-url", "http://a"],
            "--base-url is for providers",
        ),
        (
            &["hi", "--model", "script:model.jsonl", "--tool-choice", "nope"],
            "there is no tool called 'nope'",
        ),
        (&["hi", "--model", "script:model.jsonl", "--system", "@none"], "none cannot be read: "),
    ] {
        let ran = scene.run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?} {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{arguments:?} {}", ran.stderr);
    }
}

#[test]
fn models_of_a_configuration_are_used_and_checked() {
    let scene = Scene::new(&[says("hello")]);
    let write = |models: &str| std::fs::write(scene.path("c.toml"), models).unwrap();
    write("[models.demo]\nprovider = \"script\"\nmodel = \"model.jsonl\"\n");
    for model in [&[][..], &["--model", "demo"]] {
        let ran = scene.run(&[&["hi", "--config", "c.toml"], model].concat());
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    }
    let missing = scene.run(&["hi", "--config", "c.toml", "--model", "dem"]);
    assert!(
        missing.stderr.contains("there is no model `dem`; models of the configuration: `demo`"),
        "{}",
        missing.stderr
    );
    let check = || {
        ran(Command::new(binary())
            .args(["config", "check"])
            .arg(scene.path("c.toml"))
            .output()
            .unwrap())
    };
    assert!(check().stdout.contains("demo  script:"), "{}", check().stdout);
    let one = "provider = \"openai\"\nmodel = \"m\"\n";
    for (models, message) in [
        (
            "[models.a]\nprovider = \"opnai\"\nmodel = \"m\"\n".to_owned(),
            ":2:12: unknown variant `opnai`",
        ),
        (format!("[models.a]\n{one}key = \"sk-123\"\n"), ":4:7: write { secret = \"NAME\" }"),
        (
            format!("[models.a]\n{one}key = {{ secret = \"k\" }}\n"),
            "names the secret `k`, which this file does not have",
        ),
        (format!("[models.a]\n{one}base-url = \"example.com\"\n"), ":4:12: write an address"),
        (
            format!("[models.a]\n{one}base-url = \"https://me:sk-123@a\"\n"),
            "a key does not stand in the address",
        ),
        (
            format!("[models.a]\n{one}default = true\n[models.b]\n{one}default = true\n"),
            "two models are the default, `a` and `b`",
        ),
        (
            "[models.a]\nprovider = \"script\"\nmodel = \"m\"\nkey = { env = \"K\" }\n".to_owned(),
            "a script needs no key",
        ),
    ] {
        write(&models);
        let checked = check();
        assert_eq!(checked.code, Some(2), "{models} {}", checked.stdout);
        assert!(checked.stderr.contains(message), "{models} {}", checked.stderr);
        assert!(!checked.stderr.contains("sk-123"), "{}", checked.stderr);
    }
    write(&format!("[models.a]\n{one}[models.b]\n{one}"));
    let undecided = scene.run(&["hi", "--config", "c.toml"]);
    assert!(undecided.stderr.contains("pass --model NAME: `a`, `b`"), "{}", undecided.stderr);
}
