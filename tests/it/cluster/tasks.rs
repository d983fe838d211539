//! Tasks that gateways share: any of them continues a task, and a task survives its gateway.

use std::time::{Duration, Instant};

use cofferdam_tests::guest;
use serde_json::{Value, json};

use super::{Nats, callers, worker};
use crate::wire::{ANSWER_MAX, Http, Pipe, Signal, command, request, send_signal};

/// A NATS server with JetStream, and a worker whose log is read.
struct Fleet {
    _folder: tempfile::TempDir,
    nats: Nats,
    worker: Pipe,
}

impl Fleet {
    fn start() -> Option<Self> {
        Self::with_worker(&[])
    }

    /// Starts a fleet whose worker has these arguments as well.
    fn with_worker(arguments: &[&str]) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let nats = Nats::with_jetstream(folder.path())?;
        let config = folder.path().join("worker.toml");
        let component = guest("mcp_conformance");
        let text = format!("[plugins.tasks]\ncomponent = {component:?}\ngrants.ask = [\"form\"]\n");
        std::fs::write(&config, text).unwrap();
        let mut worker = worker(&nats.url());
        worker.env("COFFERDAM_LOG", "info").arg("--config").arg(config).args(arguments);
        let worker = Pipe::of(&mut worker);
        worker.has_said("is ready with");
        Some(Self { _folder: folder, nats, worker })
    }

    fn gateway(&self) -> Pipe {
        let cluster = ["--cluster", &self.nats.url(), "--cluster-results", "jetstream"];
        Pipe::of(&mut command(&[], &cluster))
    }

    /// Asserts that the worker has run a tool once and never canceled it.
    fn has_run_once(self, tool: &str) {
        self.has_run(tool, 1);
    }

    /// Asserts that the worker has run a tool so many times and never canceled it.
    fn has_run(self, tool: &str, times: usize) {
        send_signal(self.worker.pid(), Signal::TERM);
        let said = self.worker.errors_at_end();
        let ended: Vec<_> = said
            .iter()
            .filter(|line| line.contains("call ended") && line.contains(&format!("{tool:?}")))
            .collect();
        assert_eq!(ended.len(), times, "{said:?}");
        assert!(ended.iter().all(|line| line.contains("end=\"ok\"")), "{said:?}");
    }
}

/// Returns a request of a client that accepts tasks and can ask its user.
fn task_request(method: &str, params: Value) -> Value {
    let mut request = request("id", method, params);
    request["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({
        "elicitation": {"form": {}},
        "extensions": {"io.modelcontextprotocol/tasks": {}},
    });
    request
}

