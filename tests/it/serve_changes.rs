//! Changes while a server runs: plugins, grants, and decisions of the user.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use cofferdam_tests::guest;
use serde_json::{Value, json};

use crate::wire::{LEGACY, Pipe, call, request};

/// Folder with a plugin that can be replaced.
struct Folder(tempfile::TempDir);

impl Folder {
    fn with(name: &str) -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.put(&std::fs::read(guest(name)).unwrap());
        folder
    }

    fn plugin(&self) -> PathBuf {
        self.0.path().join("tool.wasm")
    }

    fn put(&self, bytes: &[u8]) {
        let fresh = self.0.path().join("fresh");
        std::fs::write(&fresh, bytes).unwrap();
        std::fs::rename(fresh, self.plugin()).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Pipe {
        let plugin = self.plugin().display().to_string();
        Pipe::start(&[], &[&["--plugin", &plugin], more].concat())
    }
}

fn names(answer: &Value) -> Vec<String> {
    let tools = answer["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn wait_for(pipe: &mut Pipe, method: &str) -> Value {
    loop {
        let message = pipe.next();
        if message["method"] == method {
            return message;
        }
    }
}

#[test]
fn a_changed_plugin_is_swapped_and_listening_clients_are_notified() {
    let folder = Folder::with("text");
    let mut pipe = folder.serve(&[]);
    let listen = request(
        "sub",
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    pipe.send(listen.to_string().as_bytes());
    wait_for(&mut pipe, "notifications/subscriptions/acknowledged");
    assert!(names(&pipe.modern("tools/list", json!({}))).contains(&"word_count".to_owned()));

    folder.put(&std::fs::read(guest("csv")).unwrap());
    // The end of loading at the start is announced as well, perhaps after the first list.
    let listed = loop {
        wait_for(&mut pipe, "notifications/tools/list_changed");
        let listed = names(&pipe.modern("tools/list", json!({})));
        if listed.contains(&"schema".to_owned()) {
            break listed;
        }
    };
    assert!(!listed.contains(&"word_count".to_owned()), "{listed:?}");

    folder.put(b"no component");
    pipe.has_said("not reloaded; the previous version stays in use");
    assert_eq!(names(&pipe.modern("tools/list", json!({}))), listed);
}

#[test]
fn a_client_with_a_handshake_is_notified_as_well() {
    let folder = Folder::with("text");
    let mut pipe = folder.serve(&[]);
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "wire", "version": "1" },
    });
    pipe.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    pipe.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    pipe.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    folder.put(&std::fs::read(guest("csv")).unwrap());
    wait_for(&mut pipe, "notifications/tools/list_changed");
}

#[test]
fn a_call_in_flight_ends_on_the_plugin_that_it_began_with() {
    let folder = Folder::with("served");
    let mut pipe = folder.serve(&[]);
    let mut slow = call("slow", "count", &json!({ "steps": 30, "pause_ms": 100 }));
    slow["params"]["_meta"]["progressToken"] = json!("p");
    pipe.send(slow.to_string().as_bytes());
    wait_for(&mut pipe, "notifications/progress");
    folder.put(&std::fs::read(guest("csv")).unwrap());
    pipe.has_said("reloaded: tool");
    let listed = pipe.ask(&request("list", "tools/list", json!({})));
    assert!(names(&listed).contains(&"schema".to_owned()), "{listed}");
    let (_, ended) = pipe.until(&json!("slow"));
    assert_eq!(ended["result"]["content"][0]["text"], "counted to 30", "{ended}");
}

