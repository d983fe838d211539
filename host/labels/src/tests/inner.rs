//! Tests of calls that called tools make.

use cofferdam_tool::invoke::OuterCall;

use super::*;

/// Tools that call the tools in their `text`, a JSON list of names and texts: `relay` and `other`
/// one after another, `both` at the same time. `slow` takes a while, `label` notes the label of its
/// caller, and `stray` calls with an unknown outer call.
struct Relays {
    definitions: Arc<[Arc<ToolDefinition>]>,
    seen: Arc<Mutex<Vec<Integrity>>>,
}

impl Relays {
    fn new() -> Self {
        let names = ["relay", "other", "both", "slow", "label", "stray"];
        Self { definitions: Plugin::new(&names).definitions, seen: Arc::default() }
    }
}

#[async_trait]
impl ToolSource for Relays {
    fn name(&self) -> &str {
        "relays"
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let tool = call.tool.name.as_str();
        match tool {
            "slow" => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            "label" => {
                let label = context.inner_calls.as_ref().unwrap().label().unwrap();
                self.seen.lock().unwrap().push(label.integrity);
            }
            _ => {}
        }
        let text = call.arguments.value().get("text").and_then(Value::as_str).unwrap_or("[]");
        let made: Vec<(String, Value)> = serde_json::from_str(text).unwrap();
        let outer_id = if tool == "stray" { "unknown" } else { &context.call_id };
        let mut running = tokio::task::JoinSet::new();
        for (number, (name, calls)) in made.into_iter().enumerate() {
            let outer = OuterCall { call_id: outer_id.to_owned(), depth: 1, files: Arc::new(()) };
            let inner = CallContext {
                outer: Some(outer),
                inner_calls: context.inner_calls.clone(),
                ..CallContext::new(format!("{}.{}", context.call_id, number + 1))
            };
            let toolset = call.toolset.unwrap().clone();
            let arguments = json!({"text": calls.to_string()}).to_string();
            running.spawn(async move {
                toolset.call(&name, Some(arguments.as_bytes()), &inner).await.unwrap();
            });
            if tool != "both" {
                running.join_next().await;
            }
        }
        running.join_all().await;
        let outcome = Outcome::Ok(Output::Value(json!("made")));
        let mut record = CallRecord::default();
        record.set_outcome(&outcome);
        Completion::new(outcome, record)
    }
}

/// Calls a tool of [`Relays`] with a policy that trusts all of them but `other` and `slow`. Returns
/// what was sent, and the integrity that `label` has noted.
async fn called(tool: &str, calls: Value) -> (Vec<Value>, Vec<Integrity>) {
    let trusted = StatedLabels {
        source_integrity: Some(Integrity::Trusted),
        accepts_untrusted: Some(true),
        ..StatedLabels::default()
    };
    let untrusted =
        StatedLabels { source_integrity: Some(Integrity::Untrusted), ..trusted.clone() };
    let policy = LabelPolicy::new()
        .source("relays", trusted)
        .tool("other", untrusted.clone())
        .tool("slow", untrusted);
    let scene = Scene::new(policy);
    let mut tools = toolset(Plugin::new(&[]), &scene.sent);
    let relays = Relays::new();
    let seen = Arc::clone(&relays.seen);
    tools.add(Arc::new(relays)).unwrap();
    let client = calling(&[&[(tool, json!({"text": calls.to_string()}))]]);
    let agent = Agent::builder(client).tools(tools).guard(scene.policy.clone()).build().unwrap();
    agent.run("hi").session(&scene.session).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    let text = |sent: String| -> Value {
        let sent: Value = serde_json::from_str(&sent).unwrap();
        serde_json::from_str(sent["text"].as_str().unwrap()).unwrap()
    };
    (scene.sent().into_iter().map(text).collect(), seen)
}

async fn sent(tool: &str, calls: Value) -> Vec<Value> {
    called(tool, calls).await.0
}

#[tokio::test]
async fn an_untrusted_tool_sends_nothing_through_a_trusted_one() {
    let send = json!([["send", 1]]);
    assert_eq!(sent("relay", send.clone()).await, [1]);
    assert!(sent("other", send.clone()).await.is_empty());
    assert_eq!(sent("relay", json!([["relay", send]])).await, [1]);
    assert!(sent("relay", json!([["other", send]])).await.is_empty());
    assert_eq!(sent("relay", json!([["relay", [["relay", send]]]])).await, [1]);
    for (second, third) in [("other", "relay"), ("relay", "other"), ("other", "other")] {
        let calls = json!([[second, [[third, send]]]]);
        assert!(sent("relay", calls).await.is_empty(), "{second}, {third}");
    }
}

#[tokio::test]
async fn a_tool_does_not_depend_on_those_that_run_beside_it() {
    // What `slow` returns is not there yet.
    assert_eq!(sent("both", json!([["slow", []], ["send", 1]])).await, [1]);
    assert!(sent("relay", json!([["slow", []], ["send", 1]])).await.is_empty());
    let calls = json!([["other", [["send", 1]]], ["relay", [["send", 2]]], ["send", 3]]);
    assert_eq!(sent("both", calls).await, [3, 2]);
    assert!(sent("both", json!([["relay", [["other", [["send", 1]]]]]])).await.is_empty());
}

#[tokio::test]
async fn the_result_of_a_call_counts_for_all_calls_after_it() {
    let calls = json!([["relay", [["slow", []]]], ["send", 1]]);
    assert!(sent("relay", calls).await.is_empty());
    assert_eq!(sent("relay", json!([["send", 1], ["slow", []], ["send", 2]])).await, [1]);
}

#[tokio::test]
async fn a_call_without_a_known_outer_call_may_have_seen_anything() {
    assert!(sent("stray", json!([["send", 1]])).await.is_empty());
    assert!(sent("relay", json!([["stray", [["send", 1]]]])).await.is_empty());
}

#[tokio::test]
async fn the_label_of_a_caller_has_those_of_the_calls_that_it_is_nested_in() {
    let label = json!([["label", []]]);
    assert_eq!(called("relay", json!([["relay", label]])).await.1, [Integrity::Trusted]);
    assert_eq!(called("relay", json!([["other", label]])).await.1, [Integrity::Untrusted]);
}
