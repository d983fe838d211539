//! The binary and the inspector: pages about recorded calls and calls of a server, over HTTP.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::cli::ran;
use crate::serve_agents::greet;
use crate::serve_changes::asked;
use crate::wire::{self, Pipe};

/// Maximum time of a request.
const PATIENCE: Duration = Duration::from_secs(30);

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).stdin(Stdio::null());
    command.env("HOME", folder.join("home")).current_dir(folder).args(arguments);
    command
}

/// A client of the pages.
pub(crate) struct PageClient {
    address: String,
    key: String,
    cookie: String,
}

impl PageClient {
    /// Parses an address that was printed.
    pub(crate) fn new(printed: &str) -> Self {
        let (_, rest) = printed.trim().split_once("http://").unwrap();
        let (address, key) = rest.split_once("/#k=").unwrap();
        Self { address: address.to_owned(), key: key.to_owned(), cookie: String::new() }
    }

    /// Posts a key, and returns the answer.
    fn post_key(&self, key: &str) -> String {
        self.post("/session", "x-cofferdam: login\r\n", &json!({ "key": key }))
    }

    pub(crate) fn log_in(&mut self) {
        let answer = self.post_key(&self.key);
        let (_, cookie) = answer.split_once("set-cookie: ").unwrap();
        self.cookie = cookie.split(';').next().unwrap().to_owned();
    }

