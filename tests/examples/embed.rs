//! Embeds the host: a plugin's tools, each call in a sandbox of its own, for a model.
//!
//! `example-embed text.wasm`, with any component that has a tool `word_count`.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::sync::Arc;

use cofferdam_agent::{Agent, ScriptedClient};
use cofferdam_engine::{Compiler, Component, Engine, EngineConfig, Grants, PluginOptions};
use cofferdam_tool::{Limits, PluginName, Toolset};

/// Stands for a model. `ProviderClient` is a real one.
const SCRIPT: &str = r#"
{"text":"I count.","calls":[{"tool":"word_count","arguments":{"text":"to be or not to be"}}]}
{"text":"Six words."}
"#;

fn main() -> anyhow::Result<()> {
    // A stranger's component is compiled in a process of its own, with limits: this program, started again.
    if std::env::args().nth(1).as_deref() == Some("compile-child") {
        return Ok(cofferdam_engine::compile_child()?);
    }
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("which component?"))?;
    let program = std::env::current_exe()?;
    let compiler = Compiler::Child { program, arguments: vec!["compile-child".into()] };
    let engine = Engine::new(EngineConfig::new(compiler))?;
    // No grants: no files, no network, no environment. The limits are the defaults.
    let name = PluginName::new("text")?;
    let options =
        PluginOptions { name, grants: Grants::default(), limits: Limits::default(), retries_max: 0 };
    let plugin = engine.load(&Component::from_file_ambient(path), options, &()).await?;

    let mut toolset = Toolset::new();
    toolset.add(Arc::new(plugin))?;
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?;
    let agent = Agent::builder(model).instructions("Answer in one sentence.").tools(toolset).build()?;
    let response = agent.run("How many words has \"to be or not to be\"?").await?;

    for result in response.messages.iter().flat_map(|message| message.results()) {
        println!("tool: {}", result.result);
    }
    println!("model: {}", response.text());
    Ok(())
}
