//! A model behind an address: the source of its key, the requests that carry it, and the outputs
//! that never show it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc;

use serde_json::{Value, json};

use super::{Ran, Scene, ran};
use crate::cli_skills;
use crate::wire::{Pipe, command};

const KEY: &str = "sk-very-secret-1234567890";

/// Starts a server that answers each request with the next of `answers`: status, media type, body.
/// Returns its URL and its requests.
pub(super) fn server(
    answers: Vec<(u16, &'static str, String)>,
) -> (String, mpsc::Receiver<(String, Value)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (send, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for (status, media_type, body) in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let (mut head, mut line) = (String::new(), String::new());
            while reader.read_line(&mut line).unwrap() > 2 {
                head.push_str(&std::mem::take(&mut line));
            }
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().unwrap())
            });
            let mut request = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut request).unwrap();
            send.send((head, serde_json::from_slice(&request).unwrap())).unwrap();
            let mut stream = stream;
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\ncontent-type: {media_type}\r\ncontent-length: \
                {length}\r\nconnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    (url, asked)
}

/// Returns a streamed answer of the chat completions API.
pub(super) fn hello() -> (u16, &'static str, String) {
    let chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": "1", "object": "chat.completion.chunk", "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        format!("data: {chunk}\n\n")
    };
    let chunks = [
        chunk(json!({"role": "assistant", "content": "Hel"}), Value::Null),
        chunk(json!({"content": "lo."}), Value::Null),
        chunk(json!({}), json!("stop")),
        "data: [DONE]\n\n".to_owned(),
    ];
    (200, "text/event-stream", chunks.concat())
}

/// Returns an answer of the chat completions API that is not streamed.
pub(super) fn whole() -> (u16, &'static str, String) {
    let message = json!({"role": "assistant", "content": "Hello."});
    let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
    let answer = json!({"id": "1", "object": "chat.completion", "model": "m", "choices": [choice]});
    (200, "application/json", answer.to_string())
}

