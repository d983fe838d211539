//! Agents and workflows in files, served as tools.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::cli_inspector::PageClient;
use crate::wire::{ANSWER_MAX, Http, LEGACY, Pipe, call, command, request};

/// Folder with an agent, its model, a store and a workflow.
struct Scene(tempfile::TempDir);

impl Scene {
    fn new(replies: &[Value]) -> Self {
        let scene = Self(tempfile::tempdir().unwrap());
        let agent = "name: note keeper\ndescription: Keeps notes.\nmodel: script:model.jsonl\n\
             tools: [file_access_delete_file, word_count]\n";
        scene.write("keeper.yaml", agent);
        let lines: Vec<_> = replies.iter().map(Value::to_string).collect();
        scene.write("model.jsonl", &lines.join("\n"));
        std::fs::create_dir(scene.path("notes")).unwrap();
        scene.write("notes/a.md", "one");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    fn serve(&self, more: &[&str]) -> Pipe {
        let flags = [&["--agent", "keeper.yaml", "--files", "notes"], more].concat();
        let mut command = command(&["text"], &flags);
        Pipe::of(command.current_dir(self.0.path()).env("HOME", self.path("home")))
    }
}

fn deletes(file: &str) -> Value {
    json!({"calls": [{"tool": "file_access_delete_file", "arguments": {"file_name": file}}]})
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_default()
}

/// Returns the content of a form that allows what it asks about.
fn accepted(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().unwrap().iter();
    let chosen = properties.map(|(name, schema)| {
        let choice = schema["enum"][0].clone();
        (name.clone(), if choice.is_null() { json!(true) } else { choice })
    });
    Value::Object(chosen.collect())
}

/// Calls the agent with the id 2 and returns the first question about it.
fn start(pipe: &mut Pipe, task: &str) -> Value {
    let params = json!({"name": "note_keeper", "arguments": {"task": task}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    pipe.send(call.to_string().as_bytes());
    loop {
        let message = pipe.next();
        if message["method"] == "elicitation/create" {
            return message;
        }
        assert_eq!(message.get("result"), None, "{message}");
    }
}

/// Answers a question of the server.
fn answer(pipe: &mut Pipe, asked: &Value, action: &str) {
    let mut result = json!({"action": action});
    if action == "accept" {
        result["content"] = accepted(&asked["params"]["requestedSchema"]);
    }
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": result});
    pipe.send(answer.to_string().as_bytes());
}

/// Starts a session of a client that can ask its user.
pub(crate) fn greet(pipe: &mut Pipe) {
    let params = json!({
        "protocolVersion": LEGACY,
        "capabilities": {"elicitation": {"form": {}}},
        "clientInfo": {"name": "wire", "version": "1"},
    });
    pipe.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    pipe.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
}

#[test]
fn an_agent_is_a_tool_that_asks_the_user_of_its_caller() {
    for (action, is_deleted) in [("accept", true), ("decline", false)] {
        let scene = Scene::new(&[deletes("a.md"), json!({"text": "Tidy."})]);
        let mut pipe = scene.serve(&["--tools", "note_keeper"]);
        greet(&mut pipe);
        let listed = pipe.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}));
        let tools = listed["result"]["tools"].as_array().unwrap();
        assert_eq!(tools.len(), 1, "{listed}");
        assert_eq!(tools[0]["description"], "Keeps notes.");
        let asked = start(&mut pipe, "Tidy up.");
        let question = asked["params"]["message"].as_str().unwrap();
        assert!(question.contains("file_access_delete_file"), "{question}");
        assert!(question.contains("a.md"), "{question}");
        answer(&mut pipe, &asked, action);
        let (_, ended) = pipe.until(&json!(2));
        assert_eq!(text(&ended), "Tidy.", "{asked} {ended}");
        assert_eq!(scene.path("notes/a.md").exists(), !is_deleted, "{asked}");
    }
}

