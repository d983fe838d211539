//! Sessions of older clients over HTTP: questions of calls, and batches.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::wire::{ANSWER_MAX, Http};

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
        let server = Http::of_config(&[], &config, &[]);
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
        let (address, token, body) = (self.server.address, &self.server.token, message.to_string());
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(ANSWER_MAX)).unwrap();
        let session = match self.id.as_str() {
            "" => String::new(),
            id => format!("Mcp-Session-Id: {id}\r\nMCP-Protocol-Version: {}\r\n", self.version),
        };
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Connection: close\r\n{session}Content-Length: {}\r\n\r\n{body}",
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
    for line in stream.lines() {
        let line = line.unwrap();
        let data = line.strip_prefix("data:").map(str::trim).filter(|data| !data.is_empty());
        if let Some(data) = data {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
    None
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