fn ask(gateway: &mut Pipe, method: &str, params: Value) -> Value {
    let answer = gateway.ask(&task_request(method, params));
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// Calls a tool that becomes a task. Returns the id of the task.
fn start(gateway: &mut Pipe, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    let task = ask(gateway, "tools/call", params);
    assert_eq!(task["status"], "working", "{task}");
    task["taskId"].as_str().unwrap().to_owned()
}

fn get(gateway: &mut Pipe, id: &str) -> Value {
    let task = ask(gateway, "tasks/get", json!({"taskId": id}));
    assert_eq!(task["taskId"], id, "{task}");
    task
}

/// Polls the gateways in turn until the task has another status than these. Returns it with the
/// number of the gateway.
fn poll(gateways: &mut [Pipe], id: &str, statuses: &[&str]) -> (Value, usize) {
    let started = Instant::now();
    let mut number = 0;
    loop {
        let task = get(&mut gateways[number], id);
        if !statuses.contains(&task["status"].as_str().unwrap()) {
            return (task, number);
        }
        assert!(started.elapsed() < ANSWER_MAX, "{task}");
        std::thread::sleep(Duration::from_millis(100));
        number = (number + 1) % gateways.len();
    }
}

#[test]
fn a_task_survives_its_gateway() {
    let Some(fleet) = Fleet::start() else { return };
    let mut first = fleet.gateway();
    let id = start(&mut first, "slow_compute", json!({"seconds": 8, "label": "x"}));
    send_signal(first.pid(), Signal::KILL);
    let mut others = [fleet.gateway()];
    assert_eq!(get(&mut others[0], &id)["status"], "working");
    let (ended, _) = poll(&mut others, &id, &["working"]);
    assert_eq!(ended["status"], "completed", "{ended}");
    assert!(ended["result"].to_string().contains("slow_compute(x) done"), "{ended}");
    // The result is stored, so that a gateway that starts now has it.
    drop(others);
    assert_eq!(get(&mut fleet.gateway(), &id)["result"], ended["result"]);
    fleet.has_run_once("slow_compute");
}

#[test]
fn a_task_waits_for_a_worker_also_without_its_gateway() {
    let Some(fleet) = Fleet::with_worker(&["--calls", "1"]) else { return };
    let mut first = fleet.gateway();
    let arguments = |seconds, label| json!({"seconds": seconds, "label": label});
    let running = start(&mut first, "slow_compute", arguments(6, "a"));
    let [waiting, canceled] =
        ["b", "c"].map(|label| start(&mut first, "slow_compute", arguments(1, label)));
    let waits = get(&mut first, &waiting);
    assert_eq!(waits["statusMessage"], "all workers are busy; waiting for one", "{waits}");
    send_signal(first.pid(), Signal::KILL);

    let mut others = [fleet.gateway(), fleet.gateway()];
    ask(&mut others[0], "tasks/cancel", json!({"taskId": canceled}));
    let waits = get(&mut others[1], &waiting);
    assert_eq!(waits["statusMessage"], "all workers are busy; waiting for one", "{waits}");
    for (id, label) in [(running, "a"), (waiting, "b")] {
        let (ended, _) = poll(&mut others, &id, &["working"]);
        let text = ended["result"].to_string();
        assert!(text.contains(&format!("slow_compute({label}) done")), "{ended}");
    }
    assert_eq!(poll(&mut others, &canceled, &["working"]).0["status"], "cancelled");
    fleet.has_run("slow_compute", 2);
}

#[test]
fn all_gateways_know_a_task_and_its_questions() {
    let Some(fleet) = Fleet::start() else { return };
    let mut gateways = [fleet.gateway(), fleet.gateway(), fleet.gateway()];
    let id = start(&mut gateways[0], "confirm_delete", json!({"filename": "a.txt"}));
    let (asks, number) = poll(&mut gateways[1..], &id, &["working"]);
    assert_eq!(asks["status"], "input_required", "{asks}");
    let answer = json!({"action": "accept", "content": {"confirm": true}});
    let answers = json!({"taskId": id, "inputResponses": {"confirm": answer}});
    // At a gateway that has not seen the question.
    ask(&mut gateways[(number + 2) % 3], "tasks/update", answers);
    let (ended, _) = poll(&mut gateways, &id, &["working", "input_required"]);
    assert!(ended["result"].to_string().contains("confirmed = true"), "{ended}");
    fleet.has_run_once("confirm_delete");
}

#[test]
fn a_task_is_canceled_through_another_gateway() {
    let Some(fleet) = Fleet::start() else { return };
    let mut gateways = [fleet.gateway(), fleet.gateway()];
    let id = start(&mut gateways[0], "slow_compute", json!({"seconds": 60}));
    ask(&mut gateways[1], "tasks/cancel", json!({"taskId": id}));
    let ended = fleet.worker.has_said("call ended");
    assert!(ended.contains("slow_compute") && !ended.contains("end=\"ok\""), "{ended}");
    let (ended, _) = poll(&mut gateways, &id, &["working"]);
    assert_eq!(ended["status"], "cancelled", "{ended}");
}

#[test]
fn a_task_belongs_to_its_caller_at_all_gateways() {
    let Some(fleet) = Fleet::start() else { return };
    let ([ann, bob], config) = callers();
    let [mut one, mut other] = [(); 2].map(|()| fleet.nats.sharing_gateway(&config));
    let ask = |gateway: &mut Http, (_, token): &(&str, String), method: &str, params: Value| {
        gateway.token.clone_from(token);
        let answer = gateway.ask(&task_request(method, params));
        serde_json::from_str::<Value>(&answer.body).unwrap_or_else(|_| panic!("{answer:?}"))
    };
    let call = json!({"name": "slow_compute", "arguments": {"seconds": 3}});
    let task = ask(&mut one, &ann, "tools/call", call)["result"].clone();
    let id = json!({"taskId": task["taskId"]});
    let none = ask(&mut other, &bob, "tasks/get", id.clone());
    assert_eq!(none["error"]["message"], "there is no task of this id", "{none}");
    let unknown = ask(&mut other, &ann, "tasks/get", json!({"taskId": "../../x"}));
    assert_eq!(unknown["error"]["message"], "there is no task of this id", "{unknown}");
    let found = ask(&mut other, &ann, "tasks/get", id);
    assert_eq!(found["result"]["status"], "working", "{found}");
}
