//! Pre-initialises a component: calls its export `wizer-initialize`, which must not call the host (except for
//! a seed),
//! and writes a component that begins with the memory that this call has left.
//!
//! A crate of its own, so that `xtask` does not depend on wasmtime.

mod state;

use std::path::Path;
use std::{env, fs};

use anyhow::{Context, bail};
use futures_util::FutureExt as _;
use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};
use wasmtime_wizer::Wizer;

use crate::state::State;

fn main() -> anyhow::Result<()> {
    let arguments: Vec<_> = env::args_os().skip(1).collect();
    let [from, to] = arguments.as_slice() else { bail!("usage: cofferdam-snapshot FROM TO") };
    let (from, to) = (Path::new(from), Path::new(to));
    let component = fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    let snapshot = snapshot(&component).map_err(|error| anyhow::anyhow!("{error:#}"))?;
    fs::write(to, snapshot).with_context(|| format!("cannot write {}", to.display()))
}

fn snapshot(component: &[u8]) -> wasmtime::Result<Vec<u8>> {
    let mut wizer = Wizer::new();
    // Wizer 48 removes the export of the module but not its use in the component.
    wizer.keep_init_func(true);
    let (context, instrumented) = wizer.instrument_component(component)?;
    let mut config = Config::new();
    // Only the start runs, so that compiling is all that takes time.
    config.cranelift_opt_level(wasmtime::OptLevel::None);
    let engine = Engine::new(&config)?;
    let compiled = Component::new(&engine, &instrumented)?;
    let mut linker = Linker::new(&engine);
    // Rust's maps ask for a seed. A constant one makes builds equal, and a run holds no other
    // secrets than its own.
    linker
        .instance("wasi:random/insecure-seed@0.2.6")?
        .func_wrap("insecure-seed", |_, ()| Ok(((0x0123_4567_u64, 0x89ab_cdef_u64),)))?;
    linker.define_unknown_imports_as_traps(&compiled)?;
    let mut store = Store::new(&engine, ());
    let instance = linker.instantiate(&mut store, &compiled)?;
    let start = instance.get_typed_func::<(), ()>(&mut store, wizer.get_init_func())?;
    start.call(&mut store, ())?;
    let mut state = State { store, instance };
    let snapshot = wizer.snapshot_component(&context, &mut state).now_or_never();
    // Nothing in it waits.
    snapshot.unwrap_or_else(|| wasmtime::bail!("the snapshot was not finished"))
}
