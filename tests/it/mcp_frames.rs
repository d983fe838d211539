//! Ten thousand frames made by damaging real traffic, on standard input and over HTTP. The server
//! keeps running, answers with error codes of its protocol, and its memory does not grow.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::wire::{Http, LEGACY, Pipe, call, head_of, request, resident_bytes};

/// Number of frames per transport.
const FRAMES: usize = 10_000;
/// Number of frames between checks that a valid call works.
const ROUND: usize = 250;
/// Maximum growth of the server's memory over the last three quarters of the frames.
const GROWTH_BYTES_MAX: u64 = 24 << 20;
/// Codes of JSON-RPC and MCP for invalid requests. The code of an internal error is not among them.
const CODES: [i64; 8] = [-32700, -32600, -32601, -32602, -32020, -32021, -32022, -32002];

/// Pseudorandom numbers, the same in every run (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, or 0.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.roll() % (end.max(1) as u64)).unwrap()
    }

    fn choose<'t, T>(&mut self, things: &'t [T]) -> &'t T {
        &things[self.below(things.len())]
    }
}

/// Returns messages of a client in sessions of both revisions, and the answers of a server: a peer
/// can send those as well.
fn traffic() -> Vec<Value> {
    let mut pipe = Pipe::start(&["served", "text"], &[]);
    let mut said = vec![
        request("a", "server/discover", json!({})),
        request("b", "tools/list", json!({})),
        request("c", "tools/list", json!({ "cursor": "" })),
        call("d", "echo", &json!({ "message": "grüße", "number": 7 })),
        call("e", "refuse", &json!({})),
        call("f", "word_count", &json!({ "text": "to be or not to be" })),
        call("g", "missing", &json!({ "deep": [[[{ "a": null }]]] })),
        request("h", "prompts/list", json!({})),
        request("i", "resources/read", json!({ "uri": "file:///etc/passwd" })),
        request("j", "tasks/get", json!({ "taskId": "none" })),
    ];
    let mut counting = call("k", "count", &json!({ "steps": 2, "pause_ms": 0 }));
    counting["params"]["_meta"]["progressToken"] = json!(1);
    said.push(counting);
    let answers: Vec<_> = said.iter().map(|frame| pipe.ask(frame)).collect();
    let mut pipe = Pipe::start(&["served", "text"], &[]);
    let info = json!({ "name": "wire", "version": "1" });
    let params =
        json!({ "protocolVersion": LEGACY, "capabilities": { "roots": {} }, "clientInfo": info });
    let old = [
        json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }),
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": { "name": "echo", "arguments": { "message": "x" } } }),
        json!({ "jsonrpc": "2.0", "id": 4, "method": "logging/setLevel", "params": { "level": "debug" } }),
        json!({ "jsonrpc": "2.0", "id": 5, "method": "completion/complete", "params": { "ref": { "type": "ref/prompt", "name": "x" }, "argument": { "name": "a", "value": "b" } } }),
    ];
    let old_answers: Vec<_> = old.iter().map(|frame| pipe.ask(frame)).collect();
    said.extend(old);
    said.extend(answers);
    said.extend(old_answers);
    for notification in [
        "notifications/initialized",
        "notifications/cancelled",
        "notifications/progress",
        "notifications/roots/list_changed",
    ] {
        let params =
            json!({ "requestId": "zzz", "progressToken": 1, "progress": 1, "reason": "no" });
        said.push(json!({ "jsonrpc": "2.0", "method": notification, "params": params }));
    }
    said
}

/// Returns a value that code seldom expects.
fn strange(dice: &mut Dice) -> Value {
    match dice.below(16) {
        0 => Value::Null,
        1 => json!(true),
        2 => json!([]),
        3 => json!({}),
        4 => json!(-1),
        5 => json!(1e308),
        6 => json!(u64::MAX),
        7 => json!(""),
        8 => json!("\u{0}\u{202e}\u{feff}"),
        9 => json!("x".repeat(100_000)),
        10 => (0..100).fold(json!(1), |inner, _| json!([inner])),
        11 => (0..100).fold(json!(1), |inner, _| json!({ "a": inner })),
        12 => json!("../../etc/passwd"),
        13 => json!((0..5_000).collect::<Vec<_>>()),
        14 => Value::Object((0..1_000).map(|n| (format!("k{n}"), json!(n))).collect::<Map<_, _>>()),
        _ => json!("2026-07-28"),
    }
}