    /// Waits until something waits for an answer, and returns its id and its page.
    pub(crate) fn waiting(&self) -> (String, String) {
        let start = Instant::now();
        loop {
            let list = self.get("/approvals");
            if let Some((_, rest)) = list.split_once("<tr data-id=\"") {
                let id = rest.split('"').next().unwrap().to_owned();
                let page = self.get(&format!("/approval?id={id}"));
                return (id, page);
            }
            assert!(start.elapsed() < PATIENCE, "nothing waits: {list}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until nothing waits for an answer.
    fn waits_for_nothing(&self) {
        let start = Instant::now();
        while !self.get("/approvals").contains("id=\"nothing-waiting\">") {
            assert!(start.elapsed() < PATIENCE, "something still waits");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Answers on the page of a prompt, and returns the status and the effect.
    pub(crate) fn answer(&self, (id, page): &(String, String), mut answer: Value) -> String {
        let (_, token) = page.split_once("data-token=\"").unwrap();
        let token = format!("x-cofferdam: {}\r\n", token.split('"').next().unwrap());
        answer["id"] = json!(id);
        let effect = self.post("/answer", &token, &answer);
        let (head, body) = effect.split_once("\r\n\r\n").unwrap();
        format!("{} {body}", head.split(' ').nth(1).unwrap())
    }

    fn get(&self, path: &str) -> String {
        self.send(&format!("GET {path}"), "", "")
    }

    fn post(&self, path: &str, headers: &str, body: &Value) -> String {
        let headers = format!(
            "{headers}origin: http://{}\r\ncontent-type: application/json\r\n",
            self.address
        );
        self.send(&format!("POST {path}"), &headers, &body.to_string())
    }

    fn send(&self, start: &str, headers: &str, body: &str) -> String {
        let mut answer = String::new();
        self.open(start, headers, body).read_to_string(&mut answer).unwrap();
        answer
    }

    /// Sends a request, and returns the stream of its answer.
    fn open(&self, start: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{start} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\nsec-fetch-site: same-origin\r\n\
             cookie: {}\r\n{headers}content-length: {}\r\n\r\n{body}",
            self.address,
            self.cookie,
            body.len()
        )
        .unwrap();
        stream
    }
}

/// Reads events of a page until they have a part.
fn read_until(events: &mut TcpStream, part: &str) {
    let (mut text, mut buffer) = (String::new(), vec![0; 65536]);
    while !text.contains(part) {
        let read = events.read(&mut buffer).unwrap();
        assert!(read > 0, "the events ended before {part}: {text}");
        text.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
}

/// A running `cofferdam inspect --web`.
struct Inspecting(Child);

impl Inspecting {
    fn start(command: &mut Command) -> (Self, PageClient) {
        let mut process = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        (Self(process), PageClient::new(&line))
    }
}

impl Drop for Inspecting {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the path of the page of the first call of a list.
fn path_of_call(list: &str) -> String {
    let (_, rest) = list.split_once("href=\"/call/").unwrap();
    format!("/call/{}", rest.split('"').next().unwrap())
}

#[test]
fn recorded_calls_are_shown_with_the_command_that_grants_what_was_refused() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(guest("web"), folder.join("web.wasm")).unwrap();
    let config = "[records]\ndirectory = \"log\"\npayloads = \"local\"\n\
                  [plugins.web]\ncomponent = \"web.wasm\"\n";
    std::fs::write(folder.join("cofferdam.toml"), config).unwrap();
    let inspect = ["inspect", "--web", "--config", "cofferdam.toml"];
    let (_inspecting, mut pages) = Inspecting::start(&mut command(folder, &inspect));
    assert!(pages.get("/").contains("To log in, open the address"));
    pages.log_in();
    assert!(pages.get("/").contains("Nothing is recorded yet."));

    let fetch = ["call", "fetch", "url=https://api.example.com/x", "-c", "cofferdam.toml"];
    let called = ran(command(folder, &[&fetch[..], &["--record"]].concat()).output().unwrap());
    assert_eq!(called.code, 1, "{}", called.stderr);
    let list = pages.get("/");
    assert!(list.contains(">fetch<"), "{list}");
    let call = pages.get(&path_of_call(&list));
    assert!(call.contains("&quot;url&quot;: &quot;https://api.example.com/x&quot;"), "{call}");
    assert!(call.contains("At fault: <strong>the grant</strong>"), "{call}");
    let grant = "data-copy=\"cofferdam grant web 'http:GET https://api.example.com/x' --config \
                 cofferdam.toml\"";
    assert!(call.contains(grant), "{call}");
    // The key is used up, and the one of another inspector is not for this one.
    let (_other, other) = Inspecting::start(&mut command(folder, &inspect));
    for key in [&pages.key, &other.key] {
        let answer = pages.post_key(key);
        assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    }
}

/// Returns the text of an element with an id, without escapes of HTML.
fn text_of(page: &str, id: &str) -> String {
    let (_, rest) = page.split_once(&format!("<pre id=\"{id}\"")).unwrap();
    let (_, rest) = rest.split_once("<bdi>").unwrap();
    let text = rest.split("</bdi>").next().unwrap();
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

#[test]
fn a_recorded_call_is_made_again_evaluated_and_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::copy(guest("text"), folder.join("text.wasm")).unwrap();
    let config = "[records]\ndirectory = \"log\"\npayloads = \"local\"\nreplay = \"all\"\n\
                  [plugins.text]\ncomponent = \"text.wasm\"\n";
    std::fs::write(folder.join("my tools.toml"), config).unwrap();
    let call = ["call", "word_count", "text=it's $(a) b", "-c", "my tools.toml", "--record"];
    let called = ran(command(folder, &call).output().unwrap());
    assert_eq!(called.code, 0, "{}", called.stderr);
    let inspect = ["inspect", "--web", "--config", "my tools.toml"];
    let (_inspecting, mut pages) = Inspecting::start(&mut command(folder, &inspect));
    pages.log_in();
    let path = path_of_call(&pages.get("/"));
    let page = pages.get(&path);

    // The command is typed into a shell as it is.
    let again = text_of(&page, "as-command");
    let script = again.replacen("cofferdam", &binary().display().to_string(), 1);
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).env("HOME", folder.join("home"));
    let shell = shell.args(["-c", &script]).current_dir(folder).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&shell.stdout).trim(), called.stdout.trim(), "{again}");

    // The case is a line of an evaluation.
    std::fs::write(folder.join("cases.jsonl"), text_of(&page, "as-case") + "\n").unwrap();
    let model = [
        json!({"calls": [{"tool": "word_count", "arguments": {"text": "it's $(a) b", "min_length": 1}}]}),
        json!({"text": "Three."}),
    ];
    let lines = model.map(|line| line.to_string()).join("\n");
    std::fs::write(folder.join("model.jsonl"), lines).unwrap();
    let eval = ["eval", "cases.jsonl", "--model", "script:model.jsonl", "-p", "text.wasm"];
    let passed = ran(command(folder, &eval).output().unwrap());
    assert_eq!(passed.code, 0, "{}{}", passed.stdout, passed.stderr);

    let (_, token) = page.split_once("data-token=\"").unwrap();
    let token = format!("x-cofferdam: {}\r\n", token.split('"').next().unwrap());
    for component in ["recorded", "configured"] {
        let id = path.trim_start_matches("/call/");
        let order = json!({"call": id, "component": component});
        let answer = pages.post("/replay", &token, &order);
        assert!(answer.contains(r#""outcome":"identical""#), "{component}: {answer}");
        assert!(pages.post("/replay", "", &order).starts_with("HTTP/1.1 403"));
    }
    let loaded = std::iter::repeat_with(|| pages.get("/grants")).find(|page| {
        std::thread::sleep(Duration::from_millis(20));
        !page.contains("data-reload")
    });
    let grants = loaded.unwrap();
    assert!(grants.contains("was called 1 time"), "{grants}");
    assert!(grants.contains("cofferdam revoke text random --config 'my tools.toml'"), "{grants}");
}

#[test]
fn a_workflow_that_waits_is_a_graph_with_the_command_that_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let workflow = "name: review\nagents:\n  writer: {model: 'script:writer.jsonl'}\n\
        people:\n  approve: {prompt: Print this?}\nstart: writer\n\
        edges:\n  - {from: writer, to: approve}\noutput-from: [approve]\n";
    std::fs::write(folder.join("w.yaml"), workflow).unwrap();
    std::fs::write(folder.join("writer.jsonl"), json!({"text": "Tides."}).to_string()).unwrap();
    let run = ["workflow", "run", "w.yaml", "tides", "--checkpoints", "runs"];
    let paused = ran(command(folder, &run).output().unwrap());
    assert_eq!(paused.code, 4, "{}", paused.stderr);
    let inspect = ["inspect", "--web", "--workflow", "w.yaml", "--checkpoints", "runs"];
    let (_inspecting, mut pages) = Inspecting::start(&mut command(folder, &inspect));
    pages.log_in();
    let list = pages.get("/workflows");
    assert!(list.contains("waits for the user at <bdi>approve</bdi>"), "{list}");
    let (_, run) = list.split_once("href=\"/workflow?").unwrap();
    let run = run.split('"').next().unwrap().replace("&amp;", "&");
    let page = pages.get(&format!("/workflow?{run}"));
    assert!(page.contains("<title>approve: waits for the user</title>"), "{page}");
    assert!(page.contains("Print this?"), "{page}");
    let (_, go_on) = page.split_once("data-copy=\"cofferdam ").unwrap();
    let go_on: Vec<_> = go_on.split('"').next().unwrap().split(' ').collect();
    let answer = go_on.last().unwrap().replace("TEXT", "yes");
    let go_on = [&go_on[..go_on.len() - 1], &[answer.as_str()]].concat();
    let ended = ran(command(folder, &go_on).output().unwrap());
    assert_eq!(ended.code, 0, "{go_on:?}: {}", ended.stderr);
    // The resumed run has an id of its own.
    let list = pages.get("/workflows");
    assert_eq!(list.matches("href=\"/workflow?").count(), 2, "{list}");
    assert!(list.contains("<td>done</td>"), "{list}");
}

#[test]
fn a_workflow_that_runs_shows_the_executor_that_runs_now() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let workflow = "name: review\n\
        agents:\n  writer: {model: 'script:writer.jsonl', tools: [sleep]}\n\
        people:\n  topic: {prompt: Which topic?}\n  approve: {prompt: Print this?}\nstart: topic\n\
        edges:\n  - {from: topic, to: writer}\n  - {from: writer, to: approve}\n\
        output-from: [approve]\n";
    std::fs::write(folder.join("w.yaml"), workflow).unwrap();
    let model = [
        json!({"calls": [{"tool": "sleep", "arguments": {"ms": 3000}}]}),
        json!({"text": "Tides."}),
    ];
    let model = model.map(|line| line.to_string()).join("\n");
    std::fs::write(folder.join("writer.jsonl"), model).unwrap();
    let crash = guest("crash").display().to_string();
    let run = ["workflow", "run", "w.yaml", "x", "--plugin", &crash, "--checkpoints", "runs"];
    let mut running = command(folder, &[&run[..], &["--inspector=approve"]].concat());
    let mut running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(running.stderr.take().unwrap()).lines();
    let mut printed = errors.by_ref().map_while(Result::ok);
    let address = printed.find(|line| line.contains("within five minutes: ")).unwrap();
    let rest = std::thread::spawn(move || errors.map_while(Result::ok).collect::<Vec<_>>());
    let mut pages = PageClient::new(&address);
    pages.log_in();
    let prompt = pages.waiting();
    let page = pages.get("/workflow?name=review&run=this-process");
    assert!(page.contains("<title>topic: waits for the user</title>"), "{page}");
    let mut events = pages.open("GET /live/run?name=review&run=this-process", "", "");
    read_until(&mut events, r#""words":"waits for the user at ","names":"topic""#);
    let answer =
        |text: &str| json!({"action": "send", "content": json!({"answer": text}).to_string()});
    assert!(pages.answer(&prompt, answer("tides")).starts_with("200 "));
    read_until(&mut events, r#"{"words":"runs ","names":"writer"}"#);
    let list = pages.get("/workflows");
    assert!(list.contains(">in this process</a>"), "{list}");
    read_until(&mut events, r#""words":"waits for the user at ","names":"approve""#);
    // The checkpoints of the same run say as much, except for what runs.
    let page = pages.get("/workflow?name=review&run=this-process");
    assert!(page.contains("<title>writer: ran 1 time</title>"), "{page}");
    assert!(page.contains("-000003</bdi></code>"), "{page}");
    assert!(pages.answer(&pages.waiting(), answer("yes")).starts_with("200 "));
    let output = running.wait_with_output().unwrap();
    let rest = rest.join().unwrap().join("\n");
    assert_eq!(output.status.code(), Some(0), "{rest}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "yes\n", "{rest}");
}

#[test]
fn a_server_shows_its_calls_and_calls_its_tools() {
    let home = tempfile::tempdir().unwrap();
    let mut serving = wire::command(&["text"], &["--inspector"]);
    let mut pipe = Pipe::of(serving.env("HOME", home.path()));
    let mut pages = PageClient::new(&pipe.has_said("inspector, once and within five minutes: "));
    pages.log_in();
    pipe.call("word_count", json!({"text": "a b"}));
    assert!(pages.get("/tools").contains("href=\"/tool?name=word_count\""));
    let form = pages.get("/tool?name=word_count");
    assert!(form.contains("data-kind=\"text\" data-name=\"text\""), "{form}");
    let (_, token) = form.split_once("data-token=\"").unwrap();
    let token = format!("x-cofferdam: {}\r\n", token.split('"').next().unwrap());
    let trial =
        json!({"tool": "word_count", "arguments": r#"{"text":"a b c"}"#, "is_dry_run": false});
    let answer = pages.post("/try", &token, &trial);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let result: Value = serde_json::from_str(body).unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{answer}");
    assert_eq!(result["outcome"], "ok", "{result}");
    assert!(result["text"].as_str().unwrap().contains("\"words\":3"), "{result}");
    let health = pages.get("/health");
    assert!(health.contains("Permits in use</th><td class=\"number\">0 of 64"), "{health}");
    assert!(pages.get("/grants").contains("random numbers"));
    // Without the token, nothing is called.
    assert!(pages.post("/try", "", &trial).starts_with("HTTP/1.1 403"));
    // The call is in the log, with the page that the answer names.
    let path = result["page"].as_str().unwrap();
    let found = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(50));
        pages.get(path).contains("<h1><bdi>word_count</bdi>")
    });
    assert!(found, "{path} is not in the log");
    let listed = pages.get("/?session=inspector");
    assert_eq!(listed.matches("<tr data-id=").count(), 1, "{listed}");
    let (code, errors, _) = pipe.end();
    assert_eq!(code, Some(0), "{errors:?}");
}

#[test]
fn the_inspector_listens_on_this_machine_only() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| ran(command(folder.path(), arguments).output().unwrap());
    let refused = run(&["inspect", "--web", "0.0.0.0:8080"]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(
        refused.stderr.contains(
            "error: 0.0.0.0:8080 can be reached from other machines; listen on 127.0.0.1 or [::1]"
        ),
        "{}",
        refused.stderr
    );
    assert_eq!(run(&["inspect"]).code, 2);
    assert_eq!(run(&["inspect", "--directory", "log", "web.wasm"]).code, 2);
}

/// Folder with a configuration that asks before a call, and a log.
fn folder_that_asks() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let config = "[records]\nenabled = true\ndirectory = \"log\"\n[agent]\n\
                  approvals = [{ effect = \"ask\", tool = \"word_count\" }]\n";
    std::fs::write(folder.path().join("c.toml"), config).unwrap();
    folder
}

fn serve(folder: &Path, inspector: &str) -> (Pipe, PageClient) {
    let mut serving = wire::command(&["text"], &["--config", "c.toml", inspector]);
    let pipe = Pipe::of(serving.env("HOME", folder.join("home")).current_dir(folder));
    let mut pages = PageClient::new(&pipe.has_said("inspector, once and within five minutes: "));
    pages.log_in();
    (pipe, pages)
}

/// Returns who decided, and what, in the order of the log.
fn decisions(folder: &Path) -> Vec<String> {
    let events = ["log", "events", "--kind", "approval", "--json", "--directory", "log"];
    let events = ran(command(folder, &events).output().unwrap()).stdout;
    let decided = |line: &str| {
        let event: Value = serde_json::from_str(line).unwrap();
        let word = |key: &str| event["event"][key].as_str().unwrap().to_owned();
        format!("{} by {}", word("decision"), word("by"))
    };
    events.lines().map(decided).collect()
}

#[test]
fn approvals_are_answered_by_whoever_is_first() {
    let folder = folder_that_asks();
    let (mut pipe, pages) = serve(folder.path(), "--inspector=approve");
    let text = json!({"text": "a b"});
    let approve = json!({"action": "approve"});

    // A client that cannot ask its user: the page answers.
    pipe.send(wire::call("alone", "word_count", &text).to_string().as_bytes());
    let prompt = pages.waiting();
    for part in ["A rule of the configuration asks", "wire 1 as local", "&quot;a b&quot;"] {
        assert!(prompt.1.contains(part), "{part} is not in {}", prompt.1);
    }
    assert!(pages.answer(&prompt, approve.clone()).starts_with("200 "));
    let (_, done) = pipe.until(&json!("alone"));
    assert_eq!(done["result"]["structuredContent"]["words"], 2, "{done}");

    // A call that is canceled waits no longer.
    pipe.send(wire::call("gone", "word_count", &text).to_string().as_bytes());
    let prompt = pages.waiting();
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
                        "params": {"requestId": "gone"}});
    pipe.send(cancel.to_string().as_bytes());
    pages.waits_for_nothing();
    let late = pages.answer(&prompt, approve.clone());
    assert!(late.starts_with("409 ") && late.contains("because its call ended"), "{late}");

    // A client that comes back with an answer, after the page and before it.
    let allows = json!({"cofferdam.approval": {"action": "accept", "content": {"allow": true}}});
    let question = pipe.ask(&asked("1", "word_count", text.clone(), None));
    let deny = json!({"action": "deny", "reason": "not this one"});
    assert!(pages.answer(&pages.waiting(), deny).starts_with("200 "));
    let back = asked("2", "word_count", text.clone(), Some((&question, allows.clone())));
    let denied = pipe.ask(&back).to_string();
    assert!(denied.contains("declined the call to 'word_count': not this one"), "{denied}");
    let question = pipe.ask(&asked("3", "word_count", text.clone(), None));
    let prompt = pages.waiting();
    let done = pipe.ask(&asked("4", "word_count", text, Some((&question, allows))));
    assert_eq!(done["result"]["structuredContent"]["words"], 2, "{done}");
    let late = pages.answer(&prompt, approve);
    assert!(late.starts_with("409 ") && late.contains("answered by the client"), "{late}");

    assert_eq!(pipe.end().0, Some(0));
    let expected = ["once by inspector", "denied by inspector", "once by local"];
    assert_eq!(decisions(folder.path()), expected);
}

#[test]
fn a_request_to_the_client_is_withdrawn_when_the_page_answers() {
    let folder = folder_that_asks();
    let (mut pipe, pages) = serve(folder.path(), "--inspector=approve");
    greet(&mut pipe);
    let call = |id: u32| {
        let params = json!({"name": "word_count", "arguments": {"text": "a b"}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    pipe.send(call(2).to_string().as_bytes());
    let prompt = pages.waiting();
    assert!(pages.answer(&prompt, json!({"action": "approve"})).starts_with("200 "));
    let (before, done) = pipe.until(&json!(2));
    assert_eq!(done["result"]["structuredContent"]["words"], 2, "{done}");
    let asked = before.iter().find(|sent| sent["method"] == "elicitation/create").unwrap();
    let withdrawn = before.iter().find(|sent| sent["method"] == "notifications/cancelled").unwrap();
    assert_eq!(withdrawn["params"]["requestId"], asked["id"], "{before:?}");
    assert_eq!(withdrawn["params"]["reason"], "approved in the inspector");
    // An answer that comes too late is no answer to the next question.
    let late = json!({"jsonrpc": "2.0", "id": asked["id"],
                      "result": {"action": "accept", "content": {"allow": true}}});
    pipe.send(call(3).to_string().as_bytes());
    let prompt = pages.waiting();
    pipe.send(late.to_string().as_bytes());
    assert!(pages.answer(&prompt, json!({"action": "deny"})).starts_with("200 "));
    assert!(pipe.until(&json!(3)).1.to_string().contains("declined"));
}

#[test]
fn a_question_of_a_tool_is_answered_for_a_client_that_cannot_ask() {
    let folder = tempfile::tempdir().unwrap();
    let flags = ["--allow", "ask:form", "--inspector=approve"];
    let mut serving = wire::command(&["mcp_conformance"], &flags);
    let mut pipe = Pipe::of(serving.env("HOME", folder.path()));
    let mut pages = PageClient::new(&pipe.has_said("inspector, once and within five minutes: "));
    pages.log_in();
    let tool = "test_input_required_result_elicitation";
    pipe.send(wire::call("ask", tool, &json!({})).to_string().as_bytes());
    let prompt = pages.waiting();
    assert!(prompt.1.contains(&format!("Question of <bdi>{tool}</bdi>")), "{}", prompt.1);
    let wrong = json!({"action": "send", "content": r#"{"nick":"Ada"}"#});
    let effect = pages.answer(&prompt, wrong);
    assert!(effect.starts_with("422 ") && effect.contains("\"path\":\"name\""), "{effect}");
    let answer = json!({"action": "send", "content": r#"{"name":"Ada"}"#});
    assert!(pages.answer(&prompt, answer).starts_with("200 "));
    assert!(pipe.until(&json!("ask")).1.to_string().contains("Hello, Ada!"));
    // A tool can do without an answer.
    pipe.send(wire::call("no", tool, &json!({})).to_string().as_bytes());
    assert!(pages.answer(&pages.waiting(), json!({"action": "decline"})).starts_with("200 "));
    let declined = pipe.until(&json!("no")).1.to_string();
    assert!(!declined.contains("Ada"), "{declined}");
}

#[test]
fn without_the_right_the_client_answers_alone() {
    let folder = folder_that_asks();
    let (mut pipe, pages) = serve(folder.path(), "--inspector");
    let text = json!({"text": "a b"});
    let refused = pipe.call("word_count", text.clone()).to_string();
    assert!(refused.contains("has to be approved by a person"), "{refused}");
    pipe.ask(&asked("1", "word_count", text, None));
    let prompt = pages.waiting();
    assert!(prompt.1.contains("can only be seen here"), "{}", prompt.1);
    assert!(pages.answer(&prompt, json!({"action": "approve"})).starts_with("403 "));
}
