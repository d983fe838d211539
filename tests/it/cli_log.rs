//! The binary and the call log: what is recorded, filters, evidence, and the protection of the log.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache, unused_port};
use serde_json::Value;

use crate::cli::{Ran, ran};

/// Token that must be in no file of the log.
const CANARY: &str = "sk-canary0123456789abcdefghij";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).current_dir(folder).args(arguments);
    command
}

fn run(folder: &Path, arguments: &[&str]) -> Ran {
    ran(command(folder, arguments).output().unwrap())
}

fn calls(folder: &Path, filters: &[&str]) -> Vec<Value> {
    let listed = run(folder, &[&["log", "--json"], filters].concat());
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    listed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["text", "crash", "web"] {
        std::fs::copy(guest(name), folder.path().join(format!("{name}.wasm"))).unwrap();
    }
    std::fs::create_dir(folder.path().join("notes")).unwrap();
    folder
}

fn log_directory(folder: &Path) -> std::path::PathBuf {
    folder.join("home/.local/state/cofferdam/records")
}

/// Returns the content of all files below a directory.
fn contents(directory: &Path) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries
        .flat_map(
            |path| {
                if path.is_dir() { contents(&path) } else { vec![std::fs::read(path).unwrap()] }
            },
        )
        .collect()
}

/// Records three calls: a result, a trap, and a failure after a refused request.
fn record_three(folder: &Path) {
    let count = ["call", "word_count", "text=a b", "-p", "text.wasm"];
    // Nothing is recorded unless it is asked for.
    assert_eq!(run(folder, &count).code, 0);
    assert!(!log_directory(folder).exists());
    assert_eq!(run(folder, &[&count[..], &["--record"]].concat()).code, 0);
    assert_eq!(run(folder, &["call", "panic", "-p", "crash.wasm", "--record"]).code, 3);
    let fetch = ["call", "fetch", "url=https://api.example.com/x", "-p", "web.wasm", "--record"];
    assert_eq!(run(folder, &fetch).code, 1);
}

