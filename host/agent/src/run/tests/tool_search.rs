//! Tests of searching and loading tools: `LOOP-68` to `LOOP-70`.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::pattern::ToolPattern;
use cofferdam_tool::{Functions, ToolSource, Toolset};
use serde_json::{Value, json};

use super::texts;
use crate::{
    Agent, AgentBuilder, BeforeRun, BoxError, ChatRequest, ChoiceBehavior, ContextProvider,
    LoopSettings, Message, MessageContent, Reply, Role, ScriptedClient, Session, ToolMode,
    ToolSearch,
};

/// Returns a source of tools `PREFIX_0` to `PREFIX_COUNT`, each of which returns its name.
fn source(prefix: &str, count: usize) -> Arc<dyn ToolSource> {
    let mut functions = Functions::new(prefix);
    for index in 0..count {
        let name = format!("{prefix}_{index}");
        let description = format!("Handles the {prefix} number {index}.");
        let declaration = Declaration::new(name.clone(), description, r#"{"type":"object"}"#);
        let added = functions.with(declaration, move |_, _| {
            let name = name.clone();
            async move { Ok(json!(name)) }
        });
        functions = added.unwrap();
    }
    Arc::new(functions)
}

fn builder(client: &ScriptedClient, count: usize) -> AgentBuilder {
    let mut tools = Toolset::new();
    tools.add(source("invoice", count)).unwrap();
    Agent::builder(client.clone()).tools(tools)
}

/// Creates a model that makes these calls one after another, and then says `done`.
fn calling(calls: &[(&str, Value)]) -> ScriptedClient {
    let replies = calls.iter().enumerate().map(|(index, (name, arguments))| {
        let call = MessageContent::call(index.to_string(), *name, arguments.to_string());
        Reply { messages: vec![Message::new(Role::Assistant, vec![call])], ..Reply::text("") }
    });
    ScriptedClient::new(replies.chain([Reply::text("done")]).collect::<Vec<_>>()).recording()
}

fn names(request: &ChatRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

#[tokio::test]
async fn a_model_finds_and_loads_what_it_needs_of_many_tools() {
    let client = calling(&[
        ("tools_search", json!({"query": "invoice 17", "limit": 2})),
        ("tools_load", json!({"names": ["invoice_17", "nothing"]})),
        ("invoice_17", json!({})),
        ("tools_load", json!({"names": ["invoice_3", "invoice_17"]})),
    ]);
    let agent = builder(&client, 41).build().unwrap();
    let session = Session::new();
    let response = agent.run("go").session(&session).await.unwrap();
    let texts = texts(&response.messages);
    let found: Value = serde_json::from_str(&texts[0]).unwrap();
    assert_eq!((&found["found"], found["tools"].as_array().unwrap().len()), (&json!(41), 2));
    assert_eq!(found["tools"][0]["name"], "invoice_17");
    assert_eq!(found["tools"][0]["inputSchema"]["type"], "object");
    assert_eq!(texts[1], r#"{"loaded":["invoice_17"],"unknown":["nothing"]}"#);
    assert_eq!(texts[2], "invoice_17");
    let requests = client.requests();
    let both = ["tools_search", "tools_load"];
    assert_eq!((names(&requests[0]), names(&requests[1])), (both.into(), both.into()));
    assert!(Arc::ptr_eq(&requests[0].tools, &requests[1].tools), "clients cache the list");
    let one = ["tools_search", "tools_load", "invoice_17"];
    assert_eq!((names(&requests[2]), requests[2].loaded_tools), (one.into(), 1));
    assert!(Arc::ptr_eq(&requests[2].tools, &requests[3].tools));
    let two = ["tools_search", "tools_load", "invoice_17", "invoice_3"];
    assert_eq!((names(&requests[4]), requests[4].loaded_tools), (two.into(), 2));
    let instructions = requests[0].options.instructions.as_ref().unwrap();
    assert!(instructions.contains("find one with tools_search"), "{instructions}");
    // The tools stay loaded in the session, in the same order, also if it comes from a file.
    let stored = serde_json::to_value(&session).unwrap();
    assert_eq!(stored["state"]["tool_search"], json!({"loaded": ["invoice_17", "invoice_3"]}));
    let session: Session = serde_json::from_value(stored).unwrap();
    let later = calling(&[]);
    builder(&later, 41).build().unwrap().run("and").session(&session).await.unwrap();
    assert_eq!(names(&later.requests()[0]), two);
    let other = calling(&[]);
    builder(&other, 41).build().unwrap().run("and").session(&Session::new()).await.unwrap();
    assert_eq!(names(&other.requests()[0]), both);
}

#[tokio::test]
async fn a_state_that_was_changed_loads_only_what_exists() {
    let session = Session::new();
    let loaded = json!(["invoice_1", "gone", 7, "invoice_1", "tools_load"]);
    session.set_part("tool_search", json!({"loaded": loaded}));
    let client = calling(&[]);
    builder(&client, 41).build().unwrap().run("go").session(&session).await.unwrap();
    assert_eq!(names(&client.requests()[0]), ["tools_search", "tools_load", "invoice_1"]);
}

/// Returns the number of functions in the first request of a run.
async fn advertised(count: usize, change: impl Fn(AgentBuilder) -> AgentBuilder) -> usize {
    let client = calling(&[]);
    change(builder(&client, count)).build().unwrap().run("go").await.unwrap();
    client.requests()[0].tools.len()
}

#[tokio::test]
async fn the_search_begins_above_a_number_of_tools_and_can_be_off() {
    assert_eq!(advertised(40, |builder| builder).await, 40);
    assert_eq!(advertised(41, |builder| builder).await, 2);
    assert_eq!(advertised(41, |builder| builder.tool_search(None)).await, 41);
    assert_eq!(advertised(3, |builder| builder.tool_search(ToolSearch::above(2))).await, 2);
    let patterns = |patterns: &[&str]| -> Vec<_> {
        patterns.iter().map(|pattern| ToolPattern::new(pattern).unwrap()).collect()
    };
    let always = || ToolSearch::default().always_load(patterns(&["invoice_5", "nothing"]));
    assert_eq!(advertised(41, |builder| builder.tool_search(always())).await, 3);
    let some = || ToolSearch::default().always_load(patterns(&["invoice_1*", "*_22", "voice*"]));
    // `invoice_1`, `invoice_10` to `invoice_19`, `invoice_22`, and the two of the search.
    assert_eq!(advertised(41, |builder| builder.tool_search(some())).await, 14);
    let all = ToolSearch::default().always_load(patterns(&["invoice_*"]));
    assert_eq!(advertised(41, |builder| builder.tool_search(all.clone())).await, 41);
    // A choice of functions says itself which are advertised.
    assert_eq!(advertised(41, |builder| builder.choice(ChoiceBehavior::auto())).await, 41);
    let off = || LoopSettings { enabled: false, ..LoopSettings::default() };
    assert_eq!(advertised(41, |builder| builder.settings(off())).await, 41);
}

#[tokio::test]
async fn a_tool_that_must_be_called_is_advertised() {
    let client = calling(&[]);
    let agent = builder(&client, 41).build().unwrap();
    agent.run("go").tool_choice(ToolMode::Required(Some("invoice_9".into()))).await.unwrap();
    assert_eq!(names(&client.requests()[0]), ["invoice_9", "tools_search", "tools_load"]);
}

/// A provider with tools of its own.
struct Notes;

#[async_trait]
impl ContextProvider for Notes {
    fn source_id(&self) -> &str {
        "notes"
    }

    async fn before_run(&self, run: &mut BeforeRun<'_>) -> Result<(), BoxError> {
        run.add_tools(source("note", 2));
        Ok(())
    }
}

#[tokio::test]
async fn tools_of_providers_count_and_are_always_advertised() {
    let client = calling(&[]);
    builder(&client, 39).context_provider(Notes).build().unwrap().run("go").await.unwrap();
    let expected = ["note_0", "note_1", "tools_search", "tools_load"];
    assert_eq!(names(&client.requests()[0]), expected);
}

#[tokio::test]
async fn tools_of_the_same_name_turn_the_search_off() {
    let client = calling(&[]);
    let mut functions = Functions::new("own");
    let schema = r#"{"type":"object"}"#;
    let own = Declaration::new("tools_search", "Mine.", schema);
    functions = functions.with(own, async |_, _| Ok(json!("mine"))).unwrap();
    let agent = builder(&client, 41).build().unwrap().with_source(Arc::new(functions)).unwrap();
    agent.run("go").await.unwrap();
    assert_eq!(client.requests()[0].tools.len(), 42);
}

#[tokio::test]
async fn calls_that_find_nothing_say_so() {
    let client = calling(&[
        ("tools_search", json!({"query": "?"})),
        ("tools_search", json!({"query": "weather"})),
        ("tools_load", json!({"names": ["weather"]})),
        // A tool that is not loaded runs all the same: the agent has it.
        ("invoice_2", json!({})),
    ]);
    let response = builder(&client, 41).build().unwrap().run("go").await.unwrap();
    let expected = [
        r#"{"error":{"message":"expected a query with at least one word"}}"#,
        r#"{"tools":[],"found":0}"#,
        r#"{"error":{"message":"there is no tool `weather`; find names with tools_search"}}"#,
        "invoice_2",
        "done",
    ];
    assert_eq!(texts(&response.messages), expected);
}
