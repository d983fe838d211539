//! The binary and skills: output of `skills list` and `skills check`, scripts in the sandbox,
//! approval in `chat`, and the tools and prompts that an MCP client sees.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, root, shared_cache};
use serde_json::{Value, json};

use crate::module::{Answer, Definition, Item, Module};
use crate::wire::Pipe;

pub(crate) fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("COFFERDAM_CACHE_DIR", shared_cache())
        .stdin(Stdio::null())
        .current_dir(folder);
    command.args(arguments);
    command
}

/// Returns exit code, standard output and standard error, without the messages about compiling.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let output = command(folder, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// Returns a script that answers with a string. Its tool is called `run` and takes `args`, or the
/// schema `takes`.
fn script(takes: &str) -> Vec<u8> {
    let definition = Definition { input_schema: takes.into(), ..Definition::new("run") };
    let answer = Answer::Contents(vec![Item::Text(b"42")]);
    Module { definitions: vec![definition], answer, ..Module::default() }.component()
}

const ARGS: &str = r#"{"type":"object","properties":{"args":{}}}"#;
const MONTH: &str =
    r#"{"type":"object","properties":{"month":{"type":"string"}},"required":["month"]}"#;

/// Returns a folder `skills` with one skill.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let skill = "---\nname: report\ndescription: Writes reports.\nallowed-tools: Read \
        Bash\nmetadata:\n  version: 1.0\n---\n# Report\n";
    write(folder.path(), "skills/report/SKILL.md", skill);
    write(folder.path(), "skills/report/references/columns.md", "COLUMNS");
    write(folder.path(), "skills/report/scripts/total.wasm", script(ARGS));
    write(folder.path(), "skills/report/scripts/month.wasm", script(MONTH));
    write(folder.path(), "skills/report/scripts/old.py", "print(1)");
    folder
}

#[test]
fn list_shows_skills_and_says_what_was_passed_over() {
    let folder = folder();
    write(folder.path(), "skills/wrong/SKILL.md", "---\nname: other\ndescription: d\n---\n");
    let (code, stdout, stderr) = run(folder.path(), &["skills", "list", "skills"]);
    let lines =
        "NAME    RESOURCES  SCRIPTS  DESCRIPTION\nreport  1          2 of 3   Writes reports.\n";
    assert_eq!((code, stdout.as_str()), (0, lines), "{stderr}");
    assert_eq!(
        stderr,
        "skills/wrong: not a skill: the skill `other` is in a directory called `wrong`\n1 skill\n"
    );
    let (code, stdout, _) = run(folder.path(), &["skills", "list", "skills", "--json"]);
    let listed: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(code, 0);
    assert_eq!(
        listed["skills"],
        json!([{
            "name": "report",
            "description": "Writes reports.",
            "directory": "skills/report",
            "license": null,
            "compatibility": null,
            "allowed_tools": "Read Bash",
            "metadata": {"version": "1.0"},
            "resources": ["references/columns.md"],
            "scripts": ["scripts/month.wasm", "scripts/total.wasm"],
            "scripts_without_runner": ["scripts/old.py"],
        }])
    );
    assert_eq!(listed["skipped"][0]["directory"], "skills/wrong");
}

#[test]
fn a_directory_that_is_a_skill_itself_is_listed() {
    let folder = folder();
    let (_, stdout, _) = run(&folder.path().join("skills/report"), &["skills", "list", "."]);
    assert!(stdout.contains("report  1 "), "{stdout}");
}

#[test]
fn check_names_every_problem_its_file_and_what_to_do() {
    let folder = folder();
    let (code, stdout, stderr) = run(folder.path(), &["skills", "check", "skills"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    assert!(
        stdout.contains(
            "skills/report/scripts/total.wasm: runs the tool `run`, which takes `args`\n"
        ),
        "{stdout}"
    );
    assert!(
        stdout.contains(
            "scripts/month.wasm: runs the tool `run`, which takes arguments of its own\n"
        ),
        "{stdout}"
    );
    assert!(stdout.contains("old.py: is a script that this host does not run\n"), "{stdout}");
    assert!(stdout.ends_with("1 skill, 0 problems\n"), "{stdout}");

    write(
        folder.path(),
        "skills/twice/SKILL.md",
        "---\nname: twice\nname: twice\ndescription: d\n---\n",
    );
    write(
        folder.path(),
        "skills/spare/SKILL.md",
        "---\nname: spare\ndescription: d\nmetadata: {a: [b]}\n---\n",
    );
    write(folder.path(), "skills/report/latin1.txt", b"caf\xe9");
    write(folder.path(), "skills/report/broken.wasm", "not a component");
    let (code, stdout, _) = run(folder.path(), &["skills", "check", "skills", "--json"]);
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &report["ok"]), (4, &json!(false)));
    let problems = report["problems"].as_array().unwrap();
    let files: Vec<_> = problems.iter().map(|problem| problem["file"].as_str().unwrap()).collect();
    assert_eq!(
        files,
        [
            "skills/twice/SKILL.md",
            "skills/report/latin1.txt",
            "skills/report/broken.wasm",
            "skills/spare/SKILL.md",
        ]
    );
    assert_eq!(problems[0]["message"], "line 3 of `SKILL.md`: the key `name` occurs twice");
    assert_eq!(problems[0]["suggestion"], "keep one of the two");
    assert!(problems.iter().all(|problem| problem["suggestion"].is_string()), "{report}");
}

