//! Data of one call's store.

use std::sync::Arc;
use std::time::Instant;

use cofferdam_tool::record::Refusal;
use cofferdam_tool::redact::Redactor;
use cofferdam_tool::{CallContext, Limits, PluginName, Toolset};
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtxView, WasiView};
use wasmtime_wasi_config::WasiConfig;

use super::client::CallerClient;
use super::network::Network;
use super::toolbox::Toolbox;
use super::wasi::Wasi;
use super::wasi_files::{CallFiles, FilesView};
use super::{Capability, CommandStreams, Limiter, PluginContext};
use crate::Grants;
use crate::recording::CallRecorder;
use crate::scheduler::admission::CallPermit;
use crate::scheduler::deadline::Deadline;

/// Maximum number of different refusals in the call record.
const REFUSALS_MAX: usize = 64;

/// Inputs of one call: its plugin, and the parts that its caller supplies.
#[derive(Clone, Copy)]
pub(crate) struct CallParts<'a> {
    pub(crate) plugin: &'a Arc<PluginContext>,
    pub(crate) files: &'a CallFiles,
    /// Tools that are available next to the one that is called.
    pub(crate) toolset: Option<&'a Toolset>,
    pub(crate) limits: &'a Limits,
    pub(crate) context: &'a CallContext,
    /// Recorder of the call, if it is recorded or a replay.
    pub(crate) recorder: Option<&'a Arc<CallRecorder>>,
}

/// Data of one call's store. The functions that the guest imports operate on it.
pub(crate) struct CallState {
    /// `None` until the guest calls a function of WASI, which many guests never do.
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
    pub(crate) client: CallerClient,
    /// Streams of a command.
    command: Option<Arc<CommandStreams>>,
    pub(super) context: CallContext,
    pub(super) deadline: Arc<Deadline>,
    /// Time of the last progress report.
    pub(super) progress_at: Option<Instant>,
    pub(crate) recorder: Option<Arc<CallRecorder>>,
}

impl CallState {
    /// Creates the state of a call that ends at `deadline` and has the grants of its plugin.
    pub(crate) fn new(
        call: CallParts<'_>,
        deadline: Arc<Deadline>,
        permit: Arc<CallPermit>,
    ) -> Self {
        let CallParts { plugin, files, toolset, limits, context, recorder } = call;
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
            toolbox: Toolbox::new(toolset, &plugin.grants, files.transaction(), context),
            client: CallerClient::new(context, recorder),
            command: None,
            context: context.clone(),
            deadline,
            progress_at: None,
            recorder: recorder.cloned(),
        }
    }

    /// Returns the files of the call, for the functions of `wasi:filesystem`.
    pub(crate) fn files(&mut self) -> FilesView<'_> {
        FilesView { table: &mut self.resources, files: &self.files }
    }

    /// Returns the mounts of the call, for the functions of `cofferdam:plugin/files`.
    pub(crate) fn mounts(&self) -> &CallFiles {
        &self.files
    }

    pub(crate) fn grants(&self) -> &Grants {
        &self.plugin.grants
    }

    pub(crate) fn context(&self) -> &CallContext {
        &self.context
    }

    /// Returns the redactor that removes the secrets of the call from strings.
    pub(crate) fn redactor(&self) -> &Redactor {
        &self.plugin.redactor
    }

    /// Returns the configured name of the plugin.
    pub(crate) fn plugin(&self) -> &PluginName {
        self.plugin.name()
    }

    /// Returns the deadline of the call.
    pub(crate) fn deadline(&self) -> &Arc<Deadline> {
        &self.deadline
    }

    /// Returns the last part of what the guest has printed, to standard output and to standard
    /// error.
    pub(crate) fn printed(&self) -> (String, String) {
        self.wasi.as_ref().map(|wasi| (wasi.stdout.text(), wasi.stderr.text())).unwrap_or_default()
    }

    /// Sets the command line and the streams of a command. Call this before the guest runs.
    pub(crate) fn set_command(&mut self, command: Arc<CommandStreams>) {
        self.command = Some(command);
    }

    /// Takes what the command has written to standard output.
    pub(crate) fn take_command_output(&self) -> Vec<u8> {
        self.command.as_ref().map(|command| command.output.take()).unwrap_or_default()
    }

    /// Adds a line to what the guest has printed to standard error.
    pub(crate) fn log_error(&mut self, line: &str) {
        // Creates the streams if the guest has not used them.
        let _ = self.ctx();
        if let Some(wasi) = &self.wasi {
            wasi.stderr.push_line(line);
        }
    }

    /// Records that the guest used a capability that it was not granted: an import, or a permission
    /// in its written form. There are at most [`REFUSALS_MAX`] entries, however often the guest
    /// tries.
    pub(crate) fn refuse(&mut self, capability: Capability, import: &str) -> DeniedCapability {
        let is_full = self.refused.len() >= REFUSALS_MAX;
        match self.refused.iter_mut().find(|refusal| refusal.capability == import) {
            Some(refusal) => refusal.times = refusal.times.saturating_add(1),
            None if is_full => {}
            None => self.refused.push(Refusal::new(import)),
        }
        DeniedCapability { capability }
    }
}

/// Error for a guest that used a withheld capability. Raised as a trap where no error value can
/// report it, so that the call ends.
#[derive(Debug, thiserror::Error)]
#[error("the plugin has no grant for this: it {}", .capability.in_plain_words())]
pub(crate) struct DeniedCapability {
    capability: Capability,
}

impl WasiView for CallState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let Self {
            wasi,
            plugin,
            network,
            command,
            deadline,
            log_bytes_max,
            random_bytes_max,
            recorder,
            ..
        } = self;
        let make = || {
            let limits = (*log_bytes_max, *random_bytes_max);
            let (command, recorder) = (command.as_deref(), recorder.as_ref());
            Box::new(Wasi::new(plugin, network, command, deadline, recorder, limits))
        };
        WasiCtxView { ctx: &mut wasi.get_or_insert_with(make).context, table: &mut self.resources }
    }
}

impl CallState {
    /// Returns the configuration values of the plugin, for `wasi:config`.
    pub(crate) fn config(&self) -> WasiConfig<'_> {
        WasiConfig::new(&self.plugin.config)
    }
}