/// Sends a request of a client that accepts tasks and can ask its user.
fn ask_for_task(pipe: &mut Pipe, id: &str, method: &str, params: Value) -> Value {
    let mut request = request(id, method, params);
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({
        "elicitation": {"form": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    });
    pipe.ask(&request)["result"].take()
}

/// Starts the agent as a task and returns the id of the task.
fn start_task(pipe: &mut Pipe) -> String {
    let params = json!({"name": "note_keeper", "arguments": {"task": "Tidy up."}});
    let task = ask_for_task(pipe, "call", "tools/call", params);
    assert_eq!(task["status"], "working", "{task}");
    task["taskId"].as_str().unwrap().to_owned()
}

/// Polls a task until `is_reached` holds.
fn poll(pipe: &mut Pipe, id: &str, is_reached: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        let task = ask_for_task(pipe, "poll", "tasks/get", json!({"taskId": id}));
        if is_reached(&task) {
            return task;
        }
        assert!(started.elapsed() < ANSWER_MAX, "{task}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_task_of_an_agent_says_what_it_does_and_keeps_its_answer() {
    let count = json!({"tool": "word_count", "arguments": {"text": "a b"}});
    let scene =
        Scene::new(&[json!({"calls": [count]}), json!({"text": "Two words.", "delay_ms": 2000})]);
    let mut pipe = scene.serve(&[]);
    let id = start_task(&mut pipe);
    let working = poll(&mut pipe, &id, |task| task["statusMessage"] != Value::Null);
    assert_eq!(working["status"], "working", "{working}");
    assert_eq!(working["statusMessage"], "calls `word_count`", "{working}");
    let ended = poll(&mut pipe, &id, |task| task["status"] != "working");
    assert_eq!(ended["status"], "completed", "{ended}");
    assert_eq!(ended["result"]["content"][0]["text"], "Two words.", "{ended}");
}

#[test]
fn a_cancelled_task_of_an_agent_calls_nothing_more() {
    let late = json!({
        "calls": [{"tool": "file_access_delete_file", "arguments": {"file_name": "a.md"}}],
        "delay_ms": 1500,
    });
    let scene = Scene::new(&[late.clone(), late, json!({"text": "Tidy."})]);
    let allowed = "approvals:\n  - {effect: allow, tool: file_access_delete_file}\n";
    let agent = std::fs::read_to_string(scene.path("keeper.yaml")).unwrap();
    scene.write("keeper.yaml", &(agent + allowed));
    let mut pipe = scene.serve(&[]);
    let id = start_task(&mut pipe);
    ask_for_task(&mut pipe, "cancel", "tasks/cancel", json!({"taskId": id}));
    let ended = poll(&mut pipe, &id, |task| task["status"] != "working");
    assert_eq!(ended["status"], "cancelled", "{ended}");
    std::thread::sleep(Duration::from_secs(2));
    assert!(scene.path("notes/a.md").exists());
    // Without a cancellation, the same agent deletes the note.
    let id = start_task(&mut pipe);
    let ended = poll(&mut pipe, &id, |task| task["status"] != "working");
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(!scene.path("notes/a.md").exists());
}

#[test]
fn a_task_of_an_agent_asks_the_user_of_its_client() {
    for (action, is_deleted) in [("accept", true), ("decline", false), ("page", true)] {
        let late = json!({
            "calls": [{"tool": "file_access_delete_file", "arguments": {"file_name": "a.md"}}],
            "delay_ms": 1000,
        });
        let scene = Scene::new(&[late, json!({"text": "Tidy."})]);
        let mut pipe = scene.serve(&["--inspector=approve"]);
        let printed = pipe.has_said("within five minutes: ");
        let id = start_task(&mut pipe);
        let asks = poll(&mut pipe, &id, |task| task["status"] != "working");
        assert_eq!(asks["status"], "input_required", "{asks}");
        let (key, asked) = asks["inputRequests"].as_object().unwrap().iter().next().unwrap();
        let asked = &asked["params"];
        assert!(asked["message"].as_str().unwrap().contains("a.md"), "{asks}");
        let answer = if action == "accept" {
            json!({"action": action, "content": accepted(&asked["requestedSchema"])})
        } else {
            json!({"action": action})
        };
        if action == "page" {
            let mut pages = PageClient::new(&printed);
            pages.log_in();
            let content = accepted(&asked["requestedSchema"]).to_string();
            let answer = json!({"action": "send", "content": content});
            assert!(pages.answer(&pages.waiting(), answer).starts_with("200 "));
        } else {
            let update = json!({"taskId": id, "inputResponses": {key: answer}});
            ask_for_task(&mut pipe, "update", "tasks/update", update);
        }
        let ended = poll(&mut pipe, &id, |task| {
            !["working", "input_required"].contains(&task["status"].as_str().unwrap())
        });
        assert_eq!(ended["result"]["content"][0]["text"], "Tidy.", "{ended}");
        assert_eq!(scene.path("notes/a.md").exists(), !is_deleted, "{ended}");
    }
}

/// Returns a scene whose agent reads a note and writes another one.
fn copies() -> Scene {
    let call =
        |tool: &str, arguments: Value| json!({"calls": [{"tool": tool, "arguments": arguments}]});
    let scene = Scene::new(&[
        call("file_access_read_file", json!({"file_name": "a.md"})),
        call("file_access_save_file", json!({"file_name": "b.md", "content": "one"})),
        json!({"text": "Copied."}),
    ]);
    let agent = "name: note keeper\nmodel: script:model.jsonl\ntools: all\n";
    scene.write("keeper.yaml", agent);
    scene
}

const LABELS: &str = "[labels]\npolicy = true\nauto-hide-untrusted = false\n";

#[test]
fn the_label_policy_of_the_configuration_applies_to_a_served_agent() {
    let log = "[records]\nenabled = true\ndirectory = \"log\"\n";
    for (labels, is_blocked) in [("", false), (LABELS, true)] {
        let scene = copies();
        scene.write("c.toml", &format!("{labels}{log}"));
        let mut pipe = scene.serve(&["--config", "c.toml"]);
        let ended = pipe.call("note_keeper", json!({"task": "Copy."}));
        assert_eq!(scene.path("notes/b.md").exists(), !is_blocked, "{ended}");
        if is_blocked {
            assert_eq!(ended["result"]["isError"], true, "{ended}");
        } else {
            assert_eq!(text(&ended), "Copied.", "{ended}");
        }
        drop(pipe.end());
        let mut events = std::process::Command::new(cofferdam_tests::binary());
        events.args(["log", "events", "--kind", "label", "--directory", "log"]);
        let events = events.current_dir(scene.0.path()).output().unwrap();
        let events = String::from_utf8(events.stdout).unwrap();
        assert_eq!(events.contains("blocked (untrusted/"), is_blocked, "{events}");
    }
}

#[test]
fn a_violation_of_labels_is_a_question_to_the_user_of_the_client() {
    for (action, is_written) in [("accept", true), ("decline", false)] {
        let scene = copies();
        scene.write("c.toml", &format!("{LABELS}approval-on-violation = true\n"));
        let mut pipe = scene.serve(&["--config", "c.toml"]);
        greet(&mut pipe);
        let asked = start(&mut pipe, "Copy.");
        let question = asked["params"]["message"].as_str().unwrap();
        assert!(question.contains("file_access_save_file"), "{question}");
        assert!(
            question.contains("Against it: Policy violation: Tool cannot be called in"),
            "{question}"
        );
        answer(&mut pipe, &asked, action);
        let (_, ended) = pipe.until(&json!(2));
        assert_eq!(text(&ended), "Copied.", "{ended}");
        assert_eq!(scene.path("notes/b.md").exists(), is_written, "{ended}");
    }
}

#[test]
fn mistakes_in_labels_end_the_server_at_its_start() {
    let scene = copies();
    scene.write(
        "c.toml",
        &format!("{LABELS}[labels.tools.word_cont]\nconfidentiality = \"private\"\n"),
    );
    let pipe = scene.serve(&["--config", "c.toml"]);
    pipe.has_said("c.toml:4:15: labels: there is no tool `word_cont`");
    let (code, _, _) = pipe.end();
    assert_eq!(code, Some(2));
}

#[test]
fn a_client_that_cannot_ask_gets_the_name_of_the_call() {
    let scene = Scene::new(&[deletes("a.md"), json!({"text": "Tidy."})]);
    let mut pipe = scene.serve(&[]);
    let failed = pipe.call("note_keeper", json!({"task": "Tidy up."}));
    assert_eq!(failed["result"]["isError"], true, "{failed}");
    assert!(text(&failed).contains("file_access_delete_file"), "{failed}");
    assert!(scene.path("notes/a.md").exists());
    let wrong = pipe.call("note_keeper", json!({}));
    assert!(text(&wrong).contains("task"), "{wrong}");
}

#[test]
fn a_workflow_is_a_tool_and_changes_of_its_file_are_followed() {
    let scene = Scene::new(&[json!({"text": "One word."})]);
    let workflow = "name: counting\ndescription: Counts.\nagents:\n  count: {file: keeper.yaml}\n";
    scene.write("w.yaml", workflow);
    let mut pipe = scene.serve(&["--workflow", "w.yaml"]);
    let counted = pipe.call("counting", json!({"task": "hello"}));
    assert_eq!(text(&counted), "One word.", "{counted}");

    scene.write("w.yaml", &workflow.replace("name: counting", "name: numbering"));
    pipe.has_said("reloaded:");
    let numbered = pipe.call("numbering", json!({"task": "hello"}));
    assert_eq!(text(&numbered), "One word.", "{numbered}");
    scene.write("keeper.yaml", "modell: x\n");
    pipe.has_said("keeper.yaml:1:1: unknown field `modell`");
    let listed = pipe.modern("tools/list", json!({}));
    assert!(listed.to_string().contains("numbering"), "{listed}");
}

#[test]
fn what_is_wrong_with_an_agent_ends_the_server_at_its_start() {
    let scene = Scene::new(&[]);
    for (agent, expected) in [
        ("tools: [word_cont]\nmodel: script:model.jsonl\n", "keeper.yaml:1:8: there is no tool"),
        ("tools: all\n", "no model is named"),
        ("name: '…'\nmodel: script:model.jsonl\n", "no tool can be named after the agent"),
        ("name: word_count\nmodel: script:model.jsonl\n", "two tools are called 'word_count'"),
    ] {
        scene.write("keeper.yaml", agent);
        let pipe = scene.serve(&[]);
        pipe.has_said(expected);
        let (code, _, _) = pipe.end();
        assert_eq!(code, Some(2), "{agent}");
    }
}

#[test]
fn one_trace_from_the_client_through_an_agent_to_its_model_and_its_tools() {
    const CALLER: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    let count = json!({"tool": "word_count", "arguments": {"text": "a b"}});
    let scene = Scene::new(&[json!({"calls": [count]}), json!({"text": "Two words."})]);
    scene.write("c.toml", "[records]\nenabled = true\ndirectory = \"log\"\n");
    let mut pipe = scene.serve(&["--config", "c.toml"]);
    greet(&mut pipe);
    let params = json!({
        "name": "note_keeper",
        "arguments": {"task": "Count."},
        "_meta": {"traceparent": CALLER},
    });
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    assert_eq!(text(&pipe.ask(&call)), "Two words.");
    drop(pipe.end());
    let mut export = std::process::Command::new(cofferdam_tests::binary());
    export.args(["log", "export", "--format", "otlp", "--directory", "log"]);
    let exported = export.current_dir(scene.0.path()).output().unwrap();
    let exported = String::from_utf8(exported.stdout).unwrap();
    let mut spans = Vec::new();
    for line in exported.lines() {
        let request: Value = serde_json::from_str(line).unwrap();
        let found = request["resourceSpans"][0]["scopeSpans"][0]["spans"].as_array().unwrap();
        spans.extend(found.clone());
    }
    let named = |name: &str| {
        spans.iter().filter(|span| span["name"] == name).cloned().collect::<Vec<Value>>()
    };
    let [served, agent, counted] =
        ["execute_tool note_keeper", "invoke_agent note keeper", "execute_tool word_count"]
            .map(|name| named(name).pop().unwrap_or_else(|| panic!("{name}: {exported}")));
    assert!(spans.iter().all(|span| span["traceId"] == CALLER[3..35]), "{exported}");
    assert_eq!(served["parentSpanId"], CALLER[36..52]);
    assert_eq!(agent["parentSpanId"], served["spanId"]);
    assert_eq!(counted["parentSpanId"], agent["spanId"]);
    let models: Vec<_> =
        spans.iter().filter(|span| span["name"].as_str().unwrap().starts_with("chat ")).collect();
    assert_eq!(models.len(), 2, "{exported}");
    assert!(models.iter().all(|span| span["parentSpanId"] == agent["spanId"]), "{exported}");
    // Attributes that the conventions require of each kind of span.
    let attributes = |span: &Value| {
        let list = span["attributes"].as_array().unwrap();
        let value = |one: &Value| {
            (one["key"].as_str().unwrap().to_owned(), one["value"]["stringValue"].clone())
        };
        list.iter().map(value).collect::<std::collections::BTreeMap<_, _>>()
    };
    let of_call = attributes(&served);
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "note_keeper"),
        ("mcp.method.name", "tools/call"),
        ("mcp.protocol.version", LEGACY),
        ("network.transport", "pipe"),
        ("cofferdam.principal", "local"),
    ] {
        assert_eq!(of_call.get(key), Some(&json!(value)), "{key}");
    }
    assert_eq!((&served["kind"], &counted["kind"]), (&json!(2), &json!(1)));
    assert!(!attributes(&counted).contains_key("mcp.method.name"));
    assert_eq!(attributes(&agent)["gen_ai.agent.name"], "note keeper");
    assert_eq!(attributes(models[0])["gen_ai.provider.name"], "script");
}

