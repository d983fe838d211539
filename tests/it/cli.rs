//! The binary as a user or a script runs it: output, exit codes, messages.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use cofferdam_tests::{binary, guest, root, shared_cache};
use serde_json::{Value, json};

use crate::wire::{Signal, send_signal};

pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary in an empty environment, independent of the machine.
fn command() -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command
}

pub(crate) fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().expect("the binary is not killed"),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn run(arguments: &[&str]) -> Ran {
    ran(command().args(arguments).output().unwrap())
}

fn plugin(name: &str) -> String {
    guest(name).display().to_string()
}

#[test]
fn a_value_goes_to_stdout_and_nothing_else_does() {
    let call = || {
        run(&[
            "call",
            "word_count",
            r#"{"text":"to be or not to be"}"#,
            "--plugin",
            &plugin("text"),
        ])
    };
    // The first call may compile the component and say so on standard error.
    call();
    let ran = call();
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(ran.stdout.contains('6'), "{}", ran.stdout);
}

#[test]
fn each_kind_of_end_has_its_exit_code() {
    let crash = plugin("crash");
    let code = |tool: &str| run(&["call", tool, "--plugin", &crash]).code;
    assert_eq!(code("ok"), 0);
    assert_eq!(code("fail"), 1);
    assert_eq!(code("no_such_tool"), 2);
    assert_eq!(code("abort"), 3);
    assert_eq!(run(&["call", "ok", "--plugin", "no/such/file.wasm"]).code, 4);
    assert_eq!(run(&["call"]).code, 2);
    assert_eq!(run(&["call", "ok", "--plugin", &crash, "--timeout", "soon"]).code, 2);
}

