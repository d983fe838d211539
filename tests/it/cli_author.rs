//! Commands for authors of tools: `cofferdam check` and `cofferdam args`.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

fn run(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    let output = command.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn plugin(name: &str) -> String {
    guest(name).display().to_string()
}

fn check(name: &str, more: &[&str]) -> (i32, Value) {
    let path = plugin(name);
    let (code, stdout, _) = run(&[&["check", &path, "--json"], more].concat());
    (code, serde_json::from_str(&stdout).unwrap())
}

fn rules(report: &Value, key: &str) -> Vec<String> {
    let mut rules: Vec<_> = report[key]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["rule"].as_str().unwrap().to_owned())
        .collect();
    rules.sort();
    rules.dedup();
    rules
}

#[test]
fn every_refusal_of_every_tool_is_reported() {
    let (code, report) = check("bad_many", &[]);
    assert_eq!((code, &report["ok"]), (4, &json!(false)));
    let pointers: Vec<_> = report["refusals"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| (r["tool"].clone(), r["pointer"].clone()))
        .collect();
    let expected = [
        ("Fine", ""),
        ("two_mistakes", "/required/0"),
        ("two_mistakes", "/properties/n/default"),
        ("more_mistakes", "/properties/a/type"),
        ("more_mistakes", "/properties/b/pattern"),
        ("more_mistakes", "/properties/c/enum"),
        ("not json", ""),
        ("not json", ""),
    ];
    assert_eq!(pointers, expected.map(|(tool, pointer)| (json!(tool), json!(pointer))));
    let (code, stdout, _) = run(&["check", &plugin("bad_many")]);
    assert_eq!(code, 4);
    assert!(stdout.starts_with("Refused: the plugin does not load\n"), "{stdout}");
    assert!(stdout.ends_with("5 tools, 8 refusals, 0 notes, 6 advice\n"), "{stdout}");
    // Loading reports only one of the problems.
    assert_eq!(run(&["list", "--plugin", &plugin("bad_many")]).0, 4);
}

#[test]
fn advice_is_fine_unless_it_is_asked_to_count() {
    let (code, report) = check("weak", &[]);
    assert_eq!((code, &report["ok"], &report["refusals"]), (0, &json!(true), &json!([])));
    assert_eq!(rules(&report, "notes"), ["required-not-needed"]);
    let expected = [
        "description-long",
        "description-missing",
        "name-characters",
        "name-long",
        "not-strict",
        "parameter-description-missing",
        "parameter-name",
    ];
    assert_eq!(rules(&report, "advice"), expected);
    let (code, report) = check("weak", &["--strict"]);
    assert_eq!((code, &report["ok"]), (4, &json!(false)));
    assert_eq!(check("text", &["--strict"]).0, 0);
}

#[test]
fn what_is_no_plugin_is_a_refusal_and_what_is_not_there_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.wasm");
    std::fs::write(&file, "(module)").unwrap();
    let (code, stdout, _) = run(&["check", file.to_str().unwrap(), "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, report["refusals"].as_array().unwrap().len()), (4, 1));
    let (code, stdout, stderr) = run(&["check", "no/such/file.wasm", "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &report["code"]), (4, &json!("unavailable")), "{report}");
    assert!(stderr.contains("cannot be read"), "{stderr}");
}

fn schema_file(schema: &Value) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("count.json");
    std::fs::write(&file, schema.to_string()).unwrap();
    (folder, file)
}

fn args(schema: &Value, more: &[&str]) -> (i32, String, String) {
    let (_folder, file) = schema_file(schema);
    run(&[&["args", "--schema", file.to_str().unwrap()], more].concat())
}

fn count_schema() -> Value {
    json!({"properties": {"n": {"type": "integer", "minimum": 1}, "s": {"type": "string", "default": "x"}}, "required": ["n"]})
}

#[test]
fn arguments_are_decoded_without_a_call() {
    let schema = count_schema();
    let (code, stdout, stderr) = args(&schema, &[r#"{"n":"5","z":1,"s":null}"#]);
    assert_eq!((code, stdout.as_str()), (0, "{\"n\":5,\"s\":\"x\"}\n"));
    assert_eq!(stderr, "not declared and dropped: z\n");
    let (code, stdout, _) = args(&schema, &[r#"{"n":5,"z":1}"#, "--json"]);
    assert_eq!(code, 0);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report, json!({"ok": true, "arguments": {"n": 5, "s": "x"}, "dropped": ["z"]}));
}

#[test]
fn what_does_not_decode_ends_with_2_and_says_why() {
    let schema = count_schema();
    let (code, stdout, stderr) = args(&schema, &[r#"{"n":0}"#]);
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert_eq!(stderr, "constraint: Argument 'n' violates 'minimum'.\n");
    let (code, _, stderr) = args(&schema, &[]);
    assert_eq!(
        (code, stderr.as_str()),
        (2, "required: Required argument 'n' was not supplied to 'count'.\n")
    );
    let (code, stdout, _) = args(&schema, &[r#"{"n":"5"}"#, "--strict", "--json"]);
    assert_eq!(code, 2);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&report["ok"], &report["problems"][0]["code"]), (&json!(false), &json!("kind")));
}

#[test]
fn a_schema_is_shown_in_a_dialect() {
    let (code, stdout, stderr) = args(&count_schema(), &["--dialect", "openai-strict"]);
    assert_eq!(code, 0);
    let shown: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(shown["required"], json!(["n", "s"]));
    assert_eq!(shown["properties"]["s"]["type"], json!(["string", "null"]));
    assert_eq!(stderr, "`/properties/s`: `default` becomes words: Default: \"x\"\n");
    let tool = [
        "args",
        "--tool",
        "word_count",
        "--plugin",
        &plugin("text"),
        "--dialect",
        "anthropic",
        "--json",
    ];
    let (code, stdout, _) = run(&tool);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, &report["strict"], &report["dialect"]),
        (0, &json!(true), &json!("anthropic"))
    );
}

#[test]
fn usage_is_checked() {
    let (code, _, stderr) =
        args(&json!({"properties": {"a": {"type": "x"}, "b": {"enum": []}}}), &["{}"]);
    assert_eq!(code, 2);
    assert!(
        stderr.contains("/properties/a/type") && stderr.contains("/properties/b/enum"),
        "{stderr}"
    );
    assert_eq!(run(&["args", "{}"]).0, 2);
    assert_eq!(run(&["args", "--schema", "no/such.json"]).0, 2);
    assert_eq!(args(&count_schema(), &["--dialect", "gemini"]).0, 2);
    assert_eq!(args(&count_schema(), &["{}", "--dialect", "mcp"]).0, 2);
    assert_eq!(run(&["args", "--tool", "no_such_tool", "--plugin", &plugin("text")]).0, 2);
}

#[test]
fn a_new_project_lists_the_commands_that_its_toolchain_needs() {
    let scratch = tempfile::tempdir().unwrap();
    for (language, setup) in [
        ("python", "  python3 -m venv .venv\n  .venv/bin/pip install componentize-py=="),
        ("typescript", "  npm install\n  cofferdam build\n"),
        ("rust", "p\n  cofferdam build\n"),
    ] {
        let project = scratch.path().join(language).join("p").display().to_string();
        let (code, _, stderr) = run(&["new", &project, "--lang", language]);
        assert_eq!(code, 0, "{stderr}");
        assert!(stderr.contains(setup), "{stderr}");
    }
}
