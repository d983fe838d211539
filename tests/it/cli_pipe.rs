//! `cofferdam pipe` message by message: calls, functions of the program, approvals, the end.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache};
use serde_json::{Value, json};

use crate::wire::Pipe;

fn command(plugins: &[&str], more: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.env_clear().env("COFFERDAM_CACHE_DIR", shared_cache()).arg("pipe").args(more);
    for plugin in plugins {
        command.arg("--plugin").arg(guest(plugin));
    }
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::piped());
    command
}

/// Starts the host without reading its first answer.
fn start(plugins: &[&str], more: &[&str]) -> Pipe {
    Pipe::of(&mut command(plugins, more))
}

/// Starts the host with a `hello` and returns it with its `ready`.
fn ready(plugins: &[&str], more: &[&str], mut hello: Value) -> (Pipe, Value) {
    let mut pipe = start(plugins, more);
    hello["type"] = "hello".into();
    hello["protocol"] = 1.into();
    send(&mut pipe, &hello);
    let ready = next(&mut pipe, "ready");
    (pipe, ready)
}

fn send(pipe: &mut Pipe, message: &Value) {
    pipe.send(message.to_string().as_bytes());
}

/// Returns the next message of a type, after notes and reports.
fn next(pipe: &mut Pipe, kind: &str) -> Value {
    loop {
        let message = pipe.next();
        match message["type"].as_str().unwrap() {
            "note" | "progress" | "log" if kind != message["type"] => {}
            found => {
                assert_eq!(found, kind, "{message}");
                return message;
            }
        }
    }
}

fn call(pipe: &mut Pipe, id: u64, tool: &str, arguments: Value) {
    send(pipe, &json!({"type": "call", "id": id, "tool": tool, "arguments": arguments}));
}

/// Calls a tool and returns the result, for a host without other calls.
fn called(pipe: &mut Pipe, tool: &str, arguments: Value) -> Value {
    call(pipe, 1, tool, arguments);
    let result = next(pipe, "result");
    assert_eq!(result["id"], 1);
    result
}

#[test]
fn every_outcome_of_a_call_is_reported() {
    let (mut pipe, ready) = ready(&["text", "crash"], &[], json!({}));
    assert_eq!(ready["protocol"], 1);
    let tools = ready["tools"].as_array().unwrap();
    let word_count = tools.iter().find(|tool| tool["name"] == "word_count").unwrap();
    assert_eq!(word_count["source"], "text");
    assert_eq!(word_count["needs_approval"], false);
    assert_eq!(word_count["input_schema"]["required"], json!(["text"]));

    let result = called(&mut pipe, "word_count", json!({"text": "to be", "min_length": "2"}));
    assert_eq!(result["outcome"], "ok");
    assert_eq!(result["result"]["words"], 2);
    assert_eq!(result["record"]["plugin"]["name"], "text");

    let result = called(&mut pipe, "fail", json!({"message": "no such order"}));
    assert_eq!((&result["outcome"], &result["is_error"]), (&json!("failure"), &json!(true)));
    assert_eq!(result["failure"]["message"], "no such order");
    assert_eq!(result["failure"]["suggestion"], "call `ok` instead");

    let result = called(&mut pipe, "panic", json!({"message": "stays on the host"}));
    assert_eq!(result["outcome"], "error");
    assert_eq!(result["record"]["error_type"], "Trap.Unreachable");
    assert!(!result["result"].to_string().contains("stays"), "{result}");

    let result = called(&mut pipe, "word_count", json!({}));
    assert_eq!(
        (&result["outcome"], &result["code"]),
        (&json!("refused"), &json!("invalid_arguments"))
    );
    assert_eq!(result["problems"][0]["path"], "text");

    let result = called(&mut pipe, "word_coun", json!({}));
    assert_eq!(
        (&result["code"], &result["nearest"]),
        (&json!("unknown_tool"), &json!("word_count"))
    );
}

