//! Commands around the calls: starter configurations, trust, the cache, completions, manual pages,
//! the version, and errors as JSON.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::Value;

use crate::cli::{Ran, ran};
use crate::operator::Operator;

/// Runs the binary in `folder`, with the user's directories in it.
fn run(folder: &Path, arguments: &[&str]) -> Ran {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).current_dir(folder);
    ran(command.args(arguments).output().unwrap())
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["text", "web"] {
        std::fs::copy(guest(name), folder.path().join(format!("{name}.wasm"))).unwrap();
    }
    folder
}

const INIT: [&str; 6] = ["config", "init", "--plugin", "text.wasm", "--plugin", "web.wasm"];

#[test]
fn a_starter_configuration_leads_to_a_granted_tool() {
    let folder = folder();
    let ran = run(folder.path(), &INIT);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let text = std::fs::read_to_string(folder.path().join("cofferdam.toml")).unwrap();
    assert!(text.contains("[plugins.web]\ncomponent = \"web.wasm\"\n"), "{text}");
    assert!(text.contains("#   'http:GET https://*:*/'  to "), "{text}");
    assert!(text.contains("cofferdam grant web --all-asked --config cofferdam.toml"), "{text}");
    let list = run(folder.path(), &["list", "--config", "cofferdam.toml"]);
    assert!(list.stdout.contains("word_count("), "{} {}", list.stdout, list.stderr);
    let grant = ["grant", "web", "http:GET https://a.example/", "--config", "cofferdam.toml"];
    assert_eq!(run(folder.path(), &grant).code, 0);
    // A file is never overwritten.
    let again = run(folder.path(), &INIT);
    assert_eq!(again.code, 2);
    assert!(again.stderr.contains("cofferdam.toml exists"), "{}", again.stderr);
    let twice = ["config", "init", "b.toml", "-p", "text.wasm", "-p", "text.wasm"];
    assert!(run(folder.path(), &twice).stderr.contains("two plugins are called `text`"));
}

#[test]
fn a_configuration_is_used_only_while_it_is_trusted() {
    let folder = folder();
    let call = ["call", "word_count", "text=a b"];
    assert_eq!(run(folder.path(), &INIT).code, 0);
    let ran = run(folder.path(), &call);
    assert_eq!(ran.code, 2);
    assert!(
        ran.stderr.contains("cofferdam.toml is not trusted, and is not used"),
        "{}",
        ran.stderr
    );
    assert_eq!(run(folder.path(), &["trust"]).code, 0);
    // Below the directory too, and with an edit by the program itself.
    let below = folder.path().join("below");
    std::fs::create_dir(&below).unwrap();
    assert_eq!(run(folder.path(), &["grant", "web", "http:GET https://a.example/"]).code, 0);
    let home = folder.path().join("home");
    let ran = Command::new(binary())
        .env_clear()
        .env("COFFERDAM_CACHE_DIR", shared_cache())
        .env("HOME", &home)
        .current_dir(&below)
        .args(call)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let list = run(folder.path(), &["trust", "--list"]);
    assert!(list.stdout.trim_end().ends_with("/cofferdam.toml"), "{}", list.stdout);
    // An edit by another program ends the trust.
    let path = folder.path().join("cofferdam.toml");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("{text}\n# more\n")).unwrap();
    let ran = run(folder.path(), &call);
    assert!(ran.stderr.contains("has changed since it was trusted"), "{}", ran.stderr);
    assert!(run(folder.path(), &["trust", "--list"]).stdout.contains("(changed since)"));
    assert_eq!(run(folder.path(), &["trust"]).code, 0);
    assert_eq!(run(folder.path(), &call).code, 0);
    assert_eq!(run(folder.path(), &["trust", "--revoke"]).code, 0);
    assert_eq!(run(folder.path(), &call).code, 2);
    // A byte order mark, as some editors write it, is kept by edits and costs no trust.
    std::fs::write(&path, format!("\u{feff}{text}")).unwrap();
    assert_eq!(run(folder.path(), &["trust"]).code, 0);
    assert_eq!(run(folder.path(), &call).code, 0);
    assert_eq!(run(folder.path(), &["grant", "web", "http:GET https://b.example/"]).code, 0);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with('\u{feff}'));
    assert_eq!(run(folder.path(), &call).code, 0);
    assert_eq!(run(folder.path(), &["trust", "--revoke"]).code, 0);
    // What the command names itself does not become more.
    assert_eq!(run(folder.path(), &["trust"]).code, 0);
    let ran = run(folder.path(), &["list", "--plugin", "text.wasm"]);
    assert!(!ran.stdout.contains("fetch("), "{}", ran.stdout);
}

