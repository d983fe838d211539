//! `cofferdam serve` in front of another `cofferdam serve`: what passes through both, and the loss
//! of one of them.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use cofferdam_tests::{binary, guest, shared_cache, write_program};
use serde_json::{Value, json};

use super::{Scene, far};
use crate::script;
use crate::wire::{ANSWER_MAX, LEGACY, Pipe, Signal, call, request, send_signal};

/// Returns the child processes of a process.
fn children(parent: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent_of = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit(") ").next()?.split(' ').nth(1)?.parse::<u32>().ok()
    };
    let serves = |pid: u32| {
        std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == b"serve"))
    };
    pids.filter(|pid| parent_of(*pid) == Some(parent) && serves(*pid)).collect()
}

/// Returns the user and system time of a process, in ticks.
fn ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields =
        stat.rsplit(") ").next().unwrap().split(' ').map(|field| field.parse().unwrap_or(0));
    let fields: Vec<u64> = fields.collect();
    fields[11] + fields[12]
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < ANSWER_MAX, "never so: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn tools(pipe: &mut Pipe) -> Vec<String> {
    let listed = pipe.modern("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn echoes(pipe: &mut Pipe) {
    let echoed = pipe.call("echo", json!({"message": "through"}));
    assert_eq!(
        echoed["result"]["structuredContent"],
        json!({"echoed": {"message": "through"}}),
        "{echoed}"
    );
}

#[test]
fn a_program_sees_the_variables_that_start_programs_and_those_that_are_configured() {
    let scene = Scene::new(&far("served").replace("env = {", "env = { OWN = { env = \"GIVEN\" },"));
    let env = [
        ("PATH", "/usr/bin:/bin"),
        ("GIVEN", "this one"),
        ("WITHHELD", "not this one"),
        ("LANG", "C"),
    ];
    let mut pipe = Pipe::of_config(&scene.config(), &env);
    echoes(&mut pipe);
    let [child] = <[u32; 1]>::try_from(children(pipe.pid())).unwrap();
    let environ =
        String::from_utf8(std::fs::read(format!("/proc/{child}/environ")).unwrap()).unwrap();
    let found: BTreeSet<_> = environ.split_terminator('\0').collect();
    let cache = format!("COFFERDAM_CACHE_DIR={}", shared_cache().display());
    assert_eq!(
        found,
        BTreeSet::from([cache.as_str(), "LANG=C", "OWN=this one", "PATH=/usr/bin:/bin"])
    );
    pipe.end();
    wait_until("the server ends with its client", || {
        !std::path::Path::new(&format!("/proc/{child}")).exists()
    });
}

#[test]
fn a_server_that_dies_is_started_again() {
    let scene = Scene::new(&far("served"));
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    echoes(&mut pipe);
    let [first] = <[u32; 1]>::try_from(children(pipe.pid())).unwrap();
    // Killed in the middle of a call: the next process makes the call again.
    pipe.send(
        call("counting", "count", &json!({"steps": 8, "pause_ms": 100})).to_string().as_bytes(),
    );
    std::thread::sleep(Duration::from_millis(300));
    send_signal(first, Signal::KILL);
    let (_, counted) = pipe.until(&json!("counting"));
    assert_eq!(counted["result"]["content"][0]["text"], "counted to 8", "{counted}");
    echoes(&mut pipe);
    let [second] = <[u32; 1]>::try_from(children(pipe.pid())).unwrap();
    assert_ne!(first, second);
}

