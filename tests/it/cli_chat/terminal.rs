//! Chat at a terminal: prompts, approvals, Ctrl-C, and pasted or typed-ahead input.

use std::time::Duration;

use serde_json::json;

use super::{Scene, calls, deletes, plugin, says};
use crate::cli_inspector::PageClient;
use crate::operator::Operator;

/// Runs `chat` at a terminal, with the script of a scene.
pub(super) fn chat(scene: &Scene, arguments: &[&str]) -> Operator {
    let model = format!("script:{}", scene.path("model.jsonl").display());
    Operator::runs(scene.folder.path(), &[&["chat", "--model", &model], arguments].concat())
}

const CTRL_C: &str = "\u{3}";
const CTRL_D: &str = "\u{4}";

#[test]
fn a_person_sees_the_exact_arguments_and_refuses_with_a_reason_or_allows() {
    let scene = Scene::new(&[deletes(), says("Then not."), deletes(), says("Gone.")]);
    let mut operator = chat(&scene, &["--files", "notes"]);
    operator.sees("you> ").types("Tidy up.\n");
    operator
        .sees("the model wants to call `file_access_delete_file` with")
        .sees(r#"| {"file_name":"a.md"}"#);
    operator.sees("Allow it?").answers("what\n").sees("Allow it?").answers("n\n");
    operator.sees("Reason for the model").answers("I need it\n");
    operator.sees("rejected by user. I need it").sees("Then not.");
    assert!(scene.has("notes/a.md"));
    operator.sees("you> ").types("Now.\n").sees("Allow it?").answers("y\n").sees("Gone.");
    assert!(!scene.has("notes/a.md"));
    operator.sees("you> ").types(CTRL_D);
    assert_eq!(operator.ends().0, Some(0));
}

#[test]
fn an_approval_is_answered_on_a_page_or_at_the_terminal() {
    let other = calls("file_access_delete_file", json!({"file_name": "b.md"}));
    let scene = Scene::new(&[deletes(), other, says("Tidy.")]);
    std::fs::write(scene.path("notes/b.md"), "two").unwrap();
    let mut operator = chat(&scene, &["--files", "notes", "--inspector=approve"]);
    let mut pages = PageClient::new(&operator.rest_of_line("within five minutes: "));
    pages.log_in();
    operator.sees("you> ").types("Tidy up.\n").sees("Allow it?");
    let prompt = pages.waiting();
    assert!(prompt.1.contains("&quot;a.md&quot;"), "{}", prompt.1);
    let approve = json!({"action": "approve"});
    assert!(pages.answer(&prompt, approve.clone()).starts_with("200 "));
    // What is typed for the first question is no answer to the second one.
    operator.sees("approved in the inspector").types("y\n").sees("Allow it?").types("y\n");
    let prompt = pages.waiting();
    assert!(prompt.1.contains("&quot;b.md&quot;"), "{}", prompt.1);
    assert!(!scene.has("notes/a.md") && scene.has("notes/b.md"));
    operator.answers("n\n").sees("Reason for the model").answers("keep it\n").sees("Tidy.");
    let late = pages.answer(&prompt, approve);
    assert!(late.starts_with("409 ") && late.contains("answered at the terminal"), "{late}");
    assert!(scene.has("notes/b.md"));
    operator.sees("you> ").types(CTRL_D);
    assert_eq!(operator.ends().0, Some(0));
}

#[test]
fn what_is_allowed_for_always_stays_allowed_in_the_session() {
    let saves =
        |name: &str| calls("file_access_save_file", json!({"file_name": name, "content": "x"}));
    let scene = Scene::new(&[
        saves("1"),
        says("saved"),
        saves("1"),
        says("saved"),
        saves("2"),
        says("saved"),
    ]);
    let session =
        ["--files", "notes", "--ask", "always", "--session", "s", "--session-dir", "sessions"];
    let mut operator = chat(&scene, &session);
    operator.sees("you> ").types("one\n").sees("Allow it?").answers("e\n").sees("saved\r\n");
    operator.sees("you> ").types("the same\n").sees("saved\r\n");
    operator.sees("you> ").types("another\n").sees("Allow it?").answers("a\n").sees("saved\r\n");
    operator
        .sees("you> ")
        .types("/rules\n")
        .sees("`file_access_save_file` with {\"file_name\":\"1\"");
    operator.sees("every call of `file_access_save_file`").sees("you> ").types("/quit\n");
    let (code, screen) = operator.ends();
    assert_eq!((code, screen.matches("Allow it?").count()), (Some(0), 2), "{screen}");
    // The next process keeps the rules; another session has none.
    let resumed = scene.chat(&[&["more", "--json"], &session[..]].concat());
    assert_eq!(resumed.code, Some(0), "{}", resumed.stderr);
    let session =
        ["--files", "notes", "--ask", "always", "--session", "t", "--session-dir", "sessions"];
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
    let mut operator = chat(&scene, &["-p", &crash, "--timeout", "15m", "--files", "notes"]);
    operator.sees("you> ").types("hi\n").sees("Hello.");
    operator.sees("you> ").types("slow model\n");
    std::thread::sleep(Duration::from_millis(500));
    operator.types(CTRL_C).sees("stopped");
    operator.sees("you> ").types("slow tool\n").sees("> sleep").types(CTRL_C).sees("stopped");
    operator.sees("you> ").types("ask me\n").sees("Allow it?").types(CTRL_C).sees("stopped");
    assert!(scene.has("notes/a.md"));
    // A line typed now belongs to the conversation and does not answer the last question.
    operator.sees("you> ").types("still?\n").sees("Still here.");
    operator.sees("you> ").types(CTRL_C).sees("Ctrl-C once more ends the conversation");
    operator.sees("you> ").types(CTRL_C);
    assert_eq!(operator.ends().0, Some(130));
}

#[test]
fn results_the_model_and_the_time_can_be_looked_at() {
    let reads = |name: &str| calls("file_access_read_file", json!({"file_name": name}));
    let scene = Scene::new(&[reads("a.md"), reads("none.md"), says("Read.")]);
    let other = scene.path("other.jsonl");
    std::fs::write(&other, "{\"text\":\"Other.\"}\n").unwrap();
    let mut operator = chat(&scene, &["--files", "notes"]);
    operator.sees("you> ").types("/show\n").sees("there is no such call; 0 results can be shown");
    operator.sees("you> ").types("Read.\n").sees("Read.").sees(" ms");
    operator.sees("you> ").types("/show 2\n");
    operator.sees("file_access_read_file {\"file_name\":\"a.md\"}").sees("\n  | ");
    operator.sees("you> ").types("/show\n").sees("none.md");
    operator.sees("you> ").types("/model\n").sees("model.jsonl");
    operator.sees("you> ").types("/model script:nowhere\n").sees("error:").sees("nowhere");
    operator
        .sees("you> ")
        .types("/model script:other.jsonl\n")
        .sees("the model is now script:other");
    operator.sees("you> ").types("Who?\n").sees("Other.");
    operator.sees("you> ").types("/quit\n");
    assert_eq!(operator.ends().0, Some(0));
}

#[test]
fn markdown_is_styled_where_color_is_wanted() {
    let scene = Scene::new(&[says("Use **care** and `rm`.")]);
    let model = format!("script:{}", scene.path("model.jsonl").display());
    let chat = ["chat", "Hi.", "--model", &model];
    let (_, screen) = Operator::runs_with(scene.folder.path(), &chat, &[("TERM", "xterm")]).ends();
    assert!(screen.contains("**\u{1b}[0m\u{1b}[1mcare**\u{1b}[0m"), "{screen:?}");
    let env = [("TERM", "xterm"), ("NO_COLOR", "1")];
    let (_, screen) = Operator::runs_with(scene.folder.path(), &chat, &env).ends();
    assert!(screen.contains("Use **care** and `rm`."), "{screen:?}");
}

#[test]
fn the_end_of_tools_by_errors_is_announced() {
    let bad = || calls("file_access_read_file", json!({}));
    let scene = Scene::new(&[bad(), bad(), bad(), says("I give up.")]);
    let ran = scene.chat(&["Go.", "--files", "notes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let end = "too many rounds of calls failed in a row; the model has to answer without tools";
    assert!(ran.stderr.contains(end), "{}", ran.stderr);
}

#[test]
fn a_tool_can_ask_the_person() {
    let scene = Scene::new(&[calls("confirm_delete", json!({})), says("Asked.")]);
    let component = plugin("mcp_conformance");
    let grants =
        "grants = { ask = [\"form\", \"sample\", \"roots\"], files.signal = \"read-write\" }";
    let config = format!(
        "[stores.signal]\nmemory = true\n[plugins.tool]\ncomponent = {component:?}\n{grants}\n"
    );
    std::fs::write(scene.path("c.toml"), config).unwrap();
    let mut operator = chat(&scene, &["Delete it.", "--config", "c.toml"]);
    operator.sees("the tool asks:").sees("Answer it?").answers("n\n").sees("Asked.");
    assert_eq!(operator.ends().0, Some(0));
}

#[test]
fn no_escape_sequence_of_a_model_reaches_the_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{202e}";
    let scene = Scene::new(&[
        json!({"text": format!("look {evil}"), "calls": [{"tool": "no_such_tool"}]}),
        calls("file_access_delete_file", json!({"file_name": evil})),
        says("end"),
    ]);
    let mut operator = chat(&scene, &["go", "--files", "notes"]);
    operator.sees("Allow it?").answers("\n").sees("Reason for the model").answers("\n").sees("end");
    let (_, screen) = operator.ends();
    // The host makes the terminal mark pasted text while it asks.
    let marks = ["\u{1b}[?2004h", "\u{1b}[?2004l"];
    let shown = marks.iter().fold(screen.clone(), |screen, mark| screen.replace(mark, ""));
    assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{screen:?}");
    assert!(screen.contains("\\u{1b}]0;owned"), "{screen}");
}

/// Four lines meant for the prompt. Taken as an answer, one of them would allow everything.
const LINES: &str = "what are these variables?\na\ny\nz\n";

fn marked(text: &str) -> String {
    format!("\u{1b}[200~{text}\u{1b}[201~")
}

#[test]
fn what_was_pasted_or_typed_before_a_question_does_not_answer_it() {
    for paste in [LINES.to_owned(), format!("{}y\n", marked(LINES)), "y\n".to_owned()] {
        let scene = Scene::new(&[
            json!({"calls": [{"tool": "sleep", "arguments": {"ms": 700}}]}),
            deletes(),
            says("Done."),
        ]);
        let mut operator = chat(&scene, &["-p", &plugin("crash"), "--files", "notes"]);
        operator.sees("you> ").types("Tidy up.\n");
        // The turn goes on, and typed input waits for the next reader.
        operator.sees("> sleep").types(&paste);
        operator
            .sees("Allow it?")
            .answers("n\n")
            .sees("Reason for the model")
            .answers("\n")
            .sees("Done.");
        operator.sees("you> ").types("/rules\n").sees("there are no standing approvals");
        assert!(scene.has("notes/a.md"), "{paste:?}");
    }
}

#[test]
fn what_is_pasted_at_a_question_does_not_answer_it() {
    for paste in [LINES.to_owned(), marked(LINES), marked("y\n"), marked("y"), "x\ry\r".to_owned()]
    {
        let scene = Scene::new(&[deletes(), says("Done.")]);
        let mut operator = chat(&scene, &["--files", "notes"]);
        operator.sees("you> ").types("Tidy up.\n");
        // Paste at the appearance of the question, and again when answers count.
        operator.sees("Allow it?").types(&paste).answers(&paste);
        operator.sees("pasted text is not taken as an answer").sees("Allow it?");
        assert!(scene.has("notes/a.md"), "{paste:?}");
        operator.answers("y\n").sees("Done.");
        assert!(!scene.has("notes/a.md"), "{paste:?}");
    }
}

#[test]
fn a_pasted_block_is_one_prompt() {
    for paste in [format!("{}\n", marked("one\ny\ntwo")), "one\ny\ntwo\n".to_owned()] {
        let scene = Scene::new(&[deletes(), says("Done."), says("Once more.")]);
        let mut operator =
            chat(&scene, &["--files", "notes", "--session", "s", "--session-dir", "sessions"]);
        operator
            .sees("you> ")
            .types(&paste)
            .sees("Allow it?")
            .answers("n\n")
            .sees("Reason for the model")
            .answers("\n");
        operator
            .sees("Done.")
            .sees("you> ")
            .types("\u{1b}[A")
            .sees("two")
            .types("\n")
            .sees("Once more.");
        operator.sees("you> ").types("/quit\n");
        assert_eq!(operator.ends().0, Some(0));
        let stored =
            std::fs::read_dir(scene.path("sessions")).unwrap().flatten().map(|entry| entry.path());
        let stored: String = stored.filter_map(|path| std::fs::read_to_string(path).ok()).collect();
        assert_eq!(stored.matches(r"one\ny\ntwo").count(), 2, "{stored}");
    }
}

#[test]
fn without_input_nothing_is_asked() {
    let scene = Scene::new(&[deletes(), says("Not done.")]);
    let mut operator = chat(&scene, &["Tidy up.", "--files", "notes", "--no-input"]);
    operator.sees(
        "`file_access_delete_file` was not called: it needs approval, and --no-input was given",
    );
    assert_eq!(operator.ends().0, Some(4));
    assert!(scene.has("notes/a.md"));
    let mut operator = chat(&scene, &["--files", "notes", "--no-input"]);
    operator.sees("a conversation asks for prompts, and --no-input was given");
    assert_eq!(operator.ends().0, Some(4));
}
