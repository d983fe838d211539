//! Trivial calls for a counter of instructions: `cargo xtask count` runs this under callgrind with
//! two numbers of calls; the difference is the cost of the calls.
//!
//! The count depends as little as possible on time and on the machine: one thread, a pool that fits
//! into the address space of the counter, and code that this process compiles for the processor
//! that the counter emulates.

use anyhow::{Context as _, anyhow, ensure};
use cofferdam_engine::floor::Floor;
use cofferdam_engine::{Compiler, EngineConfig, PoolSize};
use cofferdam_tests::{Host, guest};

/// The guest and its tool, as in `call-floor`.
const GUEST: &str = "remember";

/// Subject of the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Side {
    /// The host
    Ours,
    /// Raw wasmtime
    Floor,
}

pub(crate) async fn run(side: Side, calls: u32) -> anyhow::Result<()> {
    let pool =
        PoolSize { concurrent_calls_max: 1, memories_per_call_max: 1, ..PoolSize::default() };
    let mut host = Host::with(EngineConfig { pool, ..EngineConfig::new(Compiler::InProcess) });
    match side {
        Side::Ours => {
            host.load(GUEST).await;
            for _ in 0..calls {
                let completion = host.call(GUEST, "{}").await;
                ensure!(
                    completion.record.outcome == "ok",
                    "a call ended as {}",
                    completion.record.outcome
                );
            }
        }
        Side::Floor => {
            let component = std::fs::read(guest(GUEST)).context("the guest cannot be read")?;
            let floor = Floor::new(&host.engine, &component).map_err(|reason| anyhow!(reason))?;
            for _ in 0..calls {
                let contents = floor.call(GUEST, "{}").await.map_err(|reason| anyhow!(reason))?;
                ensure!(contents == 1, "a call failed");
            }
        }
    }
    Ok(())
}