#[test]
fn a_server_that_comes_late_is_offered_when_it_is_there() {
    let scene = Scene::new(&format!(
        "[servers.late]\ncommand = [\"./late\"]\nenv = {{ COFFERDAM_CACHE_DIR = {:?} }}\n[toolsets.all]\nservers = \
         [\"late\"]\nplugins = [\"text\"]\n[plugins.text]\ncomponent = {:?}\n",
        shared_cache(),
        guest("text")
    ));
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    let before = tools(&mut pipe);
    assert!(
        before.contains(&"word_count".to_owned()) && !before.contains(&"echo".to_owned()),
        "{before:?}"
    );
    let (new, late) = (scene.path("new"), scene.path("late"));
    let serve = format!("#!/bin/sh\nexec {:?} serve --plugin {:?}\n", binary(), guest("served"));
    write_program(&new, &serve);
    std::fs::rename(&new, &late).unwrap();
    wait_until("the tools of the server are there", || {
        tools(&mut pipe).contains(&"echo".to_owned())
    });
    echoes(&mut pipe);
    pipe.has_said("the server `late` cannot be reached: the server does not start");
    pipe.has_said("connected to the server `late`: 4 tools");
    // A server that is removed from the configuration is no longer offered, and its process ends.
    let [child] = <[u32; 1]>::try_from(children(pipe.pid())).unwrap();
    std::fs::write(scene.config(), format!("[plugins.text]\ncomponent = {:?}\n", guest("text")))
        .unwrap();
    wait_until("the tools are gone", || !tools(&mut pipe).contains(&"echo".to_owned()));
    wait_until("the process has ended", || {
        !std::path::Path::new(&format!("/proc/{child}")).exists()
    });
}

#[test]
fn what_a_server_offers_later_is_offered() {
    let (scene, _) = asking();
    std::fs::write(
        scene.config(),
        std::fs::read_to_string(scene.config()).unwrap().replace("tools = ", "pin = false\n# "),
    )
    .unwrap();
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    assert!(!tools(&mut pipe).contains(&"word_count".to_owned()));
    let inner = std::fs::read_to_string(scene.path("inner.toml")).unwrap();
    let more = format!("{inner}[plugins.text]\ncomponent = {:?}\n", guest("text"));
    std::fs::write(scene.path("inner.toml"), more).unwrap();
    wait_until("the new tools go through", || tools(&mut pipe).contains(&"word_count".to_owned()));
}

#[test]
fn progress_goes_through_both() {
    let scene = Scene::new(&far("served"));
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    let mut counting = call("count", "count", &json!({"steps": 4, "pause_ms": 120}));
    counting["params"]["_meta"]["progressToken"] = json!("how far");
    pipe.send(counting.to_string().as_bytes());
    let (before, answer) = pipe.until(&json!("count"));
    assert_eq!(answer["result"]["content"][0]["text"], "counted to 4", "{answer}");
    let steps: Vec<_> =
        before.iter().filter(|line| line["method"] == "notifications/progress").collect();
    assert!(steps.len() >= 2, "{before:?}");
    for step in steps {
        assert_eq!(
            (&step["params"]["progressToken"], &step["params"]["total"]),
            (&json!("how far"), &json!(4.0))
        );
    }
}

#[test]
fn a_cancellation_goes_through_both() {
    let config = far("served").replace("\"serve\",", "\"serve\", \"--timeout\", \"10m\",");
    let scene = Scene::new(&config);
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    echoes(&mut pipe);
    let [child] = <[u32; 1]>::try_from(children(pipe.pid())).unwrap();
    pipe.send(call("endless", "compute", &json!({})).to_string().as_bytes());
    let busy = ticks(child) + 20;
    wait_until("the call computes", || ticks(child) > busy);
    let params = json!({"requestId": "endless", "reason": "enough"});
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    pipe.send(cancel.to_string().as_bytes());
    wait_until("the call has ended", || {
        let before = ticks(child);
        std::thread::sleep(Duration::from_millis(500));
        ticks(child) - before < 10
    });
    echoes(&mut pipe);
}

