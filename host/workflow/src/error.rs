//! Errors of building and running workflows.

use cofferdam_agent::BoxError;

use super::checkpoint::CheckpointError;
use super::message::MessageType;
use super::step::StepError;

/// Error of building a workflow. The rules fix the messages (`WF-3`, `WF-7`, `WF-10`).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWorkflow {
    /// Two executors have the same id (`WF-7`).
    #[error("Duplicate executor ID '{id}' detected in workflow.")]
    DuplicateExecutor {
        /// Id of both executors.
        id: String,
    },
    /// The id of an executor is empty.
    #[error("an executor has an empty id; give it one")]
    EmptyId,
    /// The start executor is missing.
    #[error("the workflow has no start executor; call `start` with an id")]
    NoStart,
    /// `start` or an edge names an executor that is not in the workflow.
    #[error("[GRAPH_CONNECTIVITY] {what} names the executor '{id}', which is not in the workflow.")]
    UnknownExecutor {
        /// Origin of the name: `start` or an edge.
        what: String,
        /// The unknown id.
        id: String,
    },
    /// A chain has fewer than two executors.
    #[error("At least two executors are required to form a chain.")]
    ShortChain,
    /// A fan-out or multi-selection has fewer than two targets.
    #[error("FanOutEdgeGroup must contain at least two targets.")]
    FewTargets,
    /// A fan-in has fewer than two sources.
    #[error("FanInEdgeGroup must contain at least two sources.")]
    FewSources,
    /// A switch has no case or no default (`WF-3`).
    #[error("SwitchCaseEdgeGroup must contain at least two cases (including the default case).")]
    FewCases,
    /// An edge occurs twice (`WF-7`).
    #[error(
        "[EDGE_DUPLICATION] Duplicate edge detected: {from}->{to}. Each edge in the workflow must \
         be unique."
    )]
    DuplicateEdge {
        /// Id of the source.
        from: String,
        /// Id of the target.
        to: String,
    },
    /// An executor sends no type that its target takes (`WF-7`).
    #[error(
        "[TYPE_COMPATIBILITY] Type incompatibility between executors '{from}' -> '{to}'. Source executor outputs types \
         [{}] but target executor can only handle types [{}].", listed(.sends), listed(.takes)
    )]
    Types {
        /// Id of the source.
        from: String,
        /// Id of the target.
        to: String,
        /// Types that the source sends; lists of them if the edge is a fan-in.
        sends: Vec<MessageType>,
        /// Types that the target takes.
        takes: Vec<MessageType>,
    },
    /// No path leads from the start executor to some executors (`WF-7`).
    #[error(
        "[GRAPH_CONNECTIVITY] The following executors are unreachable from the start executor \
         '{start}': [{}].",
        quoted(.ids)
    )]
    Unreachable {
        /// Id of the start executor.
        start: String,
        /// Ids of these executors, sorted.
        ids: Vec<String>,
    },
    /// Executors are designated both as output and as intermediate (`WF-10`).
    #[error("[OUTPUT_VALIDATION] Executors cannot be both output and intermediate designated: \
        [{}]", quoted(.ids))]
    Overlap {
        /// Ids of these executors, sorted.
        ids: Vec<String>,
    },
    /// Executors are designated more than once (`WF-10`).
    #[error("[OUTPUT_VALIDATION] Duplicate {kind} executor designation(s): [{}]", quoted(.ids))]
    DuplicateDesignation {
        /// `output` or `intermediate`.
        kind: &'static str,
        /// Ids of these executors, each once.
        ids: Vec<String>,
    },
    /// The designations contain no executor (`WF-10`).
    #[error(
        "[OUTPUT_VALIDATION] Explicit workflow output designation must include at least one \
         output or intermediate executor."
    )]
    EmptyDesignation,
    /// A designated executor is not in the workflow.
    #[error("[OUTPUT_VALIDATION] {kind} executor '{id}' is not present in the workflow graph")]
    UnknownDesignation {
        /// `Output` or `Intermediate`.
        kind: &'static str,
        /// The unknown id.
        id: String,
    },
    /// `output_from` is an unknown word (`WF-10`).
    #[error("Unsupported output_from literal '{word}'; use 'all' or a list of executors.")]
    OutputWord {
        /// The unknown word.
        word: String,
    },
    /// `intermediate_output_from` is an unknown word (`WF-10`).
    #[error(
        "Unsupported intermediate_output_from literal '{word}'; use 'all_other' or a list of \
         executors."
    )]
    IntermediateWord {
        /// The unknown word.
        word: String,
    },
    /// `max_iterations` is 0.
    #[error("`max_iterations` is 0, and no run could do anything; pass at least 1")]
    NoIterations,
}

