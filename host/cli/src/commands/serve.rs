//! `cofferdam serve`: tools for MCP clients.

use std::sync::Arc;

use anyhow::Context;
use cofferdam_mcp::{Grantor, Server, ServerOptions};
use cofferdam_tool::Dialect;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::args::{Approvals, Global, Schemas, ServeArgs};
use crate::exit::{Exit, UsageError};
use crate::serve::{self, Offering, Running};
use crate::servers::News;
use crate::{commands, compose, print};

/// Calls that run at the same time. More wait for their turn.
const CONCURRENT_CALLS_MAX: u32 = 64;

pub(crate) async fn run(global: &Global, args: ServeArgs) -> anyhow::Result<Exit> {
    let engine = compose::engine_for(global, CONCURRENT_CALLS_MAX)?;
    let news = News::default();
    let offering = Offering::load(&engine, &args, None, &news).await?;
    let mut options = options(&args);
    options.only_as_task = offering.only_as_task();
    let server = Server::new(offering.offer(&args)?, options)?;
    let stop = commands::cancelled_by_ctrl_c();
    stop_on_terminate(stop.clone());
    let running = Arc::new(Running::new(server.clone(), engine, args.clone(), offering, news));
    server.set_grantor(Arc::clone(&running) as Arc<dyn Grantor>);
    let following_servers = Arc::clone(&running);
    let following_servers = tokio::spawn(async move { following_servers.follow_servers().await });
    let following = (!args.no_watch).then(|| {
        tokio::spawn(async move {
            if let Err(error) = serve::follow(running).await {
                print::error(&error);
            }
        })
    });
    let served = match args.http {
        Some(_) => serve_http(&server, &args, stop).await,
        None => serve_stdio(&server, stop).await,
    };
    for following in following.into_iter().chain([following_servers]) {
        following.abort();
    }
    served.map(|()| Exit::Ok)
}

fn options(args: &ServeArgs) -> ServerOptions {
    let mut options = ServerOptions {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        has_receipts: !args.no_receipts,
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
    print::note(&format!("listening on http://{address}{}", cofferdam_mcp::PATH));
    let served = server.serve_http(listener, options, stop).await;
    served.map_err(|error| UsageError(error.to_string()).into())
}

/// What ends a program politely ends this one like Ctrl-C.
fn stop_on_terminate(stop: CancellationToken) {
    #[cfg(unix)]
    tokio::spawn(async move {
        if let Ok(mut terminate) = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            terminate.recv().await;
            stop.cancel();
        }
    });
}
