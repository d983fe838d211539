//! Prompts that cannot be used, and rules about tools that do not exist.

use std::io::Write as _;

use super::*;

#[test]
fn a_line_of_a_pipe_that_is_too_long_is_an_error() {
    let scene = Scene::new(&[says("One."), says("Two.")]);
    let mut chat = scene.start(&["--json"]);
    let input = format!("first\n{}\nthird\n", "x".repeat(1024 * 1024 + 1));
    // The program ends before it has read everything.
    let _ = chat.stdin.take().unwrap().write_all(input.as_bytes());
    let ran = ran(chat.wait_with_output().unwrap());
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("more than 1048576 bytes"), "{}", ran.stderr);
    assert_eq!(ran.lines().iter().filter(|line| line["type"] == "end").count(), 1);
}

#[test]
fn an_empty_prompt_is_an_error() {
    let scene = Scene::new(&[says("One.")]);
    for prompt in ["", " \n"] {
        let ran = scene.chat(&[prompt]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""), "{}", ran.stderr);
    }
}

#[test]
fn a_rule_for_a_misspelled_tool_is_a_warning() {
    let scene = Scene::new(&[says("One.")]);
    let rule = "[[agent.approvals]]\neffect = \"deny\"\ntool = \"word_cuont\"\n";
    std::fs::write(scene.path("c.toml"), rule).unwrap();
    let ran = scene.chat(&["hi", "-p", &plugin("text"), "--config", "c.toml"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("did you mean `word_count`?"), "{}", ran.stderr);
}
