//! Flags for plugins, servers, stores and limits, which many commands share.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cofferdam::code::Language;
use cofferdam::code_mode::CodeOffer;
use cofferdam::records::RecordMode;
use cofferdam_tool::recording::RecordingLevel;

use super::duration;

/// Flags that choose plugins, servers and stores.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginArgs {
    /// Load a plugin from a component file; repeatable
    #[arg(long = "plugin", short = 'p', value_name = "[NAME=]PATH")]
    pub(crate) plugins: Vec<String>,
    /// Grant the --plugin plugins a store as /NAME: a directory, s3://BUCKET/PREFIX or `memory`;
    /// `:ro` is read-only, `:create` allows only new files; repeatable
    #[arg(long = "mount", short = 'm', value_name = "NAME=STORE[:ro|:create]")]
    pub(crate) mounts: Vec<String>,
    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,
    /// Read plugins, servers, stores, grants and limits from a configuration file
    #[arg(long, short = 'c', value_name = "FILE", env = "COFFERDAM_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Offer the file_access tools for a store: a directory, s3://BUCKET/PREFIX or `memory`;
    /// append `:ro` for read-only
    #[arg(long, short = 'f', value_name = "[NAME=]STORE")]
    pub(crate) files: Option<String>,
    /// Load skills from DIR (a skill or a directory of skills); repeatable
    #[arg(long, value_name = "DIR")]
    pub(crate) skills: Vec<PathBuf>,
    /// Offer only the tools of [toolsets.NAME] in the configuration; repeatable
    #[arg(long = "toolset", value_name = "NAME", requires = "config")]
    pub(crate) toolsets: Vec<String>,
    /// Offer only these tools
    #[arg(long, value_name = "TOOL,…", value_delimiter = ',')]
    pub(crate) tools: Vec<String>,
    /// Maximum wall-clock time of a call, such as 500ms, 5s or 2m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) timeout: Option<Duration>,
    /// Maximum memory of a call in MiB [default: 64]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub(crate) memory: Option<u64>,
    /// Offer run_code, a tool that runs a program of the model in the sandbox; the program calls
    /// the other tools. `both` offers these as well, `only` offers none of them [default: both]
    #[arg(long, value_name = "both|only", num_args = 0..=1, require_equals = true, default_missing_value = "both")]
    pub(crate) code: Option<CodeOffer>,
    /// Language of such programs, `javascript` or `python` [default: javascript; python for models
    /// of Anthropic]
    #[arg(long, value_name = "LANGUAGE")]
    pub(crate) code_language: Option<Language>,
    /// Recording of the calls, which the command decides by its own flags.
    #[arg(skip)]
    pub(crate) records: RecordMode,
    /// Calls that are recorded so that they can run again.
    #[arg(skip)]
    pub(crate) recording: Option<RecordingLevel>,
}

/// Flag of commands that record their calls by default.
#[derive(Debug, Clone, Args)]
pub(crate) struct NoRecordArgs {
    /// Do not record the calls in the log that `cofferdam log` shows
    #[arg(long)]
    no_record: bool,
    /// Record the calls so that `cofferdam replay` can run them again. Stores what the tools read
    #[arg(long, conflicts_with = "no_record")]
    replayable: bool,
}

/// Flag of commands that record their calls only when asked to.
#[derive(Debug, Clone, Args)]
pub(crate) struct RecordArgs {
    /// Record the calls in the log that `cofferdam log` shows
    #[arg(long)]
    record: bool,
    /// Record the calls so that `cofferdam replay` can run them again. Stores what the tools read
    #[arg(long)]
    replayable: bool,
}

impl NoRecordArgs {
    pub(crate) fn mode(&self) -> RecordMode {
        match self {
            Self { no_record: true, .. } => RecordMode::Never,
            Self { replayable: true, .. } => RecordMode::Always,
            _ => RecordMode::On,
        }
    }

    pub(crate) fn recording(&self) -> Option<RecordingLevel> {
        self.replayable.then_some(RecordingLevel::All)
    }
}

impl RecordArgs {
    pub(crate) fn mode(&self) -> RecordMode {
        if self.record || self.replayable { RecordMode::Always } else { RecordMode::Off }
    }

    pub(crate) fn recording(&self) -> Option<RecordingLevel> {
        self.replayable.then_some(RecordingLevel::All)
    }
}

/// Flags that grant permissions to the plugins of `--plugin`.
#[derive(Debug, Clone, Args)]
pub(crate) struct PermissionArgs {
    /// Let the --plugin plugins send HTTP requests, such as 'GET https://api.example.com/v1';
    /// repeatable
    #[arg(long, value_name = "RULE")]
    pub(crate) allow_http: Vec<String>,
    /// Let the --plugin plugins read an environment variable, with the host's value or with VALUE;
    /// repeatable
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub(crate) allow_env: Vec<String>,
    /// Let the --plugin plugins read the secret NAME, from the host's environment variable VARIABLE
    /// [default: NAME]; repeatable
    #[arg(long, value_name = "NAME[=VARIABLE]")]
    pub(crate) secret: Vec<String>,
    /// Grant the --plugin plugins another permission of `cofferdam grant --help`, such as
    /// 'socket:tcp db.example.com:5432'; repeatable
    #[arg(long, value_name = "PERMISSION")]
    pub(crate) allow: Vec<String>,
    /// Set a limit of the --plugin plugins, such as cpu-ms-max=60000; repeatable
    #[arg(long, value_name = "KEY=NUMBER")]
    pub(crate) limit: Vec<String>,
}
