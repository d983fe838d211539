//! Transcripts: what a user types, and all that the binary prints, in a pipe and in a terminal.
//!
//! Each list of commands has a file in `transcripts/`. `BLESS=1` writes the files; read the
//! difference like code. `COFFERDAM_TEST_BINARY` names another binary, such as the release build.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, root, shared_cache};

use crate::operator::Operator;

/// One command, and the answers that an operator types in the terminal: after a string is on the
/// screen, some keys.
struct Typed {
    command: &'static str,
    answers: &'static [(&'static str, &'static str)],
}

const fn typed(command: &'static str) -> Typed {
    Typed { command, answers: &[] }
}

const fn answered(
    command: &'static str,
    answers: &'static [(&'static str, &'static str)],
) -> Typed {
    Typed { command, answers }
}

const CTRL_C: &str = "\u{3}";

/// Calls, their arguments, and what goes wrong with them.
const CALLS: &[Typed] = &[
    typed("call word_count text='to be or not to be' -p text.wasm"),
    typed(r#"call word_count '{"text":"a b"}' -p text.wasm"#),
    typed(r#"call word_count '{"text": }' -p text.wasm"#),
    typed("call word_count words=3 -p text.wasm"),
    typed("call word_cuont text=a -p text.wasm"),
    typed("call word_count -p text.wasm"),
    typed("call word_count text=@missing.txt -p text.wasm"),
    typed("call panic -p crash.wasm"),
    typed("call spin -p crash.wasm --timeout 300ms"),
    typed("call outline file=/data/a.md -p markdown.wasm --mount data=notes:ro"),
    typed("call outline file=/data/a.md -p markdown.wasm --mount dota=notes:ro"),
    typed("call outline file=/data/a.md -p markdown.wasm --no-input"),
    answered(
        "call outline file=/data/a.md -p markdown.wasm",
        &[("Grant it?", "o\r"), ("Directory for /data:", "notes\r")],
    ),
    answered("call outline file=/data/a.md -p markdown.wasm", &[("Grant it?", CTRL_C)]),
    answered(
        "call outline file=/data/a.md -p markdown.wasm",
        &[("Grant it?", "o\r"), ("Directory for /data:", CTRL_C)],
    ),
    typed("call fetch url=https://api.example.com/items -p web.wasm --no-input"),
    answered("call file_access_delete_file file_name=b.md --files notes", &[("Call it?", "n\r")]),
    answered("call file_access_delete_file file_name=b.md --files notes", &[("Call it?", CTRL_C)]),
    typed("call file_access_delete_file file_name=b.md --files notes --dry-run --yes"),
    typed("call word_count text=a -p text.wasm -p text.wasm"),
    typed("call word_count text=a"),
];

/// Plugins that are looked at, and files that are not plugins.
const PLUGINS: &[Typed] = &[
    typed("inspect text.wasm"),
    typed("inspect markdown.wasm"),
    typed("list -p text.wasm -p markdown.wasm --mount data=notes:ro"),
    typed("list --grants -p markdown.wasm --mount data=notes:ro"),
    typed("list -p missing.wasm"),
    typed("list -p plain.txt"),
    typed("list -p empty.wasm"),
    typed("list -p module.wasm"),
    typed("list -p notes"),
    typed("list -p cofferdam.toml"),
    typed("check text.wasm"),
    typed("check missing.wasm"),
];

/// Set-up: configurations, trust, grants, the cache, and commands with wrong flags.
const SETUP: &[Typed] = &[
    typed("config check"),
    typed("config check unknown.toml"),
    typed("config init new.toml -p web=web.wasm"),
    typed("config init new.toml -p web=web.wasm"),
    typed("list --config new.toml"),
    typed("grant web 'http:GET https://api.example.com/' --config new.toml"),
    typed("grant web 'http:PULL https://api.example.com/' --config new.toml"),
    typed("grant wob 'http:GET https://api.example.com/' --config new.toml"),
    typed("list --grants --config new.toml"),
    typed("revoke web 'http:GET https://api.example.com/' --config new.toml"),
    typed("trust --list"),
    typed("trust new.toml"),
    typed("trust missing.toml"),
    typed("cache dri"),
    typed("completions nushell"),
    typed("serve --http nowhere -p text.wasm"),
    typed("serve --http 0.0.0.0:0 --no-auth -p text.wasm"),
    typed("chat 'Hi.' --model unknown"),
    typed("chat 'Hi.' --model script:missing.jsonl"),
    typed("chat 'Hi.' --model script:model.jsonl"),
    typed("skills list missing"),
    typed("workflow check missing.yaml"),
    typed("new greeter --lang cobol"),
    typed("test text.wasm --cases missing.jsonl"),
];

/// Binary under test.
fn program() -> PathBuf {
    std::env::var_os("COFFERDAM_TEST_BINARY").map_or_else(binary, PathBuf::from)
}

/// Returns a directory with plugins, notes and files that are not plugins.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in ["text", "markdown", "crash", "web"] {
        std::fs::copy(guest(name), at(&format!("{name}.wasm"))).unwrap();
    }
    std::fs::create_dir(at("notes")).unwrap();
    std::fs::write(at("notes/a.md"), "# Plan\n\n## Today\n").unwrap();
    std::fs::write(at("notes/b.md"), "delete me\n").unwrap();
    std::fs::write(at("plain.txt"), "no plugin\n").unwrap();
    std::fs::write(at("empty.wasm"), "").unwrap();
    std::fs::write(at("module.wasm"), b"\0asm\x01\0\0\0").unwrap();
    std::fs::write(at("cofferdam.toml"), "[plugins.text]\ncomponent = \"text.wasm\"\n").unwrap();
    std::fs::write(at("unknown.toml"), "[plugin.text]\ncomponent = \"text.wasm\"\n").unwrap();
    std::fs::write(at("model.jsonl"), "{\"text\":\"Hello.\"}\n").unwrap();
    folder
}