#[test]
fn calls_run_side_by_side_and_are_cancelled_or_time_out() {
    let (mut pipe, _) = ready(&["text", "crash"], &[], json!({}));
    call(&mut pipe, 1, "spin", json!({}));
    send(&mut pipe, &json!({"type": "call", "id": 2, "tool": "sleep", "timeout_ms": 50}));
    call(&mut pipe, 3, "word_count", json!({"text": "a"}));
    let mut ended = [next(&mut pipe, "result"), next(&mut pipe, "result")];
    ended.sort_by_key(|result| result["id"].as_u64());
    assert_eq!(
        (&ended[0]["id"], &ended[0]["record"]["error_type"]),
        (&json!(2), &json!("Timeout"))
    );
    assert_eq!((&ended[1]["id"], &ended[1]["outcome"]), (&json!(3), &json!("ok")));
    send(&mut pipe, &json!({"type": "cancel", "id": 9}));
    send(&mut pipe, &json!({"type": "cancel", "id": 1}));
    let cancelled = next(&mut pipe, "result");
    assert_eq!((&cancelled["id"], &cancelled["outcome"]), (&json!(1), &json!("cancelled")));
    assert!(cancelled.get("result").is_none(), "{cancelled}");
    // The id is free again.
    assert_eq!(called(&mut pipe, "ok", json!({}))["outcome"], "ok");
}

#[test]
fn the_host_ends_with_its_program_and_stops_what_runs() {
    let (mut pipe, _) = ready(&["crash"], &[], json!({}));
    call(&mut pipe, 1, "spin", json!({}));
    call(&mut pipe, 2, "ok", json!({}));
    assert_eq!(next(&mut pipe, "result")["id"], 2);
    let (code, _, took) = pipe.end();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(10), "{took:?}");
}

