//! What can be typed behind `cofferdam workflow`.

use std::num::NonZeroU64;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ApprovalArgs, PluginArgs};

const RUN_EXAMPLES: &str = "\
The file says which agents there are, how they speak to each other, and which tools each of them \
has: an agent has no tool
that it does not name. Outputs go to standard output; the supersteps and everything else go to standard error.

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
Nothing is run, and no model is asked.

Examples:
  cofferdam workflow check review.yaml
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
    /// Say whether a workflow can be built
    #[command(after_help = CHECK_EXAMPLES)]
    Check(WorkflowFileArgs),
    /// List the checkpoints of a workflow
    #[command(after_help = CHECKPOINTS_EXAMPLES)]
    Checkpoints(WorkflowCheckpointsArgs),
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowRunArgs {
    /// The workflow, a YAML file
    pub(crate) file: PathBuf,
    /// What the workflow is given, `-` for standard input
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    pub(crate) input: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
    /// The model of agents that name none [default: the one of the configuration]
    #[arg(long, value_name = "PROVIDER:MODEL|NAME")]
    pub(crate) model: Option<String>,
    /// Keep a checkpoint after each superstep in this directory, which is made if it is not there
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: Option<PathBuf>,
    /// Go on from a checkpoint [default: the last one]
    #[arg(long, value_name = "ID", num_args = 0..=1, require_equals = true, default_missing_value = "", requires = "checkpoints")]
    pub(crate) resume: Option<String>,
    /// Answer a request; may be given more than once
    #[arg(long, value_name = "ID=TEXT")]
    pub(crate) answer: Vec<String>,
    #[command(flatten)]
    pub(crate) approval: ApprovalArgs,
    /// Use information-flow labels, as the [labels] of the configuration say; the whole run has one
    /// label
    #[arg(long)]
    pub(crate) labels: bool,
    /// Supersteps of one run, counted anew after each answer [default: what the file says, or 100]
    #[arg(long, value_name = "N")]
    pub(crate) max_iterations: Option<NonZeroU64>,
    /// Print events and the end as JSON Lines, instead of outputs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowFileArgs {
    /// The workflow, a YAML file
    pub(crate) file: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct WorkflowCheckpointsArgs {
    /// The workflow, a YAML file
    pub(crate) file: PathBuf,
    /// Where the checkpoints are
    #[arg(long, value_name = "DIR")]
    pub(crate) checkpoints: PathBuf,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
}