/// Splits a command line at spaces outside of single quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut is_quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => is_quoted = !is_quoted,
            ' ' if !is_quoted => words.push(std::mem::take(&mut word)),
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

fn in_pipe(folder: &Path, command: &Typed) -> String {
    let mut process = Command::new(program());
    process.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    process.env("HOME", folder.join("home")).current_dir(folder);
    let output = process.args(words(command.command)).output().unwrap();
    let mut text = format!("$ cofferdam {}\n", command.command);
    for (mark, bytes) in [("1", output.stdout), ("2", output.stderr)] {
        for line in String::from_utf8(bytes).unwrap().lines() {
            writeln!(text, "{mark}| {line}").unwrap();
        }
    }
    writeln!(text, "exit {}", output.status.code().unwrap()).unwrap();
    text
}

fn in_terminal(folder: &Path, command: &Typed) -> String {
    let line = words(command.command);
    let line: Vec<_> = line.iter().map(String::as_str).collect();
    let home = folder.join("home").display().to_string();
    let env = [("HOME", home.as_str()), ("TERM", "xterm"), ("NO_COLOR", "1")];
    let mut operator = Operator::runs_program(&program(), folder, &line, &env);
    for (question, keys) in command.answers {
        operator.sees(question).answers(keys);
    }
    let (code, screen) = operator.ends();
    format!("$ cofferdam {}\n{}exit {}\n", command.command, shown(&screen), code.unwrap())
}

/// Returns the lines of a screen. Sequences that draw, and lines that were drawn over, are removed.
fn shown(screen: &str) -> String {
    let mut plain = String::new();
    let mut rest = screen;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic()).map_or(after.len(), |at| at + 1);
        rest = &after[end..];
    }
    plain.push_str(rest);
    let lines = plain
        .split('\n')
        .map(|line| line.trim_end_matches('\r').rsplit('\r').next().unwrap_or_default().trim_end());
    let lines: Vec<_> = lines.collect();
    lines.join("\n").trim_end().to_owned() + "\n"
}

/// Replaces what differs between machines and builds.
fn stable(text: &str, folder: &Path) -> String {
    let canonical = folder.canonicalize().unwrap().display().to_string();
    let text = text.replace(&canonical, "DIR").replace(&folder.display().to_string(), "DIR");
    let text = text.replace(&shared_cache().display().to_string(), "CACHE");
    let mut stable = String::new();
    // Compiled code is cached for all tests, so only the first use of a component prints this.
    let is_stable = |line: &&str| !line.trim_start_matches("2| ").starts_with("compiling ");
    for line in text.split_inclusive('\n').filter(is_stable) {
        let words: Vec<_> = line.split(' ').collect();
        let next = words.iter().skip(1).map(Some).chain([None]);
        let words: Vec<_> =
            words.iter().zip(next).map(|(word, next)| stable_word(word, next)).collect();
        stable.push_str(&words.join(" "));
    }
    // A release build is faster.
    stable.replace("N µs", "N ms")
}

/// Returns a word of a line without the digits of digests, sizes, durations and ports.
fn stable_word(word: &str, next: Option<&&str>) -> String {
    let is_number = word.starts_with(|c: char| c.is_ascii_digit());
    let unit = next.map_or("", |unit| unit.trim_end_matches([',', ')', '\n']));
    if is_number && ["ms", "µs", "KiB"].contains(&unit) {
        return "N".to_owned();
    }
    if word.starts_with("0.0.0.0:") {
        return "0.0.0.0:PORT".to_owned();
    }
    let Some((before, digest)) = word.split_once("sha256:") else { return word.to_owned() };
    let end = digest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
    format!("{before}sha256:…{end}")
}

fn check(name: &str, commands: &[Typed]) {
    let mut text = String::new();
    for (title, run) in
        [("In a pipe", in_pipe as fn(&Path, &Typed) -> String), ("In a terminal", in_terminal)]
    {
        let folder = folder();
        writeln!(text, "== {title} ==\n").unwrap();
        for command in commands {
            text.push_str(&stable(&run(folder.path(), command), folder.path()));
            text.push('\n');
        }
    }
    let path = root().join(format!("tests/it/transcripts/{name}.txt"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let at = text.lines().zip(expected.lines()).position(|(is, was)| is != was);
    let at = at.unwrap_or(text.lines().count().min(expected.lines().count()));
    let near = |text: &str| {
        let lines = text.lines().skip(at.saturating_sub(3)).take(8);
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(
        text == expected,
        "{name}.txt differs in line {}; BLESS=1 writes it\nnow: {:#?}\nfile: {:#?}",
        at + 1,
        near(&text),
        near(&expected)
    );
}

#[test]
fn calls() {
    check("calls", CALLS);
}

#[test]
fn plugins() {
    check("plugins", PLUGINS);
}

#[test]
fn setup() {
    check("setup", SETUP);
}
