//! `cofferdam doctor`: what it reports about a machine, what it leaves unchanged, and its exit
//! code.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest};
use serde_json::Value;

use crate::cli::{Ran, ran};

/// Runs the binary in `folder`, with the user's directories in it.
fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(binary());
    command.env_clear().env("HOME", folder.join("home")).current_dir(folder).stdin(Stdio::null());
    ran(command.args(arguments).output().unwrap())
}

/// Returns the state and the JSON of the check with this name.
fn check(checks: &Value, name: &str) -> (String, Value) {
    let check = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
    let check = check.unwrap_or_else(|| panic!("{name} is in {checks:#}"));
    (check["state"].as_str().unwrap().to_owned(), check.clone())
}

#[test]
fn a_usable_machine_has_no_problem_and_is_left_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["doctor"]);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    for part in [
        "Compiler of plugins\n  ok       compiler            works; confinement `full`\n",
        "\nDirectories\n  ok       cache ",
        "created when it is needed",
        "there is no cofferdam.toml here or above",
        "`cofferdam mcp config --host claude --config FILE --write` adds it",
        "\nToolchains for plugin authors\n",
    ] {
        assert!(ran.stdout.contains(part), "{part:?} in {}", ran.stdout);
    }
    assert!(!ran.stdout.contains("  problem  "), "{}", ran.stdout);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0, "doctor creates nothing");
}

#[test]
fn problems_of_a_configuration_and_a_cache_are_named_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(guest("text"), folder.path().join("text.wasm")).unwrap();
    let cache = folder.path().join("cache");
    std::fs::create_dir(&cache).unwrap();
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o755)).unwrap();
    let config = folder.path().join("tools.toml");
    std::fs::write(&config, "[plugins.text]\ncomponent = \"text.wasm\"\nlimit = 1\n").unwrap();
    let doctor = ["doctor", "--json", "--config", "tools.toml", "--cache-dir", "cache"];
    let ran = run(folder.path(), &doctor);
    assert_eq!(ran.code, 4, "{} {}", ran.stdout, ran.stderr);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (state, file) = check(&checks, "file");
    assert_eq!(state, "problem");
    assert!(file["found"].as_str().unwrap().contains("unknown field `limit`"), "{file}");
    assert_eq!(file["advice"], "correct it; `cofferdam config check tools.toml` helps");
    let (state, cache_check) = check(&checks, "cache");
    assert_eq!((state.as_str(), &cache_check["area"]), ("problem", &"directories".into()));
    assert!(cache_check["advice"].as_str().unwrap().contains("chmod 700"), "{cache_check}");
    // Both are mended as advised, and a replaced plugin is named.
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::write(&config, "[plugins.text]\ncomponent = \"text.wasm\"\n").unwrap();
    let list = ["list", "--config", "tools.toml"];
    assert_eq!(run(folder.path(), &list).code, 0);
    let approve = ["approve", "text", "--config", "tools.toml", "--yes"];
    let approved = run(folder.path(), &approve);
    assert_eq!(approved.code, 0, "{} {}", approved.stdout, approved.stderr);
    let ran = run(folder.path(), &doctor);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (state, lock) = check(&checks, "lock file");
    let found = lock["found"].as_str().unwrap();
    assert!(state == "ok" && found.starts_with("no plugin has changed"), "{lock}");
    let lock_file = folder.path().join("tools.lock");
    let accepted = std::fs::read(&lock_file).unwrap();
    std::fs::write(&lock_file, "{").unwrap();
    let ran = run(folder.path(), &doctor);
    assert_eq!(ran.code, 4, "{} {}", ran.stdout, ran.stderr);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(check(&checks, "lock file").0, "problem");
    std::fs::remove_file(&lock_file).unwrap();
    let ran = run(folder.path(), &doctor);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (state, lock) = check(&checks, "lock file");
    let found = lock["found"].as_str().unwrap();
    assert!(state == "ok" && found.starts_with("nothing has been accepted yet"), "{lock}");
    std::fs::write(&lock_file, accepted).unwrap();
    std::fs::copy(guest("web"), folder.path().join("text.wasm")).unwrap();
    let ran = run(folder.path(), &doctor);
    assert_eq!(ran.code, 0, "a changed plugin can be accepted: {}", ran.stdout);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (state, lock) = check(&checks, "lock file");
    assert_eq!(
        (state.as_str(), &lock["found"]),
        ("note", &"changed since they were accepted: `text`".into())
    );
}

#[test]
fn a_client_that_starts_the_program_is_recognized() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(guest("text"), folder.path().join("text.wasm")).unwrap();
    let config = ["mcp", "config", "--host", "cursor", "--plugin", "text.wasm", "--write"];
    let written = run(folder.path(), &config);
    assert_eq!(written.code, 0, "{} {}", written.stdout, written.stderr);
    std::fs::write(folder.path().join(".mcp.json"), "{").unwrap();
    let ran = run(folder.path(), &["doctor", "--json"]);
    assert_eq!(ran.code, 0, "{} {}", ran.stdout, ran.stderr);
    let checks: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(check(&checks, "Cursor").0, "ok");
    let (state, broken) = check(&checks, "Claude Code");
    assert_eq!(state, "note");
    assert!(broken["found"].as_str().unwrap().contains("not JSON"), "{broken}");
}
