//! End-to-end tests of runs, with scripted models and functions of the host.

mod answers;
mod call_ids;
mod cancellation;
mod hooks;
mod layers;
mod requests;

mod streams;
mod suspended;
mod tool_search;

use std::sync::{Arc, Mutex};
use std::time::Duration;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::{Functions, ToolError, ToolFailure, Toolset};
use serde_json::{Value, json};

use crate::{
    AfterScript, Agent, AgentBuilder, Message, MessageContent, Reply, Role, ScriptedClient,
    TokenUsage,
};

/// Log of calls, in order.
type Log = Arc<Mutex<Vec<String>>>;

fn toolset(log: &Log) -> Toolset {
    let mut functions = Functions::new("tests");
    for name in ["echo", "slow", "fail", "crash", "unsteady"] {
        let log = Arc::clone(log);
        let schema = r#"{"type":"object","properties":{"text":{"type":"string"}}}"#;
        let declaration = Declaration::new(name, "For tests.", schema);
        let added = functions.with(declaration, move |arguments, _| {
            let log = Arc::clone(&log);
            async move {
                let text = arguments
                    .value()
                    .get("text")
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                let earlier = {
                    let mut log = log.lock().unwrap();
                    let earlier = log.iter().filter(|line| line.starts_with(name)).count();
                    log.push(format!("{name}({text})"));
                    earlier
                };
                match name {
                    "slow" => tokio::time::sleep(Duration::from_secs(60)).await,
                    "fail" => return Err(FunctionEnd::failure("no such thing")),
                    "crash" => {
                        let error = ToolError::host("Broken").with_detail("secret");
                        return Err(FunctionEnd::Error(Box::new(error)));
                    }
                    "unsteady" if earlier < 2 => {
                        let mut failure = ToolFailure::new("try again");
                        failure.transient = Some(true);
                        return Err(FunctionEnd::Failure(Box::new(failure)));
                    }
                    _ => {}
                }
                Ok(json!(text))
            }
        });
        functions = added.unwrap();
    }
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions)).unwrap();
    toolset
}

/// Creates a model that makes these calls, each batch in one reply, and then says `done`.
fn calling(batches: &[&[(&str, &str)]]) -> ScriptedClient {
    let mut ids = 0..;
    let replies = batches.iter().map(|batch| {
        let contents = batch.iter().map(|(name, arguments)| {
            MessageContent::call(ids.next().unwrap_or_default().to_string(), *name, *arguments)
        });
        let messages = vec![Message::new(Role::Assistant, contents.collect())];
        Reply {
            messages,
            usage: Some(TokenUsage { total: 10, ..TokenUsage::default() }),
            ..Reply::default()
        }
    });
    let replies: Vec<_> = replies.chain([Reply::text("done")]).collect();
    ScriptedClient::new(replies).then(AfterScript::Silence).recording()
}

fn agent(client: &ScriptedClient, log: &Log) -> AgentBuilder {
    Agent::builder(client.clone()).tools(toolset(log))
}

/// Returns the strings of results and of the model.
fn texts(messages: &[Arc<Message>]) -> Vec<String> {
    let contents = messages.iter().flat_map(|message| &message.contents);
    let text = |content: &MessageContent| match content {
        MessageContent::Text(text) => Some(text.text.clone()),
        MessageContent::FunctionResult(result) => Some(result.result.clone()),
        _ => None,
    };
    contents.filter_map(text).collect()
}
