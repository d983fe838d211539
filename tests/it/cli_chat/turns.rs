//! How turns end, which calls they show, and what a saved session keeps of them.

use serde_json::{Value, json};

use super::provider::server;
use super::terminal::chat;
use super::{Ran, Scene, calls, deletes, says};

const SESSION: [&str; 6] = ["--files", "notes", "--session", "s", "--session-dir", "kept"];

fn in_session(scene: &Scene, arguments: &[&str]) -> Ran {
    scene.chat(&[&SESSION[..], arguments].concat())
}

fn deletes_also(name: &str) -> Value {
    json!({"tool": "file_access_delete_file", "arguments": {"file_name": name}})
}

/// Returns a streamed answer of the chat completions API.
fn streamed(delta: Value, finish: &str) -> (u16, &'static str, String) {
    let chunk = json!({"id": "1", "object": "chat.completion.chunk", "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
    (200, "text/event-stream", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

fn streamed_call(name: &str) -> (u16, &'static str, String) {
    let function = json!({"name": name, "arguments": "{}"});
    let calls = json!([{"index": 0, "id": "x", "type": "function", "function": function}]);
    streamed(json!({"tool_calls": calls}), "tool_calls")
}

#[test]
fn a_revoked_approval_does_not_come_back_in_the_next_process() {
    let scene = Scene::new(&[deletes(), says("Done.")]);
    let mut operator = chat(&scene, &[&["Go."], &SESSION[..]].concat());
    operator.sees("Allow it?").answers("a\n").sees("Done.");
    assert_eq!(operator.ends().0, Some(0));
    assert!(!scene.has("notes/a.md"));
    let mut operator = chat(&scene, &SESSION);
    operator.sees("you> ").types("/forget\n").sees("all standing approvals are revoked");
    operator.sees("you> ").types("/quit\n");
    assert_eq!(operator.ends().0, Some(0));
    std::fs::write(scene.path("notes/a.md"), "again").unwrap();
    let ran = in_session(&scene, &["Go."]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(scene.has("notes/a.md"));
}

#[test]
fn always_applies_to_the_rest_of_the_reply_unless_a_rule_asks() {
    let rule = "[[agent.approvals]]\neffect = \"ask\"\ntool = \"file_access_delete_file\"\narguments = \
                { file_name = { equals = \"b.md\" } }\n";
    for (rule, questions) in [("", 1), (rule, 2)] {
        let both = json!({"calls": [deletes_also("a.md"), deletes_also("b.md")]});
        let scene = Scene::new(&[both, says("Done.")]);
        std::fs::write(scene.path("notes/b.md"), "two").unwrap();
        std::fs::write(scene.path("c.toml"), rule).unwrap();
        let mut operator = chat(&scene, &["Go.", "--files", "notes", "--config", "c.toml"]);
        operator.sees("Allow it?").answers("a\n");
        if questions == 2 {
            operator.sees("Allow it?").answers("y\n");
        }
        operator.sees("Done.");
        let (code, screen) = operator.ends();
        assert_eq!((code, screen.matches("Allow it?").count()), (Some(0), questions), "{screen}");
        assert!(!scene.has("notes/a.md") && !scene.has("notes/b.md"), "{screen}");
    }
}

#[test]
fn what_a_failed_turn_should_have_sent_is_sent_with_the_next_prompt() {
    let failure = json!({"error": {"kind": "unauthorized", "message": "no"}});
    let scene = Scene::new(&[failure.clone(), says("Hello."), failure, says("Again.")]);
    let mut operator = chat(&scene, &SESSION);
    let sent = "sent again with the next prompt";
    operator.sees("you> ").types("/attach notes/a.md\n");
    operator.sees("you> ").types("/pin The code is 7.\n");
    operator.sees("you> ").types("one\n").sees("error: ").sees(sent).sees(sent);
    operator.sees("you> ").types("two\n").sees("Hello.");
    operator.sees("you> ").types("/attach notes/a.md\n").sees("you> ").types("three\n").sees(sent);
    operator.sees("you> ").types("/attach\n").sees("no file is sent with the next prompt");
    operator.sees("you> ").types("four\n").sees("Again.").sees("you> ").types("/quit\n");
    assert_eq!(operator.ends().0, Some(0));
    let stored = std::fs::read_to_string(scene.path("kept/s.jsonl")).unwrap();
    let prompt = stored.lines().position(|line| line.contains("\"two\"")).unwrap();
    let with_file: Vec<_> = stored.lines().map(|line| line.contains("File `a.md`")).collect();
    assert_eq!(with_file.iter().position(|has| *has), Some(prompt), "{stored}");
    assert_eq!(with_file.iter().filter(|has| **has).count(), 1, "{stored}");
    assert_eq!(stored.matches("The code is 7.").count(), 1, "{stored}");
}

#[test]
fn what_a_session_could_not_keep_is_sent_with_the_next_prompt() {
    let scene = Scene::new(&[says("Hello.")]);
    let mut operator = chat(&scene, &SESSION);
    operator.sees("you> ").types("/pin The code is 7.\n").sees("you> ");
    // No file can be created in a directory that has been removed.
    std::fs::remove_dir_all(scene.path("kept")).unwrap();
    std::fs::create_dir(scene.path("kept")).unwrap();
    operator.types("one\n").sees("Hello.").sees("error: ");
    operator.sees("the pinned facts are sent again with the next prompt");
    operator.sees("you> ").types("/quit\n");
    assert_eq!(operator.ends().0, Some(0));
}

#[test]
fn all_requests_of_a_reply_are_shown_and_answered_together() {
    let runs = |file: &str| {
        let code = format!("return await tools.file_access_delete_file({{file_name: '{file}'}})");
        json!({"tool": "run_code", "arguments": {"code": code}})
    };
    let both = json!({"calls": [runs("a.md"), deletes_also("b.md"), runs("c.md")]});
    let scene = Scene::new(&[both, says("Done.")]);
    let files = ["notes/a.md", "notes/b.md", "notes/c.md"];
    files.iter().for_each(|file| std::fs::write(scene.path(file), "x").unwrap());
    let waiting = in_session(&scene, &["Go.", "--code"]);
    assert_eq!(waiting.code, Some(4), "{}", waiting.stderr);
    let said = waiting.stderr.lines().filter(|line| line.starts_with("request "));
    assert_eq!(said.count(), 3, "{}", waiting.stderr);
    assert!(waiting.stderr.contains("the model waits for your approval"), "{}", waiting.stderr);
    let advice = waiting.stderr.lines().last().unwrap().split(' ');
    let answers: Vec<_> = advice.filter(|word| word.ends_with("=yes")).collect();
    assert_eq!(answers.len(), 3, "{}", waiting.stderr);
    std::fs::write(scene.path("model.jsonl"), says("Gone.").to_string()).unwrap();

    let part = in_session(&scene, &["--code", "--answer", answers[0]]);
    assert_eq!(part.code, Some(4), "{}", part.stderr);
    assert!(part.stderr.contains("have to be answered together"), "{}", part.stderr);
    assert!(files.iter().all(|file| scene.has(file)));
    let flags: Vec<_> = answers.iter().flat_map(|answer| ["--answer", answer]).collect();
    let ran = in_session(&scene, &[&["--code"], &flags[..]].concat());
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Gone.\n"), "{}", ran.stderr);
    assert!(!files.iter().any(|file| scene.has(file)), "{}", ran.stderr);
}

#[test]
fn a_turn_that_ends_with_calls_has_no_answer() {
    let scene = Scene::new(&[calls("nope", json!({}))]);
    std::fs::write(scene.path("c.toml"), "[agent.loop]\nterminate-on-unknown = true\n").unwrap();
    let ran = scene.chat(&["Go.", "--config", "c.toml", "--json"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert_eq!(ran.lines().last().unwrap()["outcome"], "unanswered");
    assert!(ran.stderr.contains("without an answer: there is no tool `nope`"), "{}", ran.stderr);
    let scene = Scene::new(&[calls("file_access_list_files", json!({}))]);
    std::fs::write(scene.path("c.toml"), "[agent.loop]\nenabled = false\n").unwrap();
    let ran = scene.chat(&["Go.", "--config", "c.toml", "--files", "notes"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("calls of `file_access_list_files` were not run"),
        "{}",
        ran.stderr
    );
}

#[test]
fn calls_that_do_not_run_are_shown_with_their_names_in_bounds() {
    let long = "z".repeat(5000);
    let end = streamed(json!({"content": "Done."}), &long);
    let (url, _asked) = server(vec![streamed_call("nope"), streamed_call(&long), end]);
    let scene = Scene::new(&[]);
    let ran = scene.run(&["Go.", "--model", "openai:m", "--base-url", &url, "--files", "notes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Done.\n"), "{}", ran.stderr);
    let shown: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with('>')).collect();
    assert_eq!(shown.len(), 2, "{}", ran.stderr);
    assert!(shown[0] == "> nope" && shown[1].starts_with("> zzz"), "{}", ran.stderr);
    let longest = ran.stderr.lines().map(str::len).max();
    assert!(longest.is_some_and(|longest| longest < 300), "{}", ran.stderr);
    // A scripted model may use one id for two calls.
    let call = |tool: &str| json!({"tool": tool, "id": "x"});
    let scene = Scene::new(&[json!({"calls": [call("one"), call("two")]}), says("Done.")]);
    let ran = scene.chat(&["Go.", "--files", "notes"]);
    let shown: Vec<_> = ran.stderr.lines().filter(|line| line.starts_with('>')).collect();
    assert_eq!(shown, ["> one", "> two"], "{}", ran.stderr);
}

#[test]
fn a_dry_run_is_no_part_of_a_session() {
    let scene = Scene::new(&[deletes(), says("Done.")]);
    let ran = in_session(&scene, &["Go.", "--dry-run", "--yes"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("--dry-run does not go with --session"), "{}", ran.stderr);
    assert!(scene.has("notes/a.md") && !scene.has("kept"));
}

#[test]
fn an_unreadable_session_is_a_usage_error_and_a_torn_line_is_moved_aside() {
    let scene = Scene::new(&[says("Hello.")]);
    std::fs::create_dir(scene.path("kept")).unwrap();
    std::fs::write(scene.path("kept/s.jsonl"), "not JSON\n").unwrap();
    let ran = in_session(&scene, &["Go."]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("history line 1 from 's.jsonl'"), "{}", ran.stderr);

    std::fs::write(scene.path("kept/s.jsonl"), "{\"type\":\"mess").unwrap();
    let ran = in_session(&scene, &["Go."]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("it is now in s.jsonl.torn"), "{}", ran.stderr);
    assert!(scene.has("kept/s.jsonl.torn"));
    #[cfg(unix)]
    {
        std::fs::remove_file(scene.path("kept/s.jsonl")).unwrap();
        std::os::unix::fs::symlink("other.jsonl", scene.path("kept/s.jsonl")).unwrap();
        let ran = in_session(&scene, &["Go."]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("'s.jsonl' is not a regular file"), "{}", ran.stderr);
    }
}
