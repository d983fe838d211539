//! `cofferdam worker`: runs tools for gateways on other machines.

use std::time::Duration;

use cofferdam::cluster::{WorkerConnection, WorkerSettings};
use tokio_util::sync::CancellationToken;

use super::serve::listen_for_monitoring;
use crate::args::{Global, WorkerArgs};
use crate::exit::Exit;
use crate::host;
use crate::signals::stop_on_signals;

/// Maximum number of calls that the engine runs at the same time: the address space has no room for
/// more.
const POOL_CALLS_MAX: u32 = 4096;

/// Returns the number of calls that the engine has to admit so that the worker can run `calls` of
/// one plugin, which gets seven eighths, and can read the tools of another version meanwhile.
fn pool_calls(calls: u16) -> u32 {
    let calls = u32::from(calls);
    (calls + calls / 7 + 2).min(POOL_CALLS_MAX)
}

pub(crate) async fn run(global: &Global, args: WorkerArgs) -> anyhow::Result<Exit> {
    // First, because loading may take longer.
    let mut connection = WorkerConnection::open(&args.access.options(&args.cluster)).await?;
    if let Some(address) = args.monitoring {
        connection.serve_monitoring(listen_for_monitoring(address).await?);
    }
    let mut engine = host::engine_options(global);
    engine.pool.concurrent_calls_max = pool_calls(args.calls);
    let settings = WorkerSettings {
        calls_max: usize::from(args.calls),
        caller_calls_max: args.caller_calls.map(usize::from),
        drain_wait: Duration::from_secs(u64::from(args.drain_wait)),
        follows_changes: !args.no_watch,
        offers_records: args.offer_records,
    };
    let selection = host::selection(&args.plugins)?;
    let loaded = connection.load(engine.start()?, selection, settings, &host::operator()).await?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    loaded.run(stop).await?;
    Ok(Exit::Ok)
}
