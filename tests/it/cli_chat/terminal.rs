//! The same at a terminal: prompts, approvals, Ctrl-C.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, shared_cache};
use serde_json::json;

use super::{PATIENCE, Scene, calls, deletes, plugin, says};

/// A person at a terminal, who reads before typing.
pub(super) struct Person {
    child: Child,
    keys: ChildStdin,
    screen: Arc<Mutex<String>>,
    /// How much of the screen was read.
    read: usize,
}

impl Person {
    pub(super) fn at(scene: &Scene, arguments: &[&str]) -> Self {
        let model = scene.path("model.jsonl").display().to_string();
        let model = format!("script:{model}");
        let arguments = [&["chat", "--model", &model], arguments].concat();
        let quoted: Vec<_> = arguments.iter().map(|argument| format!("'{argument}'")).collect();
        let line = format!("'{}' {}", binary().display(), quoted.join(" "));
        let mut script = Command::new("script");
        script
            .args(["--quiet", "--return", "--command", &line, "/dev/null"])
            .current_dir(scene.folder.path());
        script.env_clear().env("PATH", "/usr/bin:/bin").env("COFFERDAM_CACHE_DIR", shared_cache());
        let mut child = script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (keys, mut shown) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let screen = Arc::new(Mutex::new(String::new()));
        let into = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = shown.read(&mut bytes) {
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        });
        Self { child, keys, screen, read: 0 }
    }

    /// Waits until something is on the screen that was not read yet.
    pub(super) fn sees(&mut self, text: &str) -> &mut Self {
        let since = Instant::now();
        loop {
            let screen = self.screen.lock().unwrap().clone();
            if let Some(at) = screen[self.read..].find(text) {
                self.read += at + text.len();
                return self;
            }
            assert!(since.elapsed() < PATIENCE, "no {text:?} in\n{screen}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn types(&mut self, keys: &str) -> &mut Self {
        self.keys.write_all(keys.as_bytes()).unwrap();
        self.keys.flush().unwrap();
        self
    }

    /// The exit code and everything that was on the screen.
    pub(super) fn ends(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let screen = self.screen.lock().unwrap().clone();
        (code, screen)
    }
}

impl Drop for Person {
    /// Whoever is left at the terminal by a test that fails is hung up on.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

#[test]
fn a_person_sees_the_exact_arguments_and_refuses_with_a_reason_or_allows() {
    let scene = Scene::new(&[deletes(), says("Then not."), deletes(), says("Gone.")]);
    let mut person = Person::at(&scene, &["--files", "notes"]);
    person.sees("you> ").types("Tidy up.\n");
    person.sees("the model wants to call `file_access_delete_file` with").sees(r#"| {"file_name":"a.md"}"#);
    person.sees("Allow it?").types("what\n").sees("Allow it?").types("n\n");
    person.sees("Why not?").types("I need it\n");
    person.sees("rejected by user. I need it").sees("Then not.");
    assert!(scene.has("notes/a.md"));
    person.sees("you> ").types("Now.\n").sees("Allow it?").types("y\n").sees("Gone.");
    assert!(!scene.has("notes/a.md"));
    person.sees("you> ").types(CTRL_D);
    assert_eq!(person.ends().0, Some(0));
}

#[test]
fn what_is_allowed_for_always_stays_allowed_in_the_session() {
    let saves = |name: &str| calls("file_access_save_file", json!({"file_name": name, "content": "x"}));
    let scene =
        Scene::new(&[saves("1"), says("saved"), saves("1"), says("saved"), saves("2"), says("saved")]);
    let session = ["--files", "notes", "--ask", "always", "--session", "s", "--session-dir", "kept"];
    let mut person = Person::at(&scene, &session);
    person.sees("you> ").types("one\n").sees("Allow it?").types("e\n").sees("saved\r\n");
    person.sees("you> ").types("the same\n").sees("saved\r\n");
    person.sees("you> ").types("another\n").sees("Allow it?").types("a\n").sees("saved\r\n");
    person.sees("you> ").types("/rules\n").sees("`file_access_save_file` with {\"file_name\":\"1\"");
    person.sees("every call of `file_access_save_file`").sees("you> ").types("/quit\n");
    let (code, screen) = person.ends();
    assert_eq!((code, screen.matches("Allow it?").count()), (Some(0), 2), "{screen}");
    // The next process keeps the rules; another session has none.
    let kept = scene.chat(&[&["more", "--json"], &session[..]].concat());
    assert_eq!(kept.code, Some(0), "{}", kept.stderr);
    let session = ["--files", "notes", "--ask", "always", "--session", "t", "--session-dir", "kept"];
    assert_eq!(scene.chat(&[&["more", "--json"], &session[..]].concat()).code, Some(4));
}

#[test]
fn ctrl_c_stops_the_turn_and_keeps_the_conversation() {
    let scene = Scene::new(&[
        says("Hello."),
        json!({"text": "one two three", "pause_ms": 300_000}),
        calls("sleep", json!({"ms": 600_000})),
        deletes(),
        says("Still here."),
    ]);
    let crash = plugin("crash");
    let mut person = Person::at(&scene, &["-p", &crash, "--timeout", "15m", "--files", "notes"]);
    person.sees("you> ").types("hi\n").sees("Hello.");
    person.sees("you> ").types("slow model\n");
    std::thread::sleep(Duration::from_millis(500));
    person.types(CTRL_C).sees("stopped");
    person.sees("you> ").types("slow tool\n").sees("> sleep").types(CTRL_C).sees("stopped");
    person.sees("you> ").types("ask me\n").sees("Allow it?").types(CTRL_C).sees("stopped");
    assert!(scene.has("notes/a.md"));
    // The line that is typed now is for the conversation, and not an answer to the question before.
    person.sees("you> ").types("still?\n").sees("Still here.");
    person.sees("you> ").types(CTRL_C).sees("Ctrl-C once more ends the conversation");
    person.sees("you> ").types(CTRL_C);
    assert_eq!(person.ends().0, Some(130));
}

#[test]
fn a_tool_can_ask_the_person() {
    let scene = Scene::new(&[calls("confirm_delete", json!({})), says("Asked.")]);
    let component = plugin("mcp_conformance");
    let grants = "grants = { ask = [\"form\", \"sample\", \"roots\"], files.signal = \"read-write\" }";
    let config =
        format!("[stores.signal]\nmemory = true\n[plugins.tool]\ncomponent = {component:?}\n{grants}\n");
    std::fs::write(scene.path("c.toml"), config).unwrap();
    let mut person = Person::at(&scene, &["Delete it.", "--config", "c.toml"]);
    person.sees("the tool asks:").sees("Answer it?").types("n\n").sees("Asked.");
    assert_eq!(person.ends().0, Some(0));
}

#[test]
fn no_escape_sequence_of_a_model_reaches_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{202e}";
    let scene = Scene::new(&[
        json!({"text": format!("look {evil}"), "calls": [{"tool": "no_such_tool"}]}),
        calls("file_access_delete_file", json!({"file_name": evil})),
        says("end"),
    ]);
    let mut person = Person::at(&scene, &["go", "--files", "notes"]);
    person.sees("Allow it?").types("\n").sees("Why not?").types("\n").sees("end");
    let (_, screen) = person.ends();
    assert!(!screen.contains(['\u{1b}', '\u{202e}']), "{screen:?}");
    assert!(screen.contains("\\u{1b}]0;owned"), "{screen}");
}
