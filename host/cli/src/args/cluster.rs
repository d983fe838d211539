//! Flags of gateways and workers.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use cofferdam::cluster::{ClientCertificate, ClusterOptions, ResultStorage};

use super::serve::http_address;
use super::{NoRecordArgs, PluginArgs};

pub(crate) const WORKER_EXAMPLES: &str = "\
Offers the tools to the gateways of a cluster (`cofferdam serve --cluster`). Grants, limits and
secrets are those of this worker. Ctrl-C and SIGTERM end it when the running calls have ended.

Examples:
  cofferdam worker --config cofferdam.toml --cluster nats://10.0.0.5:4222
  cofferdam worker --plugin text.wasm --cluster tls://nats.local --cluster-credentials nats.key";

pub(crate) const FLEET_EXAMPLES: &str = "\
Asks all workers, as a gateway does. A gateway offers the version of each plugin that most workers
have, unless [cluster.versions.NAME] of its configuration pins one.

Examples:
  cofferdam fleet --cluster nats://10.0.0.5:4222
  cofferdam fleet --cluster tls://nats.local --cluster-credentials gateway.key --json";

#[derive(Debug, Clone, Args)]
pub(crate) struct FleetArgs {
    /// NATS servers, such as nats://10.0.0.5:4222; several separated by commas
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cluster: String,
    #[command(flatten)]
    pub(crate) access: ClusterAccessArgs,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// NATS servers, such as nats://10.0.0.5:4222; several separated by commas
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cluster: String,
    #[command(flatten)]
    pub(crate) access: ClusterAccessArgs,
    /// Maximum number of concurrent calls; to further calls, the worker is busy
    #[arg(
        long,
        value_name = "NUMBER",
        default_value_t = 64,
        value_parser = clap::value_parser!(u16).range(1..=4096)
    )]
    pub(crate) calls: u16,
    /// Maximum number of concurrent calls of one caller, which leaves the others to further callers
    /// [default: --calls]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub(crate) caller_calls: Option<u16>,
    /// Maximum time to wait for running calls at the end, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) drain_wait: u32,
    /// Serve /healthz and /metrics (Prometheus) on this address, which needs no token; calls are
    /// counted only with this flag
    #[arg(long, value_name = "ADDRESS", value_parser = http_address)]
    pub(crate) monitoring: Option<SocketAddr>,
    #[command(flatten)]
    pub(crate) record: NoRecordArgs,
    /// Let `cofferdam log collect` copy the call log; NATS permissions decide who may
    #[arg(long, conflicts_with = "no_record")]
    pub(crate) offer_records: bool,
    /// Disable hot reload of plugins and configuration
    #[arg(long)]
    pub(crate) no_watch: bool,
}

/// Access to a cluster.
#[derive(Debug, Clone, Args)]
pub(crate) struct ClusterAccessArgs {
    /// Tenant of the cluster, whose tools are invisible to other tenants [default: default]
    #[arg(long, value_name = "NAME", requires = "cluster")]
    pub(crate) cluster_tenant: Option<String>,
    /// File with the credentials for NATS: USER:PASSWORD, a token or an nkey seed in one line, or a
    /// .creds file
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) cluster_credentials: Option<PathBuf>,
    /// File with a certificate of this client (PEM), for NATS servers that ask for one
    #[arg(long, value_name = "FILE", requires = "cluster", requires = "cluster_key")]
    pub(crate) cluster_cert: Option<PathBuf>,
    /// File with the private key of the certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "cluster", requires = "cluster_cert")]
    pub(crate) cluster_key: Option<PathBuf>,
    /// File with the authorities of the NATS server's certificate (PEM) [default: Mozilla's]
    #[arg(long, value_name = "FILE", requires = "cluster")]
    pub(crate) cluster_ca: Option<PathBuf>,
}

impl ClusterAccessArgs {
    /// Returns the options for a cluster at these addresses.
    pub(crate) fn options(&self, servers: &str) -> ClusterOptions {
        ClusterOptions {
            servers: servers.to_owned(),
            tenant: self.cluster_tenant.clone(),
            credentials_file: self.cluster_credentials.clone(),
            certificate: self.cluster_cert.clone().zip(self.cluster_key.clone()).map(
                |(certificate_file, key_file)| ClientCertificate { certificate_file, key_file },
            ),
            authorities_file: self.cluster_ca.clone(),
            results: ResultStorage::default(),
        }
    }
}

/// Store for the results of calls with idempotency keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClusterResults {
    /// The memory of this gateway
    Memory,
    /// JetStream of the NATS servers, which all gateways of the tenant share
    Jetstream,
}

impl From<ClusterResults> for ResultStorage {
    fn from(results: ClusterResults) -> Self {
        match results {
            ClusterResults::Memory => Self::Memory,
            ClusterResults::Jetstream => Self::JetStream,
        }
    }
}
