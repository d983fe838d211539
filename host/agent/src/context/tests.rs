//! Tests of memory files, todo lists and modes, with scripted models.

mod memory;
mod modes;

use std::sync::Arc;

use cofferdam_files::{FileStore, MemoryStore, Quota, StorePath, StoreSharing, WriteMode};
use serde_json::{Value, json};

use super::*;
use crate::compaction::SlidingWindow;
use crate::{AfterScript, Agent, Compaction, FunctionResult, Response, ScriptedClient};

fn client(lines: &[Value]) -> ScriptedClient {
    let script: Vec<_> = lines.iter().map(ToString::to_string).collect();
    let client = ScriptedClient::read("script", script.join("\n").as_bytes()).unwrap();
    client.then(AfterScript::Silence).recording()
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"tool": tool, "arguments": arguments})
}

/// Returns a script line with one call.
fn calls(tool: &str, arguments: &Value) -> Value {
    json!({"calls": [call(tool, arguments)]})
}

fn says(text: &str) -> Value {
    json!({"text": text})
}

/// Returns the texts of the messages in the request with this index.
fn saw(model: &ScriptedClient, request: usize) -> Vec<String> {
    let messages = model.requests().remove(request).messages;
    messages.iter().map(|message| message.text()).filter(|text| !text.is_empty()).collect()
}

fn results(response: &Response) -> Vec<FunctionResult> {
    response.messages.iter().flat_map(|message| message.results().cloned()).collect()
}

/// Runs the calls of one script in a session and returns their results.
async fn run_calls(
    provider: impl ContextProvider + 'static,
    session: &Session,
    made: &[Value],
) -> Vec<String> {
    let lines = [json!({"calls": made}), says("done")];
    let agent = Agent::builder(client(&lines)).context_provider(provider).build().unwrap();
    let response = agent.run("go").session(session).await.unwrap();
    results(&response).into_iter().map(|result| result.result).collect()
}

