//! A message through the bus and back, which is the least that a remote call can take.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use cofferdam_cluster::bus::{Bus, Subscription};
use cofferdam_cluster::nats::{NatsBus, NatsOptions};

use super::Process;
use crate::mcp;

/// Subject of the messages that are answered.
const SUBJECT: &str = "cofferdam.bench.echo";
/// Subject of the answers.
const INBOX: &str = "cofferdam.bench.inbox";
/// Size of a message that asks a worker for a call with small arguments.
const BYTES: usize = 256;
/// Maximum time until the other process has subscribed.
const START_MAX: Duration = Duration::from_secs(10);
const RETRY_WAIT: Duration = Duration::from_millis(20);

/// Sends each message back, until the process is killed. Has one thread, like `cofferdam worker`.
pub(crate) fn echo(address: &str) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let bus = connect(address).await?;
        let mut messages = bus.subscribe(SUBJECT, None).await?;
        while let Some(message) = messages.next().await {
            let reply = message.reply.context("a message without a reply subject")?;
            bus.publish(&reply, None, message.payload).await?;
        }
        Ok(())
    })
}

pub(super) async fn connect(address: &str) -> anyhow::Result<Arc<dyn Bus>> {
    let options = NatsOptions { servers: format!("nats://{address}"), ..NatsOptions::default() };
    Ok(Arc::new(NatsBus::connect_ambient(options).await?))
}

/// Connection to a process that sends messages back.
pub(super) struct Echo {
    bus: Arc<dyn Bus>,
    answers: Box<dyn Subscription>,
    _process: Process,
}

impl Echo {
    pub(super) async fn start(address: &str) -> anyhow::Result<Self> {
        let mut command = mcp::this_program()?;
        let process = Process::of(command.args(["--echo", address]))?;
        let bus = connect(address).await?;
        let answers = bus.subscribe(INBOX, None).await?;
        let mut echo = Self { bus, answers, _process: process };
        let started = Instant::now();
        while !echo.send().await? {
            anyhow::ensure!(started.elapsed() < START_MAX, "the other process does not answer");
            tokio::time::sleep(RETRY_WAIT).await;
        }
        Ok(echo)
    }

    /// Sends a message and waits until it is back. Returns false if nothing answers.
    pub(super) async fn send(&mut self) -> anyhow::Result<bool> {
        let payload = vec![b'x'; BYTES].into();
        self.bus.publish(SUBJECT, Some(INBOX), payload).await?;
        let answer = self.answers.next().await.context("the bus has ended")?;
        Ok(!answer.is_undeliverable)
    }
}
