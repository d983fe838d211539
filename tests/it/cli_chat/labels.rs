//! Information-flow labels in `chat`: the flag, `[labels]`, output, and exit codes.

use serde_json::{Value, json};

use super::terminal::chat;
use super::{Ran, Scene, calls, plugin, says};

fn reads() -> Value {
    calls("file_access_read_file", json!({"file_name": "a.md"}))
}

fn saves() -> Value {
    calls("file_access_save_file", json!({"file_name": "b.md", "content": "x"}))
}

fn config(scene: &Scene, labels: &str) {
    std::fs::write(scene.path("c.toml"), format!("[labels]\n{labels}")).unwrap();
}

fn decisions(ran: &Ran) -> Vec<String> {
    let lines = ran.lines();
    let decisions = lines.iter().filter(|line| line["type"] == "label_decision");
    decisions.map(|line| line["decision"].as_str().unwrap().to_owned()).collect()
}

fn end(ran: &Ran) -> Value {
    ran.lines().last().unwrap()["outcome"].clone()
}

#[test]
fn labels_are_off_unless_a_flag_or_the_configuration_says_otherwise() {
    let scene = Scene::new(&[reads(), says("Read.")]);
    let off = scene.chat(&["hi", "--files", "notes:ro", "--json"]);
    assert_eq!((off.results(), decisions(&off)), (vec!["one\n".to_owned()], vec![]));
    config(&scene, "policy = false\n");
    let off = scene.chat(&["hi", "--files", "notes:ro", "--json", "--config", "c.toml"]);
    assert_eq!(off.results(), ["one\n"]);
    let by_flag = scene.chat(&["hi", "--files", "notes:ro", "--json", "--labels"]);
    config(&scene, "policy = true\n");
    let by_config = scene.chat(&["hi", "--files", "notes:ro", "--json", "--config", "c.toml"]);
    for ran in [by_flag, by_config] {
        assert_eq!((ran.code, end(&ran)), (Some(0), json!("answered")), "{}", ran.stderr);
        let shown: Value = serde_json::from_str(&ran.results()[0]).unwrap();
        assert_eq!(shown["type"], "variable_reference", "{shown}");
        assert_eq!(decisions(&ran), ["labelled", "hidden"]);
        let id = shown["variable_id"].as_str().unwrap();
        assert!(ran.stderr.contains(&format!("hidden from the model as {id}")), "{}", ran.stderr);
        assert!(!ran.stdout.contains("one\\n"), "{}", ran.stdout);
    }
}

#[test]
fn a_labelled_session_does_not_go_on_without_its_policy() {
    let scene = Scene::new(&[reads(), says("Read.")]);
    config(&scene, "policy = true\nauto-hide-untrusted = false\n");
    let session = ["hi", "--files", "notes:ro", "--session", "s", "--session-dir", "sessions"];
    let begun = scene.chat(&[&session[..], &["--config", "c.toml"]].concat());
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    let without = scene.chat(&session);
    assert_eq!(without.code, Some(2), "{}", without.stderr);
    assert!(without.stderr.contains("go on with --labels"), "{}", without.stderr);
    assert_eq!(scene.chat(&[&session[..], &["--labels"]].concat()).code, Some(0));
}

#[test]
fn what_a_session_has_read_without_a_policy_counts_as_untrusted() {
    let scene = Scene::new(&[reads(), says("Read.")]);
    config(&scene, "policy = true\nauto-hide-untrusted = false\n");
    let session = ["hi", "--files", "notes", "--session", "s", "--session-dir", "sessions"];
    assert_eq!(scene.chat(&session).code, Some(0));
    let script = [saves(), says("Saved.")].map(|reply| reply.to_string()).join("\n");
    std::fs::write(scene.path("model.jsonl"), script).unwrap();
    let with = scene.chat(&[&session[..], &["--config", "c.toml", "--yes"]].concat());
    assert_eq!(with.code, Some(3), "{}", with.stderr);
    assert!(with.stderr.contains("was begun without a label policy"), "{}", with.stderr);
}

#[test]
fn a_call_that_is_blocked_ends_the_turn_with_its_own_code() {
    let scene = Scene::new(&[reads(), saves(), says("Saved.")]);
    config(
        &scene,
        "policy = true\nauto-hide-untrusted = false\n\
         [records]\nenabled = true\ndirectory = \"log\"\n",
    );
    let blocked = ["hi", "--files", "notes", "--config", "c.toml", "--yes"];
    let ran = scene.chat(&[&blocked[..], &["--json"]].concat());
    assert_eq!((ran.code, end(&ran)), (Some(3), json!("blocked")), "{}", ran.stderr);
    assert!(!scene.has("notes/b.md"));
    let error = r#"{"error":"Policy violation: Tool cannot be called in untrusted context","function":"file_access_save_file"}"#;
    assert_eq!(ran.results()[1], error);
    let mut events = std::process::Command::new(cofferdam_tests::binary());
    let log = scene.path("log").display().to_string();
    events.args(["log", "events", "--kind", "label", "--directory", &log]);
    let events = String::from_utf8(events.output().unwrap().stdout).unwrap();
    assert!(events.contains("file_access_save_file"), "{events}");
    assert!(events.contains("blocked (untrusted/"), "{events}");
    let ran = scene.chat(&blocked);
    assert!(ran.stderr.contains("the label policy has blocked a call"), "{}", ran.stderr);
    config(
        &scene,
        "policy = true\nauto-hide-untrusted = false\nsources.workspace.accepts-untrusted = true\n",
    );
    let ran = scene.chat(&blocked);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Saved.\n"), "{}", ran.stderr);
    assert!(scene.has("notes/b.md"));
}

