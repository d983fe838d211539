//! Flags of `cofferdam inspect`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// Component file, or with --config the name of a plugin
    #[arg(required_unless_present = "web")]
    pub(crate) component: Option<PathBuf>,
    /// Show recorded calls on pages for a browser on this machine, at ADDR [default: 127.0.0.1 and
    /// a free port], until Ctrl-C
    #[arg(long, value_name = "ADDR", num_args = 0..=1, default_missing_value = "127.0.0.1:0",
          conflicts_with_all = ["component", "schemas", "json"])]
    pub(crate) web: Option<SocketAddr>,
    /// Directory of the call log, for --web [default: that of the configuration, or the user's]
    #[arg(long, value_name = "DIR", requires = "web", conflicts_with = "component")]
    pub(crate) directory: Option<PathBuf>,
    /// Show the grants of the plugin in this configuration, or with --web its call log
    #[arg(long, short = 'c', value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Show the graph and the runs of the workflow that FILE defines (YAML), for --web; repeatable
    #[arg(long = "workflow", value_name = "FILE", requires = "web", conflicts_with = "component")]
    pub(crate) workflows: Vec<PathBuf>,
    /// Directory with the checkpoints of these workflows
    #[arg(long, value_name = "DIR", requires = "workflows")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Show the JSON Schema of each tool instead of its parameters
    #[arg(long, conflicts_with = "json")]
    pub(crate) schemas: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}