/// Error of a run. The messages are for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkflowError {
    /// The start executor does not take the input of the run (`WF-8`).
    #[error("the start executor `{executor}` takes {}, and the input is {given}", joined(.takes))]
    Input {
        /// Id of the start executor.
        executor: String,
        /// Types that it takes.
        takes: Vec<MessageType>,
        /// Type of the input.
        given: MessageType,
    },
    /// An executor returned an error (`WF-8`).
    #[error("the executor `{executor}` failed: {source}")]
    Executor {
        /// Id of the executor.
        executor: String,
        /// Its error.
        source: BoxError,
    },
    /// A multi-selection returned an id that is not a target (`WF-4`).
    #[error(
        "Invalid selection result: [{}]. Expected selections to be a subset of valid target \
         executor IDs: [{}].",
        quoted(.selected), quoted(.targets)
    )]
    Selection {
        /// Ids that were selected.
        selected: Vec<String>,
        /// Targets of the multi-selection.
        targets: Vec<String>,
    },
    /// The run has not ended after the maximum number of supersteps (`WF-6`).
    #[error("Runner did not converge after {max_iterations} iterations.")]
    NotConverged {
        /// Maximum number of supersteps.
        max_iterations: u64,
    },
    /// The run exceeds a limit on data between two supersteps.
    #[error("the run holds more than {max} {what} between two supersteps")]
    TooMuch {
        /// Unit of the limit: `messages` or `bytes`.
        what: &'static str,
        /// Maximum.
        max: usize,
    },
    /// The snapshot belongs to a workflow with another structure (`WF-12`).
    #[error(
        "the checkpoint is of a workflow with another structure; executors, edges, types and output selection have to be what \
         they were when it was taken"
    )]
    Structure,
    /// Earlier parts of the run had a label policy. Without it, nothing would check what the
    /// labels forbid.
    #[error("the run was begun with a label policy, and has to go on with one")]
    PolicyMissing,
    /// The snapshot has a version that this program does not read.
    #[error(
        "the checkpoint has the format {version}, and this program reads {}",
        super::snapshot::VERSION
    )]
    Version {
        /// Version of the snapshot.
        version: u32,
    },
    /// An answer belongs to no open request.
    #[error("there is no open request `{id}`; open: {}", if open.is_empty() { "none".to_owned() } else { open.join(", ") })]
    UnknownRequest {
        /// Id of the answer.
        id: String,
        /// Ids of the open requests.
        open: Vec<String>,
    },
    /// An answer does not have the type that the request expects.
    #[error("the answer to `{id}` is to be {expected}, and is {given}")]
    Answer {
        /// Id of the request.
        id: String,
        /// Expected type.
        expected: MessageType,
        /// Actual type.
        given: MessageType,
    },
    /// A checkpoint could not be saved.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run was canceled.
    #[error("cancelled")]
    Cancelled,
}

impl From<StepError> for WorkflowError {
    fn from(error: StepError) -> Self {
        match error {
            StepError::TooMuch { what, max } => Self::TooMuch { what, max },
            StepError::Cancelled => Self::Cancelled,
            other => Self::Executor { executor: other.executor().to_owned(), source: other.into() },
        }
    }
}

/// Returns ids in the form that the rules fix: JSON strings, joined by `, `.
pub(super) fn quoted(ids: &[String]) -> String {
    let quoted: Vec<_> =
        ids.iter().map(|id| serde_json::Value::from(id.as_str()).to_string()).collect();
    quoted.join(", ")
}

fn listed(types: &[MessageType]) -> String {
    let types: Vec<_> = types.iter().map(ToString::to_string).collect();
    types.join(", ")
}

fn joined(types: &[MessageType]) -> String {
    let types: Vec<_> = types.iter().map(ToString::to_string).collect();
    if types.is_empty() { "nothing".to_owned() } else { types.join(" or ") }
}
