//! What belongs to one call: the data of its wasmtime store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_network::Client;
use cofferdam_tool::{CallContext, Limits, Progress, Refusal};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::guest::cofferdam::plugin::call;
use crate::imports::Capability;
use crate::limiter::Limiter;
use crate::log::LogTail;
use crate::network::Network;
use crate::{Access, Grants};

/// Progress that comes faster than this is left out: it would only be work for whoever listens.
const PROGRESS_PERIOD: Duration = Duration::from_millis(50);
/// Longest progress message that is passed on, in bytes.
const PROGRESS_MESSAGE_BYTES_MAX: usize = 1024;

pub(crate) struct CallState {
    wasi: WasiCtx,
    pub(crate) resources: ResourceTable,
    pub(crate) limiter: Limiter,
    pub(crate) stdout: LogTail,
    pub(crate) stderr: LogTail,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) network: Network,
    context: CallContext,
    ends_at: Instant,
    progress_at: Option<Instant>,
}

impl CallState {
    /// The state of a call that ends at `ends_at`, with what `grants` gives and nothing else.
    pub(crate) fn new(
        grants: &Grants,
        client: &Client,
        limits: &Limits,
        context: &CallContext,
        ends_at: Instant,
    ) -> wasmtime::Result<Self> {
        let log_bytes_max = usize::try_from(limits.log_bytes_max).unwrap_or(usize::MAX);
        let (stdout, stderr) = (LogTail::new(log_bytes_max), LogTail::new(log_bytes_max));
        let mut network = Network::new(&grants.network, client, limits);
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(usize::try_from(limits.handles_max).unwrap_or(usize::MAX));
        Ok(Self {
            wasi: wasi(grants, &mut network, limits, &stdout, &stderr)?,
            resources,
            limiter: Limiter::new(limits.memory_bytes_max, limits.instances_max),
            stdout,
            stderr,
            refused: Vec::new(),
            network,
            context: context.clone(),
            ends_at,
            progress_at: None,
        })
    }

    /// Notes that the guest used a capability that it was not granted. There are no more entries than imports, however
    /// often a guest tries.
    pub(crate) fn refuse(&mut self, capability: Capability, import: &str) -> Denied {
        match self.refused.iter_mut().find(|refusal| refusal.capability == import) {
            Some(refusal) => refusal.times = refusal.times.saturating_add(1),
            None => self.refused.push(Refusal::new(import)),
        }
        Denied { capability }
    }
}

/// The guest used a capability that was withheld. Raised as a trap where the guest cannot be told, so that the call ends
/// there.
#[derive(Debug, thiserror::Error)]
#[error("the plugin has no grant for this: it {}", .capability.in_plain_words())]
pub(crate) struct Denied {
    capability: Capability,
}

fn wasi(
    grants: &Grants,
    network: &mut Network,
    limits: &Limits,
    stdout: &LogTail,
    stderr: &LogTail,
) -> wasmtime::Result<WasiCtx> {
    // The builder's defaults are the empty grant: closed standard input, no environment, no arguments, no
    // directories, no addresses.
    let mut builder = WasiCtxBuilder::new();
    builder.stdout(stdout.clone()).stderr(stderr.clone());
    builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    network.open_sockets(&mut builder);
    builder.max_random_size(limits.random_bytes_max);
    for mount in &grants.mounts {
        let permissions = match mount.access {
            Access::ReadOnly => FsPerms::ReadOnly,
            Access::ReadWrite => FsPerms::ReadWrite,
        };
        // By its handle and not by its path: whoever renames things on the host, or in another mount, moves nothing.
        builder.preopened_dir(mount.store.handle_ambient(), mount.name.guest_path(), permissions)?;
    }
    Ok(builder.build())
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.resources }
    }
}

impl call::Host for CallState {
    fn id(&mut self) -> String {
        self.context.call_id.clone()
    }

    fn session(&mut self) -> Option<String> {
        self.context.session.clone()
    }

    fn time_left_ms(&mut self) -> u64 {
        let left = self.ends_at.saturating_duration_since(Instant::now());
        u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
    }

    fn cancelled(&mut self) -> bool {
        self.context.cancellation.is_cancelled()
    }

    fn progress(&mut self, done: f64, total: Option<f64>, message: Option<String>) {
        let Some(sink) = self.context.progress.as_ref().map(Arc::clone) else { return };
        let now = Instant::now();
        if self.progress_at.is_some_and(|last| now.duration_since(last) < PROGRESS_PERIOD) {
            return;
        }
        self.progress_at = Some(now);
        let message = message.filter(|text| text.len() <= PROGRESS_MESSAGE_BYTES_MAX);
        sink.report(&self.context.call_id, Progress { done, total, message });
    }
}
