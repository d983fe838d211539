//! Baseline for the benchmarks: raw wasmtime on the engine's own pool.
//!
//! A call instantiates, calls and drops, with the plain WASI context that any embedder needs, and
//! without everything that the host adds: no decoding, limits, deadline, log or record.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use chacha20::ChaCha12Rng;
use chacha20::rand_core::SeedableRng;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceTable, ResourceType};
use wasmtime::{Store, StoreLimits, StoreLimitsBuilder, UpdateDeadline};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::Engine;
use crate::call::trap::DeadlinePassed;
use crate::engine_pool::WasmEngine;
use crate::error::one_line;
use crate::guest::{Content, ServedPre};
use crate::host_api::log::LogTail;
use crate::host_api::output::OutputPipe;

/// Component that is called without the host's additions.
pub struct Floor {
    /// Engine whose pool and epoch thread are used.
    wasm_engine: Arc<WasmEngine>,
    code: ServedPre<BaselineState>,
}

/// Part of what the host adds to a call, for a baseline that includes it. It is built like in the
/// host, so that the difference to the plain baseline is its cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FloorGuard {
    /// Deadline: the engine ticks, and a callback compares clocks.
    Deadline,
    /// Limiter that is asked for every instance, memory and table.
    Memory,
    /// WASI limits: no addresses, few handles, little randomness, and that from generators with a
    /// fixed seed.
    Wasi,
    /// Conversion of the last part of standard output and standard error to strings.
    Log,
}

/// Defaults of the host (`Limits`), except for values whose size does not affect the cost.
const WALL: Duration = Duration::from_secs(30);
const MEMORY_BYTES_MAX: usize = 64 << 20;
const HANDLES_MAX: usize = 256;
const LOG_BYTES_MAX: usize = 8192;
const RANDOM_BYTES_MAX: u64 = 64 * 1024;

struct BaselineState {
    wasi: WasiCtx,
    resources: ResourceTable,
    limits: StoreLimits,
}

impl WasiView for BaselineState {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.resources }
    }
}

impl Floor {
    /// Compiles `component` in this process for the pool of `engine`.
    ///
    /// # Errors
    /// The message of the engine.
    pub fn new(engine: &Engine, component: &[u8]) -> Result<Self, String> {
        Self::link(engine, component).map_err(|error| one_line(&error))
    }

    fn link(engine: &Engine, component: &[u8]) -> wasmtime::Result<Self> {
        let wasm_engine = Arc::clone(engine.inner.timed()?);
        let wasmtime = &wasm_engine.wasmtime;
        let component = Component::new(wasmtime, component)?;
        let mut linker = Linker::new(wasmtime);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        skip_host_frames(&mut linker, &component)?;
        let code = ServedPre::new(linker.instantiate_pre(&component)?)?;
        Ok(Self { wasm_engine, code })
    }

    /// Makes one call. Returns the number of content items in the result.
    ///
    /// # Errors
    /// The message of the engine.
    pub async fn call(&self, tool: &str, arguments_json: &str) -> Result<usize, String> {
        let wasi = WasiCtx::builder().build();
        let contents = self.run(self.store(wasi), tool, arguments_json).await;
        Ok(contents.map_err(|error| one_line(&error))?.len())
    }

    /// Makes one call with some of the host's additions. Returns the number of content items in the
    /// result.
    ///
    /// # Errors
    /// The message of the engine.
    pub async fn call_guarded(
        &self,
        guards: &[FloorGuard],
        tool: &str,
        arguments_json: &str,
    ) -> Result<usize, String> {
        let has = |guard| guards.contains(&guard);
        let mut wasi = WasiCtx::builder();
        let logs = has(FloorGuard::Log)
            .then(|| [LogTail::new(LOG_BYTES_MAX), LogTail::new(LOG_BYTES_MAX)]);
        if let Some([stdout, stderr]) = &logs {
            wasi.stdout(OutputPipe(stdout.clone())).stderr(OutputPipe(stderr.clone()));
        }
        if has(FloorGuard::Wasi) {
            bound(&mut wasi);
        }
        let mut store = self.store(wasi.build());
        if has(FloorGuard::Wasi) {
            store.data_mut().resources.set_max_capacity(HANDLES_MAX);
            store.set_hostcall_fuel(MEMORY_BYTES_MAX);
            store.set_max_component_handles(HANDLES_MAX);
        }
        if has(FloorGuard::Memory) {
            store.data_mut().limits =
                StoreLimitsBuilder::new().memory_size(MEMORY_BYTES_MAX).build();
            store.limiter(|state| &mut state.limits);
        }
        let _ticking = has(FloorGuard::Deadline).then(|| {
            keep_deadline(&mut store);
            self.wasm_engine.ticker.keep_ticking()
        });
        let contents =
            self.run(store, tool, arguments_json).await.map_err(|error| one_line(&error))?;
        let texts = logs.map(|logs| logs.map(|log| log.text()));
        drop(texts);
        Ok(contents.len())
    }

