//! Flags of `cofferdam workflow`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ApprovalArgs, InspectorArgs, NoRecordArgs, PluginArgs};

const RUN_EXAMPLES: &str = "\
The file names the agents, their tools and the connections between them. An agent has only the
tools that it names. Outputs go to stdout; supersteps and everything else go to stderr.

Examples:
  cofferdam workflow run review.yaml 'Write about tides.' --model anthropic:claude-sonnet-4-6
  cofferdam workflow run review.yaml - --config cofferdam.toml --json < task.txt
  cofferdam workflow run review.yaml 'Write about tides.' --checkpoints ./runs
  cofferdam workflow run review.yaml --checkpoints ./runs --resume
  cofferdam workflow run review.yaml --checkpoints ./runs --resume --answer approve-1=yes";

const GRAPH_EXAMPLES: &str = "\
Examples:
  cofferdam workflow graph review.yaml
  cofferdam workflow graph review.yaml --json | jq -r .mermaid";

const CHECK_EXAMPLES: &str = "\
Calls no model and needs no key. With flags that select tools or a model, as for `run`, it also loads
the plugins, connects to the servers of the configuration, and checks the models, tools, skills and
settings that the agents name.

Examples:
  cofferdam workflow check review.yaml
  cofferdam workflow check review.yaml --config cofferdam.toml
  cofferdam workflow check review.yaml --json";

const CHECKPOINTS_EXAMPLES: &str = "\
Examples:
  cofferdam workflow checkpoints review.yaml --checkpoints ./runs
  cofferdam workflow checkpoints review.yaml --checkpoints ./runs --json";

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Run a workflow
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<WorkflowRunArgs>),
    /// Print the graph of a workflow as a Mermaid flowchart
    #[command(after_help = GRAPH_EXAMPLES)]
    Graph(WorkflowFileArgs),
    /// Check that a workflow can be built
    #[command(after_help = CHECK_EXAMPLES)]
    Check(Box<WorkflowCheckArgs>),
    /// List the checkpoints of a workflow
    #[command(after_help = CHECKPOINTS_EXAMPLES)]
    Checkpoints(WorkflowCheckpointsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRunArgs {
    /// Workflow, a YAML file
    pub(crate) file: PathBuf,
    /// Input of the workflow; `-` reads stdin
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Model of agents that do not name one [default: that of the configuration]
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) model: Option<String>,
    /// Set an option of all agents' requests: temperature, top-p, max-output-tokens, stop, seed or
    /// effort; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) setting: Vec<String>,
    /// Save a checkpoint after each superstep in this directory, which is created if missing
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Resume from a checkpoint [default: the last one]
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "checkpoints")]
    pub(crate) resume: Option<String>,
    /// Answer a request; repeatable
    #[arg(long, value_name = "ID=TEXT")]
    pub(crate) answer: Vec<String>,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
    #[command(flatten)]
    pub(crate) inspector: InspectorArgs,
    #[command(flatten)]
    pub(crate) record: NoRecordArgs,
    /// Apply the information-flow labels of [labels] in the configuration; all agents of the run
    /// share one label
    #[arg(long)]
    pub(crate) labels: bool,
    /// Maximum supersteps, counted again from each answer [default: that of the file, or 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<NonZeroU64>,
    /// Maximum tokens of all agents together, as the providers count them [default: that of the
    /// configuration]
    #[arg(long, value_name = "N")]
    pub(crate) budget_tokens: Option<NonZeroU64>,
    /// Print events and the outcome as JSON Lines
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowFileArgs {
    /// Workflow, a YAML file
    pub(crate) file: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowCheckArgs {
    #[command(flatten)]
    pub(crate) file: WorkflowFileArgs,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// Model of agents that do not name one [default: that of the configuration]
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) model: Option<String>,
}

impl WorkflowCheckArgs {
    /// Returns whether the flags say which tools and models a run has.
    pub(crate) fn describes_run(&self) -> bool {
        let PluginArgs { plugins, config, files, skills, code, .. } = &self.plugins;
        let has_tools = config.is_some() || files.is_some() || code.is_some();
        has_tools || self.model.is_some() || !plugins.is_empty() || !skills.is_empty()
    }
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowCheckpointsArgs {
    /// Workflow, a YAML file
    pub(crate) file: PathBuf,
    /// Directory of checkpoints
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: PathBuf,
    /// Print a JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
