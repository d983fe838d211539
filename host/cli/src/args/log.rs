//! Flags of `cofferdam log`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::{ClusterAccessArgs, duration};

pub(crate) const EXAMPLES: &str = "\
`serve`, `chat` and `workflow run` record their calls; `call --record` records one. Arguments and
results are stored only if the configuration says so: [records] payloads = \"local\".

TIME is an age such as 30m, 12h or 7d, or a date such as 2026-11-24 or 2026-11-24T08:30:00Z.

Examples:
  cofferdam log
  cofferdam log --plugin web --since 1d --refused
  cofferdam log --outcome error --slow 100ms --json
  cofferdam log show 3f2a91c0-17
  cofferdam log stats --since 7d
  cofferdam log tail --tool fetch
  cofferdam log verify";

/// Flags of `log` without a subcommand, and its subcommands.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct LogArgs {
    #[command(subcommand)]
    pub(crate) command: Option<LogCommand>,
    #[command(flatten)]
    pub(crate) list: LogListArgs,
}

impl LogArgs {
    /// Returns the flags that name the log.
    pub(crate) fn log_mut(&mut self) -> &mut LogDirectoryArgs {
        match &mut self.command {
            None => &mut self.list.log,
            Some(LogCommand::Show(args)) => &mut args.log,
            Some(LogCommand::Tail(args)) => &mut args.log,
            Some(LogCommand::Stats(args)) => &mut args.log,
            Some(LogCommand::Export(args)) => &mut args.log,
            Some(LogCommand::Prune(args)) => &mut args.log,
            Some(LogCommand::Collect(args)) => &mut args.log,
            Some(LogCommand::Verify(args)) => &mut args.log,
            Some(LogCommand::Checkpoint(args) | LogCommand::Dir(args)) => args,
            Some(LogCommand::Prove(args)) => &mut args.log,
            Some(LogCommand::ToCase(args)) => &mut args.log,
            Some(LogCommand::Events(args)) => &mut args.log,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum LogCommand {
    /// Show everything that is recorded about one call
    Show(LogShowArgs),
    /// Print calls as they end, until Ctrl-C
    Tail(LogTailArgs),
    /// Show numbers of calls, errors and durations by tool
    Stats(LogStatsArgs),
    /// List approvals, changes of grants, loaded plugins, replies of models and runs of agents
    Events(LogEventsArgs),
    /// Export calls for other programs
    #[command(after_help = "\
Examples:
  cofferdam log export --since 1d > calls.jsonl
  cofferdam log export --since 1h --otlp http://127.0.0.1:4318
  cofferdam log export --format otlp > requests.jsonl")]
    Export(LogExportArgs),
    /// Remove the oldest records
    Prune(LogPruneArgs),
    /// Copy the call logs of the workers of a cluster to one directory, until Ctrl-C
    #[command(after_help = "\
Workers give out their logs if they were started with --offer-records. The logs are in one folder
each, with their evidence; `cofferdam log --directory DIR` shows all of them.

Examples:
  cofferdam log collect --cluster nats://10.0.0.5:4222 --directory fleet-log
  cofferdam log --directory fleet-log --since 1h --outcome error
  cofferdam log verify --directory fleet-log/logs/3f2a91c0…")]
    Collect(LogCollectArgs),
    /// Check that the log is what was written
    #[command(after_help = "\
Whoever can use the key on this machine can rewrite the whole log. Keep a checkpoint elsewhere
(`cofferdam log checkpoint`): with it, a rewritten or shortened log is found.

A witness keeps checkpoints by itself: [[records.witness]] in the configuration.

Examples:
  cofferdam log checkpoint > kept.txt
  cofferdam log verify --kept kept.txt
  cofferdam log verify --config cofferdam.toml")]
    Verify(LogVerifyArgs),
    /// Print the newest signed checkpoints, to keep elsewhere
    Checkpoint(LogDirectoryArgs),
    /// Print a proof that a call is in the log, which can be checked without the log
    #[command(after_help = "\
Examples:
  cofferdam log prove 3f2a91c0-17 > proof.json
  cofferdam log prove --check proof.json --key \"$KEY\"")]
    Prove(LogProveArgs),
    /// Make a case for `cofferdam test` of a recorded call
    #[command(after_help = "\
The recording is written to the folder `recordings` beside the file of cases. It contains what the
tool has read: look at it before you share it.

Examples:
  cofferdam log to-case 3f2a91c0-17
  cofferdam log to-case 3f2a91c0-17 --cases plugins/web/cases.jsonl --name 'redirect to another host'")]
    ToCase(LogCaseArgs),
    /// Print the directory of the log
    Dir(LogDirectoryArgs),
}

/// Flags that name the log.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogDirectoryArgs {
    /// Directory of the log [default: that of the configuration, or the user's]
    #[arg(long, value_name = "DIR", conflicts_with = "config")]
    pub(crate) directory: Option<PathBuf>,
    /// Use the log of a configuration
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// Flags of results that may be long.
#[derive(Debug, Clone, Args)]
pub(crate) struct PagerArgs {
    /// Print directly, not in $COFFERDAM_PAGER, $PAGER or `less`, on a terminal
    #[arg(long)]
    pub(crate) no_pager: bool,
}

/// Flags that select calls.
#[derive(Debug, Clone, Args)]
pub(crate) struct LogFilterArgs {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of this plugin
    #[arg(long, short = 'p', value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Only calls of this session
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Only calls with this outcome
    #[arg(long, value_name = "OUTCOME", value_enum)]
    pub(crate) outcome: Option<LoggedOutcome>,
    /// Only calls since TIME
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only calls until TIME
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
    /// Only calls that were refused a permission, or one that contains PART
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) refused: Option<String>,
    /// Only calls that changed a file, or one whose path contains PART
    #[arg(long, value_name = "PART", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    pub(crate) changed: Option<String>,
    /// Only calls that took at least this long, such as 100ms
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) slow: Option<Duration>,
    /// Only calls whose record or stored payload contains TEXT
    #[arg(long, value_name = "TEXT")]
    pub(crate) grep: Option<String>,
}

