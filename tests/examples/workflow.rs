//! A workflow of functions and an agent that asks a user, is stopped, and resumes from its
//! checkpoint.

#![expect(clippy::print_stdout, reason = "a program shows what came of it")]

use std::sync::Arc;

use anyhow::Context as _;
use cofferdam_agent::{Agent, ScriptedClient};
use cofferdam_files::{MemoryStore, Quota};
use cofferdam_workflow::{
    AgentExecutor, Checkpoints, MessageType, Payload, Step, UserRequest, Workflow, executor_fn,
};
use futures_util::StreamExt as _;

const SCRIPT: &str = r#"{"text":"Tides rise and fall."}"#;

fn workflow() -> anyhow::Result<Workflow> {
    let model = ScriptedClient::read("script", SCRIPT.as_bytes())?;
    let writer = AgentExecutor::new(
        "writer",
        Agent::builder(model).instructions("Write a sentence.").build()?,
    );
    let topic = executor_fn("topic", async |word: String, step: Step| {
        Ok(step.send(&format!("Write about {}.", word.to_lowercase()))?)
    });
    let printer = executor_fn("printer", async |text: String, step: Step| {
        step.set_executor_state(text.clone())?;
        step.request(Payload::text(format!("Print `{text}`?")), MessageType::Boolean)?;
        Ok(())
    });
    let printer = printer.answered(async |_: UserRequest, answer: Payload, step: Step| {
        let text: String = serde_json::from_value(step.executor_state())?;
        let done = if answer.read::<bool>()? { "printed" } else { "thrown away" };
        Ok(step.output(&format!("{done}: {text}"))?)
    });
    let workflow = Workflow::builder("paper")
        .executor(topic.sending::<String>())
        .executor(writer)
        .executor(printer.yielding::<String>())
        .start("topic")
        .chain(["topic", "writer", "printer"])
        .output_from(["printer"])
        .build()?;
    Ok(workflow)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let checkpoints = Checkpoints::new(Arc::new(MemoryStore::new(Quota::default())));
    let mut stream = workflow()?.run("Tides").checkpoints(&checkpoints).stream();
    while let Some(event) = stream.next().await {
        println!("{event}");
    }
    let paused = stream.finish().await?;
    for request in paused.requests() {
        println!("asked: {}", request.prompt.display_text());
    }
    // As another process would: only the file remains.
    let latest = checkpoints.latest("paper").await?.context("no checkpoint")?;
    println!("restored after superstep {}", latest.superstep());
    let snapshot = checkpoints.load("paper", &latest).await?;
    let ended = workflow()?.resume(snapshot)?.answer("printer-1", serde_json::json!(true)).await?;
    for output in ended.outputs() {
        println!("output: {}", output.text());
    }
    Ok(())
}
