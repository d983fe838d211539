//! `agent-loop`: an iteration of the agent's loop against its tool call.
//!
//! Ours is a model that answers at once, the loop with its middleware, and a call of a sandboxed
//! tool. The reference is the same call through the same toolset, without the loop. The difference
//! is the cost of the loop.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_agent::{
    Agent, ChatClient, ChatError, ChatRequest, LoopSettings, Message, MessageContent, Reply,
    ReplyStream, Role,
};
use cofferdam_tests::Host;

use crate::call_floor;
use crate::effort::Effort;
use crate::measure::Measure;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "agent-loop";
const GUEST: &str = "remember";
const ROUNDS: usize = 60;
/// Iterations of one run. Each request contains all earlier messages.
const ITERATIONS: u32 = 100;

/// Model that always calls the same tool.
#[derive(Default)]
struct Tireless {
    calls: AtomicU32,
}

#[async_trait]
impl ChatClient for Tireless {
    fn model(&self) -> &str {
        "tireless"
    }

    async fn reply(&self, request: ChatRequest) -> Result<Reply, ChatError> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let contents = match request.options.tool_choice {
            Some(_) => vec![MessageContent::text("done")],
            None => vec![MessageContent::call(call.to_string(), GUEST, "{}")],
        };
        Ok(Reply { messages: vec![Message::new(Role::Assistant, contents)], ..Reply::default() })
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        Ok(self.reply(request).await?.into())
    }
}

pub(crate) async fn measure(effort: Effort) -> anyhow::Result<Vec<Measure>> {
    let host = call_floor::host().await;
    let iterations = effort.times(ITERATIONS);
    let settings = LoopSettings { max_iterations: iterations, ..LoopSettings::default() };
    let agent = Agent::builder(Arc::new(Tireless::default()))
        .tools(host.toolset().clone())
        .settings(settings);
    let agent = agent.build()?;
    let ours = async || time_ours(&agent, iterations).await;
    let reference = async || time_calls(&host, iterations).await;
    Ok(vec![Ratio::new(NAME).alternate(effort, ROUNDS, ours, reference).await?.into()])
}

async fn time_ours(agent: &Agent, iterations: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let response = agent.run("go").await?;
    anyhow::ensure!(response.text() == "done", "a measured run ended in another way");
    Ok(started.elapsed() / iterations)
}

async fn time_calls(host: &Host, iterations: u32) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..iterations {
        let completion = host.call(GUEST, "{}").await;
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / iterations)
}
