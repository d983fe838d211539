//! Text that drives a terminal, in every field that a plugin controls, shown by the real binary.
//!
//! A terminal receives nothing that moves the cursor, hides text or reverses it. On a pipe, results
//! are data and go out unchanged; notes for the operator are escaped there too.

use std::path::Path;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use tempfile::TempDir;

use super::{End, Ended, Launch, attacks};
use crate::module::{Answer, Definition, Item, Module};

/// Clears the screen, renames the window, reverses a line, hides a word, fakes a prompt, in C0, C1
/// and Unicode. The word in the middle must stay visible.
const DRIVES: &str =
    "\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}seen\u{202c}\u{2066}\u{200b}\u{e0041}\r\u{8}";

attacks! {
    /// A description in the list of tools.
    in_a_list: Launch::Steps(|_| Box::pin(async { shown(&described(), &["list", "--plugin"], "seen") }))
        => End::AsExpected,
    /// A description shown before a grant.
    in_an_inspection: Launch::Steps(|_| Box::pin(async { shown(&described(), &["inspect"], "seen") }))
        => End::AsExpected,
    /// A description in the output of `check`.
    in_a_check: Launch::Steps(|_| Box::pin(async { shown(&described(), &["check"], "") })) => End::AsExpected,
    /// A refused name that is quoted in the message.
    in_the_name_of_a_refused_tool: Launch::Steps(|_| Box::pin(async {
        shown(&named(), &["inspect"], "a name is made of")
    })) => End::AsExpected,
    /// The same name in the list of all problems.
    in_the_name_of_a_checked_tool: Launch::Steps(|_| Box::pin(async {
        shown(&named(), &["check"], "a name is made of")
    })) => End::AsExpected,
    /// A refused schema that is quoted in the message.
    in_a_schema_that_is_refused: Launch::Steps(|_| Box::pin(async {
        shown(&typed_wrongly(), &["inspect"], "there is no type")
    })) => End::AsExpected,
    /// The result of a call.
    in_a_result: Launch::Steps(|_| Box::pin(async {
        let module = Module { answer: Answer::Contents(vec![Item::Text(DRIVES.as_bytes())]), ..Module::default() };
        shown(&module, &["call", "t", "--plugin"], "seen")
    })) => End::AsExpected,
    /// The message of a failure.
    in_a_failure: Launch::Steps(|_| Box::pin(async {
        let answer =
            Answer::Failure { message: DRIVES, suggestion: Some(DRIVES), transient: None, value: None };
        shown(&Module { answer, ..Module::default() }, &["call", "t", "--plugin"], "seen")
    })) => End::AsExpected,
    /// The log of a call.
    in_the_log: Launch::Steps(|_| Box::pin(async {
        let text = on_a_terminal(&["call", "floods", "--verbose", "--plugin"], &guest("floods"));
        assert!(text.contains("the end\\u{1b}[2J"), "the log is shown");
        Ended::AsExpected
    })) => End::AsExpected,
    /// The name of a function in a call stack.
    in_a_call_stack: Launch::Steps(|_| Box::pin(async {
        let module = Module {
            fields: "(func $\"\\1b[2J\\c2\\9b31mseen\" unreachable)",
            body: "(call $\"\\1b[2J\\c2\\9b31mseen\")",
            ..Module::default()
        };
        shown(&module, &["call", "t", "--verbose", "--plugin"], "seen")
    })) => End::AsExpected,
    /// The name of the plugin's file.
    in_the_name_of_a_file: Launch::Steps(|_| Box::pin(async {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(format!("{DRIVES}.wasm").replace('/', ""));
        std::fs::write(&path, "text").unwrap();
        on_a_terminal(&["inspect"], &path);
        Ended::AsExpected
    })) => End::AsExpected,
    /// A record in JSON, with the log and the result in its strings.
    in_a_record_as_json: Launch::Steps(|_| Box::pin(async {
        let module = Module { answer: Answer::Contents(vec![Item::Text(DRIVES.as_bytes())]), ..Module::default() };
        shown(&module, &["call", "t", "--json", "--plugin"], "seen")
    })) => End::AsExpected,
    /// On a pipe a result is data and stays unchanged; notes are escaped there as well.
    in_a_pipe: Launch::Steps(|_| Box::pin(async {
        let module = Module { answer: Answer::Contents(vec![Item::Text(DRIVES.as_bytes())]), ..Module::default() };
        let (_folder, path) = written(&module);
        let output = command().args(["call", "t", "--verbose", "--plugin"]).arg(path).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("{DRIVES}\n"));
        assert_tame(&String::from_utf8(output.stderr).unwrap());
        let (_folder, path) = written(&named());
        let output = command().arg("inspect").arg(path).output().unwrap();
        assert_tame(&String::from_utf8(output.stderr).unwrap());
        Ended::AsExpected
    })) => End::AsExpected,
}

fn described() -> Module<'static> {
    let definition = Definition {
        description: DRIVES.into(),
        title: Some(DRIVES.into()),
        ..Definition::new("t")
    };
    Module { definitions: vec![definition], ..Module::default() }
}

fn named() -> Module<'static> {
    Module { definitions: vec![Definition::new(DRIVES)], ..Module::default() }
}

fn typed_wrongly() -> Module<'static> {
    let schema =
        serde_json::json!({"type": "object", "properties": {DRIVES: {"type": DRIVES}}}).to_string();
    let definition = Definition { input_schema: schema.into(), ..Definition::new("t") };
    Module { definitions: vec![definition], ..Module::default() }
}

fn command() -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command
}

fn written(module: &Module<'_>) -> (TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("plugin.wasm");
    std::fs::write(&path, module.component()).unwrap();
    (folder, path)
}

/// Runs the binary on a terminal, with a plugin made of `module` as its last argument. The output
/// must contain `words`.
fn shown(module: &Module<'_>, arguments: &[&str], words: &str) -> Ended {
    let (_folder, path) = written(module);
    let text = on_a_terminal(arguments, &path);
    assert!(text.contains(words), "{text}");
    Ended::AsExpected
}

/// Returns the output of the binary on a terminal, after checking that it is tame. `script` of
/// util-linux makes the terminal.
fn on_a_terminal(arguments: &[&str], last: &Path) -> String {
    let quote = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let mut line = quote(binary().to_str().unwrap());
    for argument in arguments.iter().copied().chain([last.to_str().unwrap()]) {
        line.push(' ');
        line.push_str(&quote(argument));
    }
    let output = Command::new("script")
        .args(["--quiet", "--return", "--command", &line, "/dev/null"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .env("COFFERDAM_CACHE_DIR", shared_cache())
        .stdin(Stdio::null())
        .output()
        .expect("`script` of util-linux is installed");
    let text = String::from_utf8(output.stdout).expect("what is shown is text");
    assert!(
        !text.trim().is_empty(),
        "something is shown: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    // The terminal itself turns a line feed into two characters.
    let text = text.replace("\r\n", "\n");
    assert_tame(&text);
    text
}

/// Checks that no character moves a cursor, reverses a line, or is invisible.
fn assert_tame(text: &str) {
    let wild = text.chars().find(|&c| {
        (c.is_control() && c != '\n' && c != '\t')
            || matches!(c, '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
                | '\u{61c}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
    });
    assert_eq!(wild, None, "{text:?}");
}