#[test]
fn only_the_file_that_commands_look_for_can_be_trusted() {
    let folder = folder();
    std::fs::write(folder.path().join("my tools.toml"), "").unwrap();
    let ran = run(folder.path(), &["trust", "my tools.toml"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let message = "my tools.toml is not called cofferdam.toml";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
    let init = run(folder.path(), &["config", "init", "new tools.toml", "-p", "text.wasm"]);
    assert_eq!(init.code, 0, "{}", init.stderr);
    assert!(init.stderr.contains("list --config 'new tools.toml'"), "{}", init.stderr);
}

#[test]
fn a_key_is_written_with_its_public_key_or_not_at_all() {
    let folder = folder();
    std::fs::write(folder.path().join("half.pub"), "").unwrap();
    let ran = run(folder.path(), &["keys", "new", "half"]);
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    assert!(ran.stderr.contains("half.pub cannot be created"), "{}", ran.stderr);
    assert!(!folder.path().join("half.key").exists());
}

#[test]
fn no_plugin_can_write_the_list_of_trusted_files() {
    let folder = folder();
    let state = folder.path().join("home/.local/state/cofferdam");
    std::fs::create_dir_all(&state).unwrap();
    let mount = format!("data={}", state.display());
    let files = run(folder.path(), &["list", "--files", &mount]);
    assert_eq!(files.code, 2, "{} {}", files.stdout, files.stderr);
}

#[test]
fn the_cache_is_shown_and_emptied() {
    let folder = folder();
    let cached =
        |arguments: &[&str]| run(folder.path(), &[arguments, &["--cache-dir", "cache"]].concat());
    assert_eq!(cached(&["cache", "dir"]).stdout, "cache\n");
    let empty = cached(&["cache", "clean"]);
    assert!(empty.stderr.contains("removed 0 files"), "{}", empty.stderr);
    assert!(!folder.path().join("cache").exists(), "cleaning creates nothing");
    assert_eq!(cached(&["list", "--plugin", "text.wasm"]).code, 0);
    let pruned: Value =
        serde_json::from_str(&cached(&["cache", "prune", "--json"]).stdout).unwrap();
    assert_eq!(pruned["files"], 0, "{pruned}");
    assert!(pruned["bytes_left"].as_u64().unwrap() > 10_000, "{pruned}");
    let cleaned: Value =
        serde_json::from_str(&cached(&["cache", "clean", "--json"]).stdout).unwrap();
    assert_eq!((&cleaned["bytes"], &cleaned["bytes_left"]), (&pruned["bytes_left"], &0.into()));
    assert_eq!(cached(&["list", "--plugin", "text.wasm"]).code, 0);
    assert_eq!(cached(&["cache", "clean", "--no-cache"]).code, 2);
}

#[test]
fn a_cache_that_cannot_be_used_names_the_flags() {
    let folder = folder();
    std::fs::write(folder.path().join("file"), "").unwrap();
    let list = ["list", "--plugin", "text.wasm", "--cache-dir", "file"];
    let ran = run(folder.path(), &list);
    assert_eq!(ran.code, 5, "{}", ran.stderr);
    assert!(ran.stderr.contains("--no-cache for none"), "{}", ran.stderr);
}

#[test]
fn completions_and_manual_pages_are_generated() {
    let folder = tempfile::tempdir().unwrap();
    for (shell, part) in [("bash", "complete -F"), ("zsh", "#compdef"), ("fish", "complete -c")] {
        let ran = run(folder.path(), &["completions", shell]);
        assert!(ran.code == 0 && ran.stdout.contains(part), "{shell}: {}", ran.stderr);
        assert!(ran.stdout.contains("word-size") || ran.stdout.contains("inspect"), "{shell}");
    }
    assert!(run(folder.path(), &["man"]).stdout.contains(".TH cofferdam 1"));
    assert_eq!(run(folder.path(), &["man", "--dir", "pages"]).code, 0);
    let page = std::fs::read_to_string(folder.path().join("pages/cofferdam-call.1")).unwrap();
    assert!(page.contains("Call a tool and print its result"), "{page}");
}

#[test]
fn the_version_names_wasmtime() {
    let folder = tempfile::tempdir().unwrap();
    let version = run(folder.path(), &["--version"]).stdout;
    assert!(
        version.starts_with(&format!("cofferdam {} (", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
    assert!(version.contains("wasmtime 48.0."), "{version}");
}

#[test]
fn errors_before_a_call_are_json_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let error = |arguments: &[&str]| -> (i32, Value) {
        let ran = run(folder.path(), arguments);
        assert!(!ran.stderr.is_empty());
        (ran.code, serde_json::from_str(&ran.stdout).expect(&ran.stdout))
    };
    let (code, missing) = error(&["call", "t", "--plugin", "missing.wasm", "--json"]);
    assert_eq!((code, &missing["code"]), (4, &"unavailable".into()), "{missing}");
    assert!(missing["message"].as_str().unwrap().contains("missing.wasm"), "{missing}");
    let (code, flag) = error(&["list", "--no-such-flag", "--json"]);
    assert_eq!((code, &flag["code"], &flag["outcome"]), (2, &"usage".into(), &"error".into()));
    let (code, config) = error(&["list", "--config", "missing.toml", "--json"]);
    assert_eq!((code, &config["code"]), (2, &"usage".into()), "{config}");
}

#[test]
fn color_is_for_terminals() {
    let folder = tempfile::tempdir().unwrap();
    let unknown = ["call", "t", "--plugin", "missing.wasm"];
    assert!(!run(folder.path(), &unknown).stderr.contains('\u{1b}'));
    let always = run(folder.path(), &[&unknown[..], &["--color", "always"]].concat());
    assert!(always.stderr.starts_with("\u{1b}[1m\u{1b}[31merror:\u{1b}[0m"), "{:?}", always.stderr);
    let mut terminal =
        Operator::runs(folder.path(), &[&unknown[..], &["--color", "never"]].concat());
    terminal.sees("error: ");
    let (code, screen) = terminal.ends();
    assert_eq!(code, Some(4));
    assert!(!screen.contains("\u{1b}[31m"), "{screen:?}");
}

#[test]
fn a_line_that_is_no_case_is_one_failure_and_the_others_run() {
    let folder = folder();
    let cases = [
        r#"{"tool":"word_count","arguments":{"text":"a b"},"failed":true}"#,
        "not json",
        "// a comment",
        r#"{"tool":"word_count","arguments":{"text":"a"},"failed":true,"result":1}"#,
        r#"{"tool":"word_count","arguments":{},"invalid":"text"}"#,
        r#"{"tool":"word_count","arguments":{},"mounts":{"data":"../x"},"failed":true}"#,
    ];
    std::fs::write(folder.path().join("cases.jsonl"), cases.join("\n")).unwrap();
    let ran = run(folder.path(), &["test", "text.wasm"]);
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    for line in
        ["FAILED line 2\n       not a case: ", "FAILED line 4\n", "ok     word_count (line 5)"]
    {
        assert!(ran.stdout.contains(line), "{line}: {}", ran.stdout);
    }
    assert!(ran.stdout.contains("FAILED word_count (line 6)\n"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("1 passed, 4 failed\n"), "{}", ran.stdout);
}

#[test]
fn the_demo_shows_a_result_a_grant_a_crash_and_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let ran = run(folder.path(), &["demo"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert_eq!(ran.stdout.lines().next(), Some("6"), "{}", ran.stdout);
    assert!(ran.stdout.contains(r###"["# Plan","## Today"]"###), "{}", ran.stdout);
    for part in [
        "$ cofferdam call count_words text='to be or not to be' --plugin tour.wasm\n",
        "not granted: to read ",
        "to grant it: --mount notes=DIR:ro\n",
        "Trap.Unreachable",
        "the limit is 1.0 s; raise it with --timeout 2s\n",
        "exit code 3\n",
    ] {
        assert!(ran.stderr.contains(part), "{part}: {}", ran.stderr);
    }
}

#[test]
fn the_plugin_of_the_demo_is_the_sample() {
    let here = cofferdam_tests::root().join("host/cli/src/commands/demo/tour.wasm");
    let inspect = |component: &Path| {
        let path = component.display().to_string();
        let report = run(&cofferdam_tests::root(), &["inspect", &path, "--json"]);
        let mut report: Value = serde_json::from_str(&report.stdout).expect(&report.stderr);
        // The sample is built with other paths in its panics.
        for key in ["digest", "component_bytes"] {
            report[key].take();
        }
        // Other samples of its workspace use a newer WASI, which all of them import then.
        let imports = report["imports"].as_array().unwrap().iter();
        let names = imports.map(|import| import.as_str().unwrap().split('@').next().unwrap());
        let names: std::collections::BTreeSet<_> = names.map(str::to_owned).collect();
        report["imports"] = names.into_iter().collect();
        report
    };
    assert_eq!(inspect(&here), inspect(&guest("tour")), "run `cargo xtask tour`");
}

#[test]
fn a_bar_is_drawn_on_a_terminal_and_progress_is_lines_in_a_pipe() {
    let folder = tempfile::tempdir().unwrap();
    let plugin = guest("served").display().to_string();
    let call = ["call", "count", "steps:=4", "pause_ms:=120", "--plugin", &plugin];
    let piped = run(folder.path(), &call);
    assert!(piped.stderr.contains(" of 4: step "), "{} {}", piped.stdout, piped.stderr);
    let terminal = [("TERM", "xterm")];
    let (_, screen) = Operator::runs_with(folder.path(), &call, &terminal).ends();
    assert!(screen.contains(" %  "), "{screen:?}");
}

/// Returns the names below `Commands:` of a help page.
fn subcommands(help: &str) -> Vec<String> {
    let (_, commands) = help.split_once("\nCommands:\n").unwrap_or_default();
    let lines = commands.lines().take_while(|line| line.starts_with("  "));
    let names = lines.filter(|line| !line.starts_with("   "));
    names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
}

#[test]
fn every_help_page_is_plain_in_a_pipe_and_shown_on_a_narrow_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let mut waiting = vec![Vec::<String>::new()];
    let mut pages = 0;
    while let Some(command) = waiting.pop() {
        let page: Vec<_> = command.iter().map(String::as_str).chain(["--help"]).collect();
        let ran = run(folder.path(), &page);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, ""), "{page:?}");
        assert!(ran.stdout.contains("Usage: cofferdam"), "{page:?}: {}", ran.stdout);
        assert!(!ran.stdout.contains('\u{1b}'), "{page:?}");
        pages += 1;
        for name in subcommands(&ran.stdout).into_iter().filter(|name| name != "help") {
            waiting.push([command.as_slice(), &[name]].concat());
        }
    }
    assert!(pages > 35, "{pages} pages");
    let narrow = [("COLUMNS", "40"), ("TERM", "xterm")];
    let (code, screen) = Operator::runs_with(folder.path(), &["call", "--help"], &narrow).ends();
    assert_eq!(code, Some(0));
    assert!(screen.contains("Usage:"), "{screen}");
}

#[test]
fn unusual_environments_and_arguments_end_with_a_message() {
    use std::os::unix::ffi::OsStrExt as _;

    let folder = folder();
    let not_text = std::ffi::OsStr::from_bytes(b"caf\xe9.wasm");
    std::fs::copy(guest("text"), folder.path().join(not_text)).unwrap();
    let commands: [&[&std::ffi::OsStr]; 5] = [
        &["list".as_ref(), "--plugin".as_ref(), "text.wasm".as_ref()],
        &["trust".as_ref(), "--list".as_ref()],
        &["cache".as_ref(), "dir".as_ref()],
        &["chat".as_ref(), "--sessions".as_ref()],
        &["inspect".as_ref(), not_text],
    ];
    for environment in [
        // Nothing can be created in these, even by root.
        &[("HOME", "/proc")][..],
        &[("HOME", "/dev/null"), ("TERM", "dumb")],
        &[("HOME", "/proc/none"), ("LANG", "C"), ("COLUMNS", "0")],
    ] {
        for command in commands {
            let mut program = Command::new(binary());
            program.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
            program.envs(environment.iter().copied()).current_dir(folder.path()).args(command);
            let output = program.output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code().unwrap();
            assert!(!stderr.contains("panicked"), "{command:?} {environment:?}: {stderr}");
            assert!([0, 2, 4, 5].contains(&code), "{command:?} {environment:?}: {code} {stderr}");
            assert!(code == 0 || stderr.contains("error: "), "{command:?}: {stderr}");
        }
    }
}