#[test]
fn options_of_requests_are_checked_at_the_start() {
    let scene = Scene::new(&[]);
    let pipe = scene.serve(&["--setting", "heat=1"]);
    pipe.has_said("--setting: there is no setting `heat`");
    assert_eq!(pipe.end().0, Some(2));
}

#[test]
fn each_caller_of_an_agent_has_its_own_memory_files() {
    let note = |content: &str| {
        let arguments = json!({"file_name": "tea.md", "content": content, "description": "Tea"});
        json!({"calls": [{"tool": "file_memory_write", "arguments": arguments}]})
    };
    let noted = json!({"text": "Noted."});
    let scene = Scene::new(&[note("green"), noted.clone(), note("black"), noted]);
    let memories = scene.path("memories");
    std::fs::create_dir(&memories).unwrap();
    let agent = "name: note keeper\nmodel: script:model.jsonl\nmemory-files: memories\n";
    scene.write("keeper.yaml", agent);
    let store = "[stores.memories]\ndirectory = \"memories\"\n";
    for (more, flags) in [
        ("[files.memories]\nstore = \"memories\"\naccess = \"read-only\"\n", &[][..]),
        ("[serve]\nstores = [\"memories\"]\n", &[]),
        ("[stores.same]\ndirectory = \"memories\"\n[grants.files]\nsame = \"read-only\"\n", &[]),
        ("", &["--files", "memories:ro"]),
    ] {
        scene.write("cofferdam.toml", &format!("{store}{more}"));
        let own = ["--agent", "keeper.yaml", "--config", "cofferdam.toml"];
        let mut command = command(&[], &[&own, flags].concat());
        let pipe = Pipe::of(command.current_dir(scene.0.path()));
        pipe.has_said("keeper.yaml:3:15: tools or clients can read the store `memories`");
        assert_eq!(pipe.end().0, Some(2), "{more}");
    }
    let token = |name: &str| {
        format!("[serve.tokens.{name}]\ndigest = \"{}\"\n", cofferdam_mcp::digest(name))
    };
    scene.write("cofferdam.toml", &format!("{store}{}{}", token("ada"), token("bob")));
    let mut http = Http::within(scene.0, &[], &["--agent", "keeper.yaml"]);
    for (caller, content) in [("ada", "green"), ("bob", "black")] {
        caller.clone_into(&mut http.token);
        let answer = http.ask(&call("1", "note_keeper", &json!({"task": "Note it."}))).json();
        assert_eq!(text(&answer), "Noted.", "{answer}");
        let own = cofferdam_files::session_stem(Some(&format!("token:{caller}")));
        let note = std::fs::read_to_string(memories.join(own).join("tea.md"));
        assert_eq!(note.unwrap(), content, "{caller}");
    }
}

/// A served agent writes programs if the server offers them, and clients see the agent.
#[test]
fn a_served_agent_writes_programs() {
    let code = "await tools.file_access_save_file({file_name: 'b.md', content: 'two'})";
    let program = json!({"calls": [{"tool": "run_code", "arguments": {"code": code}}]});
    let scene = Scene::new(&[program, json!({"text": "Done."})]);
    let agent = "name: note keeper\nmodel: script:model.jsonl\ntools: [file_access_save_file]\ncode: only\n";
    scene.write("keeper.yaml", agent);
    let mut pipe = scene.serve(&["--code"]);
    let answer = pipe.call("note_keeper", json!({"task": "Write."}));
    assert_eq!(text(&answer), "Done.", "{answer}");
    assert_eq!(std::fs::read_to_string(scene.path("notes/b.md")).unwrap(), "two");
}
