//! `cofferdam serve`: tools for MCP clients.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use cofferdam_mcp::{Grantor, Receipts, Server, ServerOptions};
use cofferdam_tool::Dialect;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::args::{Approvals, Global, ReceiptForm, Schemas, ServeArgs};
use crate::exit::{Exit, UsageError};
use crate::loading::Unavailable;
use crate::serve::{self, Offering, Running};
use crate::servers::News;
use crate::{compose, print};

/// Calls that run at the same time. More wait for their turn.
const CONCURRENT_CALLS_MAX: u32 = 64;
/// Maximum time that the end waits for a compiler to stop.
const END_WAIT: Duration = Duration::from_millis(50);

pub(crate) async fn run(global: &Global, args: ServeArgs) -> anyhow::Result<Exit> {
    let engine = compose::engine_for(global, CONCURRENT_CALLS_MAX)?;
    let news = News::default();
    let (offering, loader) = Offering::start(&engine, &args, None, &news).await?;
    offering.unavailable().for_each(Unavailable::note);
    let mut options = options(&args);
    options.only_as_task = offering.only_as_task();
    let server = Server::new(offering.offer(&args)?, options)?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    let running = Arc::new(Running::new(server.clone(), engine, args.clone(), offering, news));
    server.set_grantor(Arc::clone(&running) as Arc<dyn Grantor>);
    let following_servers = Arc::clone(&running);
    let following_servers = tokio::spawn(async move { following_servers.follow_servers().await });
    let (loading_running, loading_stop) = (Arc::clone(&running), stop.clone());
    let loading = tokio::spawn(async move {
        let loading = loading_running.finish_loading(loader, &loading_stop);
        let finished = Box::pin(loading_stop.run_until_cancelled(loading)).await.unwrap_or(Ok(()));
        if finished.is_err() {
            loading_stop.cancel();
        }
        finished
    });
    let following = (!args.no_watch).then(|| {
        tokio::spawn(async move {
            if let Err(error) = serve::follow(running).await {
                print::error(&error);
            }
        })
    });
    let served = match args.http {
        Some(_) => serve_http(&server, &args, stop.clone()).await,
        None => serve_stdio(&server, stop.clone()).await,
    };
    for following in following.into_iter().chain([following_servers]) {
        following.abort();
    }
    // A start that has failed ends the server; one that is still under way ends with it.
    stop.cancel();
    match tokio::time::timeout(END_WAIT, loading).await {
        Ok(Ok(Err(error))) => Err(error),
        _ => served.map(|()| Exit::Ok),
    }
}

fn options(args: &ServeArgs) -> ServerOptions {
    let mut options = ServerOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        receipts: match args.receipts {
            _ if args.no_receipts => Receipts::None,
            ReceiptForm::None => Receipts::None,
            ReceiptForm::Short => Receipts::Short,
            ReceiptForm::Full => Receipts::Full,
        },
        searches: args.search,
        asks_approval: args.approvals == Approvals::Ask,
        dialect: match args.schemas {
            Schemas::Portable => Dialect::Portable,
            Schemas::Exact => Dialect::Mcp,
        },
        ..ServerOptions::default()
    };
    if let Some(kibibytes) = args.result_size {
        options.text_bytes_max = usize::try_from(kibibytes).unwrap_or(usize::MAX).saturating_mul(1024);
    }
    options
}

async fn serve_stdio(server: &Server, stop: CancellationToken) -> anyhow::Result<()> {
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        print::note(
            "speaking MCP on standard input and output; a client starts this command, Ctrl-C ends it",
        );
    }
    Ok(server.serve_stdio(stop).await?)
}

async fn serve_http(server: &Server, args: &ServeArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let Some(address) = args.http else { return Ok(()) };
    let options = serve::http_options(args)?;
    let listener = TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    options.check(address).map_err(|error| UsageError(error.to_string()))?;
    if args.no_auth {
        print::note("warning: every program on this machine can call these tools over HTTP");
    }
    print::note(&format!("listening on http://{address}{}", cofferdam_mcp::PATH));
    let served = server.serve_http(listener, options, stop).await;
    served.map_err(|error| UsageError(error.to_string()).into())
}

/// Stops the server at the first Ctrl-C or SIGTERM, and the process at the second.
fn stop_on_signals(stop: CancellationToken) -> anyhow::Result<()> {
    #[cfg(unix)]
    let mut signals = {
        use tokio::signal::unix::{SignalKind, signal};
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?)
    };
    tokio::spawn(async move {
        let mut count = 0;
        loop {
            #[cfg(unix)]
            tokio::select! {
                _ = signals.0.recv() => {}
                _ = signals.1.recv() => {}
            }
            #[cfg(not(unix))]
            if tokio::signal::ctrl_c().await.is_err() {
                return;
            }
            count += 1;
            if count > 1 {
                std::process::exit(Exit::Interrupted as i32);
            }
            stop.cancel();
        }
    });
    Ok(())
}