#[test]
fn check_of_a_folder_without_skills_and_of_no_folder() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let (code, stdout, _) = run(folder.path(), &["skills", "check", "empty"]);
    assert_eq!(code, 4);
    assert!(
        stdout.contains("  empty: there is no skill here\n    put a SKILL.md into"),
        "{stdout}"
    );
    for command in ["check", "list"] {
        let (code, _, stderr) = run(folder.path(), &["skills", command, "gone"]);
        assert_eq!(code, 2, "{stderr}");
        assert!(
            stderr.starts_with("error: skills: cannot open the directory `gone`: "),
            "{stderr}"
        );
    }
}

#[test]
fn a_person_can_call_the_tools_and_scripts_run_in_the_sandbox() {
    let folder = folder();
    let call = |tool: &str, arguments: Value| {
        run(folder.path(), &["call", tool, &arguments.to_string(), "--skills", "skills", "--yes"])
    };
    let (code, stdout, stderr) = call("load_skill", json!({"skill_name": "Report"}));
    assert_eq!(code, 0, "{stderr}");
    assert!(
        stdout.contains(
            "# Report\n\n\n<available_resources>\n  <resource name=\"references/columns.md\"/>"
        ),
        "{stdout}"
    );
    let month = "  <script name=\"scripts/month.wasm\">\n    <parameters_schema>{\"properties\":";
    assert!(stdout.contains("  <script name=\"scripts/total.wasm\"/>"), "{stdout}");
    assert!(
        stdout.contains(month)
            || stdout.contains(
                "<script name=\"scripts/month.wasm\">\n    <parameters_schema>{\"type\":"
            ),
        "{stdout}"
    );
    let total = json!({"skill_name": "report", "script_name": "scripts/total.wasm", "args": ["a"]});
    assert_eq!(call("run_skill_script", total).1, "42\n");
    let month =
        |args| json!({"skill_name": "report", "script_name": "scripts/month.wasm", "args": args});
    assert_eq!(call("run_skill_script", month(json!({"month": "2026-01"}))).1, "42\n");
    let (code, stdout, _) = call("run_skill_script", month(json!({})));
    let missing =
        json!({"error": {"message": "Required argument 'month' was not supplied to 'run'."}});
    assert_eq!((code, serde_json::from_str::<Value>(&stdout).unwrap()), (1, missing));
    let (code, stdout, _) =
        call("read_skill_resource", json!({"skill_name": "x", "resource_name": "y"}));
    assert_eq!((code, stdout.as_str()), (1, "Error: Skill 'x' not found.\n"));
}

#[test]
fn the_sample_skill_is_valid_and_its_script_reads_the_skills_own_list() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["SKILL.md", "references/style.md", "references/words.txt"] {
        let text =
            std::fs::read(root().join("sample-tools/skills/release-notes").join(name)).unwrap();
        write(folder.path(), &format!("skills/release-notes/{name}"), text);
    }
    let script = std::fs::read(guest("release_notes")).unwrap();
    write(folder.path(), "skills/release-notes/scripts/check.wasm", script);
    let (code, stdout, stderr) = run(folder.path(), &["skills", "check", "skills"]);
    assert_eq!(code, 0, "{stdout}{stderr}");
    let notes = json!({"text": "New: a flag.\nVarious fixes."});
    let arguments =
        json!({"skill_name": "release-notes", "script_name": "scripts/check.wasm", "args": notes});
    let arguments = arguments.to_string();
    let call = ["call", "run_skill_script", &arguments, "--skills", "skills"];
    let (code, _, stderr) = run(folder.path(), &call);
    assert_eq!(code, 4, "{stderr}");
    assert!(
        stderr.contains("has to be approved, and there is no terminal to ask at; pass --yes"),
        "{stderr}"
    );
    let (code, stdout, stderr) = run(folder.path(), &[&call[..], &["--yes"]].concat());
    assert_eq!((code, stdout.as_str()), (0, "[{\"line\":2,\"word\":\"various\"}]\n"), "{stderr}");
}

