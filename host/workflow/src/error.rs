//! Errors of building and of running workflows.

use cofferdam_agent::BoxError;

use super::checkpoint::CheckpointError;
use super::message::MessageType;
use super::step::StepError;

/// Error of building a workflow. The texts are those of the contract.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidWorkflow {
    /// Two executors have one id (`WF-7`).
    #[error("Duplicate executor ID '{id}' detected in workflow.")]
    DuplicateExecutor {
        /// The id.
        id: String,
    },
    /// An executor has no id.
    #[error("an executor has an empty id; give it one")]
    EmptyId,
    /// No start executor is named.
    #[error("the workflow has no start executor; call `start` with an id")]
    NoStart,
    /// Something names an executor that is not there.
    #[error("[GRAPH_CONNECTIVITY] {what} names the executor '{id}', which is not in the workflow.")]
    UnknownExecutor {
        /// Subject.
        what: String,
        /// The id.
        id: String,
    },
    /// A chain of one.
    #[error("At least two executors are required to form a chain.")]
    ShortChain,
    /// A fan-out that is a single edge.
    #[error("FanOutEdgeGroup must contain at least two targets.")]
    FewTargets,
    /// A fan-in that is a single edge.
    #[error("FanInEdgeGroup must contain at least two sources.")]
    FewSources,
    /// A switch without a case or without a default (`WF-3`).
    #[error("SwitchCaseEdgeGroup must contain at least two cases (including the default case).")]
    FewCases,
    /// An edge that is there twice (`WF-7`).
    #[error(
        "[EDGE_DUPLICATION] Duplicate edge detected: {from}->{to}. Each edge in the workflow must \
         be unique."
    )]
    DuplicateEdge {
        /// Source.
        from: String,
        /// Target.
        to: String,
    },
    /// An executor sends a type that its target does not take (`WF-7`).
    #[error(
        "[TYPE_COMPATIBILITY] Type incompatibility between executors '{from}' -> '{to}'. Source executor outputs types \
         [{}] but target executor can only handle types [{}].", listed(.sends), listed(.takes)
    )]
    Types {
        /// Source.
        from: String,
        /// Target.
        to: String,
        /// Types that are sent; lists of them if the edge is a fan-in.
        sends: Vec<MessageType>,
        /// Types that are taken.
        takes: Vec<MessageType>,
    },
    /// No way leads to some executors (`WF-7`).
    #[error(
        "[GRAPH_CONNECTIVITY] The following executors are unreachable from the start executor \
         '{start}': [{}].",
        quoted(.ids)
    )]
    Unreachable {
        /// Start executor.
        start: String,
        /// The executors, sorted.
        ids: Vec<String>,
    },
    /// Executors are designated for both (`WF-10`).
    #[error("[OUTPUT_VALIDATION] Executors cannot be both output and intermediate designated: \
        [{}]", quoted(.ids))]
    Overlap {
        /// The executors, sorted.
        ids: Vec<String>,
    },
    /// Executors are designated more than once (`WF-10`).
    #[error("[OUTPUT_VALIDATION] Duplicate {kind} executor designation(s): [{}]", quoted(.ids))]
    DuplicateDesignation {
        /// `output` or `intermediate`.
        kind: &'static str,
        /// The executors, each once.
        ids: Vec<String>,
    },
    /// A designation names no executor (`WF-10`).
    #[error(
        "[OUTPUT_VALIDATION] Explicit workflow output designation must include at least one \
         output or intermediate executor."
    )]
    EmptyDesignation,
    /// A designated executor is not there.
    #[error("[OUTPUT_VALIDATION] {kind} executor '{id}' is not present in the workflow graph")]
    UnknownDesignation {
        /// `Output` or `Intermediate`.
        kind: &'static str,
        /// The id.
        id: String,
    },
    /// A word that designates nothing (`WF-10`).
    #[error("Unsupported output_from literal '{word}'; use 'all' or a list of executors.")]
    OutputWord {
        /// The word.
        word: String,
    },
    /// A word that designates nothing (`WF-10`).
    #[error(
        "Unsupported intermediate_output_from literal '{word}'; use 'all_other' or a list of \
         executors."
    )]
    IntermediateWord {
        /// The word.
        word: String,
    },
    /// A limit that lets nothing happen.
    #[error("`max_iterations` is 0, and no run could do anything; pass at least 1")]
    NoIterations,
}

/// Error of a run. Texts are for the operator.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkflowError {
    /// The start executor does not take what the run was to begin with (`WF-8`).
    #[error("the start executor `{executor}` takes {}, and the input is {given}", joined(.takes))]
    Input {
        /// The start executor.
        executor: String,
        /// Types that it takes.
        takes: Vec<MessageType>,
        /// The input's type.
        given: MessageType,
    },
    /// An executor has failed (`WF-8`).
    #[error("the executor `{executor}` failed: {source}")]
    Executor {
        /// Executor.
        executor: String,
        /// Its error.
        source: BoxError,
    },
    /// A multi-selection has chosen what is no target (`WF-4`).
    #[error(
        "Invalid selection result: [{}]. Expected selections to be a subset of valid target \
         executor IDs: [{}].",
        quoted(.selected), quoted(.targets)
    )]
    Selection {
        /// Selected targets.
        selected: Vec<String>,
        /// Existing targets.
        targets: Vec<String>,
    },
    /// The run goes on and on (`WF-6`).
    #[error("Runner did not converge after {max_iterations} iterations.")]
    NotConverged {
        /// Number of supersteps.
        max_iterations: u64,
    },
    /// More waits for the next step than may.
    #[error("the run holds more than {max} {what} between two supersteps")]
    TooMuch {
        /// Subject.
        what: &'static str,
        /// Maximum.
        max: usize,
    },
    /// A run is taken up again by a workflow that is another one (`WF-12`).
    #[error(
        "the checkpoint is of a workflow with another structure; executors, edges, types and output selection have to be what \
         they were when it was taken"
    )]
    Structure,
    /// A snapshot is of a version that is not known here.
    #[error(
        "the checkpoint has the format {version}, and this program reads {}",
        super::snapshot::VERSION
    )]
    Version {
        /// Its version.
        version: u32,
    },
    /// An answer to nothing.
    #[error("there is no open request `{id}`; open: {}", if open.is_empty() { "none".to_owned() } else { open.join(", ") })]
    UnknownRequest {
        /// The id that was answered.
        id: String,
        /// The ids that could be.
        open: Vec<String>,
    },
    /// An answer that is not of the type that was asked for.
    #[error("the answer to `{id}` is to be {expected}, and is {given}")]
    Answer {
        /// The request.
        id: String,
        /// Expected type.
        expected: MessageType,
        /// Actual type.
        given: MessageType,
    },
    /// A checkpoint cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The run was cancelled.
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

/// Ids as the contract writes lists of them: JSON texts, joined by `, `.
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
