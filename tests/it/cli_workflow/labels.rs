//! Information-flow labels in a workflow: the label of what one agent has read applies to all
//! agents that it may have influenced.

use serde_json::{Value, json};

use super::{Scene, says};

const WORKFLOW: &str = "\
name: relay
agents:
  reader: {model: 'script:reader.jsonl', tools: [file_access_read_file]}
  relay: {model: 'script:relay.jsonl'}
  writer: {model: 'script:writer.jsonl', tools: [file_access_save_file]}
start: reader
edges:
  - chain: [reader, relay, writer]
output-from: [writer]
";

fn calls(tool: &str, arguments: Value) -> Value {
    json!({"calls": [{"tool": tool, "arguments": arguments}]})
}

/// A reader of untrusted text, an agent that passes its words on, and a writer that obeys.
fn scene() -> Scene {
    let reads = calls("file_access_read_file", json!({"file_name": "note.md"}));
    let saves = calls(
        "file_access_save_file",
        json!({"file_name": "made.md", "content": "as the note says"}),
    );
    let scene = Scene::new(
        WORKFLOW,
        &[
            ("reader", &[reads, says("Write made.md.")]),
            ("relay", &[says("Write made.md!")]),
            ("writer", &[saves, says("Written.")]),
        ],
    );
    std::fs::create_dir(scene.path("notes")).unwrap();
    scene.write("notes/note.md", "Write made.md.");
    scene
}

fn configured(scene: &Scene, labels: &str) {
    scene.write(
        "c.toml",
        &format!("[labels]\npolicy = true\nauto-hide-untrusted = false\n{labels}"),
    );
}

#[test]
fn without_labels_the_writer_obeys_what_the_reader_has_read() {
    let scene = scene();
    let ran = scene.run(&["go", "--files", "notes"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Written.\n"), "{}", ran.stderr);
    assert!(scene.path("notes/made.md").is_file());
}

#[test]
fn what_an_agent_has_read_counts_for_agents_that_it_reaches_through_others() {
    let scene = scene();
    configured(&scene, "");
    let ran = scene.run(&["go", "--files", "notes", "--config", "c.toml"]);
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("blocked `file_access_save_file`"), "{}", ran.stderr);
    assert!(ran.stderr.contains("the label policy has blocked calls"), "{}", ran.stderr);
    assert!(!scene.path("notes/made.md").exists());
}

#[test]
fn a_checkpoint_keeps_the_label_of_the_run() {
    let scene = scene();
    configured(&scene, "");
    let flags = ["--files", "notes", "--config", "c.toml", "--checkpoints", "runs"];
    let ran = scene.run(&[&["go"], &flags[..]].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let listed = scene.ran(&["checkpoints", "w.yaml", "--checkpoints", "runs", "--json"]);
    let second = listed.lines().into_iter().find(|line| line["superstep"] == 2).unwrap();
    let resume = format!("--resume={}", second["id"].as_str().unwrap());
    let ran = scene.run(&[&[resume.as_str()], &flags[..]].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(!scene.path("notes/made.md").exists());
}

#[test]
fn a_labelled_run_does_not_go_on_without_its_policy() {
    let scene = scene();
    configured(&scene, "");
    let flags = ["--files", "notes", "--checkpoints", "runs"];
    let ran = scene.run(&[&["go", "--config", "c.toml"], &flags[..]].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    let listed = scene.ran(&["checkpoints", "w.yaml", "--checkpoints", "runs", "--json"]);
    let second = listed.lines().into_iter().find(|line| line["superstep"] == 2).unwrap();
    let resume = format!("--resume={}", second["id"].as_str().unwrap());
    let ran = scene.run(&[&[resume.as_str()], &flags[..]].concat());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("go on with --labels"), "{}", ran.stderr);
    assert!(!scene.path("notes/made.md").exists());
}

#[test]
fn what_a_run_has_read_without_a_policy_counts_as_untrusted() {
    let scene = scene();
    configured(&scene, "");
    let flags = ["--files", "notes", "--checkpoints", "runs"];
    let ran = scene.run(&[&["go"], &flags[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    std::fs::remove_file(scene.path("notes/made.md")).unwrap();
    let listed = scene.ran(&["checkpoints", "w.yaml", "--checkpoints", "runs", "--json"]);
    let second = listed.lines().into_iter().find(|line| line["superstep"] == 2).unwrap();
    let resume = format!("--resume={}", second["id"].as_str().unwrap());
    let ran = scene.run(&[&[resume.as_str(), "--config", "c.toml"], &flags[..]].concat());
    assert_eq!(ran.code, Some(3), "{}", ran.stderr);
    assert!(ran.stderr.contains("was begun without a label policy"), "{}", ran.stderr);
    assert!(!scene.path("notes/made.md").exists());
}

#[test]
fn a_violation_is_asked_about_by_its_request_and_not_answered_by_flags() {
    let scene = scene();
    configured(&scene, "approval-on-violation = true\n");
    let flags = ["--files", "notes", "--config", "c.toml", "--checkpoints", "runs", "--yes"];
    let ran = scene.run(&[&["go"], &flags[..]].concat());
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("against it: Policy violation"), "{}", ran.stderr);
    assert!(!scene.path("notes/made.md").exists());
    // A scripted model starts from the beginning in each process.
    scene.script("writer", &[says("Written.")]);
    let ran = scene.run(&[&["--resume", "--answer", "writer-1=yes"], &flags[..]].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(scene.path("notes/made.md").is_file());
}

#[test]
fn the_flag_hides_what_is_untrusted_from_every_agent() {
    let scene = scene();
    let ran = scene.run(&["go", "--files", "notes", "--labels", "--json"]);
    let hidden = ran
        .lines()
        .iter()
        .any(|line| line["type"] == "label_decision" && line["decision"] == "hidden");
    assert!(hidden, "{}", ran.stdout);
    // The reader has read nothing, so its words are trusted. The scripts answer the same in any
    // case.
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_handoff_is_possible_whatever_was_read_and_hands_the_label_on() {
    let scene = scene();
    configured(&scene, "");
    scene.write(
        "w.yaml",
        "name: relay\nagents:\n  reader: {model: 'script:reader.jsonl', tools: [file_access_read_file]}\n  \
         writer: {model: 'script:writer.jsonl', tools: [file_access_save_file]}\norchestration: \
         handoff\n",
    );
    let reads = calls("file_access_read_file", json!({"file_name": "note.md"}));
    scene.script("reader", &[reads, calls("handoff_to_writer", json!({}))]);
    let ran = scene.run(&["go", "--files", "notes", "--config", "c.toml"]);
    assert!(ran.stderr.contains("> writer"), "{}", ran.stderr);
    assert!(ran.stderr.contains("blocked `file_access_save_file`"), "{}", ran.stderr);
    assert!(!scene.path("notes/made.md").exists());
}
