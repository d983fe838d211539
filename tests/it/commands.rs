//! Programs for WASI as plugins: `cofferdam wrap`, and calls that run them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_engine::Component;
use cofferdam_tests::{Host, binary, guest, shared_cache};
use cofferdam_tool::permission::SecretText;
use cofferdam_tool::{Completion, ErrorType, Outcome};
use serde_json::{Value, json};

/// Manifest of the program `command`, with one tool for each form of arguments and results.
const MANIFEST: &str = r#"
[tools.run]
description = "Runs the program in a mode."
schema = '{"type":"object","properties":{"mode":{"type":"string"},"word":{"type":"string"},"input":{"type":"string"}},"required":["mode"]}'
arguments = ["{mode}", "{word}"]
stdin = "{input}"

[tools.words]
description = "Prints words."
schema = { type = "object", properties = { words = { type = "array", items = { type = "string" } }, loud = { type = "boolean" } } }
arguments = ["arguments", ["--loud", "{loud?}"], "{words}"]

[tools.object]
description = "Returns its arguments."
schema = { type = "object", properties = { n = { type = "integer" }, text = { type = "string", default = "ü" } } }
output = "json"

[tools.garbage]
description = "Prints something else than JSON."
schema = { type = "object" }
arguments = ["garbage"]
output = "json"
"#;

