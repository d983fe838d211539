//! `cofferdam serve`, line by line and byte by byte. `cargo xtask mcp` tests it with the official
//! clients.

use std::io::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::wire::{
    Http, LEGACY, MODERN, Pipe, Signal, call, command, head_of, request, resident_bytes,
    send_signal,
};

/// Opens a connection with the `initialize` handshake.
fn initialized(pipe: &mut Pipe) -> Value {
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": {}, "clientInfo": { "name": "wire", "version": "1" },
    });
    let answer =
        pipe.ask(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }));
    pipe.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    answer
}

fn names(answer: &Value) -> Vec<&str> {
    answer["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect()
}

#[test]
fn the_revision_without_a_handshake_is_spoken() {
    let mut pipe = Pipe::start(&["served"], &[]);
    let found = pipe.modern("server/discover", json!({}));
    let versions = found["result"]["supportedVersions"].as_array().unwrap();
    assert!(versions.contains(&json!(MODERN)), "{found}");
    let listed = pipe.modern("tools/list", json!({}));
    assert_eq!(names(&listed).len(), 4, "{listed}");
    assert_eq!(listed["result"]["resultType"], "complete");
    assert!(
        listed["result"]["ttlMs"].is_u64() && listed["result"]["cacheScope"].is_string(),
        "{listed}"
    );
    let echoed = pipe.call("echo", json!({ "message": "hi", "number": 3 }));
    let value = json!({ "echoed": { "message": "hi", "number": 3 } });
    assert_eq!(echoed["result"]["structuredContent"], value, "{echoed}");
    let text = echoed["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), value);
    assert_ne!(echoed["result"]["isError"], true);
    // A client that asks for an unknown revision learns the supported ones.
    let mut ahead = request("ahead", "tools/list", json!({}));
    ahead["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2099-01-01");
    let refused = pipe.ask(&ahead);
    assert_eq!(refused["error"]["code"], -32022, "{refused}");
    assert!(
        refused["error"]["data"]["supported"].as_array().unwrap().contains(&json!(MODERN)),
        "{refused}"
    );
}

#[test]
fn the_revision_with_a_handshake_is_spoken() {
    let mut pipe = Pipe::start(&["served"], &[]);
    let opened = initialized(&mut pipe);
    assert_eq!(opened["result"]["protocolVersion"], LEGACY, "{opened}");
    assert_eq!(opened["result"]["capabilities"]["tools"]["listChanged"], true, "{opened}");
    let listed = pipe.ask(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    assert_eq!(names(&listed).len(), 4, "{listed}");
    assert!(listed["result"].get("resultType").is_none(), "{listed}");
    let params = json!({ "name": "echo", "arguments": { "message": "hi" } });
    let echoed = pipe.ask(
        &json!({ "jsonrpc": "2.0", "id": 9007199254740993_u64, "method": "tools/call", "params": params }),
    );
    assert_eq!(
        echoed["result"]["structuredContent"],
        json!({ "echoed": { "message": "hi" } }),
        "{echoed}"
    );
    let gone = pipe.ask(&json!({ "jsonrpc": "2.0", "id": 3, "method": "no/such" }));
    assert_eq!(gone["error"]["code"], -32601, "{gone}");
}

/// Collects parts of a schema that clients and model APIs refuse.
fn unportable(at: &str, value: &Value, found: &mut Vec<String>) {
    if let Value::Object(members) = value {
        if members.get("type").is_some_and(|kind| kind == "array") && !members.contains_key("items")
        {
            found.push(format!("{at}: an array without items"));
        }
        if let Some(format) = members.get("format").and_then(Value::as_str)
            && (format.trim_start_matches('u').starts_with("int")
                || matches!(format, "float" | "double"))
        {
            found.push(format!("{at}: {format}"));
        }
        members.iter().for_each(|(name, value)| unportable(&format!("{at}/{name}"), value, found));
    }
    for (index, value) in value.as_array().into_iter().flatten().enumerate() {
        unportable(&format!("{at}/{index}"), value, found);
    }
}

#[test]
fn schemas_are_listed_with_the_keywords_that_every_client_takes() {
    let listed = |more: &[&str]| {
        let mut pipe = Pipe::start(&["echo"], more);
        (pipe.modern("tools/list", json!({}))["result"]["tools"].take(), pipe)
    };
    let (tools, mut pipe) = listed(&[]);
    let mut found = Vec::new();
    for tool in tools.as_array().unwrap() {
        for schema in ["inputSchema", "outputSchema"] {
            unportable(&format!("{}/{schema}", tool["name"]), &tool[schema], &mut found);
        }
        let input = &tool["inputSchema"];
        let is_empty = input["properties"].as_object().is_some_and(serde_json::Map::is_empty);
        assert!(!is_empty || input["additionalProperties"] == false, "{tool}");
    }
    assert_eq!(found, Vec::<String>::new());

    // Arguments are decoded by the exact schema.
    let figure = json!({ "kind": "rectangle", "value": [1.5, 2.5] });
    let echoed = pipe.call("figures", json!({ "value": figure }));
    assert_eq!(echoed["result"]["structuredContent"], figure, "{echoed}");
    let refused = |pipe: &mut Pipe, value: Value| {
        let refused = pipe.call("figures", json!({ "value": value }));
        refused["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let long = refused(&mut pipe, json!({ "kind": "rectangle", "value": [1, 2, 3] }));
    assert!(long.contains("'value'"), "{long}");
    let kinds = r#""dot", "circle", "rectangle", "labelled", "owned-by""#;
    let other = refused(&mut pipe, json!({ "kind": "triangle" }));
    assert!(other.contains(&format!("'value.kind' must be one of {kinds}.")), "{other}");
    let bare = refused(&mut pipe, json!("dot"));
    assert!(
        bare.contains(&format!("Expected an object with 'kind', which is one of {kinds}.")),
        "{bare}"
    );
    let circle = refused(&mut pipe, json!({ "kind": "circle" }));
    assert!(
        circle.contains("Required argument 'value.value' was not supplied to 'figures'."),
        "{circle}"
    );

    let (exact, _pipe) = listed(&["--schemas", "exact"]);
    let mut found = Vec::new();
    unportable("", &exact, &mut found);
    assert!(found.iter().any(|what| what.ends_with("uint32")), "{found:?}");
    assert!(exact.to_string().contains("prefixItems"), "{exact}");
}

#[test]
fn mistakes_of_a_model_are_results_and_mistakes_of_a_client_are_errors() {
    let mut pipe = Pipe::start(&["served", "crash"], &[]);
    let failed = |answer: &Value| {
        let result = &answer["result"];
        assert_eq!(result["isError"], true, "{answer}");
        assert!(
            result.get("structuredContent").is_none(),
            "clients check it against the output schema: {answer}"
        );
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(failed(&pipe.call("nobody", json!({}))), "Tool nobody not found");
    assert!(failed(&pipe.call("echo", json!({ "number": 1 }))).contains("message"));
    assert!(
        failed(&pipe.call("echo", json!({ "message": "hi", "number": "many" }))).contains("number")
    );
    let envelope: Value = serde_json::from_str(&failed(&pipe.call("refuse", json!({})))).unwrap();
    assert_eq!(envelope["error"]["message"], "there is no such row");
    assert!(failed(&pipe.call("divide_by_zero", json!({}))).contains("Trap.IntegerDivideByZero"));

    let code =
        |answer: Value| answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(
        code(pipe.modern("tools/call", json!({ "name": "echo", "arguments": [1] }))),
        -32602
    );
    assert_eq!(code(pipe.modern("tools/call", json!({ "arguments": {} }))), -32602);
    assert_eq!(code(pipe.modern("tools/list", json!({ "cursor": "nonsense" }))), -32602);
    assert_eq!(
        code(pipe.modern("prompts/list", json!({}))),
        -32601,
        "what is not declared is not there"
    );
    assert_eq!(code(pipe.modern("tools/delete", json!({}))), -32601);
    // No tool manages plugins.
    let listed = pipe.modern("tools/list", json!({}));
    for word in ["load", "grant", "revoke", "approve", "install", "config"] {
        assert!(names(&listed).iter().all(|name| !name.contains(word)), "{listed}");
    }
}

#[test]
fn progress_comes_before_the_answer() {
    let mut pipe = Pipe::start(&["served"], &[]);
    let mut counting = call("count", "count", &json!({ "steps": 4, "pause_ms": 120 }));
    counting["params"]["_meta"]["progressToken"] = json!("how far");
    pipe.send(counting.to_string().as_bytes());
    let (before, answer) = pipe.until(&json!("count"));
    assert_eq!(answer["result"]["content"][0]["text"], "counted to 4", "{answer}");
    let steps: Vec<_> =
        before.iter().filter(|message| message["method"] == "notifications/progress").collect();
    assert!(steps.len() >= 2 && steps.len() == before.len(), "{before:?}");
    for (step, next) in steps.iter().zip(steps.iter().skip(1)) {
        assert!(
            step["params"]["progress"].as_f64() < next["params"]["progress"].as_f64(),
            "{before:?}"
        );
    }
    for step in steps {
        assert_eq!(
            (&step["params"]["progressToken"], &step["params"]["total"]),
            (&json!("how far"), &json!(4.0))
        );
    }
}

#[test]
fn a_call_that_is_cancelled_gets_no_answer_and_ends() {
    let mut pipe = Pipe::start(&["served"], &["--timeout", "10m"]);
    for number in 0..3 {
        pipe.send(call(&format!("endless-{number}"), "compute", &json!({})).to_string().as_bytes());
    }
    assert!(pipe.call("echo", json!({ "message": "beside them" }))["result"].is_object());
    for number in 0..3 {
        let params = json!({ "requestId": format!("endless-{number}"), "reason": "enough" });
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params });
        pipe.send(cancel.to_string().as_bytes());
    }
    // A process whose guests have ended uses no CPU time.
    let ticks = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        // After the name: state, parent, …, with user time and system time as the 12th and 13th
        // fields. Some others are negative.
        let fields =
            stat.rsplit(") ").next().unwrap().split(' ').map(|field| field.parse().unwrap_or(0));
        let fields: Vec<u64> = fields.collect();
        fields[11] + fields[12]
    };
    let is_idle = |pid| {
        let before = ticks(pid);
        std::thread::sleep(Duration::from_millis(500));
        ticks(pid) - before < 10
    };
    assert!((0..60).any(|_| is_idle(pipe.pid())), "a call that was cancelled still computes");
    let echo = call("after", "echo", &json!({ "message": "after them" }));
    pipe.send(echo.to_string().as_bytes());
    let (before, _) = pipe.until(&json!("after"));
    assert!(before.iter().all(|message| message.get("id").is_none()), "no answers: {before:?}");
}

#[test]
fn the_end_of_input_ends_the_process() {
    // Before the first message, after a handshake, and while a call runs.
    let fresh = Pipe::start(&["served"], &[]);
    let mut opened = Pipe::start(&["served"], &[]);
    initialized(&mut opened);
    let mut busy = Pipe::start(&["served"], &["--timeout", "10m"]);
    busy.modern("server/discover", json!({}));
    busy.send(call("endless", "compute", &json!({})).to_string().as_bytes());
    for (pipe, when) in
        [(fresh, "before anything"), (opened, "after a handshake"), (busy, "while a call runs")]
    {
        let (code, rest, took) = pipe.end();
        assert_eq!(code, Some(0), "{when}: {rest:?}");
        // Running calls have one second; a busy machine gets more. It was 5 s.
        assert!(took < Duration::from_secs(4), "{when}: {took:?}");
    }
}

#[test]
fn answers_to_what_was_asked_before_the_end_of_input_come() {
    let mut pipe = Pipe::start(&["served"], &[]);
    for number in 0..20 {
        let echo =
            call(&format!("echo-{number}"), "echo", &json!({ "message": "hi", "number": number }));
        pipe.send(echo.to_string().as_bytes());
    }
    let (code, rest, _) = pipe.end();
    assert_eq!(code, Some(0));
    let mut answers: Vec<i64> = rest
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .map(|answer| answer["result"]["structuredContent"]["echoed"]["number"].as_i64().unwrap())
        .collect();
    answers.sort_unstable();
    assert_eq!(answers, (0..20).collect::<Vec<_>>());
}

#[test]
fn a_client_that_reads_slowly_gets_whole_answers_after_the_end_of_input() {
    // More than a pipe holds. The server writes to pipes and to files in different ways.
    let requests: String = (0..8)
        .map(|number| {
            call(&number.to_string(), "echo", &json!({ "message": "x".repeat(20_000) })).to_string()
                + "\n"
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests");
    std::fs::write(&file, &requests).unwrap();
    for from_file in [false, true] {
        let mut server = command(&["served"], &[]);
        if from_file {
            server.stdin(std::fs::File::open(&file).unwrap());
        }
        let mut child = server.spawn().unwrap();
        if let Some(mut input) = child.stdin.take() {
            input.write_all(requests.as_bytes()).unwrap();
        }
        // Longer than calls have at the end of the input.
        std::thread::sleep(Duration::from_millis(2500));
        let output = child.wait_with_output().unwrap();
        let answers = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            (answers.lines().count(), output.status.code()),
            (8, Some(0)),
            "from a file: {from_file}"
        );
        for line in answers.lines() {
            let answer: Value = serde_json::from_str(line).unwrap();
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    }
}

#[test]
fn standard_output_holds_nothing_but_json() {
    let mut pipe = Pipe::start(&["served", "crash"], &[]);
    for stream in ["stdout", "stderr"] {
        let printed = pipe.call("print", json!({ "stream": stream, "bytes": 100_000 }));
        assert_eq!(printed["result"]["content"][0]["text"], "ok", "{printed}");
    }
    pipe.call("panic", json!({ "message": "in\nlines" }));
    pipe.send(b"not json");
    pipe.call("echo", json!({ "message": "\u{2028}\r\n" }));
    // `next` and `until` parse every line as JSON; this is the rest.
    let (code, rest, _) = pipe.end();
    assert_eq!((code, rest), (Some(0), vec![]));
}

#[test]
fn http_wants_the_token_that_only_its_owner_can_read() {
    let http = Http::start(&["served"]);
    let mode = std::fs::metadata(http.token_file()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(http.token.len() >= 32, "{}", http.token.len());
    let echo = call("1", "echo", &json!({ "message": "hi" }));
    let answer = http.ask(&echo);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(
        answer.json()["result"]["structuredContent"],
        json!({ "echoed": { "message": "hi" } })
    );
    let body = echo.to_string();
    for token in ["", "Authorization: Bearer wrong\r\n", "Authorization: Basic eDp5\r\n"] {
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, \
             text/event-stream\r\nConnection: close\r\nContent-Length: {}\r\n{token}{}\r\n",
            http.address,
            body.len(),
            head_of(&echo),
        );
        let refused = http.send(&head, body.as_bytes());
        assert_eq!(refused.status, 401, "{token:?}: {refused:?}");
        assert!(
            refused.head.to_ascii_lowercase().contains("www-authenticate: bearer"),
            "{refused:?}"
        );
    }
}

#[test]
fn a_page_on_another_site_cannot_call_a_tool() {
    let http = Http::start(&["served"]);
    let echo = call("1", "echo", &json!({ "message": "hi" }));
    let head = head_of(&echo);
    // As a browser sends them for `fetch`, from a page elsewhere and through a rebound name.
    let browser = "User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0\r\nSec-Fetch-Mode: \
                   cors\r\nSec-Fetch-Site: cross-site\r\n";
    for origin in ["https://evil.example", "http://evil.example:1234", "null", "file://"] {
        let refused =
            http.post(&format!("{head}{browser}Origin: {origin}\r\n"), echo.to_string().as_bytes());
        assert_eq!(refused.status, 403, "{origin}: {refused:?}");
        assert!(!refused.body.contains("echoed"), "{refused:?}");
        let lines = refused.head.to_ascii_lowercase();
        assert!(!lines.contains("access-control-allow-origin"), "{refused:?}");
    }
    let body = echo.to_string();
    let rebound = format!(
        "POST /mcp HTTP/1.1\r\nHost: evil.example\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nAccept: \
         application/json, text/event-stream\r\nConnection: close\r\nContent-Length: \
         {}\r\n{head}\r\n",
        http.token,
        body.len(),
    );
    assert_eq!(http.send(&rebound, body.as_bytes()).status, 403);
    // The preflight of a browser before such a request.
    let preflight = format!(
        "OPTIONS /mcp HTTP/1.1\r\nHost: {}\r\nOrigin: https://evil.example\r\nAccess-Control-Request-Method: \
         POST\r\nAccess-Control-Request-Headers: authorization,content-type\r\nConnection: \
         close\r\n\r\n",
        http.address,
    );
    let answer = http.send(&preflight, b"");
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert!(!answer.head.to_ascii_lowercase().contains("access-control-allow"), "{answer:?}");
}

#[test]
fn the_end_of_input_ends_an_open_subscription() {
    let mut pipe = Pipe::start(&["served"], &[]);
    let listen = request(
        "sub",
        "subscriptions/listen",
        json!({ "notifications": { "toolsListChanged": true } }),
    );
    pipe.send(listen.to_string().as_bytes());
    while pipe.next()["method"] != "notifications/subscriptions/acknowledged" {}
    let (code, rest, took) = pipe.end();
    assert_eq!(code, Some(0), "{rest:?}");
    // The target is 100 ms; a busy machine gets more. The server waits 5 s for calls.
    assert!(took < Duration::from_secs(4), "{took:?}");
}

/// Returns a call of `count` that takes a little more than a second.
fn slow_call() -> Value {
    call("slow", "count", &json!({ "steps": 4, "pause_ms": 300 }))
}

#[test]
fn sigterm_lets_calls_end_and_refuses_new_ones() {
    let mut pipe = Pipe::start(&["served"], &[]);
    pipe.modern("server/discover", json!({}));
    pipe.send(slow_call().to_string().as_bytes());
    std::thread::sleep(Duration::from_millis(200));
    send_signal(pipe.pid(), Signal::TERM);
    std::thread::sleep(Duration::from_millis(200));
    let refused = pipe.ask(&call("new", "echo", &json!({ "message": "hi" })));
    assert!(refused["error"]["message"].as_str().unwrap().contains("stopping"), "{refused}");
    let (_, ended) = pipe.until(&json!("slow"));
    assert!(ended.to_string().contains("counted to 4"), "{ended}");
    let (code, _, took) = pipe.end();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(4), "{took:?}");
}

#[test]
fn sigterm_lets_a_task_end() {
    let log = [("COFFERDAM_LOG", "info")];
    let mut command = crate::wire::command(&["mcp_conformance"], &[]);
    let mut pipe = Pipe::of(command.envs(log));
    pipe.modern("server/discover", json!({}));
    let mut slow = call("slow", "slow_compute", &json!({ "seconds": 2 }));
    slow["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let task = pipe.ask(&slow);
    assert_eq!(task["result"]["status"], "working", "{task}");
    send_signal(pipe.pid(), Signal::TERM);
    let ended = pipe.has_said("call ended");
    assert!(ended.contains("tool=\"slow_compute\"") && ended.contains("end=\"ok\""), "{ended}");
    let (code, _, took) = pipe.end();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn the_log_holds_what_the_sdk_logs_only_if_it_is_named() {
    for (filter, is_named) in
        [("info", false), ("info,cofferdam_engine=debug", false), ("info,rmcp=info", true)]
    {
        let mut command = crate::wire::command(&["served"], &[]);
        let mut pipe = Pipe::of(command.env("COFFERDAM_LOG", filter));
        initialized(&mut pipe);
        pipe.send(
            br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":77}}"#,
        );
        pipe.ask(&json!({"jsonrpc": "2.0", "id": 78, "method": "ping"}));
        let said = pipe.errors_at_end().join("\n");
        assert_eq!(said.contains("rmcp"), is_named, "{filter}: {said}");
    }
}

#[test]
fn sigterm_over_http_refuses_with_503_and_answers_what_runs() {
    let http = Http::start(&["served"]);
    let echo = call("echo", "echo", &json!({ "message": "hi" }));
    assert_eq!(http.ask(&echo).status, 200);
    std::thread::scope(|scope| {
        let answer = scope.spawn(|| http.ask(&slow_call()));
        std::thread::sleep(Duration::from_millis(300));
        send_signal(http.pid(), Signal::TERM);
        std::thread::sleep(Duration::from_millis(200));
        let refused = http.ask(&echo);
        assert_eq!(refused.status, 503, "{refused:?}");
        let answer = answer.join().unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.body.contains("counted to 4"), "{answer:?}");
    });
}

#[test]
fn a_call_that_fails_is_one_line_on_standard_error() {
    let mut pipe = Pipe::start(&["crash"], &[]);
    pipe.call("panic", json!({ "message": "in\nlines \u{1b}[2J" }));
    let line = pipe.has_said("call failed");
    assert!(line.contains("tool=\"panic\"") && line.contains("end=\"Trap.Unreachable\""), "{line}");
    assert!(!line.contains('\u{1b}'), "control characters are escaped: {line:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn memory_of_a_burst_of_calls_comes_back_when_the_server_is_idle() {
    let mut pipe = Pipe::start(&["crash"], &[]);
    pipe.ask(&call("first", "ok", &json!({})));
    std::thread::sleep(Duration::from_secs(2));
    let before = resident_bytes(pipe.pid());
    let arguments =
        [("allocate", json!({ "mebibytes": 30 })), ("huge_output", json!({ "bytes": 9_000_000 }))];
    let mut most = 0;
    for (tool, arguments) in &arguments {
        for number in 0..64 {
            pipe.send(call(&format!("{tool}-{number}"), tool, arguments).to_string().as_bytes());
        }
        for _ in 0..64 {
            pipe.next();
            most = most.max(resident_bytes(pipe.pid()));
        }
    }
    let limit = before * 3 / 2;
    assert!(most > limit, "{most} of {before}: the calls take enough to show that it comes back");
    let ended = Instant::now();
    while resident_bytes(pipe.pid()) > limit && ended.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let now = resident_bytes(pipe.pid());
    assert!(now <= limit, "{now} after {:?}, {before} before, {most} at the peak", ended.elapsed());
    pipe.ask(&call("last", "ok", &json!({})));
}