fn chat(folder: &Path, more: &[&str]) -> (i32, String, String) {
    let lines = [
        json!({"calls": [{"tool": "load_skill", "arguments": {"skill_name": "report"}}]}),
        json!({"text": "done"}),
    ];
    let script: String = lines.iter().map(|line| format!("{line}\n")).collect();
    write(folder, "model.jsonl", script);
    let arguments =
        [&["chat", "Report!", "--model", "script:model.jsonl", "--json"], more].concat();
    run(folder, &arguments)
}

#[test]
fn a_model_loads_a_skill_when_a_person_agrees() {
    let folder = folder();
    let (code, _, stderr) = chat(folder.path(), &["--skills", "skills"]);
    assert_eq!(code, 4, "{stderr}");
    assert!(stderr.contains("`load_skill` was not called: it needs approval"), "{stderr}");
    let (code, stdout, stderr) =
        chat(folder.path(), &["--skills", "skills", "--approve", "load_skill"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("<available_resources>"), "{stdout}");
}

#[test]
fn a_configuration_names_skills_and_frees_their_tools() {
    let folder = folder();
    let config =
        "[skills]\ndirectories = [\"skills\"]\nfree = [\"load_skill\", \"read_skill_resource\"]\n";
    write(folder.path(), "cofferdam.toml", config);
    let (code, stdout, stderr) = chat(folder.path(), &["--config", "cofferdam.toml"]);
    assert_eq!(code, 0, "{stderr}");
    assert!(stdout.contains("<available_resources>"), "{stdout}");
    let (code, stdout, _) = run(folder.path(), &["config", "check", "cofferdam.toml"]);
    assert_eq!(code, 0);
    assert!(stdout.contains("each call of run_skill_script has to be approved"), "{stdout}");
    let (_, stdout, _) = run(folder.path(), &["list", "--config", "cofferdam.toml"]);
    assert!(stdout.starts_with("skills  (1 skill)\n  load_skill("), "{stdout}");

    write(folder.path(), "cofferdam.toml", "[skills]\ndirectories = [\"gone\"]\n");
    let (code, _, stderr) = run(folder.path(), &["list", "--config", "cofferdam.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("cofferdam.toml:2:16: skills: cannot open the directory"), "{stderr}");
    write(folder.path(), "cofferdam.toml", "[skills]\nfree = [\"everything\"]\n");
    let (code, _, stderr) = run(folder.path(), &["config", "check", "cofferdam.toml"]);
    assert_eq!(code, 2, "{stderr}");
    assert!(
        stderr.contains("`everything` is not a tool of skills; tools: load_skill,"),
        "{stderr}"
    );
}

#[test]
fn no_tool_may_write_where_skills_are() {
    let folder = folder();
    let (code, _, stderr) = run(folder.path(), &["list", "--skills", "skills", "--files", "."]);
    assert_eq!(code, 2, "{stderr}");
    assert!(stderr.contains("holds skills"), "{stderr}");
    let (code, _, stderr) = run(folder.path(), &["list", "--skills", "skills", "--files", ".:ro"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn an_mcp_client_is_offered_tools_prompts_and_resources() {
    let folder = folder();
    let mut served =
        command(folder.path(), &["serve", "--skills", "skills", "--approvals", "client"]);
    let mut pipe =
        Pipe::of(served.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let listed = pipe.modern("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["load_skill", "read_skill_resource", "run_skill_script"]);
    let arguments = json!({"skill_name": "report", "script_name": "scripts/total.wasm"});
    let ran = pipe.call("run_skill_script", arguments);
    assert_eq!(ran["result"]["content"][0]["text"], "42", "{ran}");
    // A tool that makes a prompt cannot be called as a tool.
    assert_eq!(pipe.call("skill.report", json!({}))["result"]["isError"], true);

    let prompts = pipe.modern("prompts/list", json!({}));
    assert_eq!(prompts["result"]["prompts"][0]["name"], "report", "{prompts}");
    let prompt = pipe.modern("prompts/get", json!({"name": "report"}));
    let text = prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("---\nname: report\n") && text.contains("<available_scripts>"),
        "{text}"
    );

    let resources = pipe.modern("resources/list", json!({}));
    let uris: Vec<_> = resources["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|r| r["uri"].as_str().unwrap())
        .collect();
    assert_eq!(uris, ["skill://report/SKILL.md", "skill://report/references/columns.md"]);
    let read =
        pipe.modern("resources/read", json!({"uri": "skill://report/references/columns.md"}));
    assert_eq!(read["result"]["contents"][0]["text"], "COLUMNS", "{read}");
    for uri in [
        "skill://report/scripts/old.py",
        "skill://report/../x",
        "skill://REPORT/SKILL.md",
        "skill://report",
    ] {
        let refused = pipe.modern("resources/read", json!({"uri": uri}));
        assert!(refused.get("error").is_some(), "{uri}: {refused}");
    }
}
