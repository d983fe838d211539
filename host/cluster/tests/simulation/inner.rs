//! Calls that a tool at a worker makes of other tools, about which the gateway decides.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use cofferdam_cluster::{Bus as _, NodeName, Worker, WorkerOptions};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::invoke::{InnerCall, InnerCalls, OuterCall};
use cofferdam_tool::label::Label;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolFailure,
    ToolSource, Toolset,
};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::cluster::{Cluster, simulate, simulate_seed};
use super::scenario::Faults;

/// Tools of a worker: `relay` calls the tools in its `text`, a JSON list of names and texts, one
/// after another, and returns their ends; `read` states a label, as a remote server can; `send`
/// notes that it was called; `kept` has a result of `read` that the worker has kept.
struct Relays {
    name: &'static str,
    definitions: Arc<[Arc<ToolDefinition>]>,
    sent: Arc<Mutex<usize>>,
    label: Arc<Mutex<Option<Label>>>,
}

impl Relays {
    fn new(name: &'static str, tools: &[&str]) -> Self {
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
        let define =
            |tool: &&str| Arc::new(Declaration::new(*tool, "Relays.", schema).compile().unwrap());
        let definitions = tools.iter().map(define).collect();
        Self { name, definitions, sent: Arc::default(), label: Arc::default() }
    }
}

#[async_trait]
impl ToolSource for Relays {
    fn name(&self) -> &str {
        self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let mut ends = Vec::new();
        let text = call.arguments.value().get("text").and_then(Value::as_str).unwrap_or("[]");
        let made: Vec<(String, Value)> = serde_json::from_str(text).unwrap();
        for (number, (tool, calls)) in made.into_iter().enumerate() {
            let call_id = context.call_id.clone();
            let inner = CallContext {
                outer: Some(OuterCall { call_id, depth: 1, files: Arc::new(()) }),
                inner_calls: context.inner_calls.clone(),
                ..CallContext::new(format!("{}.{}", context.call_id, number + 1))
            };
            let arguments = json!({"text": calls.to_string()}).to_string();
            let toolset = call.toolset.unwrap();
            let ended = toolset.call(&tool, Some(arguments.as_bytes()), &inner).await.unwrap();
            ends.push(match ended.outcome {
                Outcome::Failure(failure) => json!(failure.message),
                Outcome::Ok(Output::Value(value)) => value,
                other => json!(other.word()),
            });
        }
        if call.tool.name.as_str() == "kept" {
            let read = call.toolset.unwrap();
            let read = InnerCall {
                call_id: "kept",
                outer_call_id: None,
                tool: read.definition("read").unwrap(),
                source: self,
            };
            let mut record = CallRecord::default();
            record.label = Some(Label::untrusted());
            context.inner_calls.as_ref().unwrap().ended(&read, &record);
        }
        if call.tool.name.as_str() == "send" {
            *self.sent.lock().unwrap() += 1;
        }
        *self.label.lock().unwrap() =
            context.inner_calls.as_ref().and_then(|inner_calls| inner_calls.label());
        let mut completion = Completion::ended(Outcome::Ok(Output::Value(json!(ends))), context);
        if call.tool.name.as_str() == "read" {
            completion.record.label = Some(Label::untrusted());
        }
        completion
    }
}

/// Caller that lets nothing be sent after something untrusted was read. Notes what it decides about.
#[derive(Default)]
struct Caller {
    label: Mutex<Label>,
    seen: Mutex<Vec<String>>,
}

impl Caller {
    fn note(&self, what: &str, call_id: &str) {
        self.seen.lock().unwrap().push(format!("{what} {call_id}"));
    }
}

