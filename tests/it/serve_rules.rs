//! Rules of `[[agent.approvals]]` for the calls of MCP clients.

use serde_json::{Value, json};

use crate::serve_changes::asked;
use crate::wire::{Pipe, command};

/// Folder with a configuration and two notes.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new(rules: &[&str]) -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        scene.set(rules);
        std::fs::create_dir_all(scene.0.path().join("notes/old")).unwrap();
        for note in ["a.md", "old/b.md"] {
            std::fs::write(scene.0.path().join("notes").join(note), "one").unwrap();
        }
        scene
    }

    fn set(&self, rules: &[&str]) {
        let rules: Vec<_> = rules.iter().map(|rule| format!("    {{ {rule} }},\n")).collect();
        let config = format!("[agent]\napprovals = [\n{}]\n", rules.concat());
        std::fs::write(self.0.path().join("c.toml"), config).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Pipe {
        let flags = [&["--config", "c.toml", "--files", "notes"], more].concat();
        Pipe::of(command(&["text"], &flags).current_dir(self.0.path()))
    }

    fn has(&self, note: &str) -> bool {
        self.0.path().join("notes").join(note).exists()
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

const DENIED: &str = r#"{"error":{"message":"A rule does not allow this call."}}"#;

const NO_SECRET: &str =
    r#"effect = "deny", tool = "word_count", arguments = { text = { equals = "secret" } }"#;

#[test]
fn a_denied_call_does_not_run_whatever_the_client_asks_for() {
    let scene = Scene::new(&[NO_SECRET]);
    for flags in [&[][..], &["--approvals", "client"]] {
        let mut pipe = scene.serve(flags);
        let denied = pipe.call("word_count", json!({"text": "secret"}));
        assert_eq!((text(&denied), &denied["result"]["isError"]), (DENIED, &json!(true)));
        let ran = pipe.call("word_count", json!({"text": "a b"}));
        assert!(text(&ran).contains("\"words\":2"), "{ran}");
    }
    let mut pipe = scene.serve(&["--search"]);
    let inner = json!({"name": "word_count", "arguments": {"text": "secret"}});
    assert_eq!(text(&pipe.call("tools_call", inner)), DENIED);
}

#[test]
fn a_call_that_a_rule_asks_about_needs_the_user_of_the_client() {
    let scene = Scene::new(&[r#"effect = "ask", tool = "word_count""#]);
    let mut pipe = scene.serve(&[]);
    let refused = pipe.call("word_count", json!({"text": "a"}));
    assert!(text(&refused).contains("has to be approved by a person"), "{refused}");
    let asks = pipe.ask(&asked("1", "word_count", json!({"text": "a"}), None));
    assert!(asks.to_string().contains("Allow the tool word_count to run"), "{asks}");
    let free = pipe.call("lines_matching", json!({"text": "a", "pattern": "a"}));
    assert_eq!(free["result"]["isError"], false, "{free}");
    let mut pipe = scene.serve(&["--approvals", "client"]);
    let ran = pipe.call("word_count", json!({"text": "a"}));
    assert!(text(&ran).contains("\"words\":1"), "{ran}");
}

#[test]
fn a_call_that_a_rule_allows_needs_no_approval() {
    let rule = r#"effect = "allow", tool = "file_access_delete_file", arguments = { file_name = { path = "old/**" } }"#;
    let scene = Scene::new(&[rule]);
    let mut pipe = scene.serve(&[]);
    let deletes = |note: &str| json!({"file_name": note});
    let refused = pipe.call("file_access_delete_file", deletes("a.md"));
    assert!(text(&refused).contains("has to be approved by a person"), "{refused}");
    pipe.call("file_access_delete_file", deletes("old/b.md"));
    assert!(scene.has("a.md") && !scene.has("old/b.md"));
}

#[test]
fn changes_of_rules_are_followed_and_mistakes_are_named() {
    let scene = Scene::new(&[]);
    let mut pipe = scene.serve(&[]);
    let secret = json!({"text": "secret"});
    assert!(text(&pipe.call("word_count", secret.clone())).contains("\"words\":1"));
    scene.set(&[NO_SECRET]);
    pipe.has_said("reloaded:");
    assert_eq!(text(&pipe.call("word_count", secret.clone())), DENIED);
    let wrong = NO_SECRET.replace("text =", "words =");
    scene.set(&[&wrong]);
    pipe.has_said("not reloaded");
    assert_eq!(text(&pipe.call("word_count", secret)), DENIED);
    let pipe = scene.serve(&[]);
    pipe.has_said("`words`");
    let (code, _, _) = pipe.end();
    assert_eq!(code, Some(2));
}

#[test]
fn files_as_resources_are_those_that_file_tools_show() {
    let scene = Scene(tempfile::tempdir().unwrap());
    let notes = scene.0.path().join("notes");
    std::fs::create_dir_all(notes.join(".git")).unwrap();
    for (name, text) in
        [("a.md", "one"), (".env", "SECRET=1"), (".git/config", "x"), ("k.pem", "y")]
    {
        std::fs::write(notes.join(name), text).unwrap();
    }
    let config = "[stores.notes]\ndirectory = \"notes\"\n[serve]\nstores = [\"notes\"]\n";
    for (files, expected) in [
        ("", &["a.md", "k.pem"][..]),
        ("[files.n]\nstore = \"notes\"\n", &["a.md", "k.pem"]),
        ("[files.n]\nstore = \"notes\"\nhidden = [\"*.pem\", \".*\"]\n", &["a.md"]),
    ] {
        std::fs::write(scene.0.path().join("c.toml"), format!("{config}{files}")).unwrap();
        let flags = ["--config", "c.toml"];
        let mut pipe = Pipe::of(command(&["text"], &flags).current_dir(scene.0.path()));
        let listed = pipe.modern("resources/list", json!({}));
        let mut names: Vec<_> = listed["result"]["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|resource| resource["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, expected, "{files}");
        let mut read = |name: &str| {
            let uri = format!("store://notes/{name}");
            pipe.modern("resources/read", json!({"uri": uri}))
        };
        assert_eq!(read("a.md")["result"]["contents"][0]["text"], "one");
        for name in [".env", ".git/config"] {
            assert!(read(name)["error"].is_object(), "{name}");
        }
    }
}
