//! Flags of `cofferdam replay`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;

use super::log::{LogDirectoryArgs, LogFilterArgs};

pub(crate) const EXAMPLES: &str = "\
Calls can run again if they were recorded for that: with --replayable of call, chat, play, serve
and `workflow run`, or with replay = \"failures\", \"sampled\" or \"all\" in [records] or in a
plugin's table. A replay gets the recorded inputs. It sends no request, opens no socket, changes no
file and uses no secret.

With only --session, and --plugin if wanted, a conversation runs again: the recorded model answers,
and the calls of plugins run with their recorded inputs.

Without --with and --config, calls run in the recorded component, which the log keeps.

Exit code 0: all replays are identical, 1: some differ, 4: some calls could not be replayed, or
may be missing because the log is damaged.

Examples:
  cofferdam call word_count text='a b' --plugin text.wasm --replayable
  cofferdam replay 3f2a91c0-17
  cofferdam replay 3f2a91c0-17 --config cofferdam.toml
  cofferdam replay --session holiday --with new.wasm
  cofferdam replay --since 1d --plugin web --with new.wasm
  cofferdam replay 3f2a91c0-17 --bisect builds/
  cofferdam log show 3f2a91c0-17 --recording > call.json
  cofferdam replay --recording call.json --with text.wasm";

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Id of the call in the log, or its beginning; without it, the calls that the filters select
    #[arg(conflicts_with_all = ["recording", "tool", "plugin", "session", "outcome", "since", "until", "refused", "changed", "slow", "grep"])]
    pub(crate) id: Option<String>,
    /// Replay the recording in a file, which `log show ID --recording` has written
    #[arg(long, value_name = "FILE")]
    pub(crate) recording: Option<PathBuf>,
    /// Component to run [default: that of the plugin in the configuration, or the recorded one]
    #[arg(long, value_name = "COMPONENT")]
    pub(crate) with: Option<PathBuf>,
    /// Find the first component in a directory, by the time of its last change, whose replay
    /// differs
    #[arg(long, value_name = "DIR", conflicts_with = "with")]
    pub(crate) bisect: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) log: LogDirectoryArgs,
    #[command(flatten)]
    pub(crate) filter: LogFilterArgs,
    /// Maximum number of calls, the newest first
    #[arg(long, short = 'n', value_name = "N", default_value = "1000")]
    pub(crate) limit: NonZeroUsize,
    /// Print a JSON object per call, and one with the summary
    #[arg(long)]
    pub(crate) json: bool,
}
