//! Sessions of older clients over HTTP: streams, questions of calls, the end, and batches.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wire::{ANSWER_MAX, Http, resident_bytes};

/// A session of one client.
struct Session {
    server: Http,
    id: String,
    version: &'static str,
}

impl Session {
    /// Opens a session of a revision, for a client whose user can be asked.
    fn open(version: &'static str) -> Self {
        let config = "[plugins.conformance]\ngrants.ask = [\"form\", \"sample\", \"roots\"]\n";
        let component = cofferdam_tests::guest("mcp_conformance");
        let config = format!("{config}component = {:?}\npin = false\n", component.display());
        Self::at(Http::of_config(&["crash"], &config, &[]), version)
    }

    fn at(server: Http, version: &'static str) -> Self {
        let mut session = Self { server, id: String::new(), version };
        let params = json!({
            "protocolVersion": version,
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "wire", "version": "1"},
        });
        let (head, _) = session.post(&request(0, "initialize", params));
        let id = head.iter().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("mcp-session-id").then(|| value.trim().to_owned())
        });
        session.id = id.unwrap_or_else(|| panic!("there is no session: {head:?}"));
        session.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        session
    }

    /// Posts a message, and returns the lines of the head of the answer and its stream.
    fn post(&self, message: &Value) -> (Vec<String>, BufReader<TcpStream>) {
        self.send("POST", "Content-Type: application/json\r\n", &message.to_string())
    }

    /// Opens the stream of the session, or continues one after an event.
    fn get(&self, last_event: Option<&str>) -> BufReader<TcpStream> {
        let last = last_event.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        self.send("GET", &last, "").1
    }

    fn send(&self, method: &str, more: &str, body: &str) -> (Vec<String>, BufReader<TcpStream>) {
        let (address, token) = (self.server.address, &self.server.token);
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let session = match self.id.as_str() {
            "" => String::new(),
            id => format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {}\r\n", self.version),
        };
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Accept: application/json, text/event-stream\r\nConnection: close\r\n\
             {more}{session}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut stream = BufReader::new(stream);
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            stream.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => return (head, stream),
                line => head.push(line.to_owned()),
            }
        }
    }
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

/// Returns the next message of a stream of events.
fn next(stream: &mut BufReader<TcpStream>) -> Option<Value> {
    next_event(stream).map(|(_, message)| message)
}

/// Returns the next event with a message, with its id.
fn next_event(stream: &mut BufReader<TcpStream>) -> Option<(String, Value)> {
    let (mut message, mut id) = (None, String::new());
    for line in stream.lines() {
        let line = line.unwrap();
        match line.split_once(':') {
            Some(("data", data)) if !data.trim().is_empty() => {
                message = Some(serde_json::from_str(data).unwrap());
            }
            Some(("id", value)) => value.trim().clone_into(&mut id),
            None if message.is_some() => break,
            _ => {}
        }
    }
    message.map(|message| (id, message))
}

/// Returns the CPU time that a process has taken.
fn cpu_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2).map(|tick| tick.parse::<u64>().unwrap());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

/// A client need not open a stream for questions: they come with the answer of their call.
#[test]
fn a_question_is_on_the_stream_of_its_call() {
    let session = Session::open("2025-06-18");
    let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let (_, mut stream) = session.post(&request(1, "tools/call", params));
    let question = next(&mut stream).unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let result = json!({"action": "decline"});
    session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    let answer = next(&mut stream).unwrap();
    assert_eq!(answer["id"], 1, "{answer}");
    assert!(answer["result"]["content"].is_array(), "{answer}");
}

/// A client whose connection breaks before the answer comes back for it, even after the end of the
/// call.
#[test]
fn the_answer_on_a_stream_that_broke_can_be_fetched() {
    let session = Session::open("2025-06-18");
    let params = json!({"name": "test_elicitation", "arguments": {"message": "Who?"}});
    let (_, mut stream) = session.post(&request(1, "tools/call", params));
    let (last, question) = next_event(&mut stream).unwrap();
    drop(stream);
    // A stream of its own does not repeat the question, which is on the stream of the call.
    let _listening = session.get(None);
    let result = json!({"action": "decline"});
    session.post(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result}));
    for _ in 0..2 {
        let mut rest = session.get(Some(&last));
        let answer = next(&mut rest).unwrap();
        assert_eq!(answer["id"], 1, "{answer}");
        assert!(answer["result"]["content"].is_array(), "{answer}");
        assert_eq!(next(&mut rest), None);
    }
}

#[test]
fn the_end_of_a_session_stops_its_calls_at_once() {
    let session = Session::open("2025-06-18");
    let params = json!({"name": "spin", "arguments": {}});
    let (_, mut stream) = session.post(&request(1, "tools/call", params));
    let pid = session.server.pid();
    let is_busy = |span: Duration| {
        let before = cpu_time(pid);
        std::thread::sleep(span);
        cpu_time(pid) - before > span / 4
    };
    let begun = Instant::now();
    while !is_busy(Duration::from_millis(200)) {
        assert!(begun.elapsed() < ANSWER_MAX, "the guest does not run");
    }
    let (head, _) = session.send("DELETE", "", "");
    assert!(head[0].contains(" 202 "), "{head:?}");
    assert_eq!(next(&mut stream), None);
    let ended = Instant::now();
    while is_busy(Duration::from_millis(200)) {
        assert!(ended.elapsed() < Duration::from_secs(3), "the guest runs on");
    }
    let (head, _) = session.send("DELETE", "", "");
    assert!(head[0].contains(" 404 "), "{head:?}");
}

#[test]
fn a_body_that_is_not_a_message_is_answered_with_an_error() {
    let session = Session::open("2025-06-18");
    let many = format!("[{}{{}}]", "{},".repeat(1_200_000));
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"a": "MANY"}});
    let many_values = call.to_string().replace("\"MANY\"", &many);
    let before = resident_bytes(session.server.pid());
    for (body, status, code) in [
        ("no JSON", 400, -32700),
        ("{\"jsonrpc\":", 400, -32700),
        ("{}", 400, -32600),
        (&many, 413, -32600),
        (&many_values, 413, -32600),
    ] {
        let answer = session.server.post("", body.as_bytes());
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((answer.status, &error["error"]["code"]), (status, &json!(code)), "{answer:?}");
        assert_eq!(error["id"], Value::Null, "{answer:?}");
        assert_eq!(answer.body.contains("JSON values"), status == 413, "{answer:?}");
    }
    let added = resident_bytes(session.server.pid()).saturating_sub(before);
    assert!(added < 100 << 20, "{added} more bytes");
}

/// The calls of a batch have run, whatever its other messages are.
#[test]
fn an_invalid_message_does_not_cost_the_answers_of_its_batch() {
    let session = Session::open("2025-03-26");
    let call = json!({"name": "test_simple_text", "arguments": {}});
    let batch = json!([request(1, "tools/call", call), request(2, "tools/call", json!([1]))]);
    let (head, mut stream) = session.post(&batch);
    assert!(head[0].contains(" 200 "), "{head:?}");
    let mut answers: Vec<_> = std::iter::from_fn(|| next(&mut stream)).collect();
    answers.sort_by_key(|answer| answer["id"].as_u64());
    assert_eq!(answers.len(), 2, "{answers:?}");
    assert!(answers[0]["result"]["content"].is_array(), "{answers:?}");
    assert_eq!(
        (&answers[1]["id"], &answers[1]["error"]["code"]),
        (&json!(2), &json!(-32600)),
        "{answers:?}"
    );
}
