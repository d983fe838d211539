//! `cofferdam doctor`.

use std::path::PathBuf;

use clap::Args;

pub(crate) const EXAMPLES: &str = "\
Nothing is changed. The exit code is 4 if there is a problem: plugins cannot be compiled or run, the
cache cannot be used, or the configuration is invalid. A note is about something that you may not
need.

Examples:
  cofferdam doctor
  cofferdam doctor --config tools.toml
  cofferdam doctor --confinement full
  cofferdam doctor --json | jq '.[] | select(.state != \"ok\")'";

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Configuration to check [default: cofferdam.toml of the working directory or above]
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
}