/// Core module that copies at most 100 bytes of standard input to standard output.
const MODULE: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (data (i32.const 0) "\10\00\00\00\64\00\00\00")
    (func (export "_start")
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (i32.store (i32.const 4) (i32.load (i32.const 8)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"#;

fn cofferdam(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    let output = command.args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Writes the manifest and wraps `program` with it.
fn wrapped(directory: &Path, program: &Path) -> PathBuf {
    let (manifest, plugin) = (directory.join("plugin.toml"), directory.join("wrapped.wasm"));
    std::fs::write(&manifest, MANIFEST).unwrap();
    let (program, manifest) = (program.to_str().unwrap(), manifest.to_str().unwrap());
    let output = plugin.to_str().unwrap();
    let ended = cofferdam(&["wrap", program, "--manifest", manifest, "--output", output]);
    assert_eq!(ended.0, 0, "{}", ended.2);
    assert!(ended.1.ends_with("4 tools: garbage, object, run, words\n"), "{}", ended.1);
    plugin
}

/// Returns a host with the wrapped program. Its environment has a secret.
async fn host(directory: &Path) -> Host {
    let mut host = Host::new();
    let secret = || SecretText::new("hunter2-hunter2");
    host.grants.env.insert("TOKEN".to_owned(), secret());
    host.grants.secrets.insert("token".to_owned(), secret());
    host.limits.wall_ms_max = 2_000;
    let plugin = wrapped(directory, &guest("command"));
    let plugin = host.try_load(&Component::from_file_ambient(plugin)).await.unwrap();
    host.add(plugin);
    host
}

async fn run(host: &Host, mode: &str, word: Option<&str>) -> Completion {
    host.call("run", &json!({ "mode": mode, "word": word }).to_string()).await
}

fn value(completion: Completion) -> Value {
    match completion.outcome {
        Outcome::Ok(output) => json!(output.text()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_program_gets_arguments_and_returns_what_it_prints() {
    let directory = tempfile::tempdir().unwrap();
    let host = host(directory.path()).await;
    let words = json!({"words": ["a b", "-x", "{c}"], "loud": true}).to_string();
    assert_eq!(value(host.call("words", &words).await), json!("--loud\na b\n-x\n{c}"));
    assert_eq!(value(host.call("words", r#"{"words":["a"]}"#).await), json!("a"));
    assert_eq!(value(host.call("object", r#"{"n":"3"}"#).await), json!(r#"{"n":3,"text":"ü"}"#));
    let input = json!({"mode": "input", "input": "line 1\nline 2\n"}).to_string();
    assert_eq!(value(host.call("run", &input).await), json!("line 1\nline 2"));
}

#[tokio::test]
async fn a_program_that_misbehaves_ends_as_the_rules_say() {
    let directory = tempfile::tempdir().unwrap();
    let host = host(directory.path()).await;
    let error = |completion: Completion| match completion.outcome {
        Outcome::Error(error) => error.error_type(),
        other => panic!("{other:?}"),
    };
    assert_eq!(error(run(&host, "flood", None).await), Some(ErrorType::OutputLimit));
    assert_eq!(error(run(&host, "bytes", None).await), Some(ErrorType::InvalidResult));
    assert_eq!(error(run(&host, "spin", None).await), Some(ErrorType::Timeout));
    assert_eq!(error(run(&host, "panic", None).await), Some(ErrorType::TrapUnreachable));
    assert_eq!(error(host.call("garbage", "{}").await), Some(ErrorType::InvalidResult));
    let long = json!({"mode": "deaf", "input": "x".repeat(500_000)}).to_string();
    assert_eq!(value(host.call("run", &long).await), json!("done"));
    let failed = run(&host, "unknown", None).await;
    let Outcome::Failure(failure) = failed.outcome else { panic!("{:?}", failed.outcome) };
    let shown = failure.message;
    assert_eq!(
        shown,
        "the command ended with exit code 1: usage: command MODE; `unknown` is not a mode"
    );
    let leaked = run(&host, "leak", Some("TOKEN")).await;
    let shown = format!("{:?} {:?}", leaked.outcome, leaked.record);
    assert!(shown.contains("the token is") && !shown.contains("hunter2"), "{shown}");
    // A call after all of them works.
    assert_eq!(value(run(&host, "deaf", None).await), json!("done"));
}

#[tokio::test]
async fn a_program_reads_only_files_that_are_mounted() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = wrapped(directory.path(), &guest("command"));
    let data = directory.path().join("data");
    std::fs::create_dir(&data).unwrap();
    std::fs::write(data.join("a.txt"), "in the mount").unwrap();
    let plugin = plugin.to_str().unwrap();
    let mount = format!("data={}:ro", data.display());
    let call = |word: &str| {
        let arguments = json!({"mode": "file", "word": word}).to_string();
        cofferdam(&["call", "run", &arguments, "--plugin", plugin, "--mount", &mount])
    };
    assert_eq!(call("/data/a.txt").1, "in the mount\n");
    assert_eq!(call(data.join("a.txt").to_str().unwrap()).0, 3);
}

#[test]
fn a_core_module_becomes_a_component_with_a_tool() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(file("copy.wasm"), wat::parse_str(MODULE).unwrap()).unwrap();
    let (program, plugin) = (file("copy.wasm"), file("dist/copy.wasm"));
    let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
    let flags = ["--name", "copy", "--description", "Copies text.", "--schema", schema];
    let output = ["--stdin", "{text}!", "--output", &plugin, "--json"];
    let ended = cofferdam(&[&["wrap", &program][..], &flags, &output].concat());
    let report: Value = serde_json::from_str(&ended.1).unwrap_or_else(|_| panic!("{ended:?}"));
    assert_eq!(report["tools"], json!(["copy"]));
    let called = cofferdam(&["call", "copy", "text=hello", "--plugin", &plugin]);
    assert_eq!(called, (0, "hello!\n".to_owned(), called.2.clone()));
    let shown = cofferdam(&["inspect", &plugin]).1;
    assert!(shown.contains("Copies text.") && shown.contains("text?: string"), "{shown}");
}

/// Manifest of a tool whose result is text, which has no schema.
const TEXT_WITH_SCHEMA: &str = "[tools.x]\ndescription = \"X.\"\nschema = { type = \"object\" }\n\
                                output-schema = { type = \"object\" }\n";

#[test]
fn what_cannot_be_wrapped_is_said_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str| directory.path().join(name).display().to_string();
    for (name, text) in [
        ("copy.wasm", MODULE),
        ("library.wasm", "(module (func (export \"f\")))"),
        ("browser.wasm", "(module (import \"env\" \"abort\" (func)) (func (export \"_start\")))"),
    ] {
        std::fs::write(file(name), wat::parse_str(text).unwrap()).unwrap();
    }
    std::fs::write(file("text.wasm"), "not wasm").unwrap();
    let twice = format!("{MANIFEST}\n[tools.run]\ndescription = \"Again.\"\n");
    for (name, manifest) in [
        ("twice.toml", twice.as_str()),
        ("none.toml", ""),
        ("bare.toml", "[tools.x]\ndescription = \"No schema.\"\n"),
        ("broken.toml", "[tools.x]\ndescription = \"X.\"\nschema = { type = \"objekt\" }\n"),
        ("text.toml", TEXT_WITH_SCHEMA),
    ] {
        std::fs::write(file(name), manifest).unwrap();
    }
    let tool = ["--name", "x", "--description", "X.", "--schema", "{\"type\":\"object\"}"];
    let with = |name: &str| ["--manifest".to_owned(), file(name)];
    let component = guest("text").display().to_string();
    let attempt = |program: &str, flags: &[&str]| {
        let output = file("out.wasm");
        let ended = cofferdam(&[&["wrap", program, "--output", &output], flags].concat());
        assert_ne!(ended.0, 0);
        assert!(!Path::new(&output).exists());
        assert_eq!(ended.2.trim_end().lines().count(), 1, "{}", ended.2);
        ended.2
    };
    for (program, flags, expected) in [
        (file("nothing.wasm"), &tool[..], "cannot be read"),
        (file("text.wasm"), &tool, "it is not a WebAssembly file"),
        (file("library.wasm"), &tool, "it has no entry point: expected the export `_start`"),
        (file("browser.wasm"), &tool, "it imports `env.abort`"),
        (component, &tool, "it has no entry point: expected the export `wasi:cli/run`"),
    ] {
        let said = attempt(&program, flags);
        assert!(said.contains(expected), "{said}");
    }
    for (manifest, expected) in [
        ("twice.toml", "duplicate key"),
        ("none.toml", "is a command (it exports `wasi:cli/run`) without tools"),
        ("bare.toml", "1:8: the tool `x` of a command has no `schema` for its arguments"),
        ("broken.toml", "Tool 'x': invalid declaration"),
        (
            "text.toml",
            "text.toml:4:17: `output-schema` needs `output = \"json\"`: the result is text",
        ),
    ] {
        let flags = with(manifest);
        let said = attempt(&file("copy.wasm"), &[flags[0].as_str(), flags[1].as_str()]);
        assert!(said.contains(expected), "{manifest}: {said}");
    }
}
