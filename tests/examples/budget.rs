//! A callback after each round of calls: it ends the run when the run has cost enough. Completed
//! work stays in the response.
//!
//! `TokenBudget` is a hard limit, which is an error.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::sync::Arc;

use cofferdam_agent::{Agent, BoxError, IterationContext, LoopSettings, ScriptedClient};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::json;

const SCRIPT: &str = r#"
{"calls":[{"tool":"look"}],"usage":{"input":400,"output":20}}
{"calls":[{"tool":"look"}],"usage":{"input":500,"output":20}}
{"calls":[{"tool":"look"}],"usage":{"input":600,"output":20}}
{"text":"I could go on like this for ever."}
"#;

/// Number of tokens after which no further round begins.
const ENOUGH: u64 = 900;

fn stop_when_enough(context: &mut IterationContext<'_>) -> Result<(), BoxError> {
    let used = context.total_usage.map_or(0, |usage| usage.total);
    println!("after round {}: {used} tokens", context.iteration + 1);
    context.terminate = used >= ENOUGH;
    Ok(())
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let look = Declaration::new("look", "Looks around.", r#"{"type":"object","properties":{}}"#);
    let functions = Functions::new("eyes").with(look, async |_, _| Ok(json!("nothing new")))?;
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions))?;
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?;
    let settings = LoopSettings {
        iteration_completed: Some(Arc::new(stop_when_enough)),
        ..LoopSettings::default()
    };
    let agent = Agent::builder(model).tools(toolset).settings(settings).build()?;
    let response = agent.run("Look until something happens.").await?;
    println!("{} messages, and no answer: {:?}", response.messages.len(), response.text());
    Ok(())
}
