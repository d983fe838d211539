//! Compacts a long run while it goes on: a model writes a summary, which replaces old messages.
//! Calls and their results stay together, and the response keeps everything.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::sync::Arc;

use cofferdam_agent::compaction::{Compaction, Summarize, TokenLimit};
use cofferdam_agent::{Agent, ScriptedClient};
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

/// Maximum tokens that the model receives without a summary.
const TOKENS_MAX: u64 = 700;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let page = Declaration::new("page", "The next page.", r#"{"type":"object","properties":{}}"#);
    let functions =
        Functions::new("book").with(page, async |_, _| Ok(json!("blah ".repeat(150))))?;
    let mut toolset = Toolset::new();
    toolset.add(Arc::new(functions))?;
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?.recording();
    let summaries = ScriptedClient::read("summaries", SUMMARIES.as_bytes())?;
    // Keeps the newest call with its result, and summarizes as soon as two others can be removed.
    let summarize = Summarize::new(summaries).keep(1).slack(1);
    let compaction = Compaction::new(TokenLimit::new(TOKENS_MAX).then(summarize));
    let agent = Agent::builder(model.clone()).tools(toolset).compaction(compaction).build()?;
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
