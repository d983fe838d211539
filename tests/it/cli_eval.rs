//! `cofferdam eval`: cases with a scripted model, reports, and their comparison.

use std::path::PathBuf;

use cofferdam_tests::guest;
use serde_json::{Value, json};

use crate::cli_skills;

const CASES: &str = r#"
{"name":"counts","prompt":"Count a b.","runs":3,"calls":[{"tool":"word_count","arguments":{"text":"a b"}}],"answer":{"contains":"Two"}}
{"name":"is polite","prompt":"Count a b.","answer":{"contains":"please"}}
"#;

/// Folder with cases and a model that counts once and fails once before.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new() -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        scene.write("cases.jsonl", CASES.trim_start());
        let replies = [
            json!({"calls": [{"tool": "word_count", "arguments": {"words": "a b"}}]}),
            json!({"calls": [{"tool": "word_count", "arguments": {"text": "a b"}}]}),
            json!({"text": "Two words.", "usage": {"input": 40, "output": 3}}),
        ];
        let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
        scene.write("model.jsonl", &lines.join("\n"));
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// Returns exit code, standard output and standard error.
    fn run(&self, more: &[&str]) -> (i32, String, String) {
        let plugin = guest("text").display().to_string();
        let flags = ["eval", "cases.jsonl", "--model", "script:model.jsonl", "-p", &plugin];
        let output = cli_skills::command(self.0.path(), &[&flags, more].concat()).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }
}

#[test]
fn a_case_names_only_tools_that_exist() {
    let scene = Scene::new();
    let case = json!({"name": "a", "prompt": "Count a b.", "forbidden": ["word_cuont"]});
    scene.write("cases.jsonl", &case.to_string());
    let (code, _, errors) = scene.run(&[]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("did you mean `word_count`?"), "{errors}");
}

/// An agent file selects tools. Others may be forbidden, and an expected call of one is an error.
#[test]
fn an_expected_call_needs_a_tool_of_the_evaluated_agent() {
    let scene = Scene::new();
    let case = json!({"name": "a", "prompt": "Count.", "calls": [{"tool": "word_count"}]});
    scene.write("cases.jsonl", &case.to_string());
    scene.write("none.yaml", "name: none\ninstructions: Answer.\ntools: []\n");
    let (code, _, errors) = scene.run(&["--agent", "none.yaml"]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("add it to the `tools` of the agent"), "{errors}");
    let case = json!({"name": "a", "prompt": "Count.", "forbidden": ["word_count"]});
    scene.write("cases.jsonl", &case.to_string());
    scene.write("model.jsonl", r#"{"text":"Two words."}"#);
    let (code, _, errors) = scene.run(&["--agent", "none.yaml"]);
    assert_eq!(code, 0, "{errors}");
}

#[test]
fn a_report_says_which_runs_passed_and_why_others_failed() {
    let scene = Scene::new();
    let (code, shown, errors) = scene.run(&[]);
    assert_eq!(code, 1, "{errors}");
    assert!(shown.contains("counts") && shown.contains("is polite"), "{shown}");
    assert!(shown.contains("please"), "{shown}");
    let (code, shown, errors) = scene.run(&["--filter", "counts", "--json"]);
    assert_eq!(code, 0, "{errors}");
    let printed: Value = serde_json::from_str(&shown).unwrap();
    let report = &printed["report"];
    assert_eq!(report["cases"][0]["runs"].as_array().map(Vec::len), Some(3), "{report}");
    let run = &report["cases"][0]["runs"][0];
    assert_eq!((&run["outcome"], &run["failed_calls"]), (&json!("passed"), &json!(1)), "{run}");
    assert_eq!(run["input_tokens"], json!(40));
    assert_eq!(report["model"], "script:model.jsonl");
    assert_eq!(printed["comparison"], Value::Null);
}

#[test]
fn a_report_is_compared_with_that_of_another_version() {
    let scene = Scene::new();
    let (code, _, errors) = scene.run(&["--filter", "counts", "--report", "before.json"]);
    assert_eq!(code, 0, "{errors}");
    // The model answers without the call.
    scene.write("model.jsonl", r#"{"text":"Two words."}"#);
    let (code, shown, errors) = scene.run(&["--filter", "counts", "--compare", "before.json"]);
    assert_eq!(code, 1, "{errors}");
    assert!(shown.contains("counts") && shown.contains("passed -> failed"), "{shown}");
}

#[test]
fn mistakes_are_one_clear_error() {
    let scene = Scene::new();
    scene.write("other.jsonl", "{\"name\":\"x\",\"prompt\":\"y\",\"cals\":[]}");
    scene.write("broken.json", "{");
    for (flags, expected) in [
        (&["--runs", "2", "--filter", "nothing"][..], "the name of no case contains `nothing`"),
        (&["--concurrency", "0"], "oncurren"),
        (&["--compare", "broken.json"], "broken.json"),
        (&["--agent", "none.yaml"], "none.yaml"),
        (&["--judge", "unknown"], "unknown"),
    ] {
        let (code, _, errors) = scene.run(flags);
        assert_eq!(code, 2, "{flags:?}: {errors}");
        assert!(errors.contains(expected), "{flags:?}: {errors}");
    }
    let flags = ["eval", "other.jsonl", "--model", "script:model.jsonl"];
    let output = cli_skills::command(scene.0.path(), &flags).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{errors}");
    assert!(errors.contains("other.jsonl:1") && errors.contains("cals"), "{errors}");
}

/// The judge is a model that the command names, and says so in the table and in JSON.
#[test]
fn a_named_model_judges_by_the_rubric() {
    let scene = Scene::new();
    let case = json!({"name": "warm", "prompt": "Count a b.", "rubric": "It counts and is warm."});
    scene.write("cases.jsonl", &case.to_string());
    let (code, _, errors) = scene.run(&[]);
    assert_eq!(code, 2, "{errors}");
    assert!(errors.contains("\"warm\" has a rubric") && errors.contains("--judge"), "{errors}");
    for is_accepted in [true, false] {
        let answer = json!({"reason": "It is cold.", "meets_rubric": is_accepted});
        let reply = json!({"text": answer.to_string(), "usage": {"input": 70, "output": 8}});
        scene.write("judge.jsonl", &reply.to_string());
        let expected = i32::from(!is_accepted);
        let (code, shown, errors) = scene.run(&["--judge", "script:judge.jsonl"]);
        assert_eq!(code, expected, "{errors}");
        assert!(shown.contains("accepted"), "{shown}");
        assert!(shown.contains("Judged by script:judge.jsonl."), "{shown}");
        let reason = "expected a run that meets the rubric: It is cold.";
        assert_eq!(shown.contains(reason), !is_accepted, "{shown}");
        let (code, shown, errors) = scene.run(&["--judge", "script:judge.jsonl", "--json"]);
        assert_eq!(code, expected, "{errors}");
        let report: Value = serde_json::from_str(&shown).unwrap();
        let report = &report["report"];
        assert_eq!(report["judge"], "script:judge.jsonl");
        let judgment = &report["cases"][0]["runs"][0]["judgment"];
        assert_eq!(
            *judgment,
            json!({"is_accepted": is_accepted, "reason": "It is cold.", "input_tokens": 70, "output_tokens": 8})
        );
    }
}