/// Returns a streamed answer that calls `file_access_delete_file`, always with the same id.
fn deletes() -> (u16, &'static str, String) {
    let function =
        json!({"name": "file_access_delete_file", "arguments": r#"{"file_name":"a.md"}"#});
    let calls = json!([{"index": 0, "id": "call_1", "type": "function", "function": function}]);
    let chunk = json!({"id": "1", "object": "chat.completion.chunk", "model": "m",
        "choices": [{"index": 0, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]});
    (200, "text/event-stream", format!("data: {chunk}\n\ndata: [DONE]\n\n"))
}

/// Returns the conversation in a request: questions, calls and results, with their ids.
fn shown(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().unwrap().iter();
    let line = |message: &Value| match message["role"].as_str().unwrap() {
        "assistant" => format!("call {}", message["tool_calls"][0]["id"].as_str().unwrap_or("-")),
        "tool" => format!("result {}", message["tool_call_id"].as_str().unwrap()),
        role => format!("{role} {}", message["content"].as_str().unwrap_or_default()),
    };
    messages.map(line).filter(|line| !line.starts_with("system ")).collect()
}

fn chat(scene: &Scene, arguments: &[&str], env: &[(&str, &str)]) -> Ran {
    ran(scene.command(arguments).envs(env.iter().copied()).output().unwrap())
}

#[test]
fn the_usual_variables_name_a_key_and_an_address() {
    let (url, asked) = server(vec![hello(), hello()]);
    let scene = Scene::new(&[]);
    let ran = chat(
        &scene,
        &["hi", "--model", "openai:m", "--files", "notes:ro", "--system", "Be brief."],
        &[("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &url)],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
    let (head, request) = asked.recv().unwrap();
    assert!(
        head.starts_with("POST /v1/chat/completions ") && head.contains(&format!("Bearer {KEY}")),
        "{head}"
    );
    assert_eq!(request["model"], "m");
    assert!(request["messages"].to_string().contains("Be brief."), "{request}");
    assert!(request["tools"].to_string().contains("file_access_read_file"), "{request}");
    // A model at a custom URL needs no key.
    let ran = chat(&scene, &["hi", "--model", "openai:m", "--base-url", &url], &[]);
    assert_eq!(ran.stdout, "Hello.\n", "{}", ran.stderr);
    assert!(!asked.recv().unwrap().0.to_ascii_lowercase().contains("authorization"));
}

#[test]
fn a_key_of_the_environment_is_not_sent_where_a_file_points() {
    let (url, asked) = server(vec![hello(), hello()]);
    let scene = Scene::new(&[]);
    let table = format!("[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase-url = \"{url}\"\n");
    std::fs::write(scene.path("c.toml"), &table).unwrap();
    let env = [("OPENAI_API_KEY", KEY)];
    let ran = chat(&scene, &["hi", "--config", "c.toml"], &env);
    assert_eq!(ran.stdout, "Hello.\n", "{}", ran.stderr);
    assert!(!asked.recv().unwrap().0.contains(KEY));
    let with_key = format!(
        "{table}key = {{ secret = \"k\" }}\n[secrets]\nk = {{ env = \"OPENAI_API_KEY\" }}\n"
    );
    std::fs::write(scene.path("c.toml"), with_key).unwrap();
    chat(&scene, &["hi", "--config", "c.toml"], &env);
    assert!(asked.recv().unwrap().0.contains(KEY));
}

#[test]
fn a_retry_is_announced_with_its_pause() {
    let busy = || (503, "application/json", r#"{"error":{"message":"busy"}}"#.to_owned());
    let (url, _asked) = server(vec![busy(), busy(), hello()]);
    let scene = Scene::new(&[]);
    let ran = chat(&scene, &["hi", "--model", "openai:m", "--base-url", &url], &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
    for retry in ["the provider failed; retry 1 of 3 in ", "; retry 2 of 3 in "] {
        assert!(ran.stderr.contains(retry), "{}", ran.stderr);
    }
}

#[test]
fn plain_http_to_another_machine_is_a_key_of_the_configuration() {
    let scene = Scene::new(&[]);
    let config = |key: &str| {
        let table = "[models.box]\nprovider = \"openai\"\nmodel = \"m\"\n\
                     base-url = \"http://box.invalid:9/v1\"\n";
        std::fs::write(scene.path("c.toml"), format!("{table}{key}")).unwrap();
        chat(&scene, &["hi", "--config", "c.toml"], &[])
    };
    let refused = config("");
    assert_eq!(refused.code, Some(2));
    assert!(refused.stderr.contains("plain-http = true"), "{}", refused.stderr);
    let tried = config("plain-http = true\n");
    assert_eq!(tried.code, Some(4));
    assert!(tried.stderr.contains("http://box.invalid:9 cannot be reached"), "{}", tried.stderr);
}

#[test]
fn no_key_is_in_any_output() {
    let refused = json!({"error": {"message": format!("Incorrect API key provided: {KEY}"), "type": "invalid_request_error"}});
    let (url, _asked) = server(vec![(401, "application/json", refused.to_string())]);
    let scene = Scene::new(&[]);
    let env = [("OPENAI_API_KEY", KEY), ("OPENAI_BASE_URL", &url), ("COFFERDAM_LOG", "trace")];
    let ran = chat(&scene, &["hi", "--model", "openai:m", "--json"], &env);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("error: the model gives no reply: "), "{}", ran.stderr);
    assert!(
        !ran.stderr.contains(KEY) && !ran.stdout.contains(KEY),
        "{} {}",
        ran.stdout,
        ran.stderr
    );
    // A plain HTTP address on another machine is refused, and the error does not contain the key.
    let env = [("ANTHROPIC_API_KEY", KEY), ("ANTHROPIC_BASE_URL", "http://example.com")];
    let ran = chat(&scene, &["hi", "--model", "anthropic:m"], &env);
    assert_eq!(
        ran.code,
        Some(2),
        "a key does not go over plain HTTP to another machine: {}",
        ran.stderr
    );
    assert!(!ran.stderr.contains(KEY), "{}", ran.stderr);
}

#[test]
fn a_result_belongs_to_the_call_that_was_made_and_not_to_an_older_one_of_the_same_id() {
    // A session whose turn was stopped at an approval, in the format of every version.
    let call = json!({"type": "function_call", "call_id": "call_1", "name": "file_access_delete_file", "arguments": "{\"file_name\":\"a.md\"}"});
    let asked = json!({"type": "function_approval_request", "id": "r", "function_call": {"call_id": "call_1", "name": "file_access_delete_file", "arguments": "{\"file_name\":\"a.md\"}"}});
    let result =
        json!({"type": "function_result", "call_id": "call_1", "result": "File 'a.md' deleted."});
    let message = |role: &str, contents: Value| json!({"type": "message", "role": role, "contents": contents});
    let stopped = [
        message("user", json!([{"type": "text", "text": "delete a"}])),
        message("assistant", json!([call, asked])),
    ];
    let repeated = [
        message("user", json!([{"type": "text", "text": "delete a again"}])),
        message("assistant", json!([call, asked])),
        message("tool", json!([result])),
        message("assistant", json!([{"type": "text", "text": "Gone."}])),
    ];
    let (url, requests) = server(vec![deletes(), hello(), hello()]);
    let scene = Scene::new(&[]);
    let history = |name: &str, messages: &[Value]| {
        std::fs::create_dir_all(scene.path("sessions")).unwrap();
        let lines: String = messages.iter().map(|message| format!("{message}\n")).collect();
        std::fs::write(scene.path(&format!("sessions/{name}.jsonl")), lines).unwrap();
    };
    let talk = |text: &str, session: &str| {
        let session = ["--session", session, "--session-dir", "sessions", "--yes"];
        let model = ["--model", "openai:m", "--base-url", &url, "--files", "notes"];
        chat(&scene, &[&[text], &session[..], &model].concat(), &[])
    };
    history("s", &stopped);
    let ran = talk("delete a again", "s");
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
    assert!(!scene.has("notes/a.md"));
    assert_eq!(shown(&requests.recv().unwrap().1), ["user delete a", "user delete a again"]);
    let messages = shown(&requests.recv().unwrap().1);
    let [.., asked, call, result] = &messages[..] else { panic!("{messages:?}") };
    assert_eq!(asked, "user delete a again", "{messages:?}");
    assert!(call.starts_with("call "), "{messages:?}");
    assert_eq!(result.strip_prefix("result "), call.strip_prefix("call "), "{messages:?}");
    // A session that an earlier version continued: the messages were in order, and were sent in
    // another order.
    history("t", &[&stopped[..], &repeated].concat());
    talk("thanks", "t");
    assert_eq!(
        shown(&requests.recv().unwrap().1),
        [
            "user delete a",
            "user delete a again",
            "call call_1",
            "result call_1",
            "call -",
            "user thanks"
        ]
    );
}

#[test]
fn flags_set_options_of_requests_over_those_of_the_agent_and_of_the_model() {
    let (url, asked) = server(vec![hello()]);
    let scene = Scene::new(&[]);
    let config = format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase-url = \"{url}\"\n\
         temperature = 0.9\nseed = 1\ntop-p = 0.5\n"
    );
    std::fs::write(scene.path("c.toml"), config).unwrap();
    let agent = "model: m\nsettings: {seed: 2, temperature: 0.8, stop: [FILE]}\n";
    std::fs::write(scene.path("a.yaml"), agent).unwrap();
    let flags = ["hi", "--config", "c.toml", "--agent", "a.yaml", "--setting", "temperature=0.1"];
    let more = ["--setting", "stop=A=B", "--setting", "stop=C", "--setting", "effort=low"];
    let tokens = ["--setting", "max-output-tokens=70"];
    let ran = chat(&scene, &[&flags[..], &more, &tokens].concat(), &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "Hello.\n"), "{}", ran.stderr);
    let (_, request) = asked.recv().unwrap();
    for (key, value) in [
        ("temperature", json!(0.1)),
        ("seed", json!(2)),
        ("top_p", json!(0.5)),
        ("stop", json!(["A=B", "C"])),
        ("max_tokens", json!(70)),
        ("reasoning_effort", json!("low")),
    ] {
        assert_eq!(request[key], value, "{key}: {request}");
    }
}

#[test]
fn wrong_settings_are_named() {
    let scene = Scene::new(&[]);
    for (setting, expected) in [
        ("temperature", "--setting: `temperature` is not a setting; expected KEY=VALUE"),
        ("heat=1", "there is no setting `heat`; known are temperature, top-p,"),
        ("temperature=NaN", "the setting `temperature` is a number, not `NaN`"),
        ("seed=1.5", "the setting `seed` is an integer, not `1.5`"),
        ("max-output-tokens=-1", "`max-output-tokens` is a number of tokens, not `-1`"),
        ("effort=most", "`effort` is none, minimal, low, medium, high, xhigh or max, not `most`"),
    ] {
        let ran = chat(&scene, &["hi", "--model", "openai:m", "--setting", setting], &[]);
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{setting}: {}", ran.stderr);
    }
}

#[test]
fn sampling_options_reach_every_provider_wherever_they_are_set() {
    let refused = || (400, "application/json", json!({"error": {"message": "no"}}).to_string());
    let (url, asked) = server(vec![refused(), refused()]);
    let scene = Scene::new(&[]);
    let agent = "model: anthropic:m\nsettings: {temperature: 0.3}\n";
    std::fs::write(scene.path("a.yaml"), agent).unwrap();
    let by_file: &[&str] = &["hi", "--agent", "a.yaml"];
    let by_flag: &[&str] = &["hi", "--model", "anthropic:m", "--setting", "temperature=0.3"];
    for flags in [by_file, by_flag] {
        let ran = chat(&scene, &[flags, &["--base-url", &url]].concat(), &[]);
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        let (_, request) = asked.recv().unwrap();
        assert_eq!(request["temperature"], json!(0.3), "{request}");
    }
}

#[test]
fn flags_set_options_of_requests_of_served_agents() {
    let (url, asked) = server(vec![whole()]);
    let scene = Scene::new(&[]);
    let config =
        format!("[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase-url = \"{url}\"\n");
    std::fs::write(scene.path("c.toml"), config).unwrap();
    let agent = "model: m\nsettings: {seed: 2, temperature: 0.8}\n";
    std::fs::write(scene.path("a.yaml"), agent).unwrap();
    let flags = ["--config", "c.toml", "--agent", "a.yaml", "--setting", "temperature=0.1"];
    let mut pipe = Pipe::of(command(&[], &flags).current_dir(scene.path("")));
    let answer = pipe.call("a", json!({"task": "Go."}));
    assert_eq!(answer["result"]["content"][0]["text"], "Hello.", "{answer}");
    let (_, request) = asked.recv().unwrap();
    assert_eq!((&request["temperature"], &request["seed"]), (&json!(0.1), &json!(2)), "{request}");
}

#[test]
fn flags_set_options_of_requests_in_evaluations_and_workflows() {
    let refused = || (400, "application/json", json!({"error": {"message": "no"}}).to_string());
    let (url, asked) = server(vec![refused(), refused(), refused()]);
    let scene = Scene::new(&[]);
    let config = format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase-url = \"{url}\"\nseed = 1\n"
    );
    let workflow = "agents: {a: {model: m, settings: {seed: 2, temperature: 0.8}}}\nstart: a\n";
    for (name, text) in [
        ("c.toml", config.as_str()),
        ("a.yaml", "model: m\nsettings: {seed: 2, temperature: 0.8}\n"),
        ("w.yaml", workflow),
        ("cases.jsonl", "{\"name\":\"n\",\"prompt\":\"p\"}"),
    ] {
        std::fs::write(scene.path(name), text).unwrap();
    }
    for (command, seed) in [
        (&["eval", "cases.jsonl"][..], 1),
        (&["eval", "cases.jsonl", "--agent", "a.yaml"], 2),
        (&["workflow", "run", "w.yaml", "hi"], 2),
    ] {
        let flags = ["--config", "c.toml", "--setting", "temperature=0.1"];
        let mut command = cli_skills::command(&scene.path(""), &[command, &flags].concat());
        let ran = ran(command.env("XDG_STATE_HOME", scene.path("state")).output().unwrap());
        assert_eq!(ran.code, Some(4), "{}", ran.stderr);
        let (_, request) = asked.recv().unwrap();
        assert_eq!((&request["temperature"], &request["seed"]), (&json!(0.1), &json!(seed)));
    }
    for command in [&["eval", "cases.jsonl"][..], &["workflow", "run", "w.yaml", "hi"]] {
        let flags = [command, &["--config", "c.toml", "--setting", "heat=1"]].concat();
        let ran = ran(cli_skills::command(&scene.path(""), &flags).output().unwrap());
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains("--setting: there is no setting `heat`"), "{}", ran.stderr);
    }
}

#[test]
fn a_model_that_is_too_slow_is_given_up_after_the_configured_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let scene = Scene::new(&[]);
    let config = format!(
        "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\nbase-url = \"http://{}/v1\"\nretries = 0\n\
         timeouts = {{ first-byte = 1 }}\n",
        listener.local_addr().unwrap()
    );
    std::fs::write(scene.path("c.toml"), config).unwrap();
    let ran = chat(&scene, &["hi", "--config", "c.toml"], &[]);
    assert_eq!(ran.code, Some(4), "{}", ran.stderr);
    assert!(ran.stderr.contains("1 s"), "{}", ran.stderr);
    std::fs::write(
        scene.path("c.toml"),
        "[models.m]\nprovider = \"openai\"\nmodel = \"m\"\n\
         timeouts = { first-byte = 0 }\n",
    )
    .unwrap();
    let ran = chat(&scene, &["hi", "--config", "c.toml"], &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("c.toml:4:"), "{}", ran.stderr);
}
