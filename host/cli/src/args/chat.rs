//! What can be typed behind `cofferdam chat`.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::PluginArgs;

pub(crate) const EXAMPLES: &str = "\
A model is PROVIDER:MODEL, or the name of a [models.NAME] of the configuration. Providers are
  openai     OpenAI's chat completions, and what speaks like them   OPENAI_API_KEY, OPENAI_BASE_URL
  responses  OpenAI's responses                                     OPENAI_API_KEY, OPENAI_BASE_URL
  anthropic  Anthropic's messages                                   ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
  script     a file of replies, as `cofferdam play` reads it        no key, no network

What the model says goes to standard output; the calls and everything else go to standard error. Ctrl-C stops the turn.

Examples:
  cofferdam chat --model openai:gpt-5.2 --files ./notes
  cofferdam chat 'Which notes are about taxes?' --model anthropic:claude-sonnet-4-6 --files ./notes:ro
  cofferdam chat --model openai:qwen3 --base-url http://127.0.0.1:11434/v1 --plugin text.wasm
  cofferdam chat --config cofferdam.toml --session taxes --budget-tokens 200000
  cofferdam chat 'Sum up my mail.' --config cofferdam.toml --labels
  cofferdam chat 'Tidy up.' --model script:demo.jsonl --files memory --approve file_access_delete_file --json
  cofferdam chat --model openai:gpt-5.2 --skills ./skills
  git diff | cofferdam chat - --system 'Review this change.' --model openai:gpt-5.2";

#[derive(Debug, Clone, Args)]
pub(crate) struct ChatArgs {
    /// What to say, `-` for standard input: one turn, and the end. Without it, a conversation
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// The model [default: the one of the configuration]
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) model: Option<String>,
    /// Where the model's provider is, instead of its own address
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// What the model is told before everything else [TEXT or @FILE]
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) system: Option<String>,
    /// Go on with the session of this name, or begin it
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Where sessions are kept [default: in the user's data directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) session_dir: Option<PathBuf>,
    /// List the sessions that there are, and do nothing else
    #[arg(long, conflicts_with_all = ["prompt", "session"])]
    pub(crate) sessions: bool,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
    /// Use information-flow labels, as the [labels] of the configuration say: untrusted results are
    /// hidden from the model
    #[arg(long)]
    pub(crate) labels: bool,
    /// Rounds of tool calls in one turn; then the model has to answer [default: 40]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<NonZeroU32>,
    /// Whether the model may, must or must not call tools, or which one it calls first
    #[arg(long, value_name = "auto|none|required|TOOL")]
    pub(crate) tool_choice: Option<String>,
    /// Tokens that the whole conversation may use, as the provider counts them
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<NonZeroU64>,
    /// Ask the provider to keep to the schemas of the tools, where it can
    #[arg(long)]
    pub(crate) strict: bool,
    /// Show what each call would change in files, and change nothing; tools without a dry run are
    /// not called
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print the messages of each turn, tokens and outcome as JSON Lines, instead of the text
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which calls of a model a person is asked about, and what they have said already.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApprovalArgs {
    /// Which calls you are asked about
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = WhenToAsk::Sources)]
    pub(crate) ask: WhenToAsk,
    /// Approve every call of this tool, where that needs approval; may be given more than once
    #[arg(long, value_name = "TOOL")]
    pub(crate) approve: Vec<String>,
    /// Approve every call
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Which calls a person is asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhenToAsk {
    /// Those that the configuration says, and deleting files
    Sources,
    /// Also those of tools that do not say that they change nothing
    Changes,
    /// All
    Always,
}
