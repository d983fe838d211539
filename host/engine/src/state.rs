//! What belongs to one call: the data of its wasmtime store.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_tool::{CallContext, Permission, PluginName, Progress, Redactor, Refusal};
use rand::SeedableRng;
use rand::rngs::StdRng;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};
use wasmtime_wasi_config::WasiConfig;

use crate::call::Invocation;
use crate::client::Client;
use crate::guest::cofferdam::plugin::{call, secrets};
use crate::imports::Capability;
use crate::limiter::Limiter;
use crate::log::LogTail;
use crate::network::Network;
use crate::plugin::PluginContext;
use crate::scheduler::admission::CallPermit;
use crate::scheduler::deadline::Deadline;
use crate::toolbox::Toolbox;
use crate::wasi_files::{CallFiles, FilesView};
use crate::{Grants, clocks};

/// Progress that comes faster than this is left out: it would only be work for whoever listens.
const PROGRESS_PERIOD: Duration = Duration::from_millis(50);
/// Different refusals that are kept for the call record.
const REFUSALS_MAX: usize = 64;
/// Longest progress message that is passed on, in bytes.
const PROGRESS_MESSAGE_BYTES_MAX: usize = 1024;

/// What the functions of WASI work on, files aside, and what the guest prints.
struct Wasi {
    context: WasiCtx,
    stdout: LogTail,
    stderr: LogTail,
}

pub(crate) struct CallState {
    /// `None` until the guest calls one of them: many never do.
    wasi: Option<Box<Wasi>>,
    log_bytes_max: u64,
    random_bytes_max: u64,
    pub(crate) resources: ResourceTable,
    files: CallFiles,
    pub(crate) limiter: Limiter,
    pub(crate) refused: Vec<Refusal>,
    pub(crate) plugin: Arc<PluginContext>,
    pub(crate) network: Network,
    pub(crate) toolbox: Toolbox,
    pub(crate) client: Client,
    context: CallContext,
    deadline: Arc<Deadline>,
    progress_at: Option<Instant>,
}

impl CallState {
    /// The state of a call that ends at `deadline` and has what was granted.
    pub(crate) fn new(call: &Invocation<'_>, deadline: Arc<Deadline>, permit: Arc<CallPermit>) -> Self {
        let Invocation { plugin, files, limits, context, .. } = *call;
        let mut resources = ResourceTable::new();
        resources.set_max_capacity(usize::try_from(limits.handles_max).unwrap_or(usize::MAX));
        Self {
            wasi: None,
            log_bytes_max: limits.log_bytes_max,
            random_bytes_max: limits.random_bytes_max,
            resources,
            files: files.clone(),
            limiter: Limiter::new(limits.memory_bytes_max, limits.instances_max, permit),
            refused: Vec::new(),
            plugin: Arc::clone(plugin),
            network: Network::new(limits),
            toolbox: Toolbox::new(call.toolset, &plugin.grants, files.transaction(), context),
            client: Client::new(context),
            context: context.clone(),
            deadline,
            progress_at: None,
        }
    }

    /// The files of the call, for the functions of `wasi:filesystem`.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        FilesView { table: &mut self.resources, files: &self.files }
    }

    /// The mounts of the call, for the functions of `cofferdam:plugin/files`.
    pub(crate) fn mounts(&self) -> &CallFiles {
        &self.files
    }

    pub(crate) fn grants(&self) -> &Grants {
        &self.plugin.grants
    }

    pub(crate) fn context(&self) -> &CallContext {
        &self.context
    }

    /// What keeps the secrets of the call out of texts.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.plugin.redactor
    }

    /// The plugin's configured name.
    pub(crate) fn plugin(&self) -> &PluginName {
        self.plugin.name()
    }

    /// The deadline of the call.
    pub(crate) fn deadline(&self) -> &Arc<Deadline> {
        &self.deadline
    }

    /// The ends of what the guest has printed, to standard output and to standard error.
    pub(crate) fn printed(&self) -> (String, String) {
        self.wasi.as_ref().map(|wasi| (wasi.stdout.text(), wasi.stderr.text())).unwrap_or_default()
    }

    /// Notes that the guest used a capability that it was not granted: an import, or a permission in its written form. There
    /// are at most [`REFUSALS_MAX`] entries, however often a guest tries.
    pub(crate) fn refuse(&mut self, capability: Capability, import: &str) -> Denied {
        let is_full = self.refused.len() >= REFUSALS_MAX;
        match self.refused.iter_mut().find(|refusal| refusal.capability == import) {
            Some(refusal) => refusal.times = refusal.times.saturating_add(1),
            None if is_full => {}
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

impl Wasi {
    fn new(
        plugin: &PluginContext,
        network: &mut Network,
        deadline: &Deadline,
        log_bytes_max: u64,
        random_bytes_max: u64,
    ) -> Self {
        let grants = &plugin.grants;
        let log_bytes_max = usize::try_from(log_bytes_max).unwrap_or(usize::MAX);
        let (stdout, stderr) = (LogTail::new(log_bytes_max), LogTail::new(log_bytes_max));
        // The builder's defaults are the empty grant: closed standard input, no environment, no arguments, no
        // directories, no addresses. Files come from elsewhere (`wasi_files`).
        let mut builder = WasiCtxBuilder::new();
        builder.stdout(stdout.clone()).stderr(stderr.clone());
        builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        network.open_sockets(plugin, &mut builder);
        builder.max_random_size(random_bytes_max);
        clocks::configure(&mut builder, grants.clock, deadline.started());
        if !grants.random {
            builder.secure_random(StdRng::seed_from_u64(0)).insecure_random(StdRng::seed_from_u64(0));
            builder.insecure_random_seed(0);
        }
        for (name, value) in &grants.env {
            builder.env(name, value.expose());
        }
        Self { context: builder.build(), stdout, stderr }
    }
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self { wasi, plugin, network, deadline, log_bytes_max, random_bytes_max, .. } = self;
        let make = || Box::new(Wasi::new(plugin, network, deadline, *log_bytes_max, *random_bytes_max));
        WasiCtxView { ctx: &mut wasi.get_or_insert_with(make).context, table: &mut self.resources }
    }
}

impl CallState {
    pub(crate) fn config(&self) -> WasiConfig<'_> {
        WasiConfig::new(&self.plugin.config)
    }
}

impl secrets::Host for CallState {
    fn get(&mut self, name: String) -> Result<String, secrets::Error> {
        let grants = self.grants();
        let value = grants.secrets.get(&name).filter(|_| grants.readable_secrets.contains(&name));
        if let Some(value) = value {
            return Ok(value.expose().to_owned());
        }
        // A name that is none is not worth a line of the record.
        if let Ok(permission) = format!("secret:{name}").parse::<Permission>() {
            self.refuse(Capability::Secrets, &permission.to_string());
        }
        Err(secrets::Error::AccessDenied)
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
        u64::try_from(self.deadline.remaining().as_millis()).unwrap_or(u64::MAX)
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
        let message = message.map(|text| self.redactor().text(&text).into_owned());
        sink.report(&self.context.call_id, Progress { done, total, message });
    }
}
