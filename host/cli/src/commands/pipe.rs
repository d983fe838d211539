//! `cofferdam pipe`: serves tools to the program that started it.

use cofferdam::pipe::{self, PipeOptions};
use tokio_util::sync::CancellationToken;

use crate::args::{Global, PipeArgs};
use crate::exit::{self, Exit};
use crate::{host, print};

/// Maximum number of concurrent calls. Further calls wait.
const CONCURRENT_CALLS_MAX: u32 = 64;

pub(crate) async fn run(global: &Global, args: &PipeArgs) -> anyhow::Result<Exit> {
    let mut engine = host::engine_options(global);
    engine.pool.concurrent_calls_max = CONCURRENT_CALLS_MAX;
    let selection = host::selection(&args.plugins).inspect_err(|error| {
        print::pipe_failure(exit::of(error), &format!("{error:#}"));
    })?;
    let options = PipeOptions { selection, engine };
    let stop = CancellationToken::new();
    follow_signals(stop.clone())?;
    let (input, output) = cofferdam_mcp::standard_streams();
    pipe::serve(options, input, output, stop).await?;
    Ok(Exit::Ok)
}

/// Stops at the first SIGTERM. Ctrl-C at a terminal reaches the program as well, which decides what
/// it means: this process only ignores it.
fn follow_signals(stop: CancellationToken) -> anyhow::Result<()> {
    tokio::spawn(async { while tokio::signal::ctrl_c().await.is_ok() {} });
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::spawn(async move {
            terminate.recv().await;
            stop.cancel();
        });
    }
    #[cfg(not(unix))]
    drop(stop);
    Ok(())
}