#[async_trait]
impl InnerCalls for Caller {
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        let is_untrusted = *self.label.lock().unwrap() != Label::default();
        if call.tool.name.as_str() == "send" && is_untrusted {
            self.note("refused", call.call_id);
            return Err(Box::new(ToolFailure::new("Policy violation")));
        }
        Ok(())
    }

    async fn invoke(
        &self,
        call: ToolCall<'_>,
        source: &dyn ToolSource,
        context: &CallContext,
    ) -> Completion {
        let outer = &context.outer.as_ref().unwrap().call_id;
        self.note("begun", &format!("{} in {outer}", context.call_id));
        source.invoke(call, context).await
    }

    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        self.note("ended", call.call_id);
        if let Some(label) = &record.label {
            self.label.lock().unwrap().add(label);
        }
    }

    fn label(&self) -> Option<Label> {
        Some(self.label.lock().unwrap().clone())
    }
}

/// A worker with [`Relays`], and a gateway.
struct Scene {
    sent: Arc<Mutex<usize>>,
    label: Arc<Mutex<Option<Label>>>,
    toolset: Toolset,
    gateway: Arc<super::network::SimulatedBus>,
    _worker: Worker,
}

impl Scene {
    async fn new(cluster: &Cluster) -> Self {
        let relays = Relays::new("relays", &["relay", "read", "send", "kept"]);
        let (sent, label) = (Arc::clone(&relays.sent), Arc::clone(&relays.label));
        let mut tools = Toolset::new();
        tools.add(Arc::new(relays)).unwrap();
        // The gateway has a tool with this name from elsewhere.
        tools.add(Arc::new(Relays::new("hidden", &["other"]))).unwrap();
        let options =
            WorkerOptions { name: NodeName::new("w1").unwrap(), ..WorkerOptions::default() };
        let worker = Worker::start(cluster.network.connect(1), tools, options).await.unwrap();
        let (dispatcher, gateway) = cluster.gateway(2).await;
        let mut toolset = Toolset::new();
        // A message of the worker can be lost.
        while toolset.definitions().next().is_none() {
            for source in dispatcher.discover().await.unwrap_or_default() {
                if source.name() == "relays" {
                    toolset.add(source).unwrap();
                }
            }
        }
        toolset.add(Arc::new(Relays::new("elsewhere", &["other"]))).unwrap();
        Self { sent, label, toolset, gateway, _worker: worker }
    }

    /// Calls `relay` with the id `a`. Returns the ends of its calls.
    async fn relay(&self, calls: Value, caller: Option<&Arc<Caller>>) -> Value {
        match self.relay_unless_lost(calls, caller).await {
            Outcome::Ok(Output::Value(value)) => value,
            other => panic!("{other:?}"),
        }
    }

    async fn relay_unless_lost(&self, calls: Value, caller: Option<&Arc<Caller>>) -> Outcome {
        let inner_calls = caller.map(|caller| Arc::clone(caller) as Arc<dyn InnerCalls>);
        let context = CallContext { inner_calls, ..CallContext::new("a") };
        let (toolset, arguments) =
            (self.toolset.clone(), json!({"text": calls.to_string()}).to_string());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.gateway.spawn(Box::pin(async move {
            let ended = toolset.call("relay", Some(arguments.as_bytes()), &context).await;
            let _ = sender.send(ended.unwrap().outcome);
        }));
        receiver.await.unwrap()
    }

    fn sent(&self) -> usize {
        *self.sent.lock().unwrap()
    }
}

#[test]
fn the_caller_at_the_gateway_decides_about_each_inner_call() {
    simulate(async |cluster| {
        let scene = Scene::new(&cluster).await;
        let caller = Arc::new(Caller::default());
        let calls = json!([["send", []], ["relay", [["read", []]]], ["send", []]]);
        let ends = scene.relay(calls.clone(), Some(&caller)).await;
        assert_eq!(ends, json!([[], [[]], "Policy violation"]));
        assert_eq!(scene.sent(), 1, "what was read is untrusted");
        let seen = caller.seen.lock().unwrap().clone();
        let expected = [
            "begun a.1 in a",
            "ended a.1",
            "begun a.2 in a",
            "begun a.2.1 in a.2",
            "ended a.2.1",
            "ended a.2",
            "refused a.3",
        ];
        assert_eq!(seen, expected);
        // What a program at the worker stores has the label of the caller.
        assert_eq!(*scene.label.lock().unwrap(), Some(Label::untrusted()));

        // A call without such a caller has the grants of the worker only.
        assert_eq!(scene.relay(calls, None).await, json!([[], [[]], []]));
        assert_eq!(scene.sent(), 3);
        assert_eq!(*scene.label.lock().unwrap(), None);
    });
}