/// A host that has been stopped waits only a moment for a program that does not read.
#[cfg(unix)]
#[test]
fn a_stopped_host_ends_although_its_output_is_unread() {
    let mut child = command(&[], &[]).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    send(json!({"type": "hello", "protocol": 1, "tools": [{
        "name": "store",
        "description": "Stores a text.",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}},
        "annotations": {"read_only": true},
    }]}));
    // The messages that ask the program to run its function do not fit into the pipe.
    let text = "x".repeat(500_000);
    for id in 1..=8 {
        send(json!({"type": "call", "id": id, "tool": "store", "arguments": {"text": text}}));
    }
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(child.try_wait().unwrap(), None);
    crate::wire::send_signal(child.id(), crate::wire::Signal::TERM);
    let stopped = Instant::now();
    while child.try_wait().unwrap().is_none() {
        assert!(stopped.elapsed() < Duration::from_secs(20), "the host does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

fn add() -> Value {
    json!({
        "name": "add",
        "description": "Adds two numbers.",
        "input_schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
        "annotations": {"read_only": true},
    })
}

#[test]
fn functions_of_the_program_are_tools() {
    let (mut pipe, ready) = ready(&[], &[], json!({"tools": [add()]}));
    assert_eq!(ready["tools"][0]["source"], "program");
    // The host decodes arguments before the program sees them.
    call(&mut pipe, 1, "add", json!({"a": "1"}));
    assert_eq!(next(&mut pipe, "result")["code"], "invalid_arguments");
    let replies = [
        (json!({"value": 42}), json!({"outcome": "ok", "result": 42})),
        (
            json!({"failure": {"message": "too large", "suggestion": "use smaller ones"}}),
            json!({
                "outcome": "failure",
                "result": {"error": {"message": "too large", "suggestion": "use smaller ones"}},
            }),
        ),
        (
            json!({"error": {"type": "KeyError", "message": "at /home/me"}}),
            json!({
                "outcome": "error",
                "result": {"error": {"message": "An unexpected error occurred (KeyError). Please try again."}},
            }),
        ),
    ];
    for (mut reply, expected) in replies {
        call(&mut pipe, 7, "add", json!({"a": "40", "b": 2}));
        let invoke = next(&mut pipe, "invoke");
        assert_eq!(invoke["arguments"], json!({"a": 40, "b": 2}));
        assert_eq!((&invoke["tool"], &invoke["call"]), (&json!("add"), &json!(7)));
        reply["type"] = "returned".into();
        reply["id"] = invoke["id"].clone();
        send(&mut pipe, &reply);
        let result = next(&mut pipe, "result");
        let seen = json!({"outcome": result["outcome"], "result": result["result"]});
        assert_eq!(seen, expected);
    }
}

#[test]
fn functions_that_do_not_return_are_revoked() {
    let (mut pipe, _) = ready(&[], &[], json!({"tools": [add()]}));
    let arguments = json!({"a": 1, "b": 2});
    call(&mut pipe, 1, "add", arguments.clone());
    let invoke = next(&mut pipe, "invoke");
    send(&mut pipe, &json!({"type": "cancel", "id": 1}));
    let mut seen = [pipe.next(), pipe.next()];
    seen.sort_by_key(|message| message["type"].to_string());
    assert_eq!((&seen[0]["type"], &seen[0]["outcome"]), (&json!("result"), &json!("cancelled")));
    assert_eq!((&seen[1]["type"], &seen[1]["id"]), (&json!("revoke"), &invoke["id"]));
    // A late reply is ignored.
    send(&mut pipe, &json!({"type": "returned", "id": invoke["id"], "value": 3}));
    let late =
        json!({"type": "call", "id": 2, "tool": "add", "arguments": arguments, "timeout_ms": 20});
    send(&mut pipe, &late);
    next(&mut pipe, "invoke");
    let mut seen = [pipe.next(), pipe.next()];
    seen.sort_by_key(|message| message["type"].to_string());
    assert_eq!(seen[0]["record"]["error_type"], "Timeout");
    assert_eq!(seen[1]["type"], "revoke");
}

#[test]
fn programs_of_the_model_call_functions_of_the_program() {
    let code = "return await tools.add({a: 1, b: 2})";
    let (mut pipe, _) = ready(&[], &["--code"], json!({"tools": [add()]}));
    call(&mut pipe, 5, "run_code", json!({"code": code}));
    let invoke = next(&mut pipe, "invoke");
    assert_eq!(invoke["call"], 5);
    send(&mut pipe, &json!({"type": "returned", "id": invoke["id"], "value": 3}));
    assert_eq!(next(&mut pipe, "result")["result"], json!({"result": 3}));
}

#[test]
fn calls_that_need_approval_run_only_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    let files = folder.path().display().to_string();
    let delete = |pipe: &mut Pipe| {
        call(pipe, 1, "file_access_delete_file", json!({"file_name": "a.txt"}));
    };
    std::fs::write(&file, "x").unwrap();
    let (mut silent, _) = ready(&[], &["--files", &files], json!({}));
    delete(&mut silent);
    assert_eq!(next(&mut silent, "result")["code"], "approval_needed");

    let (mut pipe, _) = ready(&[], &["--files", &files], json!({"approves": true}));
    for allow in [false, true] {
        assert!(file.exists());
        delete(&mut pipe);
        let approve = next(&mut pipe, "approve");
        assert_eq!(approve["arguments"], json!({"file_name": "a.txt"}));
        assert_eq!(approve["call"], 1);
        send(&mut pipe, &json!({"type": "approved", "id": approve["id"], "allow": allow}));
        let result = next(&mut pipe, "result");
        let expected = if allow { "ok" } else { "refused" };
        assert_eq!(result["outcome"], expected, "{result}");
    }
    assert!(!file.exists());
    // A question about a call that is cancelled is withdrawn.
    std::fs::write(&file, "x").unwrap();
    delete(&mut pipe);
    let approve = next(&mut pipe, "approve");
    send(&mut pipe, &json!({"type": "cancel", "id": 1}));
    let mut seen = [pipe.next(), pipe.next()];
    seen.sort_by_key(|message| message["type"].to_string());
    assert_eq!(seen[0]["outcome"], "cancelled");
    assert_eq!(seen[1], json!({"type": "revoke", "id": approve["id"]}));
    assert!(file.exists());
}

#[test]
fn rules_of_the_configuration_apply() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("cofferdam.toml");
    let component = guest("text");
    let rules = "[[agent.approvals]]\ntool = \"diff\"\neffect = \"deny\"\n\
                 [[agent.approvals]]\ntool = \"word_count\"\neffect = \"ask\"\n";
    std::fs::write(&config, format!("[plugins.text]\ncomponent = {component:?}\n{rules}")).unwrap();
    let config = config.display().to_string();
    let (mut pipe, _) = ready(&[], &["--config", &config], json!({"approves": true}));
    let denied = called(&mut pipe, "diff", json!({"before": "a", "after": "b"}));
    assert_eq!((&denied["outcome"], &denied["code"]), (&json!("refused"), &json!("denied")));
    call(&mut pipe, 1, "word_count", json!({"text": "a"}));
    let approve = next(&mut pipe, "approve");
    assert_eq!(approve["tool"], "word_count");
    send(&mut pipe, &json!({"type": "approved", "id": approve["id"], "allow": true}));
    assert_eq!(next(&mut pipe, "result")["outcome"], "ok");
}

