//! `cofferdam serve`: serves tools to MCP clients.

use std::net::SocketAddr;

use anyhow::Context;
use cofferdam::cluster::RemoteTools;
use cofferdam::config::ConfigFile;
use cofferdam::inspector::{InspectorOptions, curl_command, workflows_of_files};
use cofferdam::serve::{HttpAccess, ServeOptions, ServedAgents, Service};
use cofferdam::{FirstBuild, Operator};
use cofferdam_mcp::{Receipts, ServerOptions};
use cofferdam_tool::prompt::PendingPrompts;
use cofferdam_tool::schema::Dialect;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::chat;
use crate::args::{Approvals, Global, ReceiptForm, Schemas, ServeArgs};
use crate::exit::{Exit, UsageError};
use crate::signals::stop_on_signals;
use crate::{host, inspector, print};

/// Maximum number of concurrent calls. Further calls wait.
const CONCURRENT_CALLS_MAX: u32 = 64;

pub(crate) async fn run(global: &Global, args: ServeArgs) -> anyhow::Result<Exit> {
    serve(global, args, None).await
}

/// Serves tools. A plugin that is still being built is served after `first_build`.
pub(super) async fn serve(
    global: &Global,
    args: ServeArgs,
    first_build: Option<FirstBuild>,
) -> anyhow::Result<Exit> {
    let mut engine = host::engine_options(global);
    engine.pool.concurrent_calls_max = CONCURRENT_CALLS_MAX;
    let mut selection = host::selection(&args.plugins)?;
    // Only `dev` serves a plugin before it is built.
    selection.shows_errors = first_build.is_some();
    let operator = host::operator();
    let remote = match &args.cluster {
        Some(servers) => {
            let mut options = args.cluster_access.options(servers);
            options.results = args.cluster_results.map(Into::into).unwrap_or_default();
            Some(RemoteTools::connect(&options, &operator).await?)
        }
        None => None,
    };
    let prompts = inspector::prompts(args.inspector.inspector.as_ref());
    let options = ServeOptions {
        remote,
        agents: ServedAgents {
            agents: args.agents.clone(),
            workflows: args.workflows.clone(),
            model: args.model.clone(),
            settings: chat::request_settings(&args.setting)?,
        },
        follows_changes: !args.no_watch,
        counts_calls: args.monitoring.is_some(),
        first_build,
        server: ServerOptions { prompts: prompts.clone(), ..options(&args) },
        ..ServeOptions::new(selection)
    };
    let service = Service::start(engine.start()?, options, operator.clone()).await?;
    let stop = CancellationToken::new();
    stop_on_signals(stop.clone())?;
    if let Some(address) = args.monitoring {
        service.serve_monitoring(listen_for_monitoring(address).await?, stop.clone());
    }
    let listener = match args.http {
        Some(address) => Some(listen(address).await?),
        None => None,
    };
    if let Some(flag) = &args.inspector.inspector {
        let http = listener.as_ref().map(TcpListener::local_addr).transpose()?;
        let options = inspector_options(&service, &args, prompts, http)?;
        inspector::start(flag, options, stop.clone()).await?;
    }
    match listener {
        Some(listener) => serve_http(service, listener, &args, &operator, stop).await?,
        None => serve_stdio(service, stop).await?,
    }
    Ok(Exit::Ok)
}

async fn listen(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("cannot listen on {address}"))
}

/// Listens on the address of monitoring pages, and notes where they are.
pub(super) async fn listen_for_monitoring(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = listen(address).await?;
    let address = listener.local_addr()?;
    print::note(&format!("health and metrics are at http://{address}/healthz and /metrics"));
    Ok(listener)
}

/// Returns the options of pages that show the calls of the server and call its tools.
fn inspector_options(
    service: &Service,
    args: &ServeArgs,
    prompts: Option<PendingPrompts>,
    http: Option<SocketAddr>,
) -> anyhow::Result<InspectorOptions> {
    let config = args.plugins.config.as_deref().map(ConfigFile::read_ambient).transpose()?;
    let mut options = inspector::options(config.as_ref(), prompts)?;
    options.workbench = Some(service.workbench());
    options.grants = Some(service.grants());
    options.replayer = Some(service.replayer(options.directory.clone()));
    if !args.workflows.is_empty() {
        options.workflows = Some(workflows_of_files(args.workflows.clone(), None, None));
    }
    if let Some(http) = http {
        options.call_command = curl_command(http);
    }
    Ok(options)
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
        options.text_bytes_max =
            usize::try_from(kibibytes).unwrap_or(usize::MAX).saturating_mul(1024);
    }
    options
}

async fn serve_stdio(service: Service, stop: CancellationToken) -> anyhow::Result<()> {
    if std::io::IsTerminal::is_terminal(&std::io::stdin()) {
        print::note(
            "speaking MCP on standard input and output; a client starts this command, Ctrl-C ends \
             it",
        );
    }
    Ok(service.serve_stdio(stop).await?)
}

async fn serve_http(
    service: Service,
    listener: TcpListener,
    args: &ServeArgs,
    operator: &Operator,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let (config, token_file) = (args.plugins.config.clone(), args.token_file.clone());
    let options = HttpAccess { config, token_file, is_open: args.no_auth }.options(operator)?;
    let address = listener.local_addr()?;
    options.check(address).map_err(|error| UsageError(error.to_string()))?;
    if args.no_auth {
        print::note("warning: every program on this machine can call these tools over HTTP");
    }
    print::note(&format!("listening on http://{address}{}", cofferdam_mcp::PATH));
    Ok(service.serve_http(listener, options, stop).await?)
}