#[tokio::test]
async fn todos_have_the_results_of_the_rules() {
    let session = Session::with_id("s");
    let list = TodoList::new().unwrap();
    let made = [
        call(
            "todos_add",
            &json!({"todos": [{"title": " Buy\n tea ", "description": "green"}, {"title": "Drink"}]}),
        ),
        call("todos_add", &json!({"todos": []})),
        call("todos_add", &json!({"todos": [{"title": "fine"}, {"title": "  "}]})),
        call(
            "todos_complete",
            &json!({"items": [{"id": 1, "reason": "bought"}, {"id": 9, "reason": "?"}]}),
        ),
        call("todos_complete", &json!({"items": [{"id": 1, "reason": "again"}]})),
        call("todos_complete", &json!({"items": [{"id": 2, "reason": " "}]})),
        call("todos_complete", &json!({"items": []})),
        call("todos_remove", &json!({"ids": [2, 7]})),
        call("todos_remove", &json!({"ids": []})),
        call("todos_add", &json!({"todos": [{"title": "Wash up"}]})),
        call("todos_get_remaining", &json!({})),
    ];
    let results = run_calls(list, &session, &made).await;
    let first = json!([
        {"id": 1, "title": "Buy tea", "description": "green", "is_complete": false},
        {"id": 2, "title": "Drink", "is_complete": false},
    ]);
    assert_eq!(serde_json::from_str::<Value>(&results[0]).unwrap(), first);
    assert_eq!(results[1], "todos must contain at least one item.");
    assert_eq!(results[2], "title must not be blank.");
    assert_eq!(results[3..5], [r#"{"completed":1}"#, r#"{"completed":0}"#]);
    assert_eq!(results[5], "reason must not be blank.");
    assert_eq!(results[6], "items must contain at least one entry.");
    assert_eq!(results[7], r#"{"removed":1}"#);
    assert_eq!(results[8], "ids must contain at least one todo ID.");
    // Numbers are not used again, and an addition that failed has used none.
    let remaining = json!([{"id": 3, "title": "Wash up", "is_complete": false}]);
    assert_eq!(serde_json::from_str::<Value>(&results[10]).unwrap(), remaining);
    assert_eq!(TodoList::items(&session).len(), 2);
}

#[tokio::test]
async fn a_list_is_announced_when_others_have_changed_it_and_is_part_of_the_session() {
    let model = client(&[
        says("hello"),
        calls("todos_add", &json!({"todos": [{"title": "Buy tea"}]})),
        says("added"),
        says("next"),
        says("last"),
    ]);
    let agent =
        Agent::builder(model.clone()).context_provider(TodoList::new().unwrap()).build().unwrap();
    let session = Session::with_id("s");
    agent.run("hi").session(&session).await.unwrap();
    agent.run("plan").session(&session).await.unwrap();
    // The model knows its own list, and an empty list is not mentioned.
    agent.run("go on").session(&session).await.unwrap();
    assert_eq!(saw(&model, 3), ["hi", "hello", "plan", "added", "go on"]);

    // The list survives the JSON form of the session.
    let stored = serde_json::to_value(&session).unwrap();
    let session: Session = serde_json::from_value(stored).unwrap();
    let mut items = TodoList::items(&session);
    items[0].is_complete = true;
    TodoList::set_items(&session, items);
    agent.run("and now").session(&session).await.unwrap();
    let expected = ["go on", "next", "### Current todo list\n- 1 [done] Buy tea", "and now"];
    assert_eq!(saw(&model, 4)[4..], expected);
    agent.run("end").session(&session).await.unwrap();
    // It is stored once, where it was said.
    let mentions = |text: &&String| text.starts_with("### Current todo list");
    assert_eq!(saw(&model, 5).iter().filter(mentions).count(), 1);
}

#[tokio::test]
async fn after_a_compaction_the_state_is_announced_again_and_does_not_pile_up() {
    let model = client(&[]);
    let agent = Agent::builder(model.clone())
        .context_provider(TodoList::new().unwrap())
        .context_provider(PlanMode::new().unwrap())
        .compaction(Compaction::new(SlidingWindow::new(3)))
        .build()
        .unwrap();
    let session = Session::with_id("s");
    let item = TodoItem { id: 1, title: "Buy tea".into(), description: None, is_complete: false };
    TodoList::set_items(&session, vec![item]);
    for turn in 0..12 {
        agent.run(format!("turn {turn}")).session(&session).await.unwrap();
        let texts = saw(&model, turn);
        let count = |start: &str| texts.iter().filter(|text| text.starts_with(start)).count();
        assert!(count("### Current todo list") <= 2, "{texts:?}");
        assert!((1..=2).contains(&count("[Mode: plan]")), "{texts:?}");
        assert!(texts.len() <= 9, "{texts:?}");
    }
}

#[tokio::test]
async fn the_instructions_and_the_tools_are_the_same_in_every_request() {
    let model = client(&[calls("todos_add", &json!({"todos": [{"title": "a"}]}))]);
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
    let agent = Agent::builder(model.clone())
        .context_provider(MemoryFiles::new(store).unwrap())
        .context_provider(TodoList::new().unwrap())
        .context_provider(PlanMode::new().unwrap())
        .build()
        .unwrap();
    let session = Session::with_id("s");
    agent.run("one").session(&session).await.unwrap();
    PlanMode::set(&session, Mode::Execute);
    agent.run("two").session(&session).await.unwrap();
    let requests = model.requests();
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(request.options.instructions, requests[0].options.instructions);
        let names = |tools: &[Arc<ToolDefinition>]| {
            tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&request.tools), names(&requests[0].tools));
    }
    // Every earlier request is the beginning of the next one.
    for (earlier, later) in requests.iter().zip(&requests[1..]) {
        let contents = |messages: &[Arc<Message>]| {
            messages.iter().map(|message| message.contents.clone()).collect::<Vec<_>>()
        };
        let (earlier, later) = (contents(&earlier.messages), contents(&later.messages));
        assert_eq!(later[..earlier.len()], earlier);
    }
}

#[tokio::test]
async fn a_run_that_fails_before_it_has_output_announces_again() {
    let session = Session::with_id("s");
    let broken = ScriptedClient::read("script", b"".as_slice()).unwrap();
    let agent = Agent::builder(broken).context_provider(PlanMode::new().unwrap()).build().unwrap();
    assert!(agent.run("hi").session(&session).await.is_err());
    let model = client(&[]);
    let agent =
        Agent::builder(model.clone()).context_provider(PlanMode::new().unwrap()).build().unwrap();
    agent.run("hi").session(&session).await.unwrap();
    assert_eq!(saw(&model, 0), ["[Mode: plan]", "hi"]);
}
