//! Permanent grants to components of `--plugin`: remembered per user and component, listed,
//! revoked, and out of reach of every tool.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::json;

use crate::operator::Operator;
use crate::serve_changes::asked;
use crate::wire::Pipe;

const QUESTION: &str = "Grant it? [o]nce, [a]lways, [N]o: ";
const CALL: [&str; 5] = ["call", "env", r#"{"name":"LANG"}"#, "--plugin", "tool.wasm"];

/// Folder with a component, its manifest, and the user's state directory.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new(component: &str, manifest: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        std::fs::copy(guest(component), folder.path("tool.wasm")).unwrap();
        std::fs::write(folder.path("tool.toml"), manifest).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn grants(&self) -> PathBuf {
        self.path("state/cofferdam/grants.json")
    }

    /// Runs a command at a terminal and answers its questions.
    fn at_a_terminal(&self, arguments: &[&str], answers: &[(&str, &str)]) -> String {
        let mut operator = Operator::runs_with(self.0.path(), arguments, &[("LANG", "de_DE")]);
        for (question, answer) in answers {
            operator.sees(question).answers(answer);
        }
        operator.ends().1
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(binary());
        command
            .env_clear()
            .env("COFFERDAM_CACHE_DIR", shared_cache())
            .env("XDG_STATE_HOME", self.path("state"));
        command.current_dir(self.0.path()).stdin(Stdio::null()).args(arguments);
        command
    }

    /// Runs a command on a pipe. Returns its exit code and everything that it printed.
    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.command(arguments).output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (output.status.code().unwrap(), String::from_utf8(printed).unwrap())
    }

    /// Replaces the component by another one with the same tools.
    fn change_component(&self) {
        let mut bytes = std::fs::read(self.path("tool.wasm")).unwrap();
        bytes.extend(b"\x00\x05\x04more");
        std::fs::write(self.path("tool.wasm"), bytes).unwrap();
    }
}

