//! Runs the programs of `tests/examples` and checks their output.

use std::process::Command;

use cofferdam_tests::{binary, guest, root};

fn run(name: &str, arguments: &[&str]) -> String {
    let program = binary().with_file_name(format!("example-{name}"));
    // By default a host keeps compiled code in the user's cache.
    let cache = root().join("target/tests/user-cache");
    let output =
        Command::new(program).args(arguments).env("XDG_CACHE_HOME", cache).output().unwrap();
    assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn embedding_the_host_gives_a_model_sandboxed_tools() {
    let shown = run("embed", &[&guest("text").display().to_string()]);
    assert!(
        shown.starts_with("tool: {\"words\":6,") && shown.ends_with("model: Six words.\n"),
        "{shown}"
    );
}

#[test]
fn an_agent_with_files_asks_before_it_deletes() {
    let wish =
        "the model wants to call file_access_delete_file with {\"file_name\":\"plan.md\"}: no";
    assert_eq!(run("files", &[]), format!("{wish}\nmodel: The file stays.\n"));
}

#[test]
fn a_source_of_ones_own_gets_decoded_arguments_and_reports_failures() {
    let shown = run("tool-source", &[]);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], r#"tool: {"error":{"message":"there is no article `tee`"}}"#);
    assert!(lines[1].starts_with(r#"tool: {"total":12.6"#), "{shown}");
}

#[test]
fn middleware_answers_instead_of_a_tool() {
    let shown = run("middleware", &[]);
    let words: Vec<_> = shown.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(words, ["called:", "known:", "called:", "model:"], "{shown}");
}

#[test]
fn a_hook_ends_a_run_that_has_cost_enough() {
    let rounds = "after round 1: 420 tokens\nafter round 2: 940 tokens\n";
    assert_eq!(run("budget", &[]), format!("{rounds}4 messages, and no answer: \"\"\n"));
}

#[test]
fn a_long_run_is_made_shorter_and_the_response_keeps_everything() {
    let shown = run("compaction", &[]);
    let lines: Vec<_> = shown.lines().collect();
    let messages: Vec<_> = lines.iter().map(|line| line.split(' ').next().unwrap()).collect();
    // The task, a summary, and the last call with its result.
    assert_eq!(messages, ["1", "3", "5", "4", "model:"], "{shown}");
    assert_eq!(lines[4], "model: It is about nothing. (7 messages in all)");
}

#[test]
fn a_workflow_waits_for_a_person_and_goes_on_from_its_checkpoint() {
    let shown = run("workflow", &[]);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], "superstep_started#1");
    let end = [
        "asked: Print `Tides rise and fall.`?",
        "restored after superstep 3",
        "output: printed: Tides rise and fall.",
    ];
    assert_eq!(lines[lines.len() - 3..], end, "{shown}");
}