/// A program of the model gets the approval of the client for each call that needs it, with the
/// real arguments.
#[test]
fn calls_of_programs_are_approved_like_those_of_the_client() {
    let folder = tempfile::tempdir().unwrap();
    let files = folder.path().join("files");
    std::fs::create_dir(&files).unwrap();
    let config = folder.path().join("cofferdam.toml");
    let rules = "[[agent.approvals]]\ntool = \"diff\"\neffect = \"deny\"\n\
                 [[agent.approvals]]\ntool = \"word_count\"\neffect = \"ask\"\n";
    let component = guest("text");
    std::fs::write(&config, format!("[plugins.text]\ncomponent = {component:?}\n{rules}")).unwrap();
    let (config, notes) = (config.display().to_string(), files.display().to_string());
    let flags = ["--config", &config, "--files", &notes, "--code=only"];
    let (mut pipe, _) = ready(&[], &flags, json!({"approves": true, "answers": ["form"]}));
    let code = "const {words} = await tools.word_count({text: 'a b'});
        const seen = [words];
        try { await tools.diff({before: 'a', after: 'b'}) } catch (e) { seen.push(e.message) }
        await tools.file_access_delete_file({file_name: 'a.md'}); return seen";
    for allow in [false, true] {
        std::fs::write(files.join("a.md"), "x").unwrap();
        call(&mut pipe, 7, "run_code", json!({ "code": code }));
        for (tool, arguments, allow) in [
            ("word_count", json!({"text": "a b", "min_length": 1}), true),
            ("file_access_delete_file", json!({"file_name": "a.md"}), allow),
        ] {
            let approve = next(&mut pipe, "approve");
            assert_eq!((&approve["call"], &approve["tool"]), (&json!(7), &json!(tool)));
            assert_eq!((&approve["arguments"], &approve["program"]), (&arguments, &json!(true)));
            send(&mut pipe, &json!({"type": "approved", "id": approve["id"], "allow": allow}));
        }
        let result = next(&mut pipe, "result");
        assert_eq!(files.join("a.md").exists(), !allow, "{result}");
        let shown = result["result"].to_string();
        match allow {
            true => assert!(shown.contains("a rule of the user denies"), "{shown}"),
            false => assert!(shown.contains("was not approved"), "{shown}"),
        }
    }
    // A question about a program that is cancelled is withdrawn.
    call(&mut pipe, 8, "run_code", json!({ "code": code }));
    let approve = next(&mut pipe, "approve");
    send(&mut pipe, &json!({"type": "cancel", "id": 8}));
    let mut seen = [pipe.next(), pipe.next()];
    seen.sort_by_key(|message| message["type"].to_string());
    assert_eq!(seen[0]["outcome"], "cancelled");
    assert_eq!(seen[1], json!({"type": "revoke", "id": approve["id"]}));
    // A client that approves nothing and answers no forms cannot let the call run.
    let (mut silent, _) = ready(&[], &flags, json!({}));
    let result = called(&mut silent, "run_code", json!({ "code": code }));
    assert!(result["result"].to_string().contains("needs a user's approval"), "{result}");
}