#[test]
fn always_is_remembered_listed_and_taken_back() {
    let folder = Folder::new("granted", "[permissions]\nenv = [\"LANG\"]\n");
    let once = folder.at_a_terminal(&CALL, &[(QUESTION, "o\n")]);
    assert!(once.contains("de_DE") && !folder.grants().exists(), "{once}");
    let always = folder.at_a_terminal(&CALL, &[(QUESTION, "a\n")]);
    assert!(
        always.contains("de_DE") && always.contains("cofferdam revoke --remembered sha256:"),
        "{always}"
    );
    assert_eq!(folder.grants().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(
        folder.path("state/cofferdam").metadata().unwrap().permissions().mode() & 0o777,
        0o700
    );
    for _ in 0..2 {
        let again = folder.at_a_terminal(&CALL, &[]);
        assert!(again.contains("de_DE") && !again.contains("Grant it?"), "{again}");
    }

    let (code, listed) = folder.run(&["grant", "--list"]);
    assert!(code == 0 && listed.contains("  tool\n  env:LANG"), "{listed}");
    let digest = listed.split_whitespace().next().unwrap().to_owned();
    for (wrong, why) in
        [("sha", "expected a component file"), ("0000000000", "nothing is remembered")]
    {
        let (code, said) = folder.run(&["revoke", "--remembered", wrong]);
        assert!(code == 2 && said.contains(why), "{said}");
    }
    let (code, forgotten) = folder.run(&["revoke", "--remembered", &digest[..20]]);
    assert!(code == 0 && forgotten.contains("env:LANG"), "{forgotten}");
    let asked = folder.at_a_terminal(&CALL, &[(QUESTION, "a\n")]);
    assert!(asked.contains("de_DE"), "{asked}");
    assert_eq!(folder.run(&["revoke", "--remembered", "tool.wasm"]).0, 0);
    assert_eq!(folder.run(&["revoke", "--remembered", "tool.wasm"]).0, 2, "it is forgotten");
    assert!(!folder.at_a_terminal(&CALL, &[(QUESTION, "n\n")]).contains("de_DE"));
}

#[test]
fn a_changed_component_is_asked_about_again() {
    let folder = Folder::new("granted", "[permissions]\nenv = [\"LANG\"]\n");
    assert!(folder.at_a_terminal(&CALL, &[(QUESTION, "a\n")]).contains("de_DE"));
    folder.change_component();
    let asked = folder.at_a_terminal(&CALL, &[(QUESTION, "n\n")]);
    assert!(!asked.contains("de_DE"), "{asked}");
    // The same component gets no more than it was granted.
    std::fs::copy(guest("granted"), folder.path("tool.wasm")).unwrap();
    std::fs::write(
        folder.path("tool.toml"),
        "[permissions]\nenv = [\"LANG\"]\nclock = \"precise\"\n",
    )
    .unwrap();
    let more = folder.at_a_terminal(&CALL, &[(QUESTION, "n\n")]);
    assert!(
        more.contains("de_DE") && more.contains("clock") && !more.contains("variable LANG"),
        "{more}"
    );
}

#[test]
fn a_directory_is_remembered_as_typed() {
    let folder = Folder::new("files", "[permissions]\nfiles.notes = \"read-only\"\n");
    for (directory, file) in [("mine", "as-typed"), ("other", "of-another")] {
        std::fs::create_dir(folder.path(directory)).unwrap();
        std::fs::write(folder.path(directory).join(file), "").unwrap();
    }
    let call = ["call", "files", r#"{"script":"list /notes"}"#, "--plugin", "tool.wasm"];
    let shown =
        folder.at_a_terminal(&call, &[(QUESTION, "a\n"), ("Directory for /notes: ", "mine\n")]);
    let again = folder.at_a_terminal(&call, &[]);
    assert!(shown.contains("as-typed") && again.contains("as-typed"), "{shown}{again}");
    let listed = folder.run(&["grant", "--list"]).1;
    let directory = folder.path("mine").canonicalize().unwrap();
    assert!(
        listed.contains(&format!("files:notes=read-only in {}", directory.display())),
        "{listed}"
    );

    // The grant does not apply to another directory of that name.
    std::fs::rename(folder.path("mine"), folder.path("moved")).unwrap();
    std::os::unix::fs::symlink("other", folder.path("mine")).unwrap();
    let asked = folder.at_a_terminal(&call, &[(QUESTION, "n\n")]);
    assert!(!asked.contains("of-another"), "{asked}");
}

#[test]
fn nothing_that_can_write_the_grants_is_mounted() {
    let folder = Folder::new("files", "[permissions]\nfiles.all = \"read-write\"\n");
    let refusal = "which decides what a plugin may do";
    std::fs::create_dir(folder.path("state")).unwrap();
    let call = ["call", "files", r#"{"script":"list /all"}"#, "--plugin", "tool.wasm"];
    let shown =
        folder.at_a_terminal(&call, &[(QUESTION, "a\n"), ("Directory for /all: ", "state\n")]);
    assert!(shown.contains(refusal), "{shown}");
    assert!(!folder.grants().exists(), "what is refused is not remembered");
    // The file and its directory need not exist.
    for flags in [["--mount", "all=state"], ["--mount", "all=state:create"], ["--files", "state"]] {
        let (code, said) =
            folder.run(&[&["list", "--plugin", "tool.wasm"], flags.as_slice()].concat());
        assert!(code == 2 && said.contains(refusal), "{flags:?}: {said}");
    }
    assert_eq!(folder.run(&["list", "--plugin", "tool.wasm", "--mount", "all=state:ro"]).0, 0);

    // The directory was granted before it contained the file of grants.
    let outer = folder.path("outer");
    std::fs::create_dir(&outer).unwrap();
    let granted =
        folder.at_a_terminal(&call, &[(QUESTION, "a\n"), ("Directory for /all: ", "outer\n")]);
    assert!(folder.grants().is_file(), "{granted}");
    std::fs::rename(folder.path("state"), outer.join("state")).unwrap();
    let mut moved = folder.command(&call);
    let ended = moved.env("XDG_STATE_HOME", outer.join("state")).output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains(refusal), "{said}");
}

#[test]
fn a_server_remembers_too_and_gives_a_changed_component_nothing() {
    let folder = Folder::new("text", "[permissions]\nclock = \"precise\"\n");
    let serve = || {
        let mut command = folder.command(&["serve", "--plugin", "tool.wasm"]);
        Pipe::of(command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()))
    };
    let count = |pipe: &mut Pipe, id: &str| {
        pipe.ask(&asked(id, "word_count", json!({ "text": "a b" }), None))
    };
    let mut pipe = serve();
    let question = count(&mut pipe, "1");
    assert_eq!(question["result"]["resultType"], "input_required", "{question}");
    let answer =
        json!({ "cofferdam.grant": { "action": "accept", "content": { "grant": "always" } } });
    let done =
        pipe.ask(&asked("2", "word_count", json!({ "text": "a b" }), Some((&question, answer))));
    assert_eq!(done["result"]["structuredContent"]["words"], 2, "{done}");
    drop(pipe);

    let mut pipe = serve();
    let again = count(&mut pipe, "1");
    assert_eq!(again["result"]["structuredContent"]["words"], 2, "{again}");
    folder.change_component();
    pipe.has_said("reloaded: tool");
    let changed = count(&mut pipe, "2");
    assert_eq!(changed["result"]["resultType"], "input_required", "{changed}");
}
