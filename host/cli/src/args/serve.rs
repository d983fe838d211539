//! Flags of `cofferdam serve`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{ClusterAccessArgs, ClusterResults, InspectorArgs, NoRecordArgs, PluginArgs};

pub(crate) const EXAMPLES: &str = "\
Without --http, serves the parent process on stdin and stdout.

Examples:
  cofferdam serve --plugin text.wasm --plugin csv.wasm --mount data=./reports:ro
  cofferdam serve --config cofferdam.toml --toolset reports
  cofferdam serve --config cofferdam.toml --http 127.0.0.1:8391
  cofferdam serve --config cofferdam.toml --search
  cofferdam serve --config cofferdam.toml --inspector=approve
  cofferdam serve --skills ./skills
  cofferdam serve --cluster nats://10.0.0.5:4222 --http 127.0.0.1:8391
  cofferdam serve --agent librarian.yaml --files ./notes:ro --tools librarian
  cofferdam mcp config --host claude --config cofferdam.toml";

#[derive(Debug, Clone, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Serve HTTP on this address, such as 127.0.0.1:8391 or 8391; port 0 picks a free port
    #[arg(long, value_name = "ADDRESS", value_parser = http_address)]
    pub(crate) http: Option<SocketAddr>,
    /// Serve /healthz and /metrics (Prometheus) on this address, which needs no token; calls are
    /// counted only with this flag
    #[arg(long, value_name = "ADDRESS", value_parser = http_address)]
    pub(crate) monitoring: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) inspector: InspectorArgs,
    /// File with the bearer token of HTTP clients; created if missing [default: in the user's state
    /// directory]
    #[arg(long, value_name = "FILE", requires = "http")]
    pub(crate) token_file: Option<PathBuf>,
    /// Accept every program on this machine over HTTP, without a token
    #[arg(long, requires = "http", conflicts_with = "token_file")]
    pub(crate) no_auth: bool,
    /// Offer the agent that FILE defines (YAML) as a tool; repeatable
    #[arg(long = "agent", value_name = "FILE")]
    pub(crate) agents: Vec<PathBuf>,
    /// Offer the workflow that FILE defines (YAML) as a tool; repeatable
    #[arg(long = "workflow", value_name = "FILE")]
    pub(crate) workflows: Vec<PathBuf>,
    /// Model of agents that name none [default: that of the configuration]
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) model: Option<String>,
    /// Set an option of all agents' requests: temperature, top-p, max-output-tokens, stop, seed or
    /// effort; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) setting: Vec<String>,
    /// Offer the tools of workers (`cofferdam worker`) that are connected to these NATS servers
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) cluster_access: ClusterAccessArgs,
    /// Store for tasks and the results of calls with idempotency keys [default: memory]
    #[arg(long, value_name = "STORE", value_enum, requires = "cluster")]
    pub(crate) cluster_results: Option<ClusterResults>,
    /// Offer two tools that search and call the others, for large sets of tools
    #[arg(long)]
    pub(crate) search: bool,
    /// Who approves the calls that need approval
    #[arg(long, value_name = "WHO", value_enum, default_value_t = Approvals::Ask)]
    pub(crate) approvals: Approvals,
    /// Maximum size of a result in KiB; longer results can be read as resources [default: 96]
    #[arg(long, value_name = "KIB", value_parser = clap::value_parser!(u32).range(1..=16384))]
    pub(crate) result_size: Option<u32>,
    /// Form of the schemas in tool lists
    #[arg(long, value_name = "FORM", value_enum, default_value_t = Schemas::Portable)]
    pub(crate) schemas: Schemas,
    /// Form of the call receipt on each result
    #[arg(long, value_name = "FORM", value_enum, default_value_t = ReceiptForm::Short)]
    pub(crate) receipts: ReceiptForm,
    /// Alias of `--receipts none`
    #[arg(long, hide = true, conflicts_with = "receipts")]
    pub(crate) no_receipts: bool,
    #[command(flatten)]
    pub(crate) record: NoRecordArgs,
    /// Disable hot reload of plugins and configuration
    #[arg(long)]
    pub(crate) no_watch: bool,
}

/// Form of the schemas in tool lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Schemas {
    /// Only keywords that every client and model API accepts
    Portable,
    /// All keywords of the tools' schemas, in JSON Schema 2020-12
    Exact,
}

/// Form of the receipts of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReceiptForm {
    /// No receipt
    None,
    /// Call id, shortened digests of plugin and policy, duration
    Short,
    /// Also full digests, CPU time, memory, changed files and contacted hosts
    Full,
}

/// Parses an address with a port. A port without an address listens on the loopback interface.
pub(super) fn http_address(typed: &str) -> Result<SocketAddr, String> {
    match typed.strip_prefix(':').unwrap_or(typed).parse() {
        Ok(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        Err(_) => typed
            .parse()
            .map_err(|_| "expected ADDRESS:PORT, such as 127.0.0.1:8391, or a port".to_owned()),
    }
}

/// Approver of the calls that need approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Approvals {
    /// The user, whom the server asks through the client (elicitation); if the client cannot ask,
    /// the call fails
    Ask,
    /// The client, by its own rules; the server does not ask
    Client,
}