    /// Makes one call with a directory of the host at `guest_path`, which the runtime itself opens
    /// for the guest. Returns the first text item of the result.
    ///
    /// # Errors
    /// Returns the message of the engine.
    pub async fn call_with_directory_ambient(
        &self,
        directory: &Path,
        guest_path: &str,
        tool: &str,
        arguments_json: &str,
    ) -> Result<Option<String>, String> {
        let called = async {
            let mut wasi = WasiCtx::builder();
            wasi.preopened_dir(directory, guest_path, FsPerms::ReadWrite)?;
            self.run(self.store(wasi.build()), tool, arguments_json).await
        };
        let contents = called.await.map_err(|error| one_line(&error))?;
        Ok(contents.into_iter().find_map(|content| match content {
            Content::Text(text) => Some(text),
            _ => None,
        }))
    }

    fn store(&self, wasi: WasiCtx) -> Store<BaselineState> {
        let state =
            BaselineState { wasi, resources: ResourceTable::new(), limits: StoreLimits::default() };
        let mut store = Store::new(&self.wasm_engine.wasmtime, state);
        store.set_epoch_deadline(u64::MAX / 2);
        store
    }

    async fn run(
        &self,
        mut store: Store<BaselineState>,
        tool: &str,
        arguments_json: &str,
    ) -> wasmtime::Result<Vec<Content>> {
        let guest = self.code.instantiate_async(&mut store).await?;
        let answer =
            guest.cofferdam_plugin_tools().call_call_tool(&mut store, tool, arguments_json).await?;
        Ok(answer.unwrap_or_default())
    }
}

fn bound(wasi: &mut WasiCtxBuilder) {
    wasi.allow_tcp(false).allow_udp(false).allow_ip_name_lookup(false);
    wasi.max_random_size(RANDOM_BYTES_MAX);
    wasi.secure_random(ChaCha12Rng::seed_from_u64(0))
        .insecure_random(ChaCha12Rng::seed_from_u64(0));
    wasi.insecure_random_seed(0);
}

fn keep_deadline(store: &mut Store<BaselineState>) {
    let deadline = Instant::now() + WALL;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(move |_| match Instant::now() < deadline {
        true => Ok(UpdateDeadline::Yield(1)),
        false => Err(wasmtime::Error::new(DeadlinePassed)),
    });
}

/// Resource of an interface that is left out.
struct Absent;

/// Leaves out the host's own interfaces and those for HTTP, which a measured tool does not use.
/// (The linker's own function for that also leaves out WASI imports with another patch version.)
fn skip_host_frames(
    linker: &mut Linker<BaselineState>,
    component: &Component,
) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    // Interfaces that use a resource of another one list it again.
    let mut known = Vec::new();
    for (name, item) in component.component_type().imports(&engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        let resources = |known: &[ResourceType]| {
            let exports = interface.exports(&engine).filter_map(|(name, item)| match item.ty {
                ComponentItem::Resource(resource) => Some((name, resource)),
                _ => None,
            });
            exports.filter(|(_, resource)| !known.contains(resource)).collect::<Vec<_>>()
        };
        let new = resources(&known);
        known.extend(new.iter().map(|(_, resource)| *resource));
        if !["cofferdam:", "wasi:http/"].iter().any(|package| name.starts_with(package)) {
            continue;
        }
        let mut instance = linker.instance(name)?;
        for (resource, _) in new {
            instance.resource(resource, ResourceType::host::<Absent>(), |_, _| Ok(()))?;
        }
        for (function, item) in interface.exports(&engine) {
            if matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                instance
                    .func_new(function, |_, _, _, _| Err(wasmtime::format_err!("not there")))?;
            }
        }
    }
    Ok(())
}