#[test]
fn a_hidden_value_is_stored_with_its_session_and_in_no_other() {
    let scene = Scene::new(&[reads(), says("Read.")]);
    let session = |name: &'static str| {
        [
            "hi",
            "--labels",
            "--files",
            "notes:ro",
            "--json",
            "--session",
            name,
            "--session-dir",
            "sessions",
        ]
    };
    let read = scene.chat(&session("s"));
    let shown: Value = serde_json::from_str(&read.results()[0]).unwrap();
    let id = shown["variable_id"].as_str().unwrap();
    let inspects = calls("inspect_variable", json!({"variable_id": id}));
    let script = [inspects.to_string(), says("Seen.").to_string()].join("\n");
    std::fs::write(scene.path("model.jsonl"), script).unwrap();
    assert_eq!(
        scene.chat(&session("t")).results(),
        [format!(r#"{{"error":"Unknown variable '{id}'"}}"#)]
    );
    assert_eq!(scene.chat(&session("s")).results(), ["one\n"]);
    // From then on the session is untrusted, also in later processes.
    std::fs::write(scene.path("model.jsonl"), saves().to_string()).unwrap();
    let mut writes = session("s");
    writes[3] = "notes";
    assert_eq!(end(&scene.chat(&writes)), "blocked");
}

#[test]
fn names_that_are_none_are_errors() {
    let scene = Scene::new(&[says("hello")]);
    let run = |labels: &str| {
        config(&scene, labels);
        scene.chat(&["hi", "--files", "notes:ro", "-p", &plugin("text"), "--config", "c.toml"])
    };
    for (labels, message) in [
        (
            "policy = true\nallow-untrusted-tools = [\"word_cuont\"]\n",
            ":3:26: labels: there is no tool `word_cuont`",
        ),
        ("policy = true\n[labels.tools.nope]\n", "labels: there is no tool `nope`"),
        ("policy = true\n[labels.sources.txt]\n", "is called `txt`; there are `text`, `workspace`"),
        ("policy = true\nquarantine-model = \"small\"\n", "there is no model `small` in this file"),
        ("polcy = true\n", "unknown field `polcy`"),
        ("[labels.tools.word_count]\nconfidentiality = \"secret\"\n", "unknown variant `secret`"),
    ] {
        let ran = run(labels);
        assert_eq!(ran.code, Some(2), "{labels} {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{labels} {}", ran.stderr);
    }
    let ran = run("policy = \
         true\n[labels.tools.word_count]\n[labels.sources.text]\n[labels.sources.workspace]\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "hello\n"), "{}", ran.stderr);
    // Disabled label settings are not checked.
    assert_eq!(run("[labels.tools.nope]\n").code, Some(0));
}

#[test]
fn a_quarantined_model_of_the_configuration_sees_values_and_the_other_one_does_not() {
    let id = "var_0000000000000000";
    let asks = calls("quarantined_llm", json!({"prompt": "What?", "variable_ids": [id]}));
    let scene = Scene::new(&[
        asks,
        calls("quarantined_llm", json!({"prompt": "What?", "variable_ids": []})),
        says("So."),
    ]);
    std::fs::write(scene.path("small.jsonl"), says("the answer").to_string()).unwrap();
    let models = "[models.small]\nprovider = \"script\"\nmodel = \"small.jsonl\"\n";
    config(&scene, &format!("policy = true\nquarantine-model = \"small\"\n{models}"));
    let ran = scene.chat(&["hi", "--files", "notes:ro", "--config", "c.toml", "--json"]);
    assert_eq!(
        ran.results()[0],
        format!(r#"{{"error":"Unknown variable '{id}'"}}"#),
        "{}",
        ran.stderr
    );
    assert!(
        ran.results()[1].contains("variable_reference") && !ran.stdout.contains("the answer"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_person_is_asked_about_what_labels_are_against_each_time_whatever_flags_say() {
    let scene = Scene::new(&[reads(), saves(), saves(), says("Saved.")]);
    config(&scene, "policy = true\nauto-hide-untrusted = false\napproval-on-violation = true\n");
    let flags = ["--files", "notes", "--config", "c.toml", "--yes"];
    let unattended = scene.chat(&[&["hi"], &flags[..]].concat());
    assert_eq!(unattended.code, Some(4), "{}", unattended.stderr);
    assert!(
        unattended
            .stderr
            .contains("the label policy is against it, and there is no terminal to ask at"),
        "{}",
        unattended.stderr
    );
    assert!(!scene.has("notes/b.md"));
    let mut operator = chat(&scene, &flags);
    operator.sees("you> ").types("hi\n").sees("the model wants to call `file_access_save_file`");
    operator.sees("against it: Policy violation: Tool cannot be called in untrusted context");
    operator.sees("Allow it this once?").answers("a\n").sees("Allow it this once?").answers("y\n");
    operator.sees("allowed by you").sees("Allow it this once?").answers("n\n").sees("Saved.");
    operator.sees("you> ").types("/labels\n").sees("the conversation is untrusted, public");
    operator.sees("you> ").types("/quit\n");
    assert_eq!(operator.ends().0, Some(0));
    assert!(scene.has("notes/b.md"));
}
