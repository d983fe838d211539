//! `cofferdam worker`: runs tools for gateways on other machines.

use std::time::Duration;

use cofferdam::cluster::{WorkerConnection, WorkerLimits};
use cofferdam::{Host, Purpose};
use tokio_util::sync::CancellationToken;

use super::serve::listen_for_monitoring;
use crate::args::{Global, WorkerArgs};
use crate::exit::Exit;
use crate::host;
use crate::signals::stop_on_signals;

pub(crate) async fn run(global: &Global, args: WorkerArgs) -> anyhow::Result<Exit> {
    // First, because loading may take longer.
    let mut connection = WorkerConnection::open(&args.access.options(&args.cluster)).await?;
    if let Some(address) = args.monitoring {
        connection.serve_monitoring(listen_for_monitoring(address).await?);
    }
    let mut engine = host::engine_options(global);
    engine.pool.concurrent_calls_max = u32::from(args.calls);
    let operator = host::operator();
    let loaded = Host::builder()
        .selection(host::selection(&args.plugins)?)
        .engine(engine)
        .operator(operator.clone())
        .purpose(Purpose::Call)
        .counts_calls(args.monitoring.is_some())
        .build()
        .await?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    let drain_wait = Duration::from_secs(u64::from(args.drain_wait));
    let limits = WorkerLimits {
        calls_max: usize::from(args.calls),
        caller_calls_max: args.caller_calls.map(usize::from),
    };
    connection.run(&loaded, limits, drain_wait, &operator, stop).await?;
    Ok(Exit::Ok)
}