#[test]
fn calls_are_listed_filtered_shown_and_counted() {
    let folder = folder();
    let folder = folder.path();
    let none = run(folder, &["log"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.starts_with("nothing is recorded yet; "), "{}", none.stderr);
    record_three(folder);

    let all = calls(folder, &[]);
    let tools: Vec<_> = all.iter().map(|call| call["tool"].as_str().unwrap()).collect();
    assert_eq!(tools, ["fetch", "panic", "word_count"]);
    for (filter, expected) in [
        (&["--outcome", "error"][..], "panic"),
        (&["--tool", "word_count", "--since", "1h"], "word_count"),
        (&["--plugin", "web", "--refused=example"], "fetch"),
        (&["--grep", "Trap.Unreachable"], "panic"),
    ] {
        let found = calls(folder, filter);
        assert_eq!(found.len(), 1, "{filter:?}");
        assert_eq!(found[0]["tool"], expected, "{filter:?}");
    }
    assert!(calls(folder, &["--until", "2020-01-01"]).is_empty());

    let id = all[0]["id"].as_str().unwrap();
    let shown = run(folder, &["log", "show", &id[..6]]).stdout;
    assert!(shown.contains("refused    http:GET https://api.example.com/x"), "{shown}");
    assert!(shown.contains("not stored; its digest is "), "{shown}");
    let stats = run(folder, &["log", "stats", "--json"]);
    let stats: Value = serde_json::from_str(&stats.stdout).unwrap();
    assert_eq!((&stats["panic"]["errors"], &stats["word_count"]["calls"]), (&1.into(), &1.into()));
    let spans = run(folder, &["log", "export", "--format", "otlp"]).stdout;
    assert!(spans.contains(r#""name":"execute_tool fetch""#), "{spans}");
    assert!(run(folder, &["log", "show", "zzz"]).stderr.contains("no call in the log has the id"));
    assert!(run(folder, &["log", "--since", "soon"]).stderr.contains("is not a time; write"));
    lists_go_through_the_pager(folder);
}

/// Checks where the lists of three calls go at a terminal.
fn lists_go_through_the_pager(folder: &Path) {
    // `script` of util-linux makes the terminal.
    let shown = |arguments: &str, pagers: &[(&str, &str)]| {
        let plain = command(folder, &[]);
        let line = format!("{} log {arguments}", binary().display());
        let mut script = Command::new("script");
        script.args(["--quiet", "--return", "--command", &line, "/dev/null"]).env_clear();
        script.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        script.envs([("PATH", "/usr/bin:/bin"), ("SHELL", "/bin/sh"), ("NO_COLOR", "1")]);
        script.envs(pagers.iter().copied());
        let shown = ran(script.current_dir(folder).stdin(Stdio::null()).output().unwrap());
        assert_eq!(shown.code, 0, "{arguments} {pagers:?}: {}", shown.stdout);
        shown.stdout
    };
    let (other, mark) = (("PAGER", "false"), ("COFFERDAM_PAGER", "sed 's/^/paged: /'"));
    for arguments in ["", "stats", "events"] {
        assert!(shown(arguments, &[other, mark]).contains("paged: "), "{arguments}");
    }
    let list = shown("", &[("PAGER", mark.1)]);
    assert_eq!(list.lines().filter(|line| line.starts_with("paged: 20")).count(), 3, "{list}");
    // The user has left the pager at once.
    assert_eq!(shown("", &[("PAGER", "true")]), "");
    // None is wanted, or it does not start.
    for arguments in ["--no-pager", "--json"] {
        assert!(!shown(arguments, &[mark]).contains("paged: "), "{arguments}");
    }
    for pager in ["", "/nowhere/pager"] {
        assert!(shown("", &[("PAGER", pager)]).contains("  panic  [crash]"), "{pager}");
    }
    let piped = ran(command(folder, &["log"]).env(mark.0, mark.1).output().unwrap());
    assert!(piped.stdout.starts_with("20"), "{}", piped.stdout);
}

#[test]
fn a_changed_log_is_found_and_a_call_is_proved() {
    let folder = folder();
    let folder = folder.path();
    record_three(folder);
    let intact = run(folder, &["log", "verify"]);
    assert_eq!((intact.code, intact.stdout.starts_with("ok ")), (0, true), "{}", intact.stdout);
    let checkpoint = run(folder, &["log", "checkpoint"]);
    std::fs::write(folder.join("kept.txt"), &checkpoint.stdout).unwrap();
    let key = checkpoint.stderr.lines().find_map(|line| line.strip_prefix("key: ")).unwrap();
    assert_eq!(run(folder, &["log", "verify", "--kept", "kept.txt"]).code, 0);

    let id = calls(folder, &["--tool", "panic"])[0]["id"].as_str().unwrap().to_owned();
    let proof = run(folder, &["log", "prove", &id]);
    std::fs::write(folder.join("proof.json"), &proof.stdout).unwrap();
    let check = ["log", "prove", "--check", "proof.json", "--key", key];
    let checked = run(folder, &check);
    assert!(
        checked.code == 0 && checked.stdout.contains(r#""tool":"panic""#),
        "{}",
        checked.stderr
    );
    std::fs::write(folder.join("proof.json"), proof.stdout.replace("panic", "peace")).unwrap();
    let forged = run(folder, &check);
    assert_eq!(forged.code, 1, "{}", forged.stderr);
    assert!(forged.stderr.contains("the proof does not hold"), "{}", forged.stderr);
    std::fs::remove_file(folder.join("proof.json")).unwrap();
    assert_eq!(run(folder, &check).code, 2);
    std::fs::write(folder.join("empty.txt"), "\n\n").unwrap();
    let empty = run(folder, &["log", "verify", "--kept", "empty.txt"]);
    assert_eq!(empty.code, 2, "{}{}", empty.stdout, empty.stderr);
    assert!(empty.stderr.contains("empty.txt has no checkpoint"), "{}", empty.stderr);

    // A whole segment is gone, with everything beside it.
    let first =
        std::fs::read_dir(log_directory(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<_> = first.filter(|path| path.is_file()).collect();
    names.sort();
    let stem = names[0].file_name().unwrap().to_str().unwrap().split('.').take(2);
    let stem = stem.collect::<Vec<_>>().join(".");
    for path in names.iter().filter(|path| path.display().to_string().contains(&stem)) {
        std::fs::remove_file(path).unwrap();
    }
    let damaged = run(folder, &["log", "verify", "--kept", "kept.txt"]);
    assert_eq!(damaged.code, 1, "{}", damaged.stdout);
    assert!(damaged.stdout.contains("FAILED"), "{}", damaged.stdout);
}

#[test]
fn segments_that_retention_removed_are_in_the_report() {
    let folder = folder();
    let folder = folder.path();
    record_three(folder);
    assert_eq!(run(folder, &["log", "prune", "--max-age", "0"]).code, 0);
    let verified = run(folder, &["log", "verify"]);
    assert_eq!(verified.code, 0, "{}", verified.stdout);
    let note = "note: 3 segments removed by retention";
    assert!(verified.stderr.contains(note), "{}", verified.stderr);
    let json = run(folder, &["log", "verify", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["pruned"].as_array().unwrap().len(), 3, "{json}");
}

#[test]
fn chat_records_by_default_and_keeps_secrets_out() {
    let folder = folder();
    let folder = folder.path();
    let save = serde_json::json!({
        "text": "Saving.",
        "calls": [{
            "tool": "file_access_save_file",
            "arguments": {"file_name": "b.md", "content": format!("key {CANARY}")},
        }],
    });
    std::fs::write(folder.join("model.jsonl"), format!("{save}\n{{\"text\":\"Done.\"}}\n"))
        .unwrap();
    let config = "[records]\ndirectory = \"log\"\npayloads = \"local\"\n[files.workspace]\nstore = \"notes\"\n[stores.notes]\ndirectory = \"notes\"\n";
    std::fs::write(folder.join("c.toml"), config).unwrap();
    let chat = ["chat", "Save it.", "--model", "script:model.jsonl", "--config", "c.toml"];
    let unrecorded = run(folder, &[&chat[..], &["--no-record"]].concat());
    assert_eq!(unrecorded.code, 0, "{}", unrecorded.stderr);
    assert!(!folder.join("log").exists());
    std::fs::remove_file(folder.join("notes/b.md")).unwrap();
    let session = ["--session", "saved", "--session-dir", "sessions"];
    let recorded = run(folder, &[&chat[..], &session].concat());
    assert_eq!(recorded.code, 0, "{}", recorded.stderr);
    // The run and the replies of the model belong to the session, like the call.
    let spans = run(folder, &["log", "export", "--format", "otlp", "--config", "c.toml"]).stdout;
    let conversation = r#"{"key":"gen_ai.conversation.id","value":{"stringValue":"saved"}}"#;
    assert_eq!(spans.matches(conversation).count(), 4, "{spans}");
    let found = calls(folder, &["--config", "c.toml", "--changed=b.md"]);
    assert_eq!(found.len(), 1);
    let id = found[0]["id"].as_str().unwrap();
    let shown = run(folder, &["log", "show", id, "--config", "c.toml"]).stdout;
    assert!(shown.contains("b.md") && shown.contains("key [redacted"), "{shown}");
    for bytes in contents(&folder.join("log")) {
        let has_canary = bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
        assert!(!has_canary, "{}", String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn a_server_records_its_calls_and_closes_the_log() {
    use std::io::{BufRead as _, BufReader, Write as _};

    let folder = folder();
    let folder = folder.path();
    let mut server = command(folder, &["serve", "-p", "text.wasm"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut ask = |message: &str, answer: &str| {
        writeln!(input, "{message}").unwrap();
        assert!(output.any(|line| line.unwrap().contains(answer)), "{message}");
    };
    let client = r#"{"name":"test","version":"1"}"#;
    let parameters =
        format!(r#"{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{client}}}"#);
    ask(
        &format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{parameters}}}"#),
        r#""id":1"#,
    );
    let call = r#"{"name":"word_count","arguments":{"text":"a b"}}"#;
    ask(
        &format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{call}}}"#),
        r#""id":2"#,
    );
    drop(input);
    assert!(server.wait().unwrap().success());
    let outcomes: Vec<_> =
        calls(folder, &[]).iter().map(|call| call["outcome"].to_string()).collect();
    assert_eq!(outcomes, [r#""ok""#]);
    let verified = run(folder, &["log", "verify"]);
    assert!(!verified.stderr.contains("without an end"), "{}", verified.stderr);
}

#[test]
fn no_plugin_can_write_the_log() {
    let folder = folder();
    let folder = folder.path();
    record_three(folder);
    let mount = format!("data={}", log_directory(folder).display());
    let writes = ["call", "word_count", "text=a", "-p", "text.wasm", "--mount", &mount];
    let refused = run(folder, &writes);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("records"), "{}", refused.stderr);
    // Neither the log of a configuration, in a command that records nothing.
    let own = folder.join("own");
    std::fs::create_dir_all(own.join("data/log")).unwrap();
    let config = "[records]\ndirectory = \"data/log\"\n[stores.data]\ndirectory = \"data\"\n\
                  [plugins.text]\ncomponent = \"../text.wasm\"\n\
                  grants.files.data = \"read-write\"\n";
    std::fs::write(own.join("c.toml"), config).unwrap();
    let call = ["call", "word_count", "text=a", "--config", "own/c.toml"];
    let refused = run(folder, &call);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("data/log"), "{}", refused.stderr);
    // A directory that others may read is not used.
    std::fs::create_dir(folder.join("wide")).unwrap();
    std::fs::write(
        folder.join("c.toml"),
        "[records]\ndirectory = \"wide\"\n[plugins.text]\ncomponent = \"text.wasm\"\n",
    )
    .unwrap();
    let call = ["call", "word_count", "text=a", "--config", "c.toml", "--record"];
    let wide = run(folder, &call);
    assert!(wide.code == 5 || wide.code == 2, "{}: {}", wide.code, wide.stderr);
    assert!(wide.stderr.contains("chmod 700"), "{}", wide.stderr);
}

#[test]
fn a_killed_host_shows_the_lost_call() {
    let folder = folder();
    let folder = folder.path();
    let spin = ["call", "spin", "-p", "crash.wasm", "--timeout", "60s", "--record"];
    let mut child =
        command(folder, &spin).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let is_running =
        || log_directory(folder).exists() && !calls(folder, &["--outcome", "running"]).is_empty();
    for _ in 0..600 {
        if is_running() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert!(is_running(), "the call is not in the log while it runs");
    child.kill().unwrap();
    child.wait().unwrap();
    let lost = calls(folder, &["--outcome", "lost"]);
    assert_eq!(lost.len(), 1);
    assert_eq!(lost[0]["tool"], "spin");
    assert_eq!(run(folder, &["log", "verify"]).code, 0);
}

#[test]
fn changes_of_grants_are_recorded() {
    let folder = folder();
    let folder = folder.path();
    let config = "[records]\nenabled = true\n[plugins.web]\ncomponent = \"web.wasm\"\n";
    std::fs::write(folder.join("c.toml"), config).unwrap();
    let rule = "http:GET https://api.example.com/";
    assert_eq!(run(folder, &["grant", "web", rule, "--config", "c.toml"]).code, 0);
    // Granted already.
    assert_eq!(run(folder, &["grant", "web", rule, "--config", "c.toml"]).code, 0);
    assert_eq!(run(folder, &["revoke", "web", rule, "--config", "c.toml"]).code, 0);
    let events = run(folder, &["log", "events", "--kind", "grant"]);
    let lines: Vec<_> = events.stdout.lines().map(|line| &line[21..]).collect();
    let granted = format!("grant     web: granted {rule}");
    assert_eq!(lines, [granted.clone(), granted.replace("granted", "revoked")]);
    let call = ["call", "word_count", "text=a", "-p", "text.wasm", "--record"];
    assert_eq!(run(folder, &call).code, 0);
    let loaded = run(folder, &["log", "events", "--kind", "plugin", "--json"]).stdout;
    let event: Value = serde_json::from_str(loaded.trim()).unwrap();
    assert_eq!(event["event"]["plugin"], "text");
    // Nothing is recorded where nothing was recorded before, or where it is switched off.
    let config = "[records]\ndirectory = \"other\"\n[plugins.web]\ncomponent = \"web.wasm\"\n";
    std::fs::write(folder.join("d.toml"), config).unwrap();
    assert_eq!(run(folder, &["grant", "web", rule, "--config", "d.toml"]).code, 0);
    assert!(!folder.join("other").exists());
}

/// Key of a witness that does not exist.
const WITNESS: &str = "witness.example/w1+7e136b5c+BAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

#[test]
fn a_witness_that_is_away_stops_no_call_and_has_signed_nothing() {
    let folder = folder();
    let folder = folder.path();
    let port = unused_port();
    let config = |key: &str| {
        format!(
            "[plugins.text]\ncomponent = \"text.wasm\"\n\n[[records.witness]]\n\
             url = \"http://127.0.0.1:{port}\"\nkey = \"{key}\"\n"
        )
    };
    std::fs::write(folder.join("c.toml"), config(WITNESS)).unwrap();
    let called = run(folder, &["call", "word_count", "text=a", "-c", "c.toml", "--record"]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    for flags in [["-c", "c.toml"], ["--witness", WITNESS]] {
        let verified = run(folder, &[&["log", "verify"][..], &flags].concat());
        assert_eq!(verified.code, 0, "{}", verified.stderr);
        let note = "note: witness.example/w1 has signed no checkpoint of this log";
        assert!(verified.stderr.contains(note), "{}", verified.stderr);
    }
    let json = run(folder, &["log", "verify", "-c", "c.toml", "--json"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["witnesses"][0]["checkpoints"], 0);

    std::fs::write(folder.join("c.toml"), config("w+00000000+AQ==")).unwrap();
    let wrong = run(folder, &["log", "verify", "-c", "c.toml"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("c.toml:6"), "{}", wrong.stderr);
    assert!(
        wrong.stderr.contains("an algorithm other than Ed25519 with a time"),
        "{}",
        wrong.stderr
    );
}

#[test]
fn limits_that_no_log_can_have_remove_nothing() {
    let folder = folder();
    let folder = folder.path();
    record_three(folder);
    for (limit, wanted) in [
        ("bytes-max = 1", "`bytes-max` must be at least 4194304"),
        ("days-max = 0", "`days-max` must be at least 1"),
    ] {
        std::fs::write(folder.join("c.toml"), format!("[records]\n{limit}\n")).unwrap();
        for command in [
            &["log", "prune", "--config", "c.toml"][..],
            &["config", "check", "c.toml"],
            &["call", "word_count", "text=a", "-p", "text.wasm", "--config", "c.toml", "--record"],
        ] {
            let refused = run(folder, command);
            assert_eq!(refused.code, 2, "{command:?}: {}", refused.stderr);
            assert!(refused.stderr.contains(wanted), "{command:?}: {}", refused.stderr);
        }
    }
    assert_eq!(calls(folder, &[]).len(), 3);
}

#[test]
fn tail_prints_calls_that_end_and_ends_with_its_reader() {
    let folder = folder();
    let folder = folder.path();
    record_three(folder);
    let missing = run(folder, &["log", "tail", "--directory", "missing"]);
    assert_eq!(missing.code, 2, "{}", missing.stderr);

    let mut tail = command(folder, &["log", "tail", "--json"]);
    let mut tail = tail.stdout(Stdio::piped()).spawn().unwrap();
    let mut output = std::io::BufReader::new(tail.stdout.take().unwrap());
    let mut line = String::new();
    // Calls count from the start of `tail`, which may come later than the first of these.
    let count = ["call", "word_count", "text=a", "-p", "text.wasm", "--record"];
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                assert_eq!(run(folder, &count).code, 0);
            }
        });
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        drop(output);
        let ended = tail.wait().unwrap();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(ended.code(), Some(0));
    });
    let call: Value = serde_json::from_str(&line).unwrap();
    assert_eq!(call["outcome"], "ok");
}
