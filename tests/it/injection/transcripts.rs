//! The demonstrations in `docs/labels.md` and `docs/code-mode.md`: runs their commands with their
//! files and compares the output with the pages.
//!
//! In a block marked `console` a line that begins with `$ ` is a command, and the lines below it
//! are its output, streams together; `…` matches anything within a line.

use std::path::Path;
use std::process::Command;

use cofferdam_tests::{binary, guest, root, shared_cache};

use crate::network::server::Server;

/// Address to which the demonstration sends data.
const ATTACKER: &str = "127.0.0.1:8808";

struct Shown {
    command: String,
    lines: Vec<String>,
}

/// Returns the commands of a page that are part of a demonstration, with their output.
fn shown(page: &str) -> Vec<Shown> {
    let page = std::fs::read_to_string(root().join(page)).unwrap();
    let mut all: Vec<Shown> = Vec::new();
    let mut is_console = false;
    for line in page.lines() {
        if let Some(kind) = line.strip_prefix("```") {
            is_console = kind == "console";
        } else if let Some(command) = line.strip_prefix("$ ").filter(|_| is_console) {
            all.push(Shown { command: command.to_owned(), lines: Vec::new() });
        } else if is_console {
            all.last_mut().expect("output comes after a command").lines.push(line.to_owned());
        }
    }
    all.retain(|shown| shown.command.contains(".toml") && !shown.lines.is_empty());
    all
}

/// Copies the files of the demonstration, with another address of the attacker.
fn copy(from: &Path, to: &Path, attacker: &str) {
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        if path.is_dir() {
            std::fs::create_dir(&to).unwrap();
            copy(&path, &to, attacker);
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let plugin = guest("http").display().to_string();
        let text =
            text.replace(ATTACKER, attacker).replace("../../../target/plugins/http.wasm", &plugin);
        std::fs::write(to, text).unwrap();
    }
}

fn printed(command: &str, folder: &Path) -> String {
    let program = binary();
    let path = format!("{}:/usr/bin:/bin", program.parent().unwrap().display());
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("exec 2>&1; {command}")]).current_dir(folder);
    shell.env_clear().env("PATH", path).env("COFFERDAM_CACHE_DIR", shared_cache());
    let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn is_like(expected: &str, line: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = line.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let parts: Vec<_> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[tokio::test]
async fn the_page_shows_what_happens() {
    let commands = shown("docs/labels.md");
    assert!(commands.len() >= 5, "the page has hardly any commands");
    let programs = shown("docs/code-mode.md");
    assert!(programs.len() >= 2, "the page of code mode has hardly any commands");
    let commands = commands.into_iter().chain(programs);
    for Shown { command, lines } in commands {
        let server = Server::start().await;
        let attacker = server.url("").trim_start_matches("http://").to_owned();
        let folder = tempfile::tempdir().unwrap();
        copy(&root().join("sample-tools/demo/injection"), folder.path(), &attacker);
        let typed = command.replace(ATTACKER, &attacker);
        let folder = folder.path().to_owned();
        let printed = tokio::task::spawn_blocking(move || printed(&typed, &folder)).await.unwrap();
        let printed = printed.replace(&attacker, ATTACKER);
        // The first run may compile a component and say so.
        let is_shown =
            |line: &&str| !line.trim_start().starts_with('(') && !line.starts_with("compiling ");
        let got: Vec<_> = printed.lines().filter(is_shown).collect();
        let is_same = got.len() == lines.len()
            && lines.iter().zip(&got).all(|(line, got)| is_like(line, got));
        assert!(is_same, "`{command}` should print\n{}\nand printed\n{printed}", lines.join("\n"));
        let stolen = server.requests().iter().filter(|request| request.contains("4711")).count();
        let is_open = command.contains("open.toml");
        assert_eq!(stolen, usize::from(is_open), "`{command}`");
    }
}