#[test]
fn a_call_that_needs_approval_is_approved_through_the_client_or_not_made() {
    let scene = Scene::new(&format!("{}approval = {{ always = [\"echo\"] }}\n", far("served")));
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    // This client cannot ask a user.
    let refused = pipe.call("echo", json!({"message": "hi"}));
    assert_eq!(refused["result"]["isError"], true, "{refused}");
    assert!(refused.to_string().contains("has to be approved by a person"), "{refused}");
    let mut asking = call("asking", "echo", &json!({"message": "hi"}));
    let can_ask = json!({"elicitation": {"form": {}}});
    asking["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = can_ask;
    let asked = pipe.ask(&asking);
    let questions =
        asked["result"]["inputRequests"].as_object().unwrap_or_else(|| panic!("{asked}"));
    let key = questions.keys().next().unwrap();
    asking["params"]["requestState"] = asked["result"]["requestState"].clone();
    asking["params"]["inputResponses"] =
        json!({key: {"action": "accept", "content": {"allow": true}}});
    asking["id"] = json!("allowed");
    let allowed = pipe.ask(&asking);
    assert_eq!(
        allowed["result"]["structuredContent"],
        json!({"echoed": {"message": "hi"}}),
        "{allowed}"
    );
}

const FORM: &str =
    r#"{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}"#;

/// Returns a server in front of one with a plugin that may ask.
fn asking() -> (Scene, Value) {
    let scene = Scene::new("");
    let inner = scene.path("inner.toml");
    let plugin =
        format!("[plugins.stores]\ncomponent = {:?}\ngrants.ask = [\"form\"]\n", guest("stores"));
    std::fs::write(&inner, plugin).unwrap();
    let config = format!(
        "[servers.far]\ncommand = [{:?}, \"serve\", \"--config\", {inner:?}]\nenv = {{ COFFERDAM_CACHE_DIR = {:?} }}\n\
         tools = [\"stores\"]\n",
        binary(),
        shared_cache()
    );
    std::fs::write(scene.config(), config).unwrap();
    let steps: &[&[&str]] = &[&["ask", "form", "Who are you?", FORM]];
    (scene, serde_json::from_str(&script::arguments(steps)).unwrap())
}

fn answer_text(answer: &Value) -> String {
    let text =
        answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    script::answers(text).join("\n")
}

#[test]
fn a_question_goes_through_both_and_so_does_its_answer_with_a_handshake() {
    let (scene, arguments) = asking();
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    let params = json!({
        "protocolVersion": LEGACY, "capabilities": {"elicitation": {}}, "clientInfo": {"name": "wire", "version": "1"},
    });
    pipe.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    pipe.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let params = json!({"name": "stores", "arguments": arguments});
    pipe.send(
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
            .to_string()
            .as_bytes(),
    );
    let asked = loop {
        let message = pipe.next();
        if message["method"] == "elicitation/create" {
            break message;
        }
        assert!(message.get("method").is_some(), "the question was not asked: {message}");
    };
    assert_eq!(asked["params"]["message"], "Who are you?", "{asked}");
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    pipe.send(
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer}).to_string().as_bytes(),
    );
    let (_, answered) = pipe.until(&json!(1));
    assert!(
        answer_text(&answered).contains("Accepted") && answer_text(&answered).contains("Ada"),
        "{}",
        answer_text(&answered)
    );
}

#[test]
fn a_question_goes_through_both_and_so_does_its_answer_without_a_handshake() {
    let (scene, arguments) = asking();
    let mut pipe = Pipe::of_config(&scene.config(), &[]);
    let asking = |id: &str, more: Value| {
        let mut params = json!({"name": "stores", "arguments": arguments});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let mut frame = request(id, "tools/call", params);
        frame["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
            json!({"elicitation": {"form": {}}});
        frame
    };
    let asked = pipe.ask(&asking("first", json!({})));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let questions = asked["result"]["inputRequests"].as_object().unwrap();
    let (key, question) = questions.iter().next().unwrap();
    assert_eq!(
        (questions.len(), &question["params"]["message"]),
        (1, &json!("Who are you?")),
        "{asked}"
    );
    let answer = json!({"action": "accept", "content": {"name": "Ada"}});
    let more =
        json!({"requestState": asked["result"]["requestState"], "inputResponses": {key: answer}});
    let answered = pipe.ask(&asking("second", more));
    assert!(
        answer_text(&answered).contains("Accepted") && answer_text(&answered).contains("Ada"),
        "{}",
        answer_text(&answered)
    );
}