impl LogFilterArgs {
    /// Returns whether a flag is set that can only select calls, besides session and plugin.
    pub(crate) fn selects_calls(&self) -> bool {
        let Self { tool, plugin: _, session: _, outcome, since, until, .. } = self;
        let Self { refused, changed, slow, grep, .. } = self;
        let texts = [tool, since, until, refused, changed, grep];
        texts.iter().any(|text| text.is_some()) || outcome.is_some() || slow.is_some()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LoggedOutcome {
    Ok,
    Failure,
    Error,
    Cancelled,
    /// The call did not start
    Refused,
    /// The host was killed during the call
    Lost,
    Running,
}

#[derive(Debug, Args)]
pub(crate) struct LogListArgs {
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    #[command(flatten)]
    pub(crate) filter: LogFilterArgs,
    /// Maximum number of calls
    #[arg(long, short = 'n', value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    /// Print a JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogShowArgs {
    /// Id of the call, or its beginning
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// Show only the changes of files, as a diff
    #[arg(long, conflicts_with = "json")]
    pub(crate) diff: bool,
    /// Print the recording with which `cofferdam replay` runs the call again, as a JSON object
    #[arg(long, conflicts_with_all = ["json", "diff"])]
    pub(crate) recording: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EventKind {
    /// Decision of a user about a call
    Approval,
    /// Changed grant
    Grant,
    /// Loaded or replaced plugin
    Plugin,
    /// Reply of a model
    Model,
    /// Run of an agent
    Agent,
    /// Decision of a label policy
    Label,
}

#[derive(Debug, Args)]
pub(crate) struct LogEventsArgs {
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// Only events since TIME
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only events of this kind
    #[arg(long, value_name = "KIND", value_enum)]
    pub(crate) kind: Option<EventKind>,
    /// Print a JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LogCaseArgs {
    /// Id of the call, or its beginning
    pub(crate) id: String,
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// File of cases that the case is added to
    #[arg(long, value_name = "FILE", default_value = "cases.jsonl")]
    pub(crate) cases: PathBuf,
    /// Title of the case [default: the id of the call]
    #[arg(long, value_name = "TEXT")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogCollectArgs {
    /// NATS servers, such as nats://10.0.0.5:4222; several separated by commas
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) cluster: String,
    #[command(flatten)]
    pub(crate) access: ClusterAccessArgs,
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// Copy what is there, and end
    #[arg(long)]
    pub(crate) once: bool,
    /// Print a JSON object at the end
    #[arg(long, requires = "once")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogTailArgs {
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only calls of this plugin
    #[arg(long, short = 'p', value_name = "NAME")]
    pub(crate) plugin: Option<String>,
    /// Print a JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogStatsArgs {
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    #[command(flatten)]
    pub(crate) filter: LogFilterArgs,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) pager: PagerArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// One call per line
    Jsonl,
    /// One request of OTLP/HTTP JSON per line, with a span for each call
    Otlp,
}

#[derive(Debug, Args)]
pub(crate) struct LogExportArgs {
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    #[command(flatten)]
    pub(crate) filter: LogFilterArgs,
    /// Form of the output
    #[arg(long, value_name = "FORM", value_enum, default_value_t = ExportFormat::Jsonl)]
    pub(crate) format: ExportFormat,
    /// Send spans to the collector of OpenTelemetry at URL instead of printing; without URL to that
    /// of [records.otlp] in the configuration
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "", conflicts_with = "format")]
    pub(crate) otlp: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct LogPruneArgs {
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// Maximum size of the remaining log in MiB [default: that of the configuration, or 1024]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(0..=1_048_576))]
    pub(crate) max_size: Option<u64>,
    /// Maximum age of the remaining records in days [default: that of the configuration, or 30]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u64).range(0..=36_500))]
    pub(crate) max_age: Option<u64>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogVerifyArgs {
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// File with checkpoints that were kept elsewhere; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) kept: Vec<PathBuf>,
    /// Key of a witness whose signatures are checked, besides those in the configuration;
    /// repeatable
    #[arg(long, value_name = "KEY")]
    pub(crate) witness: Vec<String>,
    /// Key that the checkpoints are checked with, as `log checkpoint` prints it [default: the
    /// key in the directory]
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct LogProveArgs {
    /// Id of the call, or its beginning
    #[arg(required_unless_present = "check", conflicts_with = "check")]
    pub(crate) id: Option<String>,
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    /// Check a proof instead
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) check: Option<PathBuf>,
    /// Key to check it with
    #[arg(long, value_name = "KEY", requires = "check")]
    pub(crate) key: Option<String>,
}
