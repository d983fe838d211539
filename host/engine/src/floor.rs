//! The floor that the benchmarks measure against: raw wasmtime on the engine's own pool.
//!
//! A call instantiates, calls and drops, with the plain WASI context that any embedder needs, and with none of what the
//! host adds: no decoding, no limits, no deadline, no log, no record.

use std::path::Path;

use wasmtime::Store;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Linker, ResourceTable};
use wasmtime_wasi::{FsPerms, WasiCtx, WasiCtxView, WasiView};

use crate::Engine;
use crate::compile::one_line;
use crate::guest::{Content, ServedPre};

/// A component that is called without a host around it.
pub struct Floor {
    engine: wasmtime::Engine,
    code: ServedPre<State>,
}

struct State {
    wasi: WasiCtx,
    resources: ResourceTable,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        WasiCtxView { ctx: &mut self.wasi, table: &mut self.resources }
    }
}

impl Floor {
    /// Compiles `component` in this process for the pool of `engine`.
    ///
    /// # Errors
    /// The engine's own words.
    pub fn new(engine: &Engine, component: &[u8]) -> Result<Self, String> {
        Self::link(&engine.inner.timed().wasmtime, component).map_err(|error| one_line(&error))
    }

    fn link(engine: &wasmtime::Engine, component: &[u8]) -> wasmtime::Result<Self> {
        let component = Component::new(engine, component)?;
        let mut linker = Linker::new(engine);
        wasmtime_wasi::p2::add_to_linker_async(&mut linker)?;
        leave_out_ours(&mut linker, &component)?;
        let code = ServedPre::new(linker.instantiate_pre(&component)?)?;
        Ok(Self { engine: engine.clone(), code })
    }

    /// One call. Returns how many contents came back.
    ///
    /// # Errors
    /// The engine's own words.
    pub async fn call(&self, tool: &str, arguments_json: &str) -> Result<usize, String> {
        let wasi = WasiCtx::builder().build();
        let contents = self.run(wasi, tool, arguments_json).await.map_err(|error| one_line(&error))?;
        Ok(contents.len())
    }

    /// One call with a directory of the host at `guest_path`, which the runtime itself opens for the guest. Returns the
    /// first text that came back.
    ///
    /// # Errors
    /// The engine's own words.
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
            self.run(wasi.build(), tool, arguments_json).await
        };
        let contents = called.await.map_err(|error| one_line(&error))?;
        Ok(contents.into_iter().find_map(|content| match content {
            Content::Text(text) => Some(text),
            _ => None,
        }))
    }

    async fn run(&self, wasi: WasiCtx, tool: &str, arguments_json: &str) -> wasmtime::Result<Vec<Content>> {
        let state = State { wasi, resources: ResourceTable::new() };
        let mut store = Store::new(&self.engine, state);
        store.set_epoch_deadline(u64::MAX / 2);
        let guest = self.code.instantiate_async(&mut store).await?;
        let answer = guest.cofferdam_plugin_tools().call_call_tool(&mut store, tool, arguments_json).await?;
        Ok(answer.unwrap_or_default())
    }
}

/// What the host offers besides WASI is not there; a measured tool uses nothing of it. (The linker's own way to leave imports
/// out takes those of WASI in another patch version along.)
fn leave_out_ours(linker: &mut Linker<State>, component: &Component) -> wasmtime::Result<()> {
    let engine = linker.engine().clone();
    for (name, item) in component.component_type().imports(&engine) {
        let ComponentItem::ComponentInstance(interface) = item.ty else { continue };
        if !name.starts_with("cofferdam:") {
            continue;
        }
        let mut instance = linker.instance(name)?;
        for (function, item) in interface.exports(&engine) {
            if matches!(item.ty, ComponentItem::ComponentFunc(_)) {
                instance.func_new(function, |_, _, _, _| Err(wasmtime::format_err!("not there")))?;
            }
        }
    }
    Ok(())
}
