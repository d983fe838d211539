//! `agent-loop`: an iteration of the agent's loop against the tool call in it.
//!
//! Ours is a model that answers at once, the loop with its middleware, and a call of a sandboxed tool. The reference is the same
//! call alone, through the same toolset. What is left is the loop's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_agent::{
    Agent, ChatClient, ChatError, ChatRequest, Content, LoopSettings, Message, Reply, ReplyStream, Role,
};
use cofferdam_tests::Host;

use crate::call_floor;
use crate::ratio::Ratio;

pub(crate) const NAME: &str = "agent-loop";
const GUEST: &str = "remember";
const ROUNDS: usize = 60;
/// Iterations of one run. Each is sent all messages before it, as in any conversation.
const ITERATIONS: u32 = 100;

/// A model that calls the same tool for as long as it is let.
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
            Some(_) => vec![Content::text("done")],
            None => vec![Content::call(call.to_string(), GUEST, "{}")],
        };
        Ok(Reply { messages: vec![Message::new(Role::Assistant, contents)], ..Reply::default() })
    }

    async fn stream(&self, request: ChatRequest) -> Result<ReplyStream, ChatError> {
        Ok(self.reply(request).await?.into())
    }
}

pub(crate) async fn measure() -> anyhow::Result<Ratio> {
    let host = call_floor::host().await;
    let settings = LoopSettings { max_iterations: ITERATIONS, ..LoopSettings::default() };
    let agent =
        Agent::builder(Arc::new(Tireless::default())).tools(host.toolset().clone()).settings(settings);
    let agent = agent.build()?;
    let mut ratio = Ratio::new(NAME);
    // The first round warms caches and is not counted.
    for round in 0..=ROUNDS {
        let ours = time_ours(&agent).await?;
        let reference = time_calls(&host).await?;
        if round > 0 {
            ratio.add(ours, reference);
        }
    }
    Ok(ratio)
}

async fn time_ours(agent: &Agent) -> anyhow::Result<Duration> {
    let started = Instant::now();
    let response = agent.run("go").await?;
    anyhow::ensure!(response.text() == "done", "a measured run ended in another way");
    Ok(started.elapsed() / ITERATIONS)
}

async fn time_calls(host: &Host) -> anyhow::Result<Duration> {
    let started = Instant::now();
    for _ in 0..ITERATIONS {
        let completion = host.call(GUEST, "{}").await;
        anyhow::ensure!(completion.record.outcome == "ok", "a measured call failed");
    }
    Ok(started.elapsed() / ITERATIONS)
}
