//! The binary in a cluster: workers, and gateways that speak MCP, on a real NATS server. Without
//! `COFFERDAM_NATS_SERVER` these tests report that they are skipped; `cargo xtask nats` installs the
//! server.

mod labels;
mod records;
mod sessions;
mod tasks;

use std::io::Read as _;
use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache, unused_port};
use serde_json::{Value, json};

use crate::kubernetes::objects;
use crate::monitoring::{self, get};
use crate::script;
use crate::serve_changes::asked;
use crate::wire::{ANSWER_MAX, Http, LEGACY, Pipe, Signal, command, request, send_signal};

/// NATS server that runs until it is dropped.
pub(crate) struct Nats {
    process: Child,
    address: String,
}

impl Nats {
    pub(crate) fn start(arguments: &[&str]) -> Option<Self> {
        // Without a server, `cargo xtask test` says that these tests are skipped.
        let program = std::env::var_os("COFFERDAM_NATS_SERVER")?;
        let port = unused_port();
        let mut command = Command::new(program);
        command.args(["-a", "127.0.0.1", "-p", &port.to_string()]).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let address = format!("127.0.0.1:{port}");
        let mut server = Self { process: command.spawn().unwrap(), address };
        let started = Instant::now();
        let greets = || {
            let mut greeting = [0; 4];
            let connected =
                TcpStream::connect((Ipv4Addr::LOCALHOST, port)).and_then(|mut stream| {
                    stream.set_read_timeout(Some(Duration::from_secs(1)))?;
                    stream.read_exact(&mut greeting)
                });
            connected.is_ok() && greeting == *b"INFO"
        };
        while !greets() {
            assert!(server.process.try_wait().unwrap().is_none(), "the server has ended");
            assert!(started.elapsed() < ANSWER_MAX, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(server)
    }

    /// Starts a server with JetStream, which keeps its files in `folder`.
    fn with_jetstream(folder: &Path) -> Option<Self> {
        Self::start(&["-js", "-sd", folder.to_str().unwrap()])
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// Starts a worker with plugins and waits until it is ready.
    fn worker(&self, plugins: &[&str]) -> Pipe {
        let mut command = worker(&self.url());
        for plugin in plugins {
            command.arg("--plugin").arg(guest(plugin));
        }
        let worker = Pipe::of(&mut command);
        worker.has_said("is ready with");
        worker
    }

    /// Starts a worker with a plugin that may show forms, and nothing else.
    fn asking_worker(&self, folder: &Path) -> Pipe {
        let config = folder.join("worker.toml");
        let component = guest("stores");
        let plugin =
            format!("[plugins.stores]\ncomponent = {component:?}\ngrants.ask = [\"form\"]\n");
        std::fs::write(&config, plugin).unwrap();
        let worker = Pipe::of(worker(&self.url()).arg("--config").arg(config));
        worker.has_said("is ready with");
        worker
    }

    pub(crate) fn gateway(&self) -> Pipe {
        Pipe::of(&mut command(&[], &["--cluster", &self.url()]))
    }

    /// Starts a gateway over HTTP that shares results with others.
    fn sharing_gateway(&self, config: &str) -> Http {
        let cluster = ["--cluster", &self.url(), "--cluster-results", "jetstream"];
        Http::of_config(&[], config, &cluster)
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

pub(crate) fn worker(servers: &str) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache());
    command.args(["worker", "--no-record", "--cluster", servers]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Returns the part of a result that does not depend on the machine.
fn content(answer: &Value) -> Value {
    let result = &answer["result"];
    json!([result["content"], result["structuredContent"], result["isError"]])
}

#[test]
fn a_gateway_answers_like_a_server_with_the_plugins() {
    let Some(nats) = Nats::start(&[]) else { return };
    let _worker = nats.worker(&["served", "text"]);
    let mut gateway = nats.gateway();
    let mut local = Pipe::start(&["served", "text"], &[]);
    let sorted = |listed: Value| {
        let mut tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools.sort_by_key(|tool| tool["name"].to_string());
        tools
    };
    let listed = sorted(gateway.modern("tools/list", json!({})));
    assert_eq!(listed, sorted(local.modern("tools/list", json!({}))));
    assert!(listed.len() > 4, "{listed:?}");
    for (tool, arguments) in [
        ("word_count", json!({"text": "to be or not to be"})),
        ("echo", json!({"message": "grüße", "number": "7"})),
        ("echo", json!({"message": 5, "number": []})),
        ("refuse", json!({})),
        ("count", json!({"steps": 3, "pause_ms": 1})),
    ] {
        let (remote, own) =
            (gateway.call(tool, arguments.clone()), local.call(tool, arguments.clone()));
        assert_eq!(content(&remote), content(&own), "{tool} {arguments}");
    }
}

#[test]
fn a_client_names_the_effect_of_a_call() {
    let Some(nats) = Nats::start(&[]) else { return };
    let _worker = nats.worker(&["served"]);
    let mut gateway = nats.gateway();
    let mut call = |id: &str, message: &str, key: Value| {
        let arguments = json!({"message": message});
        let mut request =
            request(id, "tools/call", json!({"name": "echo", "arguments": arguments}));
        request["params"]["_meta"]["cofferdam/idempotencyKey"] = key;
        gateway.ask(&request)
    };
    let first = call("1", "a", json!("k"));
    assert_eq!(first["result"]["isError"], false, "{first}");
    assert_eq!(content(&call("2", "a", json!("k"))), content(&first));
    let other = call("3", "b", json!("k"))["result"].to_string();
    assert!(
        other.contains("IdempotencyConflict") && other.contains("Nothing was called"),
        "{other}"
    );
    for (id, invalid) in [("4", json!("")), ("5", json!(7)), ("6", json!("x".repeat(129)))] {
        let refused = call(id, "a", invalid);
        assert_eq!(
            refused["error"]["message"],
            "expected `cofferdam/idempotencyKey` to be a string of 1 to 128 characters"
        );
    }
}

/// Returns the names and tokens of two callers, and the configuration that admits them.
fn callers() -> ([(&'static str, String); 2], String) {
    let callers = ["ann", "bob"].map(|name| (name, cofferdam_mcp::new_token().unwrap()));
    let tables = callers.iter().map(|(name, token)| {
        format!("[serve.tokens.{name}]\ndigest = \"{}\"\n", cofferdam_mcp::digest(token))
    });
    let config = tables.collect();
    (callers, config)
}

#[test]
fn a_key_belongs_to_its_caller_at_all_gateways() {
    let folder = tempfile::tempdir().unwrap();
    let Some(nats) = Nats::with_jetstream(folder.path()) else { return };
    let _worker = nats.worker(&["served"]);
    let ([ann, bob], config) = callers();
    let [mut one, mut other] = [(); 2].map(|()| nats.sharing_gateway(&config));
    let call = |gateway: &mut Http, (_, token): &(&str, String), message: &str| {
        let params = json!({"name": "echo", "arguments": {"message": message}});
        let mut request = request("1", "tools/call", params);
        request["params"]["_meta"]["cofferdam/idempotencyKey"] = json!("order-7");
        gateway.token.clone_from(token);
        let answer = gateway.ask(&request);
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.body
    };
    let is_conflict = |answer: String| answer.contains("IdempotencyConflict");
    let first = call(&mut one, &ann, "a");
    assert!(first.contains("echoed"), "{first}");
    assert!(is_conflict(call(&mut other, &ann, "b")));
    // The key of another caller is another key.
    let own = call(&mut other, &bob, "b");
    assert!(own.contains("echoed"), "{own}");
    assert!(is_conflict(call(&mut one, &bob, "a")));
    drop(one);
    assert!(call(&mut other, &ann, "a").contains("echoed"));
    assert!(is_conflict(call(&mut other, &ann, "b")));
}

#[test]
fn the_permissions_in_the_manifests_are_enough() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let text = objects("nats.yaml")[0]["data"]["nats.conf"].as_str().unwrap().to_owned();
    let without_tls: Vec<_> = text.lines().filter(|line| !line.starts_with("tls ")).collect();
    let text = without_tls
        .join("\n")
        .replace("\"/data\"", &format!("{:?}", path("data")))
        .replace("$GATEWAY_PASSWORD", "\"g\"")
        .replace("$WORKER_PASSWORD", "\"w\"");
    std::fs::write(path("nats.conf"), text).unwrap();
    std::fs::write(path("gateway"), "gateway:g").unwrap();
    std::fs::write(path("worker"), "worker:w").unwrap();
    let Some(nats) = Nats::start(&["-c", &path("nats.conf")]) else { return };
    let mut command_of_worker = worker(&nats.url());
    command_of_worker.args(["--cluster-credentials", &path("worker"), "--plugin"]);
    let worker = Pipe::of(command_of_worker.arg(guest("served")));
    worker.has_said("is ready with");
    let cluster = ["--cluster", &nats.url(), "--cluster-results", "jetstream"];
    let mut gateway =
        Pipe::of(command(&[], &cluster).args(["--cluster-credentials", &path("gateway")]));
    let mut call = |id: &str, message: &str| {
        let params = json!({"name": "echo", "arguments": {"message": message}});
        let mut request = request(id, "tools/call", params);
        request["params"]["_meta"]["cofferdam/idempotencyKey"] = json!("k");
        gateway.ask(&request)["result"].clone()
    };
    let first = call("1", "a");
    assert_eq!(first["isError"], false, "{first}");
    let other = call("2", "b").to_string();
    assert!(other.contains("IdempotencyConflict"), "{other}");
}

/// Seed of a user, which is no secret: it is in the documentation of async-nats.
const SEED: &str = "SUANQDPB2RUOE4ETUA26CNX7FUKE5ZZKFCQIIW63OX225F2CO7UEXTM7ZY";
/// Public key of [`SEED`].
const PUBLIC_KEY: &str = "UAMMBNV2EYR65NYZZ7IAK5SIR5ODNTTERJOBOF4KJLMWI45YOXOSWULM";

#[test]
fn a_worker_and_a_gateway_have_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let users = format!("authorization {{ users = [ {{ nkey: {PUBLIC_KEY} }} ] }}\n");
    std::fs::write(path("nats.conf"), users).unwrap();
    std::fs::write(path("nkey"), format!("{SEED}\n")).unwrap();
    let (damaged, _) = SEED.split_at(57);
    std::fs::write(path("damaged"), damaged).unwrap();
    let Some(nats) = Nats::start(&["-c", &path("nats.conf")]) else { return };
    let with_key = |name: &str| {
        let mut worker = worker(&nats.url());
        worker.args(["--cluster-credentials", &path(name), "--plugin"]).arg(guest("served"));
        worker
    };
    let worker = Pipe::of(&mut with_key("nkey"));
    worker.has_said("is ready with");
    let cluster = ["--cluster", &nats.url(), "--cluster-credentials", &path("nkey")];
    let mut gateway = Pipe::of(&mut command(&[], &cluster));
    let answer = gateway.call("echo", json!({"message": "a"}));
    assert_eq!(answer["result"]["isError"], false, "{answer}");

    let (code, line) = mistake(with_key("damaged"));
    assert_eq!(code, Some(2));
    let cause = "the nkey seed is damaged: expected 58 characters that end with their checksum";
    assert!(line.contains(cause) && !line.contains("PB2RUOE4"), "{line}");
}

const FORM: &str =
    r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

/// Returns arguments with which `stores` asks its user, and the client's model without a grant.
fn asking() -> Value {
    let steps: &[&[&str]] =
        &[&["can_ask"], &["ask", "form", "Who?", FORM], &["ask", "sample", r#"{"maxTokens":5}"#]];
    serde_json::from_str(&script::arguments(steps)).unwrap()
}

/// Asserts that the tool has the user's answer, and no more than its worker grants.
fn has_answer(answer: &Value) {
    let text = answer["result"]["content"][0]["text"].as_str();
    let answers = script::answers(text.unwrap_or_else(|| panic!("{answer}")));
    assert_eq!(answers[0], "[true, false, false]");
    assert!(answers[1].contains("Accepted") && answers[1].contains("Ada"), "{answers:?}");
    assert!(answers[2].starts_with("Error::Denied"), "{answers:?}");
}

#[test]
fn a_tool_asks_the_user_of_a_client_without_a_handshake() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let _worker = nats.asking_worker(folder.path());
    let mut gateway = nats.gateway();
    let question = gateway.ask(&asked("first", "stores", asking(), None));
    assert_eq!(question["result"]["resultType"], "input_required", "{question}");
    let questions = question["result"]["inputRequests"].as_object().unwrap();
    let (key, form) = questions.iter().next().unwrap();
    assert_eq!((questions.len(), &form["params"]["message"]), (1, &json!("Who?")));
    let responses = json!({key: {"action": "accept", "content": {"name": "Ada"}}});
    has_answer(&gateway.ask(&asked("second", "stores", asking(), Some((&question, responses)))));
}

#[test]
fn a_tool_asks_the_user_of_a_client_with_a_handshake() {
    let Some(nats) = Nats::start(&[]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let _worker = nats.asking_worker(folder.path());
    let mut gateway = nats.gateway();
    // The client can be asked for messages of its model, and the worker grants only forms.
    let params = json!({
        "protocolVersion": LEGACY,
        "capabilities": {"elicitation": {}, "sampling": {}},
        "clientInfo": {"name": "wire", "version": "1"},
    });
    gateway.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    gateway.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let params = json!({"name": "stores", "arguments": asking()});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    gateway.send(call.to_string().as_bytes());
    let is_question = |message: &Value| message["method"] == "elicitation/create";
    let question = loop {
        let message = gateway.next();
        if is_question(&message) {
            break message;
        }
        assert!(message.get("method").is_some(), "the question was not asked: {message}");
    };
    assert_eq!(question["params"]["message"], "Who?", "{question}");
    let result = json!({"action": "accept", "content": {"name": "Ada"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": result});
    gateway.send(answer.to_string().as_bytes());
    let (before, answer) = gateway.until(&json!(1));
    assert!(!before.iter().any(is_question), "{before:?}");
    has_answer(&answer);
}

#[test]
fn workers_come_and_go_while_clients_call() {
    let Some(nats) = Nats::start(&[]) else { return };
    let mut gateway = nats.gateway();
    gateway.has_said("warning: no worker answered");
    let first = nats.worker(&["served"]);
    let started = Instant::now();
    while gateway.call("echo", json!({"message": "a"}))["result"]["isError"] != false {
        assert!(started.elapsed() < ANSWER_MAX, "the tools of the worker are not found");
        std::thread::sleep(Duration::from_millis(100));
    }
    let _second = nats.worker(&["served"]);
    for number in 0..60 {
        if number == 20 {
            send_signal(first.pid(), Signal::TERM);
        }
        let counted = gateway.call("count", json!({"steps": 1, "pause_ms": 5}));
        assert_eq!(counted["result"]["isError"], false, "{number}: {counted}");
    }
    first.has_said("ending; calls that still run:");
    assert_eq!(first.end().0, Some(0));
}

/// Calls `read` until it returns a value that `is_expected`, and returns that.
fn eventually(read: impl Fn() -> String, is_expected: impl Fn(&str) -> bool) -> String {
    let started = Instant::now();
    loop {
        let text = read();
        if is_expected(&text) {
            return text;
        }
        assert!(started.elapsed() < ANSWER_MAX, "{text}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_worker_shows_its_health_and_counts() {
    let Some(nats) = Nats::start(&[]) else { return };
    let monitored = |address: &str| {
        let mut worker = worker(&nats.url());
        worker.args(["--calls", "3", "--monitoring", address, "--plugin"]).arg(guest("served"));
        worker
    };
    let worker = Pipe::of(&mut monitored("127.0.0.1:0"));
    let address = monitoring::address(&worker);
    worker.has_said("is ready with");
    let health = get(address, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 OK"), "{health}");
    assert!(health.ends_with("\r\n\r\ntaking calls\n"), "{health}");
    let metrics = || get(address, "/metrics");
    let has = |text: &str, lines: &[&str]| lines.iter().all(|line| text.contains(line));
    let idle = metrics();
    let gauges = [
        "cofferdam_worker_connected 1\n",
        "cofferdam_worker_draining 0\n",
        "cofferdam_worker_calls 0\n",
        "cofferdam_worker_calls_max 3\n",
    ];
    assert!(has(&idle, &gauges) && has(&idle, &["text/plain; version=0.0.4"]), "{idle}");
    let counted = "cofferdam_calls_total{plugin=\"served\",tool=\"echo\",outcome=\"ok\"} 1\n";
    assert!(!has(&idle, &[counted]), "{idle}");

    let mut gateway = nats.gateway();
    gateway.call("echo", json!({"message": "a"}));
    let after = metrics();
    assert!(has(&after, &[counted]) && has(&after, &gauges), "{after}");
    assert!(get(address, "/").starts_with("HTTP/1.1 404"));

    let (code, line) = mistake(monitored(&address.to_string()));
    let taken = format!("error: cannot listen on {address}: Address already in use");
    assert!(code == Some(5) && line.starts_with(&taken), "{code:?} {line}");

    // A worker that drains is not healthy, and still answers.
    let params = json!({"name": "count", "arguments": {"steps": 3, "pause_ms": 1000}});
    gateway.send(request("long", "tools/call", params).to_string().as_bytes());
    eventually(metrics, |text| has(text, &["cofferdam_worker_calls 1\n"]));
    send_signal(worker.pid(), Signal::TERM);
    worker.has_said("ending; calls that still run: 1");
    let is_draining = |text: &str| has(text, &["draining: calls that still run: 1\n"]);
    let health = eventually(|| get(address, "/healthz"), is_draining);
    assert!(health.starts_with("HTTP/1.1 503"), "{health}");
    let draining = metrics();
    let running = ["cofferdam_worker_draining 1\n", "cofferdam_calls_in_progress 1\n"];
    assert!(draining.starts_with("HTTP/1.1 200 OK") && has(&draining, &running), "{draining}");
    assert_eq!(gateway.until(&json!("long")).1["result"]["isError"], false);
    assert_eq!(worker.end().0, Some(0));
}

#[test]
fn a_gateway_without_a_connection_is_not_healthy() {
    let Some(nats) = Nats::start(&[]) else { return };
    let _worker = nats.worker(&["served"]);
    let arguments = ["--cluster", &nats.url(), "--monitoring", "127.0.0.1:0"];
    let gateway = Pipe::of(&mut command(&[], &arguments));
    let address = monitoring::address(&gateway);
    let health = get(address, "/healthz");
    assert!(health.starts_with("HTTP/1.1 200 OK"), "{health}");
    assert!(health.contains("\nserving tools of workers: 1 source\n"), "{health}");

    drop(nats);
    let is_unhealthy = |page: &str| page.starts_with("HTTP/1.1 503");
    let health = eventually(|| get(address, "/healthz"), is_unhealthy);
    assert!(health.contains("\ncannot call workers: not connected to NATS\n"), "{health}");
}

#[test]
fn a_worker_that_gets_no_calls_is_not_healthy() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("nats.conf");
    // The subjects of calls are missing.
    let permissions = r#"authorization { users = [ { user: w, password: w, permissions: {
        publish: ["cofferdam.v1.default.in.>"]
        subscribe: ["cofferdam.v1.default.worker.>", "cofferdam.v1.default.catalog"] } } ] }"#;
    std::fs::write(&config, permissions).unwrap();
    let Some(nats) = Nats::start(&["-c", config.to_str().unwrap()]) else { return };
    let url = nats.url().replace("nats://", "nats://w:w@");
    let mut command = worker(&url);
    command.args(["--monitoring", "127.0.0.1:0", "--plugin"]).arg(guest("served"));
    let worker = Pipe::of(&mut command);
    let address = monitoring::address(&worker);
    let is_unhealthy = |part: &'static str| {
        let is_expected = move |page: &str| page.starts_with("HTTP/1.1 503") && page.contains(part);
        eventually(|| get(address, "/healthz"), is_expected);
    };
    is_unhealthy("NATS refuses a subscription; check the permissions");
    assert!(get(address, "/metrics").contains("cofferdam_worker_connected 1\n"));
    drop(nats);
    is_unhealthy("not connected to NATS");
    assert!(get(address, "/metrics").contains("cofferdam_worker_connected 0\n"));
}

/// Returns the exit code and the only line of standard error.
fn mistake(mut command: Command) -> (Option<i32>, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    (output.status.code(), text.trim().to_owned())
}

#[test]
fn mistakes_at_the_start_are_one_line() {
    let gateway = |servers: &str| command(&[], &["--cluster", servers]);
    let with_plugin = |servers: &str| {
        let mut worker = worker(servers);
        worker.arg("--plugin").arg(guest("text"));
        worker
    };
    for start in [gateway, with_plugin] as [fn(&str) -> Command; 2] {
        assert_eq!(
            mistake(start("nats://127.0.0.1:1")),
            (
                Some(4),
                "error: no NATS server answers at 127.0.0.1:1; start one (`nats-server`) or \
                 correct --cluster"
                    .to_owned()
            )
        );
        assert_eq!(
            mistake(start("http://user:secret@127.0.0.1:1")),
            (
                Some(2),
                "error: expected `nats://HOST:PORT` or `tls://HOST:PORT`, found `127.0.0.1:1`"
                    .to_owned()
            )
        );
        let mut tenant = start("nats://127.0.0.1:1");
        tenant.args(["--cluster-tenant", "a.b"]);
        assert_eq!(
            mistake(tenant),
            (
                Some(2),
                "error: invalid tenant: expected 1 to 64 characters from `a-z 0-9 _ -`, found \
                 `a.b`"
                    .to_owned()
            )
        );
    }
    let Some(nats) = Nats::start(&["--user", "u", "--pass", "p"]) else { return };
    let (code, line) = mistake(with_plugin(&nats.url()));
    assert_eq!(code, Some(4));
    assert!(line.contains("refuses the credentials; pass those"), "{line}");
    let nats = Nats::start(&[]).unwrap();
    let jetstream = ["--cluster", &nats.url(), "--cluster-results", "jetstream"];
    let (code, line) = mistake(command(&[], &jetstream));
    assert_eq!(code, Some(4));
    assert!(line.starts_with("error: JetStream is off at 127.0.0.1:"), "{line}");
}
