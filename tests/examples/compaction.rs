//! Compacts a long run while it goes on: a model writes a summary, which replaces old messages.
//! Calls and their results stay together, and the response keeps everything.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::sync::Arc;

use cofferdam_agent::{Agent, Compaction, LoopSettings, ScriptedClient};
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::{Functions, Toolset};
use serde_json::json;

const SCRIPT: &str = r#"
{"calls":[{"tool":"page"}]}
{"calls":[{"tool":"page"}]}
{"calls":[{"tool":"page"}]}
{"text":"It is about nothing."}
"#;

/// Script of the model that summarizes. It may be smaller than the model that works.
const SUMMARIES: &str = r#"{"text":"Two pages are read; nothing happens on them."}"#;

/// Maximum bytes of text that the model receives without a summary.
const BYTES_MAX: usize = 2000;
/// Number of the newest messages, which stay unchanged.
const MESSAGES_KEPT: usize = 2;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let page = Declaration::new("page", "The next page.", r#"{"type":"object","properties":{}}"#);
    let functions =
        Functions::new("book").with(page, async |_, _| Ok(json!("blah ".repeat(150))))?;
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions))?;
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?.recording();
    let summaries = ScriptedClient::read("summaries", SUMMARIES.as_bytes())?;
    let shorter = Compaction::new(summaries, BYTES_MAX, MESSAGES_KEPT);
    let settings =
        LoopSettings { iteration_completed: Some(Arc::new(shorter)), ..LoopSettings::default() };
    let agent = Agent::builder(model.clone()).tools(toolset).settings(settings).build()?;
    let response = agent.run("What is the book about?").await?;
    for request in model.requests() {
        let bytes: usize = request
            .messages
            .iter()
            .map(|message| {
                message.text().len()
                    + message.results().map(|result| result.result.len()).sum::<usize>()
            })
            .sum();
        println!("{} messages, {bytes} bytes", request.messages.len());
    }
    println!("model: {} ({} messages in all)", response.text(), response.messages.len());
    Ok(())
}
