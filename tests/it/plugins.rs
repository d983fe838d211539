//! Plugins as their authors build them: every SDK's conformance plugin, every sample tool with its
//! cases, and the path from `cofferdam new` to a call. Plugins whose toolchain is missing are
//! skipped, except in CI.

mod dev;
mod docs;
mod go;
mod http;
mod new;
mod python;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, root};
use serde_json::Value;

/// Languages with an SDK, as `cofferdam new --lang` knows them.
const LANGUAGES: [&str; 8] =
    ["rust", "python", "javascript", "typescript", "go", "c", "cpp", "zig"];

/// Result of a command.
struct Ended {
    code: i32,
    stdout: String,
    stderr: String,
}

/// Runs the binary in a directory, with the shared cache and the toolchains that xtask installs.
fn cofferdam(directory: &Path, arguments: &[&str]) -> Ended {
    run(Command::new(binary()).args(arguments).current_dir(directory))
}

fn run(command: &mut Command) -> Ended {
    let output = command
        .env("COFFERDAM_CACHE_DIR", root().join("target/test-cache"))
        .env("CARGO_TARGET_DIR", root().join("target/tests/new"))
        .env("PATH", path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

/// Returns the PATH with the toolchains that xtask installs.
fn path() -> std::ffi::OsString {
    let inherited = std::env::var_os("PATH").unwrap_or_default();
    let installed = ["venv/bin", "npm/node_modules/.bin"]
        .map(|folder| root().join("target/languages").join(folder));
    std::env::join_paths(installed.into_iter().chain(std::env::split_paths(&inherited))).unwrap()
}

/// Returns a component that xtask has built, if its toolchain is installed.
fn built(name: &str) -> Option<PathBuf> {
    let component = root().join("target/plugins").join(format!("{name}.wasm"));
    if component.is_file() {
        return Some(component);
    }
    assert!(
        std::env::var_os("CI").is_none(),
        "{name} is not built: run `cargo xtask guests` first"
    );
    // Not with a macro: the test harness hides its output if the test passes.
    let _ = writeln!(
        std::io::stderr(),
        "SKIPPED: {name} is not built; `cargo xtask guests` says what it needs"
    );
    None
}

/// Runs the cases of a component, which must all pass, and returns their number.
fn passes(component: &Path, cases: &Path, language: Option<&str>) -> usize {
    let (component, cases) = (component.to_str().unwrap(), cases.to_str().unwrap());
    // Each case runs a second time from its recording.
    let mut arguments = vec!["test", component, "--cases", cases, "--json", "--replay"];
    arguments.extend(language.into_iter().flat_map(|language| ["--language", language]));
    let ended = cofferdam(&root(), &arguments);
    let lines: Vec<Value> =
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failed: Vec<_> = lines.iter().filter(|line| line["ok"] != true).collect();
    assert!(failed.is_empty() && ended.code == 0, "{component}: {failed:#?}\n{}", ended.stderr);
    lines.len()
}

#[test]
fn every_sdk_does_the_same() {
    let cases = root().join("guest-sdk/conformance/cases.jsonl");
    let page = std::fs::read_to_string(root().join("docs/plugin-authors.md")).unwrap();
    for language in LANGUAGES {
        if let Some(component) = built(&format!("conformance_{language}")) {
            let passed = passes(&component, &cases, Some(language));
            let name = match language {
                "rust" => "Rust",
                "python" => "Python",
                "go" => "Go",
                "c" | "cpp" => "C, C++",
                "zig" => "Zig",
                _ => "JavaScript, TypeScript",
            };
            let row = page.lines().find(|line| line.starts_with(&format!("| {name} |"))).unwrap();
            assert!(
                row.contains(&format!("| {passed} of {passed} |")),
                "{language}: {passed}, and the page says {row}"
            );
            let _ = writeln!(std::io::stderr(), "SDK {language}: {passed}/{passed}");
        }
    }
}

#[test]
fn every_sample_tool_passes_its_cases() {
    let mut count = 0;
    for language in ["rust", "python", "javascript", "go", "c", "cpp"] {
        for entry in root().join("sample-tools").join(language).read_dir().unwrap() {
            let folder = entry.unwrap().path();
            let cases = folder.join("cases.jsonl");
            let name = folder.file_name().unwrap().to_str().unwrap();
            if !cases.is_file() {
                assert!(
                    !folder.join("plugin.toml").is_file() || language == "rust",
                    "{name} has no cases"
                );
                continue;
            }
            if let Some(component) = built(name) {
                assert!(passes(&component, &cases, None) >= 3, "{name} has hardly any cases");
                count += 1;
            }
        }
    }
    assert!(count > 0 || std::env::var_os("CI").is_none());
}

/// Instances start from a snapshot, one after another and concurrently: the start of a runtime must
/// not depend on the speed of the machine. (Go ends if its first reading of the clock is zero.)
#[tokio::test]
async fn a_thousand_warm_calls_in_every_language_all_end_well() {
    for language in LANGUAGES {
        let guest = format!("conformance_{language}");
        if built(&guest).is_none() {
            continue;
        }
        let mut host = cofferdam_tests::Host::new();
        host.load(&guest).await;
        // Each call copies from a snapshot of CPython of tens of megabytes, in an unoptimized host.
        let calls = if language == "python" { 100 } else { 1000 };
        for call in 0..calls {
            let completion = host.call("word", "{}").await;
            assert_eq!(
                completion.record.outcome, "ok",
                "{language}, call {call}: {:?}",
                completion.record
            );
        }
    }
}
