//! Context of the WASI functions of one call, except files, and the output of the guest.

use std::sync::Arc;

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use wasmtime_wasi::p2::pipe::MemoryInputPipe;
use wasmtime_wasi::{WasiCtx, WasiCtxBuilder};

use super::log::LogTail;
use super::network::Network;
use super::output::OutputPipe;
use super::{CommandStreams, PluginContext, clocks};
use crate::recording::{CallRecorder, RandomSources};
use crate::scheduler::deadline::Deadline;

/// WASI context of one call, with the last part of its output streams.
pub(super) struct Wasi {
    pub(super) context: WasiCtx,
    pub(super) stdout: LogTail,
    pub(super) stderr: LogTail,
}

impl Wasi {
    /// Creates a context with exactly the grants of `plugin`.
    pub(super) fn new(
        plugin: &PluginContext,
        network: &mut Network,
        command: Option<&CommandStreams>,
        deadline: &Deadline,
        recorder: Option<&Arc<CallRecorder>>,
        (log_bytes_max, random_bytes_max): (u64, u64),
    ) -> Self {
        let grants = &plugin.grants;
        let log_bytes_max = usize::try_from(log_bytes_max).unwrap_or(usize::MAX);
        let (stdout, stderr) = (LogTail::new(log_bytes_max), LogTail::new(log_bytes_max));
        // The builder's defaults are the empty grant: closed standard input, no environment, no
        // arguments, no directories, no addresses. Files are handled separately (`wasi_files`).
        let mut builder = WasiCtxBuilder::new();
        builder.stdout(OutputPipe(stdout.clone())).stderr(OutputPipe(stderr.clone()));
        if let Some(command) = command {
            builder.args(&command.arguments).stdin(MemoryInputPipe::new(command.stdin.clone()));
            builder.stdout(OutputPipe(command.output.clone()));
        }
        builder.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
        network.open_sockets(plugin, &mut builder);
        builder.max_random_size(random_bytes_max);
        clocks::configure(&mut builder, grants.clock, deadline.started(), recorder);
        if !grants.random {
            builder
                .secure_random(ChaCha12Rng::seed_from_u64(0))
                .insecure_random(ChaCha12Rng::seed_from_u64(0));
            builder.insecure_random_seed(0);
        } else if let Some(recorder) = recorder {
            let RandomSources { secure, insecure, insecure_seed } = recorder.random_sources();
            builder.secure_random(secure).insecure_random(insecure);
            builder.insecure_random_seed(insecure_seed);
        }
        for (name, value) in &grants.env {
            builder.env(name, value.expose());
        }
        Self { context: builder.build(), stdout, stderr }
    }
}
