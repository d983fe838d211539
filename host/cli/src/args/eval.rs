//! Flags of `cofferdam eval`.

use std::num::NonZeroU32;
use std::path::PathBuf;

use clap::Args;

use super::{NoRecordArgs, PluginArgs};

pub(crate) const EXAMPLES: &str = "\
A case is a prompt with the calls and the answer that you expect, one JSON object per line:
  {\"name\":\"counts\",\"prompt\":\"How many words has 'a b'?\",\"runs\":5,\"pass\":{\"rate\":0.8},
   \"calls\":[{\"tool\":\"word_count\",\"arguments\":{\"text\":\"a b\"}}],\"answer\":{\"contains\":\"2\"}}
What no rule can decide, a `rubric` describes, and the model of --judge decides.

Each run has a new session. Files that a run changes stay changed for the next one. The exit code is
0 if all cases pass, 1 if one fails, and 4 if too many runs ended with an error of the provider.

Examples:
  cofferdam eval cases.jsonl --model openai:gpt-5.2 --plugin text.wasm --runs 10
  cofferdam eval cases.jsonl --model openai:gpt-5.2 --plugin text.wasm --report before.json
  cofferdam eval cases.jsonl --model openai:gpt-5.2 --plugin new.wasm --compare before.json
  cofferdam eval cases.jsonl --model openai:gpt-5.2 --judge anthropic:claude-sonnet-4-6 --setting effort=low
  cofferdam eval cases.jsonl --agent reviewer.yaml --config cofferdam.toml --json";

#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// Cases, one JSON object per line
    pub(crate) cases: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Model of agents that name none [default: that of the configuration]
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) model: Option<String>,
    /// Set an option of requests: temperature, top-p, max-output-tokens, stop, seed or effort;
    /// repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) setting: Vec<String>,
    /// Model that decides about cases with a `rubric`, which need one
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) judge: Option<String>,
    /// Evaluate the agent that FILE defines (YAML) instead of one with all tools
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,
    /// System prompt of the agent with all tools, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "agent")]
    pub(crate) system: Option<String>,
    /// Runs of each case, instead of its own number
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroU32>,
    /// Runs at the same time
    #[arg(long, value_name = "N", default_value_t = 4)]
    pub(crate) concurrency: usize,
    /// Only the cases whose name contains TEXT
    #[arg(long, value_name = "TEXT")]
    pub(crate) filter: Option<String>,
    /// Approve every call; without it, a run that asks for approval is an error
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Write the report to FILE, for a later --compare
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Compare with the report in FILE, such as that of an earlier version of a plugin
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,
    /// Print the report, and the comparison, as one JSON object
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) record: NoRecordArgs,
}
