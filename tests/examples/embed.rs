//! Embeds the host: gives a plugin's tools to a model, with each call in a sandbox of its own.
//!
//! `example-embed text.wasm`, with any component that has a tool `word_count`.

#![expect(clippy::print_stdout, reason = "a program shows its results")]

use cofferdam::Host;
use cofferdam::agent::ScriptedClient;

/// Replaces a model. `ProviderClient` is a real one.
const SCRIPT: &str = r#"
{"text":"I count.","calls":[{"tool":"word_count","arguments":{"text":"to be or not to be"}}]}
{"text":"Six words."}
"#;

fn main() -> anyhow::Result<()> {
    // An untrusted component is compiled in a process of its own, with limits: this program,
    // started again.
    cofferdam::init();
    tokio::runtime::Builder::new_multi_thread().enable_all().build()?.block_on(run())
}

async fn run() -> anyhow::Result<()> {
    let path = std::env::args().nth(1).ok_or_else(|| anyhow::anyhow!("name a component"))?;
    // No grants: no files, no network, no environment. The limits are the defaults.
    let host = Host::builder().plugin(path).build().await?;
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?;
    let agent = host.agent(model).instructions("Answer in one sentence.").build()?;
    let response = agent.run("How many words has \"to be or not to be\"?").await?;

    for result in response.messages.iter().flat_map(|message| message.results()) {
        println!("tool: {}", result.result);
    }
    println!("model: {}", response.text());
    Ok(())
}