#[test]
fn a_tool_that_the_gateway_does_not_have_cannot_be_checked() {
    simulate(async |cluster| {
        let scene = Scene::new(&cluster).await;
        let ends = scene.relay(json!([["other", []]]), Some(&Arc::default())).await;
        let message =
            "the gateway does not offer 'other' of 'hidden', so its agent cannot check this call";
        assert_eq!(ends, json!([message]));
        assert_eq!(scene.relay(json!([["other", []]]), None).await, json!([[]]));
    });
}

#[test]
fn a_result_that_the_worker_has_kept_counts_before_the_next_call_and_at_the_end() {
    simulate(async |cluster| {
        let scene = Scene::new(&cluster).await;
        for next in [json!(["send", []]), json!(["relay", []])] {
            let caller = Arc::new(Caller::default());
            let sends = next[0] == "send";
            let ends = scene.relay(json!([["kept", []], next]), Some(&caller)).await;
            assert_eq!(ends[1] == "Policy violation", sends, "{ends}");
            assert_eq!(*caller.label.lock().unwrap(), Label::untrusted());
            assert_eq!(scene.sent(), 0);
        }
        let caller = Arc::new(Caller::default());
        scene.relay(json!([["kept", []]]), Some(&caller)).await;
        assert_eq!(*caller.label.lock().unwrap(), Label::untrusted());
    });
}

#[test]
fn many_inner_calls_need_no_more_questions_than_a_client_answers() {
    simulate(async |cluster| {
        let scene = Scene::new(&cluster).await;
        let calls = vec![json!(["send", []]); 200];
        let ends = scene.relay(json!(calls), Some(&Arc::default())).await;
        assert_eq!((ends, scene.sent()), (json!(vec![json!([]); 200]), 200));
    });
}

#[test]
fn no_inner_call_runs_while_the_gateway_is_away() {
    simulate(async |cluster| {
        let scene = Scene::new(&cluster).await;
        let caller = Arc::new(Caller::default());
        let calls = json!(vec![json!(["send", []]); 200]);
        let call = scene.relay(calls, Some(&caller));
        let cut = async {
            while scene.sent() < 3 {
                sleep(Duration::from_millis(1)).await;
            }
            cluster.network.kill(2);
            sleep(Duration::from_millis(50)).await;
            let before = scene.sent();
            sleep(Duration::from_secs(2)).await;
            assert_eq!(scene.sent(), before);
        };
        tokio::select! {
            _ = call => panic!("the gateway is gone"),
            () = cut => {}
        }
    });
}

#[test]
fn messages_that_are_lost_late_or_doubled_change_no_decision() {
    let mut completed = 0;
    for seed in (0..60).flat_map(|week| [7 * week + 2, 7 * week + 3]) {
        simulate_seed((seed, Faults::of(seed)), async |cluster| {
            let scene = Scene::new(&cluster).await;
            let caller = Arc::new(Caller::default());
            let calls = json!([["send", []], ["read", []], ["send", []], ["relay", []]]);
            let outcome = scene.relay_unless_lost(calls, Some(&caller)).await;
            let seen = caller.seen.lock().unwrap().clone();
            let expected = [
                "begun a.1 in a",
                "ended a.1",
                "begun a.2 in a",
                "ended a.2",
                "refused a.3",
                "begun a.4 in a",
                "ended a.4",
            ];
            assert!(expected.starts_with(&seen.iter().map(String::as_str).collect::<Vec<_>>()));
            assert!(scene.sent() <= 1, "seed {seed}");
            if let Outcome::Ok(Output::Value(ends)) = outcome {
                assert_eq!(ends, json!([[], [], "Policy violation", []]), "seed {seed}");
                assert_eq!((seen.len(), scene.sent()), (expected.len(), 1), "seed {seed}");
                completed += 1;
            }
        });
    }
    assert!(completed > 90, "only {completed} calls have ended");
}