/// Returns the number of values in `value`, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// Applies `how` to the value at position `at`, in the order of `count`.
fn change(value: &mut Value, at: &mut usize, how: &mut impl FnMut(&mut Value)) {
    if *at == 0 {
        how(value);
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| change(item, at, how)),
        Value::Object(members) => members.values_mut().for_each(|member| change(member, at, how)),
        _ => {}
    }
}

/// Damages the content or the encoding of a frame.
fn damaged(dice: &mut Dice, traffic: &[Value]) -> Vec<u8> {
    let mut frame = dice.choose(traffic).clone();
    if dice.below(2) == 0 {
        for _ in 0..=dice.below(3) {
            change_meaning(dice, &mut frame);
        }
        return match dice.below(12) {
            0 => json!([frame, frame]).to_string().into_bytes(),
            1 => twice_the_same_key(&frame),
            _ => frame.to_string().into_bytes(),
        };
    }
    let mut bytes = frame.to_string().into_bytes();
    for _ in 0..=dice.below(4) {
        change_bytes(dice, &mut bytes, traffic);
    }
    bytes
}

fn change_meaning(dice: &mut Dice, frame: &mut Value) {
    let mut at = dice.below(count(frame));
    let kind = dice.below(4);
    let new = strange(dice);
    let roll = dice.below(1000);
    change(frame, &mut at, &mut |value| match (kind, &mut *value) {
        (0, Value::Object(members)) if !members.is_empty() => {
            let key = members.keys().nth(roll % members.len()).cloned().unwrap();
            members.remove(&key);
        }
        (1, Value::Object(members)) => {
            members.insert(
                ["id", "method", "params", "result", "error", "_meta", "x"][roll % 7].to_owned(),
                new.clone(),
            );
        }
        (2, Value::String(text)) => text.push_str("/x"),
        _ => *value = new.clone(),
    });
}

fn twice_the_same_key(frame: &Value) -> Vec<u8> {
    let text = frame.to_string();
    let inside = text.trim_start_matches('{').trim_end_matches('}');
    format!("{{{inside},{inside}}}").into_bytes()
}

fn change_bytes(dice: &mut Dice, bytes: &mut Vec<u8>, traffic: &[Value]) {
    let (from, length) = (dice.below(bytes.len()), dice.below(40));
    let to = (from + length).min(bytes.len());
    match dice.below(7) {
        0 => bytes.truncate(from),
        1 => drop(bytes.drain(from..to)),
        2 => {
            let again = bytes[from..to].to_vec();
            bytes.splice(from..from, again);
        }
        3 => {
            let noise: Vec<u8> = (0..length).map(|_| dice.roll().to_le_bytes()[0]).collect();
            bytes.splice(from..to, noise);
        }
        4 => {
            if let Some(byte) = bytes.get_mut(from) {
                *byte ^= 1 << dice.below(8);
            }
        }
        5 => {
            let other = dice.choose(traffic).to_string().into_bytes();
            let part = dice.below(other.len());
            bytes.splice(from..from, other[part..].iter().copied());
        }
        _ => {
            let sign = *dice.choose(b"{}[]\",:\\\0 \r\t\xff\xc0eE+-.0");
            bytes.splice(from..from, std::iter::repeat_n(sign, 1 + length));
        }
    }
}

/// Classifies a message of the server. Panics if the protocol does not allow it.
fn kind(message: &Value) -> String {
    assert_eq!(message["jsonrpc"], "2.0", "{message}");
    if let Some(method) = message["method"].as_str() {
        assert!(method.starts_with("notifications/"), "the server asks something: {message}");
        return method.to_owned();
    }
    if message.get("result").is_some() {
        assert!(message.get("error").is_none() && message.get("id").is_some(), "{message}");
        return "result".to_owned();
    }
    let code = message["error"]["code"]
        .as_i64()
        .unwrap_or_else(|| panic!("no message of a server: {message}"));
    assert!(CODES.contains(&code), "{message}");
    assert!(message["error"]["message"].is_string(), "{message}");
    for path in ["/src/", ".rs", "/home", "/tmp", "panicked"] {
        assert!(!message["error"]["message"].as_str().unwrap().contains(path), "{message}");
    }
    code.to_string()
}

/// Checks the answer to a valid call.
fn check_good(answer: &Value, number: usize) {
    let wanted = json!({ "echoed": { "message": "good", "number": number } });
    assert_eq!(answer["result"]["structuredContent"], wanted, "{answer}");
}

fn good(number: usize) -> Value {
    call(&format!("good-{number}"), "echo", &json!({ "message": "good", "number": number }))
}