/// Returns a call by a client that can ask its user, with the user's answer.
pub(crate) fn asked(
    id: &str,
    tool: &str,
    arguments: Value,
    answers: Option<(&Value, Value)>,
) -> Value {
    let mut frame = call(id, tool, &arguments);
    frame["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "elicitation": { "form": {} } });
    if let Some((before, responses)) = answers {
        frame["params"]["requestState"] = before["result"]["requestState"].clone();
        frame["params"]["inputResponses"] = responses;
    }
    frame
}

fn manifest(folder: &Path) {
    std::fs::write(folder.join("tool.toml"), "[permissions]\nclock = \"precise\"\n").unwrap();
}

#[test]
fn a_failed_call_names_what_its_plugin_was_not_granted() {
    let folder = Folder::with("tour");
    let mut pipe = folder.serve(&[]);
    let failed = pipe.call("headings", json!({ "file": "/notes/plan.md" }));
    let said = failed["result"]["content"][1]["text"].as_str().unwrap_or_default();
    assert!(said.starts_with("Not granted: files:notes=read-only."), "{failed}");
    assert!(said.contains("--mount notes=DIR:ro"), "{failed}");
    // Nothing is said about a call that succeeds.
    let counted = pipe.call("count_words", json!({ "text": "a b" }));
    assert_eq!(counted["result"]["content"].as_array().unwrap().len(), 1, "{counted}");
}

#[test]
fn a_store_that_no_plugin_asks_for_is_reported() {
    let folder = Folder::with("tour");
    let mut pipe = folder.serve(&["--mount", "note=.:ro"]);
    let counted = pipe.call("count_words", json!({ "text": "a b" }));
    assert_eq!(counted["result"]["isError"], false, "{counted}");
    pipe.has_said("no plugin asks for the store `note`; they ask for `notes`");
}

#[test]
fn a_person_is_asked_once_for_what_a_plugin_lacks() {
    for (choice, is_accepted) in [("once", true), ("no", false)] {
        let folder = Folder::with("text");
        manifest(folder.0.path());
        let mut pipe = folder.serve(&[]);
        let text = json!({ "text": "a b" });
        // A client without elicitation is not asked.
        assert_eq!(
            pipe.call("word_count", text.clone())["result"]["structuredContent"]["words"],
            2
        );
        let question = pipe.ask(&asked("1", "word_count", text.clone(), None));
        let form = &question["result"]["inputRequests"]["cofferdam.grant"]["params"];
        assert!(form["message"].as_str().unwrap().contains("clock:precise"), "{question}");
        let answer =
            json!({ "cofferdam.grant": { "action": "accept", "content": { "grant": choice } } });

        // An answer without a question is ignored.
        let mut unasked = asked("2", "word_count", text.clone(), None);
        unasked["params"]["inputResponses"] = answer.clone();
        assert_eq!(pipe.ask(&unasked)["result"]["resultType"], "input_required");
        // An answer to another call is refused.
        let other =
            asked("3", "word_count", json!({ "text": "c" }), Some((&question, answer.clone())));
        assert_eq!(pipe.ask(&other)["error"]["code"], -32602);

        let done = pipe.ask(&asked("4", "word_count", text.clone(), Some((&question, answer))));
        assert_eq!(done["result"]["structuredContent"]["words"], 2, "{done}");
        if is_accepted {
            pipe.has_said("granted to tool: clock:precise");
        }
        let again = pipe.ask(&asked("5", "word_count", text, None));
        assert_eq!(again["result"]["structuredContent"]["words"], 2, "{choice}: {again}");
    }
}

/// Decisions hold while the server runs, also when its configuration changes.
#[test]
fn decisions_about_permissions_outlive_a_reload() {
    for choice in ["once", "no"] {
        let folder = Folder::with("text");
        manifest(folder.0.path());
        let config = folder.0.path().join("c.toml");
        let text = "[plugins.tool]\ncomponent = \"tool.wasm\"\n";
        std::fs::write(&config, text).unwrap();
        let mut pipe = Pipe::start(&[], &["--config", config.to_str().unwrap()]);
        let arguments = json!({ "text": "a b" });
        let question = pipe.ask(&asked("1", "word_count", arguments.clone(), None));
        assert_eq!(question["result"]["resultType"], "input_required", "{question}");
        let answer =
            json!({ "cofferdam.grant": { "action": "accept", "content": { "grant": choice } } });
        let answers = Some((&question, answer));
        let done = pipe.ask(&asked("2", "word_count", arguments.clone(), answers));
        assert_eq!(done["result"]["structuredContent"]["words"], 2, "{done}");
        std::fs::write(&config, format!("{text}# changed\n")).unwrap();
        pipe.has_said("reloaded: the configuration");
        let again = pipe.ask(&asked("3", "word_count", arguments.clone(), None));
        assert_eq!(again["result"]["structuredContent"]["words"], 2, "{choice}: {again}");
        assert!(!std::fs::read_to_string(&config).unwrap().contains("clock"));
    }
}

#[test]
fn a_file_that_changes_all_the_time_does_not_delay_a_reload() {
    let folder = Folder::with("text");
    let config = folder.0.path().join("c.toml");
    let text = "[plugins.tool]\ncomponent = \"tool.wasm\"\n";
    std::fs::write(&config, text).unwrap();
    let mut pipe = Pipe::start(&[], &["--config", config.to_str().unwrap()]);
    pipe.call("word_count", json!({ "text": "a b" }));
    let (log, test) = (folder.0.path().join("app.log"), Arc::new(()));
    let running = Arc::downgrade(&test);
    let noise = std::thread::spawn(move || {
        while running.upgrade().is_some() {
            std::fs::write(&log, "line").unwrap();
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    std::thread::sleep(Duration::from_millis(300));
    std::fs::write(&config, format!("{text}# changed\n")).unwrap();
    pipe.has_said("reloaded: the configuration");
    drop(test);
    noise.join().unwrap();
}

#[test]
fn a_plugin_in_a_deleted_directory_is_reloaded_when_it_is_built_again() {
    let folder = Folder::with("text");
    let (out, plugin) = (folder.0.path().join("out"), folder.0.path().join("out/tool.wasm"));
    std::fs::create_dir(&out).unwrap();
    std::fs::copy(guest("text"), &plugin).unwrap();
    let mut pipe = Pipe::start(&[], &["--plugin", plugin.to_str().unwrap()]);
    pipe.call("word_count", json!({ "text": "a b" }));
    std::thread::sleep(Duration::from_millis(500));
    std::fs::remove_dir_all(&out).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    std::fs::create_dir(&out).unwrap();
    std::fs::copy(guest("markdown"), &plugin).unwrap();
    pipe.has_said("reloaded: tool");
    // Watched again.
    std::fs::copy(guest("text"), &plugin).unwrap();
    pipe.has_said("reloaded: tool");
}

#[test]
fn a_tool_that_needs_approval_asks_through_the_client() {
    let save = json!({ "file_name": "a.txt", "content": "x" });
    let delete = json!({ "file_name": "a.txt" });
    let folder = tempfile::tempdir().unwrap();
    let (config, log) = (folder.path().join("c.toml"), folder.path().join("log"));
    std::fs::write(&config, "[records]\nenabled = true\ndirectory = \"log\"\n").unwrap();
    let flags = ["--files", "memory", "--config", config.to_str().unwrap()];
    let mut pipe = Pipe::start(&[], &flags);
    let refused = pipe.call("file_access_delete_file", delete.clone());
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(
        refused["result"]["content"][0]["text"].as_str().unwrap().contains("--approvals client"),
        "{refused}"
    );

    assert_ne!(pipe.call("file_access_save_file", save.clone())["result"]["isError"], true);
    for (action, allow) in
        [("decline", Value::Null), ("accept", json!(false)), ("accept", json!(true))]
    {
        let tool = "file_access_delete_file";
        let question = pipe.ask(&asked("q", tool, delete.clone(), None));
        let form = &question["result"]["inputRequests"]["cofferdam.approval"]["params"];
        assert!(form["message"].as_str().unwrap().contains("a.txt"), "{question}");
        let answer =
            json!({ "cofferdam.approval": { "action": action, "content": { "allow": allow } } });
        let done = pipe.ask(&asked("a", tool, delete.clone(), Some((&question, answer))));
        assert_eq!(done["result"]["isError"] == json!(true), allow != json!(true), "{done}");
    }
    pipe.end();
    let mut events = std::process::Command::new(cofferdam_tests::binary());
    let directory = log.to_str().unwrap();
    events.args(["log", "events", "--kind", "approval", "--json", "--directory", directory]);
    let events = String::from_utf8(events.output().unwrap().stdout).unwrap();
    let decisions: Vec<_> = events
        .lines()
        .map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            assert_eq!(event["event"]["by"], "local", "{line}");
            event["event"]["decision"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(decisions, ["denied", "denied", "once"]);

    let mut trusting = Pipe::start(&[], &["--files", "memory", "--approvals", "client"]);
    assert_ne!(trusting.call("file_access_save_file", save)["result"]["isError"], true);
    assert_ne!(trusting.call("file_access_delete_file", delete)["result"]["isError"], true);
}

#[test]
fn a_client_can_ask_for_a_dry_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().display().to_string();
    let mut pipe = Pipe::start(&[], &["--files", &path]);
    let mut frame =
        call("1", "file_access_save_file", &json!({ "file_name": "a.txt", "content": "x\n" }));
    frame["params"]["_meta"]["cofferdam/dryRun"] = json!(true);
    let shown = pipe.ask(&frame);
    let change = &shown["result"]["_meta"]["cofferdam/dryRun"]["changes"][0];
    assert_eq!(
        (&change["file"], &change["what"]),
        (&json!("workspace/a.txt"), &json!("created")),
        "{shown}"
    );
    assert!(change["diff"].as_str().unwrap().contains("+x"), "{shown}");
    assert!(!folder.path().join("a.txt").exists());
    let made =
        pipe.call("file_access_save_file", json!({ "file_name": "a.txt", "content": "x\n" }));
    assert!(made["result"]["_meta"].get("cofferdam/dryRun").is_none(), "{made}");
    assert!(folder.path().join("a.txt").exists());
}

#[test]
fn approvals_depend_on_tool_and_path() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    let rules = "\
[files.w]\nmemory = true\n
[[files.w.approvals]]\ntools = [\"delete_file\"]\npaths = [\"drafts\"]\nneeds-approval = false\n
[[files.w.approvals]]\ntools = [\"save_file\"]\npaths = [\"final/**\"]\nneeds-approval = true\n";
    std::fs::write(&config, rules).unwrap();
    let mut pipe = Pipe::start(&[], &["--config", config.to_str().unwrap()]);
    let mut is_refused = |tool: &str, arguments: Value| {
        let answer = pipe.call(tool, arguments);
        answer["result"]["isError"] == true
    };
    let save = |name: &str| json!({ "file_name": name, "content": "x" });
    assert!(!is_refused("file_access_save_file", save("drafts/a")));
    assert!(is_refused("file_access_save_file", save("final/a")));
    assert!(
        is_refused("file_access_save_file", save("./final/a")),
        "no path, and no way around the rule"
    );
    assert!(is_refused("file_access_save_file", save("Final\\\\a")));
    assert!(!is_refused("file_access_delete_file", json!({ "file_name": "drafts/a" })));
    assert!(is_refused("file_access_delete_file", json!({ "file_name": "other" })));
}

#[test]
fn hundreds_of_tools_are_found_and_called_by_two() {
    let mut pipe = Pipe::start(&["text", "csv", "markdown"], &["--search"]);
    assert_eq!(names(&pipe.modern("tools/list", json!({}))), ["tools_search", "tools_call"]);
    let found = pipe.call("tools_search", json!({ "query": "count words", "limit": 2 }));
    let first = &found["result"]["structuredContent"]["tools"][0];
    assert_eq!(first["name"], "word_count", "{found}");
    assert!(first["inputSchema"]["properties"]["text"].is_object());
    let inner = json!({ "name": "word_count", "arguments": { "text": "a b c" } });
    assert_eq!(pipe.call("tools_call", inner)["result"]["structuredContent"]["words"], 3);
    let unknown = pipe.call("tools_call", json!({ "name": "nothing" }));
    assert_eq!(unknown["result"]["content"][0]["text"], "Tool nothing not found");
    let empty = pipe.call("tools_search", json!({}));
    assert_eq!(empty["result"]["isError"], true);
}

#[test]
fn some_tools_are_seen_without_a_search() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    std::fs::write(&config, "[serve]\nalways-load = [\"word_*\", \"nothing\"]\n").unwrap();
    let flags = ["--search", "--config", config.to_str().unwrap()];
    let mut pipe = Pipe::start(&["text", "csv"], &flags);
    let listed = pipe.modern("tools/list", json!({}));
    assert_eq!(names(&listed), ["tools_search", "tools_call", "word_count"]);
    let called = pipe.call("word_count", json!({ "text": "a b c" }));
    assert_eq!(called["result"]["structuredContent"]["words"], 3);
    let found = pipe.call("tools_search", json!({ "query": "count words", "limit": 20 }));
    assert!(!found.to_string().contains("\"word_count\""), "{found}");
    std::fs::write(&config, "[serve]\nalways-load = [\"{word,line}*\"]\n").unwrap();
    pipe.has_said("cofferdam.toml:2:15: write the name of a tool");
}

#[test]
fn tools_are_chosen_by_name_and_by_toolset() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    let (text, csv) = (guest("text").display().to_string(), guest("csv").display().to_string());
    std::fs::write(
        &config,
        format!(
            "[plugins.text]\ncomponent = {text:?}\n[plugins.again]\ncomponent = {text:?}\n[plugins.csv]\ncomponent = {csv:?}\n\
             [toolsets.some]\ntools = [\"schema\"]\nplugins = [\"again\"]\n"
        ),
    )
    .unwrap();
    let config = config.display().to_string();
    let mut all = Pipe::start(&[], &["--config", &config]);
    let listed = names(&all.modern("tools/list", json!({})));
    assert!(
        listed.contains(&"text_word_count".to_owned())
            && listed.contains(&"again_word_count".to_owned()),
        "{listed:?}"
    );
    assert!(!listed.contains(&"word_count".to_owned()));

    let mut some = Pipe::start(&[], &["--config", &config, "--toolset", "some"]);
    let listed = names(&some.modern("tools/list", json!({})));
    assert!(listed.iter().all(|name| name.starts_with("again_") || name == "schema"), "{listed:?}");
    let hidden = some.call("text_word_count", json!({ "text": "a" }));
    assert_eq!(hidden["result"]["content"][0]["text"], "Tool text_word_count not found");

    let mut one = Pipe::start(&[], &["--config", &config, "--tools", "schema,filter"]);
    assert_eq!(names(&one.modern("tools/list", json!({}))), ["schema", "filter"]);
}

#[test]
fn a_long_result_is_cut_and_can_be_read_whole() {
    let mut pipe = Pipe::start(&["served"], &["--result-size", "1"]);
    let message = "x".repeat(5000);
    let cut = pipe.call("echo", json!({ "message": message }));
    let content = cut["result"]["content"].as_array().unwrap();
    assert_eq!(content[0]["text"].as_str().unwrap().len(), 1024);
    assert_eq!(content[2]["type"], "resource_link", "{cut}");
    let whole = pipe.modern("resources/read", json!({ "uri": content[2]["uri"] }));
    let text = whole["result"]["contents"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap()["echoed"]["message"], message);
    let other = pipe.modern("resources/read", json!({ "uri": "cofferdam://results/0123" }));
    assert_eq!(other["error"]["code"], -32602);
}
