//! Workers and gateways that are processes of their own, so that they can be killed and stopped.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_cluster::bus::{BusError, BusState, Subscription};
use cofferdam_cluster::nats::NatsResults;
use cofferdam_cluster::{
    Bus, Dispatcher, DispatcherOptions, NodeName, Tenant, Worker, WorkerOptions,
};
use cofferdam_tool::{CallContext, Toolset};
use futures_util::future::BoxFuture;

use super::server::{connect, connect_nats, timing};
use super::tools;

/// Environment variables of a worker process: address of the server, file of starts, file that it
/// makes when it is ready, and step at which it kills itself.
const URL: &str = "COFFERDAM_TEST_WORKER";
const STARTS: &str = "COFFERDAM_TEST_STARTS";
const READY: &str = "COFFERDAM_TEST_READY";
const STEP: &str = "COFFERDAM_TEST_STEP";

/// Environment variables of a gateway process: address of the server, and number of calls.
const GATEWAY: &str = "COFFERDAM_TEST_GATEWAY";
const CALLS: &str = "COFFERDAM_TEST_CALLS";

/// Step of a call at which a worker kills itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    BeforeAccepted,
    AfterAccepted,
    Running,
    BeforeResult,
    AfterResult,
}

impl Step {
    pub(crate) const ALL: [Self; 5] = [
        Self::BeforeAccepted,
        Self::AfterAccepted,
        Self::Running,
        Self::BeforeResult,
        Self::AfterResult,
    ];

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| format!("{step:?}") == name)
    }
}

pub(crate) struct WorkerProcess {
    process: Child,
    _folder: tempfile::TempDir,
}

impl WorkerProcess {
    /// Starts a worker and waits until it is ready.
    pub(crate) fn start(url: &str, starts: &Path, step: Option<Step>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let ready: PathBuf = folder.path().join("ready");
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "process::worker_process", "--nocapture"])
            .env(URL, url)
            .env(STARTS, starts)
            .env(READY, &ready)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        if let Some(step) = step {
            command.env(STEP, format!("{step:?}"));
        }
        let mut process = command.spawn().unwrap();
        while !ready.exists() {
            assert!(process.try_wait().unwrap().is_none(), "the worker has ended");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self { process, _folder: folder }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(name, self.pid());
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.process.try_wait().unwrap().is_some()
    }
}

impl Drop for WorkerProcess {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Gateway that makes calls of `once` at the same time, each with an idempotency key: `k0`, `k1`, and
/// so on. Its results are in JetStream.
pub(crate) struct GatewayProcess(Child);

impl GatewayProcess {
    pub(crate) fn start(url: &str, calls: usize) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "process::gateway_process", "--nocapture"])
            .env(GATEWAY, url)
            .env(CALLS, calls.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Drop for GatewayProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Runs a gateway if the environment asks for it; as a test, it does nothing.
#[tokio::test]
async fn gateway_process() {
    let Ok(url) = std::env::var(GATEWAY) else { return };
    let bus = connect_nats(&url).await;
    let results = Arc::new(NatsResults::open(&bus, &Tenant::default()).await.unwrap());
    let options = DispatcherOptions { timing: timing(), results, ..DispatcherOptions::default() };
    let dispatcher = Dispatcher::start(Arc::new(bus), options).await.unwrap();
    let mut toolset = Toolset::new();
    for source in dispatcher.discover().await.unwrap() {
        toolset.add(source).unwrap();
    }
    let calls = std::env::var(CALLS).unwrap().parse().unwrap();
    let calls = (0..calls).map(|number: usize| {
        let (id, toolset) = (format!("k{number}"), toolset.clone());
        async move {
            let context = CallContext { idempotency_key: Some(id.clone()), ..CallContext::new(id) };
            let _ended = toolset.call("once", Some(b"{}"), &context).await;
        }
    });
    futures_util::future::join_all(calls).await;
}

fn signal(name: &str, pid: u32) {
    let sent = Command::new("kill").args([format!("-{name}"), pid.to_string()]).status().unwrap();
    assert!(sent.success(), "no process {pid}");
}

/// Runs a worker if the environment asks for it; as a test, it does nothing.
#[test]
fn worker_process() {
    let Ok(url) = std::env::var(URL) else { return };
    let path = |name| PathBuf::from(std::env::var_os(name).unwrap());
    let step = std::env::var(STEP).ok().and_then(|step| Step::of(&step));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let bus = connect(&url).await;
        let bus = match step {
            Some(step) => Arc::new(DyingBus { bus, step }) as Arc<dyn Bus>,
            None => bus,
        };
        let options = WorkerOptions {
            name: NodeName::random(),
            timing: timing(),
            ..WorkerOptions::default()
        };
        let worker = Worker::start(bus, tools::toolset(&path(STARTS)), options).await.unwrap();
        std::fs::write(path(READY), worker.name().to_string()).unwrap();
        std::future::pending::<()>().await;
    });
}

/// Bus of a worker that kills itself.
struct DyingBus {
    bus: Arc<dyn Bus>,
    step: Step,
}

impl DyingBus {
    async fn die(&self) -> ! {
        self.bus.flush().await.unwrap();
        signal("KILL", std::process::id());
        std::future::pending().await
    }
}

#[async_trait]
impl Bus for DyingBus {
    async fn publish(
        &self,
        subject: &str,
        reply: Option<&str>,
        payload: Bytes,
    ) -> Result<(), BusError> {
        let is = |name: &str| payload.starts_with(format!("{{\"type\":\"{name}\"").as_bytes());
        let (is_accepted, is_result) = (is("accepted"), is("result"));
        match self.step {
            Step::BeforeAccepted if is_accepted => self.die().await,
            Step::BeforeResult if is_result => self.die().await,
            // The first heartbeat comes while the call runs.
            Step::Running if is("alive") => self.die().await,
            _ => {}
        }
        self.bus.publish(subject, reply, payload).await?;
        match self.step {
            Step::AfterAccepted if is_accepted => self.die().await,
            Step::AfterResult if is_result => self.die().await,
            _ => Ok(()),
        }
    }

    async fn subscribe(
        &self,
        subject: &str,
        group: Option<&str>,
    ) -> Result<Box<dyn Subscription>, BusError> {
        self.bus.subscribe(subject, group).await
    }

    async fn flush(&self) -> Result<(), BusError> {
        self.bus.flush().await
    }

    fn message_bytes_max(&self) -> usize {
        self.bus.message_bytes_max()
    }

    fn state(&self) -> BusState {
        self.bus.state()
    }

    fn spawn(&self, task: BoxFuture<'static, ()>) {
        self.bus.spawn(task);
    }
}
