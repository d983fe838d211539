//! Flags of `cofferdam chat`.

use std::num::{NonZeroU32, NonZeroU64};
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::{InspectorArgs, NoRecordArgs, PluginArgs};

pub(crate) const EXAMPLES: &str = "\
A model is PROVIDER:MODEL, or the NAME of [models.NAME] in the configuration. Providers:
  openai     OpenAI chat completions and compatible servers         OPENAI_API_KEY, OPENAI_BASE_URL
  responses  OpenAI responses                                       OPENAI_API_KEY, OPENAI_BASE_URL
  anthropic  Anthropic messages                                     ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL
  script     a file of replies, as for `cofferdam play`             no key, no network

Replies of the model go to stdout; calls and everything else go to stderr. Ctrl-C stops the turn.

Examples:
  cofferdam chat --model openai:gpt-5.2 --files ./notes
  cofferdam chat 'Which notes are about taxes?' --model anthropic:claude-sonnet-4-6 --files ./notes:ro
  cofferdam chat --model openai:qwen3 --base-url http://127.0.0.1:11434/v1 --plugin text.wasm
  cofferdam chat --config cofferdam.toml --session taxes --budget-tokens 200000
  cofferdam chat 'Sum up my mail.' --config cofferdam.toml --labels
  cofferdam chat 'Tidy up.' --model script:demo.jsonl --files memory --approve file_access_delete_file --json
  cofferdam chat --model openai:gpt-5.2 --skills ./skills
  cofferdam chat --model openai:gpt-5.2 --setting effort=low --setting max-output-tokens=2000
  cofferdam chat --prompt-file story.yaml --prompt-arg topic=tides --prompt-arg style=@style.md
  git diff | cofferdam chat - --system 'Review this change.' --model openai:gpt-5.2";

#[derive(Debug, Clone, Args)]
pub(crate) struct ChatArgs {
    /// Prompt to send (`-` reads stdin), then exit; omit it for an interactive chat
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Send the model FILE with the prompt: a text, an image, a PDF or audio; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// Let the model keep notes for later sessions in a store: a directory, s3://BUCKET/PREFIX or
    /// `memory`
    #[arg(long, value_name = "STORE")]
    pub(crate) memory_files: Option<String>,
    /// Give the model a todo list
    #[arg(long)]
    pub(crate) todos: bool,
    /// Begin in plan mode, in which only tools that change nothing run until you approve the plan
    #[arg(long)]
    pub(crate) plan: bool,
    /// Model to use [default: that of the configuration]
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) model: Option<String>,
    /// Set an option of requests: temperature, top-p, max-output-tokens, stop, seed or effort;
    /// repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) setting: Vec<String>,
    /// Override the provider's base URL
    #[arg(long, value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Talk to the agent that FILE defines (YAML): its model, instructions, tools and settings
    #[arg(long, value_name = "FILE")]
    pub(crate) agent: Option<PathBuf>,
    /// Send the prompt that FILE defines (YAML or JSON), with its settings of requests; PROMPT is
    /// then its variable `input`
    #[arg(long, value_name = "FILE")]
    pub(crate) prompt_file: Option<PathBuf>,
    /// Set a variable of the prompt file; `NAME=@FILE` reads the value from a file; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "prompt_file")]
    pub(crate) prompt_arg: Vec<String>,
    /// System prompt, or `@FILE`
    #[arg(long, value_name = "TEXT|@FILE")]
    pub(crate) system: Option<String>,
    /// Resume or create the named session
    #[arg(long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Answer a request of a program that waits in the session: ID=yes, ID=no or ID=no:REASON;
    /// repeatable
    #[arg(long, value_name = "ID=ANSWER", requires = "session")]
    pub(crate) answer: Vec<String>,
    /// Directory of sessions [default: in the user's data directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) session_dir: Option<PathBuf>,
    /// List the sessions and exit
    #[arg(long, conflicts_with_all = ["prompt", "session"])]
    pub(crate) sessions: bool,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
    #[command(flatten)]
    pub(crate) inspector: InspectorArgs,
    #[command(flatten)]
    pub(crate) record: NoRecordArgs,
    /// Apply the information-flow labels of [labels] in the configuration: untrusted results are
    /// hidden from the model
    #[arg(long)]
    pub(crate) labels: bool,
    /// Maximum rounds of tool calls in a turn; then the model has to answer [default: 40]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<NonZeroU32>,
    /// Let the model decide whether to call tools (auto), forbid or require calls, or require TOOL
    /// as the first call
    #[arg(long, value_name = "auto|none|required|TOOL")]
    pub(crate) tool_choice: Option<String>,
    /// Maximum tokens of the conversation, as the provider counts them [default: that of the
    /// configuration]
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<NonZeroU64>,
    /// Tokens of the model's context window; older parts of a longer conversation are summarized
    /// [default: that of the configuration, or 128000]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) context_window: Option<NonZeroU64>,
    /// Request strict schema adherence from providers that support it
    #[arg(long)]
    pub(crate) strict: bool,
    /// Show the file changes of each call without making them; tools that do not support this are
    /// not called. Not with --session
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print messages, tokens and outcome of each turn, or the sessions, as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags for the approval of a model's calls.
#[derive(Debug, Clone, Args)]
pub(crate) struct ApprovalArgs {
    /// Calls that need your approval
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = AskMode::Sources)]
    pub(crate) ask: AskMode,
    /// Approve every call of this tool; repeatable
    #[arg(long, value_name = "TOOL")]
    pub(crate) approve: Vec<String>,
    /// Approve every call
    #[arg(long, short)]
    pub(crate) yes: bool,
}

/// Calls that need the user's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskMode {
    /// Calls for which the configuration requires it, and calls that delete files
    Sources,
    /// Also calls of tools that are not declared read-only
    Changes,
    /// All calls
    Always,
}