#[test]
fn nothing_of_a_trap_goes_to_stdout() {
    let ran = run(&["call", "panic", r#"{"message":"secret"}"#, "--plugin", &plugin("crash")]);
    assert_eq!(ran.code, 3);
    let shown = r#"{"error":{"message":"An unexpected error occurred (Trap.Unreachable). Please try again."}}"#;
    assert_eq!(ran.stdout, format!("{shown}\n"));
    assert!(ran.stderr.contains("Trap.Unreachable"), "{}", ran.stderr);
}

#[test]
fn json_output_has_outcome_result_and_record() {
    let ran = run(&["call", "fail", "--json", "--plugin", &plugin("crash")]);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["outcome"], "failure");
    assert_eq!(value["is_error"], true);
    assert!(value["result"]["error"]["message"].is_string());
    assert_eq!(value["record"]["plugin"]["name"], "crash");
    assert!(value["record"]["plugin"]["digest"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn every_mistake_in_the_arguments_is_reported_at_once() {
    let arguments = r#"{"text":[],"min_length":"x"}"#;
    let ran = run(&["call", "word_count", arguments, "--json", "--plugin", &plugin("text")]);
    assert_eq!(ran.code, 2);
    let value: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(value["code"], "invalid_arguments");
    let mistakes = run(&["call", "word_count", "{}", "--plugin", &plugin("text")]);
    assert!(mistakes.stderr.contains("Required argument 'text' was not supplied to 'word_count'."));
    assert_eq!(mistakes.stdout, "");
}

#[test]
fn arguments_come_from_the_line_a_file_or_standard_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    // Editors of Windows begin a file with a byte order mark.
    std::fs::write(&file, "\u{feff}{\"text\":\"a b c\"}").unwrap();
    let from_file =
        run(&["call", "word_count", &format!("@{}", file.display()), "-p", &plugin("text")]);
    let stdin = Stdio::from(std::fs::File::open(&file).unwrap());
    let from_stdin = ran(command()
        .args(["call", "word_count", "-", "-p", &plugin("text")])
        .stdin(stdin)
        .output()
        .unwrap());
    assert_eq!(from_file.stdout, from_stdin.stdout);
    assert_eq!((from_file.code, from_stdin.code), (0, 0));
    assert_eq!(run(&["call", "word_count", "@no/such.json", "-p", &plugin("text")]).code, 2);
}

#[test]
fn arguments_are_typed_as_keys_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("text.txt").display().to_string();
    std::fs::write(&file, "one two three").unwrap();
    let words = |arguments: &[&str]| {
        let ran =
            run(&[&["call", "word_count"], arguments, &["--plugin", &plugin("text")]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["words"].as_i64().unwrap()
    };
    assert_eq!(words(&["text=to be or not", "min_length=3"]), 1);
    assert_eq!(words(&["text=to be or not", "min_length:=2"]), 4);
    assert_eq!(words(&[&format!("text=@{file}")]), 3);

    let refused = |arguments: &[&str]| {
        let ran =
            run(&[&["call", "word_count"], arguments, &["--plugin", &plugin("text")]].concat());
        assert_eq!(ran.code, 2, "{}", ran.stderr);
        ran.stderr
    };
    assert!(refused(&["text=a", "b"]).contains("`b` is not an argument; write KEY=TEXT"));
    assert!(refused(&["text=a", "n:=x"]).contains("expected value at line 1 column 1"));
    assert!(
        refused(&[r#"{"text":}"#]).contains("not valid JSON: expected value at line 1 column 9")
    );
}

#[test]
fn a_result_is_written_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out").display().to_string();
    let call = |arguments: &[&str]| {
        let ran = run(&[arguments, &["--plugin", &plugin("conformance_rust")]].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        ran
    };
    let blob = ["call", "blob", "size=2000"];
    let shown = call(&blob);
    assert_eq!(shown.stdout, "");
    assert!(
        shown.stderr.contains("1.9 KiB: not shown; write it with --output FILE"),
        "{}",
        shown.stderr
    );
    let written = call(&[&blob[..], &["--output", &file]].concat());
    assert_eq!((written.stdout.as_str(), std::fs::read(&file).unwrap().len()), ("", 2000));
    call(&["call", "word", "-o", &file]);
    assert!(!std::fs::read_to_string(&file).unwrap().is_empty());
}

#[test]
#[cfg(unix)]
fn a_result_is_written_through_links() {
    let folder = tempfile::tempdir().unwrap();
    let [target, link] = ["target", "link"].map(|name| folder.path().join(name));
    std::fs::write(&target, "before, and longer than the result of the call").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let text = plugin("text");
    let output =
        |path: &str| run(&["call", "word_count", "text=a b", "--plugin", &text, "--output", path]);
    assert_eq!(output(link.to_str().unwrap()).code, 0);
    assert!(link.is_symlink());
    assert!(std::fs::read_to_string(&target).unwrap().starts_with("{\"words\":2"));
    let missing = folder.path().join("missing/file");
    let refused = output(missing.to_str().unwrap());
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains(missing.to_str().unwrap()), "{}", refused.stderr);
}

#[test]
fn a_limit_that_was_exceeded_is_named_with_the_flag_that_raises_it() {
    let spin = |flags: &[&str]| {
        let ran = run(&[&["call", "spin", "--plugin", &plugin("crash")], flags].concat());
        assert_eq!(ran.code, 3, "{}", ran.stderr);
        ran.stderr
    };
    let note = spin(&["--timeout", "300ms"]);
    assert!(note.contains("the limit is 0.3 s; raise it with --timeout 1s"), "{note}");
    let note = spin(&["--limit", "cpu-ms-max=200"]);
    assert!(
        note.contains("the limit is 0.2 s of CPU time; raise it with --limit cpu-ms-max=400"),
        "{note}"
    );
}

#[test]
fn a_tool_that_is_misspelt_is_suggested() {
    let ran = run(&["call", "wordcount", "{}", "--plugin", &plugin("text")]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("did you mean `word_count`?"), "{}", ran.stderr);
}

#[test]
fn what_is_no_plugin_is_refused_in_one_line_that_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let whole = std::fs::read(guest("text")).unwrap();
    let zeros = std::fs::File::create(path("zeros.wasm")).unwrap();
    zeros.set_len(100_000_000).unwrap();
    std::fs::write(path("cut.wasm"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(
        path("random.wasm"),
        (0..50_000u32).map(|n| ((n * 7919) >> 3) as u8).collect::<Vec<_>>(),
    )
    .unwrap();
    std::fs::write(path("core.wasm"), wat::parse_str("(module)").unwrap()).unwrap();
    let unknown = r#"(component (import "my:own/thing@1.0.0" (instance (export "f" (func)))))"#;
    std::fs::write(path("unknown.wasm"), wat::parse_str(unknown).unwrap()).unwrap();
    for name in
        ["zeros.wasm", "cut.wasm", "random.wasm", "core.wasm", "unknown.wasm", "missing.wasm", ""]
    {
        let ran = run(&["inspect", &path(name)]);
        assert_eq!(ran.code, 4, "{name}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert_eq!(ran.stderr.trim_end().lines().count(), 1, "{name}: {}", ran.stderr);
        assert!(ran.stderr.contains(&path(name)), "{name}: {}", ran.stderr);
    }
}

#[test]
fn inspect_says_what_a_component_can_do() {
    let ran = run(&["inspect", &plugin("connects")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("opens network connections"), "{}", ran.stdout);
    let json: Value =
        serde_json::from_str(&run(&["inspect", &plugin("csv"), "--json"]).stdout).unwrap();
    let capabilities: Vec<_> =
        json["capabilities"].as_array().unwrap().iter().map(|c| &c["capability"]).collect();
    assert!(capabilities.contains(&&json!("files")), "{capabilities:?}");
}

#[test]
fn list_shows_every_tool_once() {
    let ran = run(&["list", "--plugin", &plugin("text"), "--plugin", &plugin("markdown")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for tool in [
        "  word_count(text: string, min_length?: integer = 1)",
        "  outline(text?: string | null, file?: string | null)",
    ] {
        assert!(ran.stdout.contains(tool), "{}", ran.stdout);
    }
    let twice = run(&[
        "list",
        "--plugin",
        &plugin("text"),
        "--plugin",
        &format!("again={}", plugin("text")),
    ]);
    assert_eq!(twice.code, 0, "{}", twice.stderr);
    // Listed by the names under which they are called: no plugin gets the bare name.
    for name in ["\n  text_word_count(", "\n  again_word_count("] {
        assert!(twice.stdout.contains(name), "{}", twice.stdout);
    }
    assert!(!twice.stdout.contains("\n  word_count("), "{}", twice.stdout);
}

#[test]
fn commands_offer_the_tools_of_a_toolset() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml").display().to_string();
    let (text, markdown) = (plugin("text"), plugin("markdown"));
    let plugins = format!(
        "[plugins.text]\ncomponent = {text:?}\n[plugins.markdown]\ncomponent = {markdown:?}\n"
    );
    let toolsets = "[toolsets.some]\ntools = [\"word_count\"]\nplugins = [\"markdown\"]\n";
    std::fs::write(&config, format!("{plugins}{toolsets}")).unwrap();
    let listed = |flags: &[&str]| {
        let ran = run(&[&["list", "--json", "--config", &config], flags].concat());
        assert_eq!(ran.code, 0, "{}", ran.stderr);
        let tools: Value = serde_json::from_str(&ran.stdout).unwrap();
        let tools = tools.as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&["--toolset", "some"]), ["outline", "links", "to_html", "word_count"]);
    assert_eq!(listed(&["--tools", "diff,links"]), ["links", "diff"]);

    let call = |flags: &[&str]| {
        run(&[&["call", "word_count", "text=a b", "--config", &config], flags].concat())
    };
    assert_eq!(call(&["--toolset", "some"]).code, 0);
    let hidden = call(&["--tools", "links"]);
    assert_eq!(hidden.code, 2);
    assert!(hidden.stderr.contains("no tool called 'word_count'"), "{}", hidden.stderr);

    let unknown = run(&["list", "--config", &config, "--toolset", "sme"]);
    assert_eq!(unknown.code, 2);
    let expected = "there is no [toolsets.sme] in the configuration; there is some";
    assert!(unknown.stderr.contains(expected), "{}", unknown.stderr);
    let misspelled = run(&["list", "--config", &config, "--tools", "link"]);
    assert!(misspelled.stderr.contains("did you mean `links`?"), "{}", misspelled.stderr);
}

fn configuration(folder: &Path, access: &str) -> String {
    std::fs::create_dir(folder.join("files")).unwrap();
    std::fs::write(folder.join("files/a.md"), "# One\n## Two\n").unwrap();
    std::fs::copy(guest("markdown"), folder.join("markdown.wasm")).unwrap();
    let text = format!(
        "[stores.notes]\ndirectory = \"files\"\n\n[plugins.markdown]\ncomponent = \"markdown.wasm\"\n\
         grants.files.notes = \"{access}\"\nlimits.wall-ms-max = 5000\n"
    );
    let path = folder.join("cofferdam.toml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_configuration_names_plugins_stores_grants_and_limits() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), "read-only");
    let ran = run(&["call", "outline", r#"{"file":"/notes/a.md"}"#, "--config", &config]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("Two"), "{}", ran.stdout);
    let checked = run(&["config", "check", &config]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    assert!(checked.stdout.contains("may read /notes"), "{}", checked.stdout);
    assert!(checked.stdout.contains("5000 ms"), "{}", checked.stdout);
}

#[test]
fn a_check_names_labels_of_sources_that_are_not_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), "read-only");
    let labels = ["markdwon", "markdown", "notes", "skills"]
        .map(|source| format!("[labels.sources.{source}]\nsource-integrity = \"trusted\"\n"));
    let text = std::fs::read_to_string(&config).unwrap() + &labels.concat();
    std::fs::write(&config, text).unwrap();
    let checked = run(&["config", "check", &config, "--json"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
    let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
    let notes = checked["notes"].as_array().unwrap();
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].as_str().unwrap().starts_with("[labels.sources.markdwon] has no effect"));
}

#[test]
fn a_check_says_what_a_configuration_allows_beyond_the_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), "read-only");
    let check = || {
        let checked = run(&["config", "check", &config, "--json"]);
        assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
        let checked: Value = serde_json::from_str(&checked.stdout).unwrap();
        let lines = checked["allows"].as_array().unwrap().iter();
        lines.map(|line| line.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let notes = folder.path().join("files").display().to_string();
    let store = format!("[stores.notes] is the directory {notes}, which tools");
    assert_eq!(check(), [format!("{store} may only read")]);
    let text = std::fs::read_to_string(&config).unwrap();
    let added = "pin = false\n[files.work]\nstore = \"notes\"\ndelete-approval = false\n\
                 [[files.work.approvals]]\ntools = [\"save_file\"]\nneeds-approval = false\n\
                 [[agent.approvals]]\neffect = \"allow\"\ntool = \"outline\"\n\
                 [[agent.approvals]]\neffect = \"deny\"\ntool = \"*\"\n\
                 [skills.grants]\nhttp = [\"GET https://example.com/\"]\n\
                 [registry]\nunsigned = \"allow\"\n[records]\nenabled = false\n\
                 [records.otlp]\nurl = \"https://otel.example.com\"\n";
    std::fs::write(&config, text + added).unwrap();
    let expected = [
        &format!("{store} may change"),
        "[files.work] is the store `notes`, which the file tools may change",
        "[files.work] lets files be deleted without approval",
        "[[files.work.approvals]] lets some calls run without approval",
        "[plugins.markdown] may change without your consent (pin = false)",
        "[[agent.approvals]] lets calls of `outline` run without approval",
        "[skills.grants] lets scripts of skills send GET https://example.com/",
        "[registry] accepts plugins that no rule about signatures is about",
        "[records] records no calls",
        "[records.otlp] sends a span of each recorded call to https://otel.example.com",
    ];
    assert_eq!(check(), expected);
    let shown = run(&["config", "check", &config]).stdout;
    assert!(shown.ends_with(&format!("{}\n", expected.join("\n"))), "{shown}");
}

#[test]
fn an_error_in_a_configuration_has_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let config = configuration(folder.path(), "read-some");
    let ran = run(&["config", "check", &config]);
    assert_eq!(ran.code, 2);
    assert!(ran.stderr.contains("cofferdam.toml:6:22:"), "{}", ran.stderr);
    let json: Value =
        serde_json::from_str(&run(&["config", "check", &config, "--json"]).stdout).unwrap();
    assert_eq!((&json["ok"], &json["line"]), (&json!(false), &json!(6)));
}

#[test]
fn escape_sequences_of_a_plugin_are_data_in_a_pipe_and_never_in_messages() {
    let ran = run(&["call", "floods", "--verbose", "--plugin", &plugin("floods")]);
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("the end\\u{1b}[2J"), "escaped");
    assert!(!ran.stderr.contains('\u{1b}'));
}

#[test]
fn help_has_examples_and_exit_codes() {
    let help = run(&["--help"]);
    assert_eq!(help.code, 0);
    assert!(help.stdout.contains("Exit codes:"));
    for command in ["call", "list", "inspect", "play"] {
        assert!(run(&[command, "--help"]).stdout.contains("Examples:"), "{command}");
    }
}

#[test]
fn ctrl_c_and_sigterm_stop_a_call() {
    use std::time::{Duration, Instant};
    let sleeping = || {
        let mut command = command();
        command.args([
            "call",
            "sleep",
            r#"{"ms":600000}"#,
            "--timeout",
            "5m",
            "--plugin",
            &plugin("crash"),
        ]);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children = [Signal::INT, Signal::TERM].map(|signal| (signal, sleeping()));
    std::thread::sleep(Duration::from_secs(2));
    for (signal, child) in children {
        let started = Instant::now();
        send_signal(child.id(), signal);
        let ran = ran(child.wait_with_output().unwrap());
        assert_eq!(ran.code, 130, "{signal:?}: {}", ran.stderr);
        assert_eq!(ran.stdout, "");
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

#[test]
fn a_script_shows_what_a_model_sees() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("s.jsonl");
    std::fs::write(
        &script,
        concat!(
            r#"{"text":"Trying.","calls":[{"tool":"abort"},{"tool":"nothing"},{"tool":"panic","arguments":[]}]}"#,
            "\n",
            r#"{"calls":[{"tool":"ok","arguments":{}}]}"#,
            "\n"
        ),
    )
    .unwrap();
    let ran = run(&["play", &script.display().to_string(), "--json", "--plugin", &plugin("crash")]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let texts: Vec<_> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|message| message["role"] == "tool")
        .map(|message| message["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(texts.len(), 4);
    assert!(texts[0].contains("(Trap.Unreachable)"));
    assert_eq!(texts[1], r#"Error: Requested function "nothing" not found."#);
    assert_eq!(
        texts[2],
        "Error: Argument parsing failed. Arguments for 'panic' are not a JSON object."
    );
    assert_eq!(texts[3], "ok");
}

#[test]
fn the_script_of_the_first_demo_works() {
    let script = root().join("sample-tools/demo/tour.jsonl").display().to_string();
    let docs = format!("notes={}:ro", root().join("docs").display());
    let plugin = plugin("tour");
    let ran = run(&["play", &script, "--json", "--plugin", &plugin, "--mount", &docs]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let errors = ran.stdout.lines().filter(|line| line.contains(r#""is_error":true"#));
    assert_eq!(errors.count(), 3, "invalid arguments, a trap, a reported failure:\n{}", ran.stdout);
    assert!(ran.stdout.contains("Architecture"), "{}", ran.stdout);
}

#[test]
fn the_demos_script_works() {
    let script = root().join("sample-tools/demo/script.jsonl").display().to_string();
    let docs = format!("docs={}:ro", root().join("docs").display());
    let data = format!("data={}:ro", root().join("sample-tools/demo/data").display());
    let plugins: Vec<_> = ["text", "csv", "markdown", "crash"].into_iter().map(plugin).collect();
    let mut arguments = vec!["play", &script, "--json", "--mount", &docs, "--mount", &data];
    for plugin in &plugins {
        arguments.extend(["--plugin", plugin]);
    }
    let ran = run(&arguments);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let errors: Vec<_> =
        ran.stdout.lines().filter(|line| line.contains(r#""is_error":true"#)).collect();
    assert_eq!(
        errors.len(),
        3,
        "arguments that do not decode, a trap, a reported failure:\n{}",
        ran.stdout
    );
    assert!(errors[1].contains("(Trap.Unreachable)"), "{}", errors[1]);
}

#[test]
fn mistakes_of_the_operator_are_usage_errors_and_create_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let text = plugin("text");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("file", "");
    write("hi.jsonl", r#"{"text":"Hi."}"#);
    write("skills.toml", "[skills.limits]\ncpu-ms-max = 0\n");
    write("code.toml", "[code.limits]\ncpu-ms-max = 0\n");
    write("text.toml", &format!("[plugins.text]\ncomponent = {text:?}\n"));
    write("twice.yaml", "name: x\nname: y\n");
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let limit = "the limit `cpu-ms-max` is 0, so that no call can succeed";
    let mistakes: &[(&[&str], &str)] = &[
        (&["call", "word_count", "text=a", "--plugin", &text, "--limit", "cpu-ms-max=0"], limit),
        (&["config", "check", "skills.toml"], limit),
        (&["config", "check", "code.toml"], limit),
        (
            &["mcp", "config", "--host", "claude", "--plugin", &text, "--", "--bogus"],
            "`cofferdam serve` does not accept the flags after --: unexpected argument '--bogus'",
        ),
        (
            &["mcp", "config", "--host", "claude", "--config", "text.toml", "--toolset", "nope"],
            "there is no [toolsets.nope] in the configuration",
        ),
        (&["chat", "--sessions", "--session-dir", "typo"], "there is no directory typo"),
        (
            &["chat", "hi", "--model", "script:hi.jsonl", "--memory-files", "file"],
            "the directory file cannot be mounted",
        ),
        (&["inspect", "--web", "--directory", "typo"], "there is no directory typo"),
        (&["inspect", "--web", "--workflow", "typo.yaml"], "typo.yaml"),
        (&["import", "typo", "--config", "text.toml"], "there is no directory typo"),
        (&["export", "file", "--config", "text.toml"], "file is not a directory"),
        (&["args", "{}", "--schema", "file", "--tool", "x"], "cannot be used with"),
        (&["workflow", "check", "twice.yaml"], "twice.yaml:2:1: `name` occurs twice"),
        (&["remove", "typo", "--config", "text.toml"], "has no plugin `typo`; its plugins: text"),
    ];
    for (arguments, message) in mistakes {
        let ran = ran(command().current_dir(&folder).args(*arguments).output().unwrap());
        assert_eq!(ran.code, 2, "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{arguments:?}: {}", ran.stderr);
    }
    assert_eq!(names(), before);
}

#[test]
fn sessions_are_listed_as_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("hi.jsonl"), r#"{"text":"Hi."}"#).unwrap();
    let chat = |arguments: &[&str]| {
        let arguments = ["chat", "--session-dir", "kept"].iter().chain(arguments);
        ran(command().current_dir(&folder).args(arguments).output().unwrap())
    };
    let talked = chat(&["hi", "--session", "talk", "--model", "script:hi.jsonl", "--no-record"]);
    assert_eq!(talked.code, 0, "{}", talked.stderr);
    let listed = chat(&["--sessions", "--json"]);
    assert_eq!(listed.stdout, "{\"name\":\"talk\",\"messages\":2}\n");
}