#[test]
fn questions_of_a_plugin_reach_the_program() {
    let permissions = ["--allow", "ask:form"];
    let (mut pipe, _) = ready(&["stores"], &permissions, json!({"answers": ["form"]}));
    let steps: &[&[&str]] = &[&["ask", "form", "Who?", r#"{"type":"object"}"#]];
    let arguments = serde_json::from_str(&crate::script::arguments(steps)).unwrap();
    call(&mut pipe, 1, "stores", arguments);
    let ask = next(&mut pipe, "ask");
    assert_eq!((&ask["call"], &ask["kind"]), (&json!(1), &json!("form")));
    assert_eq!(ask["parameters"]["message"], "Who?");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    send(&mut pipe, &json!({"type": "answered", "id": ask["id"], "answer": answer}));
    let result = next(&mut pipe, "result");
    let answers = crate::script::answers(result["result"].as_str().unwrap());
    assert!(answers[0].contains("Ada"), "{answers:?}");
}

#[test]
fn a_plugin_that_cannot_be_used_is_named_and_the_others_run() {
    let folder = tempfile::tempdir().unwrap();
    let broken = folder.path().join("broken.wasm");
    std::fs::write(&broken, b"not a component").unwrap();
    let broken = broken.display().to_string();
    let mut pipe = start(&["text"], &["--plugin", &broken]);
    send(&mut pipe, &json!({"type": "hello", "protocol": 1}));
    let note = next(&mut pipe, "note");
    assert!(note["message"].as_str().unwrap().contains("broken"), "{note}");
    let ready = next(&mut pipe, "ready");
    assert_eq!(ready["unavailable"][0]["name"], "broken");
    assert_eq!(called(&mut pipe, "word_count", json!({"text": "a"}))["outcome"], "ok");
    assert_eq!(pipe.errors_at_end(), Vec::<String>::new());
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let failed = |mut pipe: Pipe, exit: i32| {
        let failed = next(&mut pipe, "failed");
        let (code, rest, _) = pipe.end();
        assert_eq!((code, &failed["exit"]), (Some(exit), &json!(exit)), "{failed}");
        assert_eq!(rest, Vec::<String>::new());
        failed["message"].as_str().unwrap().to_owned()
    };
    for (line, reason) in [
        ("", "lines of at most"),
        ("nonsense", "not a JSON object"),
        (r#"["hello",1]"#, "not a JSON object"),
        (r#"{"type":"hello"}"#, "missing field `protocol`"),
        (r#"{"type":"call","id":1,"tool":"x"}"#, "expected `hello`"),
        (r#"{"type":"hello","protocol":2}"#, "expected protocol 1, found 2"),
        (
            r#"{"type":"hello","protocol":1,"tools":[{"name":"a b","description":"","input_schema":{}}]}"#,
            "a b",
        ),
    ] {
        let mut pipe = start(&["text"], &[]);
        match line {
            "" => pipe.send(&vec![b' '; 16 * 1024 * 1024 + 1]),
            line => pipe.send(line.as_bytes()),
        }
        let message = failed(pipe, 2);
        assert!(message.contains(reason), "{line}: {message}");
    }
    let mut pipe = start(&[], &["--plugin", "missing.wasm"]);
    send(&mut pipe, &json!({"type": "hello", "protocol": 1}));
    assert!(failed(pipe, 4).contains("missing.wasm"));

    let (mut pipe, _) = ready(&["crash"], &[], json!({}));
    call(&mut pipe, 1, "spin", json!({}));
    call(&mut pipe, 1, "ok", json!({}));
    let messages = std::iter::from_fn(|| Some(pipe.next()));
    let duplicate = messages.into_iter().find(|message| message["type"] == "failed").unwrap();
    assert!(duplicate["message"].as_str().unwrap().contains("belongs to a call in progress"));

    // Calls in progress are not reported as canceled: the program has not canceled them.
    let (mut pipe, _) = ready(&["crash"], &[], json!({}));
    call(&mut pipe, 1, "spin", json!({}));
    pipe.send(b"nonsense");
    failed(pipe, 2);

    // A call that is not valid is refused, and others go on.
    let (mut pipe, _) = ready(&["text"], &[], json!({}));
    for (member, value) in [("timeout_ms", json!(-5)), ("session", json!(5)), ("diff", json!("x"))]
    {
        send(&mut pipe, &json!({"type": "call", "id": 7, "tool": "word_count", member: value}));
        let refused = next(&mut pipe, "result");
        assert_eq!((&refused["id"], &refused["code"]), (&json!(7), &json!("invalid_call")));
        assert!(refused["message"].as_str().unwrap().contains("invalid"), "{refused}");
    }
    assert_eq!(called(&mut pipe, "word_count", json!({"text": "a"}))["outcome"], "ok");

    // Unknown types and members are for later versions.
    let (mut pipe, _) = ready(&["text"], &[], json!({"later": true}));
    send(&mut pipe, &json!({"type": "later"}));
    assert_eq!(called(&mut pipe, "word_count", json!({"text": "a"}))["outcome"], "ok");
}

#[test]
fn too_many_calls_are_refused_and_the_others_go_on() {
    let (mut pipe, _) = ready(&[], &[], json!({"tools": [add()]}));
    for id in 1..=1025 {
        call(&mut pipe, id, "add", json!({"a": 1, "b": 2}));
    }
    let mut invoked = Vec::new();
    let refused = loop {
        let message = pipe.next();
        match message["type"].as_str().unwrap() {
            "invoke" => invoked.push(message["id"].clone()),
            _ => break message,
        }
    };
    assert_eq!((&refused["id"], &refused["code"]), (&json!(1025), &json!("too_many_calls")));
    while invoked.len() < 1024 {
        invoked.push(next(&mut pipe, "invoke")["id"].clone());
    }
    for id in invoked {
        send(&mut pipe, &json!({"type": "returned", "id": id, "value": 3}));
    }
    for _ in 0..1024 {
        assert_eq!(next(&mut pipe, "result")["result"], 3);
    }
}