fn check_growth(pid: u32, before: Option<u64>) {
    let (before, after) = (before.unwrap(), resident_bytes(pid));
    assert!(after < before + GROWTH_BYTES_MAX, "memory has grown from {before} to {after} bytes");
}

#[test]
fn ten_thousand_damaged_lines_do_not_disturb_a_server_on_standard_input() {
    let traffic = traffic();
    let mut dice = Dice(1);
    let mut pipe = Pipe::start(&["served", "text"], &[]);
    check_good(&pipe.ask(&good(0)), 0);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    let mut before = None;
    for round in 1..=FRAMES / ROUND {
        for _ in 0..ROUND {
            let mut frame = damaged(&mut dice, &traffic);
            // A line feed ends the frame, and the rest would be another one.
            frame.retain(|byte| *byte != b'\n');
            pipe.send(&frame);
        }
        let frame = good(round);
        pipe.send(frame.to_string().as_bytes());
        let (messages, answer) = pipe.until(&frame["id"]);
        check_good(&answer, round);
        for message in &messages {
            *kinds.entry(kind(message)).or_default() += 1;
        }
        if round == FRAMES / ROUND / 4 {
            before = Some(resident_bytes(pipe.pid()));
        }
    }
    check_growth(pipe.pid(), before);
    // The frames are refused for different reasons.
    for code in ["result", "-32600", "-32601", "-32602"] {
        assert!(kinds.get(code).is_some_and(|count| *count > 20), "{code} in {kinds:?}");
    }
    assert_eq!(pipe.end().0, Some(0));
}

#[test]
fn ten_thousand_damaged_bodies_do_not_disturb_a_server_on_http() {
    let traffic = traffic();
    let http = Http::start(&["served", "text"]);
    let mut dice = Dice(2);
    let mut statuses: BTreeMap<u16, usize> = BTreeMap::new();
    let mut before = None;
    for number in 1..=FRAMES {
        let frame = damaged(&mut dice, &traffic);
        // Half of the frames have header lines that fit the readable part of the body; the others
        // have those of another frame.
        let fitting = serde_json::from_slice(&frame).unwrap_or(Value::Null);
        let head = if dice.below(2) == 0 { &fitting } else { dice.choose(&traffic) };
        let answer = http.post(&printable(&head_of(head)), &frame);
        *statuses.entry(answer.status).or_default() += 1;
        check_answer(&answer.head, &answer.body, answer.status);
        if number % ROUND == 0 {
            check_good(&http.ask(&good(number)).json(), number);
        }
        if number == FRAMES / 4 {
            before = Some(resident_bytes(http.pid()));
        }
    }
    check_growth(http.pid(), before);
    for status in [200, 400, 404] {
        assert!(statuses.get(&status).is_some_and(|count| *count > 20), "{status} in {statuses:?}");
    }
}

/// Removes characters that a header line cannot hold.
fn printable(head: &str) -> String {
    let lines = head.split("\r\n").filter(|line| !line.is_empty());
    let shown = lines.map(|line| {
        line.chars().filter(|c| c.is_ascii_graphic() || *c == ' ').take(1000).collect::<String>()
    });
    shown.map(|line| line + "\r\n").collect()
}

/// Checks an answer: no server error, and only messages that a protocol allows.
fn check_answer(head: &str, body: &str, status: u16) {
    assert!((200..500).contains(&status), "{head}\n{body}");
    let lines = head.to_ascii_lowercase();
    if lines.contains("content-type: text/event-stream") {
        for data in body.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim) {
            if !data.is_empty() {
                kind(&serde_json::from_str(data).unwrap_or_else(|_| panic!("{body}")));
            }
        }
    } else if lines.contains("content-type: application/json") {
        kind(&serde_json::from_str(body).unwrap_or_else(|_| panic!("{head}\n{body}")));
    }
}

#[test]
fn a_damaged_first_line_does_not_end_a_server() {
    let traffic = traffic();
    let mut dice = Dice(3);
    for number in 0..40 {
        let mut frame = damaged(&mut dice, &traffic);
        frame.retain(|byte| *byte != b'\n');
        let mut pipe = Pipe::start(&["served"], &[]);
        pipe.send(&frame);
        let frame = good(number);
        pipe.send(frame.to_string().as_bytes());
        let (messages, answer) = pipe.until(&frame["id"]);
        check_good(&answer, number);
        messages.iter().for_each(|message| drop(kind(message)));
    }
}
