//! The interface between whoever calls tools and whatever offers them.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask::{Asker, LogSink};
use crate::label::{StatedBy, StatedLabels};
use crate::origin::ToolOrigin;
use crate::permission::LimitsAsked;
use crate::{Arguments, CallRecord, Completion, ToolDefinition, ToolFailure, ToolName, Toolset};

/// Lists and invokes tools: a plugin, a set of host functions, a remote server.
///
/// All methods may be called from many tasks at once.
#[async_trait]
pub trait ToolSource: Send + Sync {
    /// What people call the source: a plugin's configured name. For messages; it is not part of the
    /// tools' names.
    fn name(&self) -> &str;

    /// The tools on offer. Called often: an implementation keeps the list and returns a reference
    /// to it.
    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]>;

    /// What a model should be told about the tools together, beside their descriptions.
    fn instructions(&self) -> Option<&str> {
        None
    }

    /// Whether a person has to approve each call of this tool that a model makes. The source says
    /// so for the host: what the author of a tool says about it never decides.
    fn needs_approval(&self, _tool: &ToolName) -> bool {
        false
    }

    /// Identifies where the tool comes from. What a person allows for always holds for this origin
    /// of a tool and not for its name; a source that wraps another one passes the other's origin
    /// on.
    fn origin(&self, _tool: &ToolName) -> ToolOrigin {
        ToolOrigin::program(self.name())
    }

    /// Returns whether a person has to approve this call, `arguments` being decoded. Asked only
    /// where [`needs_approval`](Self::needs_approval) says that some call of the tool needs it.
    fn needs_approval_for(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        let _ = arguments;
        self.needs_approval(tool)
    }

    /// Returns whether a call of this tool can be a dry run ([`FileEffects::is_dry_run`]), which
    /// changes no file. A dry run of another tool is refused before anything runs.
    fn supports_dry_run(&self, tool: &ToolName) -> bool {
        let _ = tool;
        false
    }

    /// What the source states about the flow of data into and out of a tool (`LBL-5`). How much of
    /// it counts depends on [`states_for`](Self::states_for).
    fn labels(&self, _tool: &ToolName) -> StatedLabels {
        StatedLabels::default()
    }

    /// Who it is that states labels: a third party unless the functions are those of the program
    /// itself (`LBL-4`, `LBL-5`).
    fn states_for(&self) -> StatedBy {
        StatedBy::ThirdParty
    }

    /// Runs one call to its end. The arguments are already decoded by the definition's schema.
    ///
    /// A source never raises: every way to end is an [`Outcome`](crate::Outcome). When the context
    /// is cancelled the source stops the work and answers
    /// [`Outcome::Cancelled`](crate::Outcome::Cancelled); when the future is dropped it stops the
    /// work as well.
    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion;
}

/// One call with decoded arguments.
#[derive(Clone)]
pub struct ToolCall<'c> {
    /// The definition that the arguments were decoded by.
    pub tool: &'c Arc<ToolDefinition>,
    /// The decoded arguments.
    pub arguments: Arguments,
    /// The tools that stand beside this one, for a tool that calls others.
    pub toolset: Option<&'c Toolset>,
}

/// The call that has made this one.
#[derive(Clone)]
pub struct OuterCall {
    /// How many calls this one is in.
    pub depth: u32,
    /// What the calls share of their files, in terms of the crate that knows them.
    pub files: Arc<dyn Any + Send + Sync>,
}

/// What a call knows about the one who makes it.
#[derive(Clone, Default)]
pub struct CallContext {
    /// An id that the record carries; the model's or client's own id where there is one.
    pub call_id: String,
    /// The session that the call belongs to.
    pub session: Option<String>,
    /// When the caller stops waiting. Passing it is cancellation and not a timeout of the tool
    /// (`RES-12`).
    pub deadline: Option<Instant>,
    /// Cancelled when the caller gives up.
    pub cancellation: CancellationToken,
    /// The call that has made this one, if a tool did.
    pub outer: Option<OuterCall>,
    /// Limits below the plugin's own, for this call alone. They lower a limit and never raise it.
    pub limits: Option<Arc<LimitsAsked>>,
    /// What becomes of the changes that the call makes to files.
    pub file_effects: FileEffects,
    /// Where the tool's progress goes.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// Who answers the tool's questions, if anybody does. Calls that the tool makes of other tools
    /// get none.
    pub asker: Option<Arc<dyn Asker>>,
    /// Where lines go that the tool logs for its caller.
    pub log: Option<Arc<dyn LogSink>>,
    /// What the host itself adds when the tool is somebody else's.
    pub host: Option<Arc<HostValues>>,
    /// The agent's run that the call is a part of. For tools of the host: nothing of it reaches a
    /// plugin or a remote server.
    pub run: Option<Arc<dyn LiveRun>>,
    /// Who decides about calls of other tools that the call makes. Handed on to them with
    /// everything that they call.
    pub inner_calls: Option<Arc<dyn InnerCalls>>,
}

/// Decides about the calls that a call makes of other tools (`LBL-9`, `LBL-10`). Called from within
/// the call: it must not block.
pub trait InnerCalls: Send + Sync {
    /// Whether the call may be made.
    ///
    /// # Errors
    /// What the tool that wanted to make it is told instead.
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>>;

    /// The call has ended, and its result goes to the tool that has made it.
    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord);
}

/// A call that another one makes.
pub struct InnerCall<'c> {
    /// The id of its record.
    pub call_id: &'c str,
    /// The tool.
    pub tool: &'c ToolDefinition,
    /// The source that the tool belongs to.
    pub source: &'c dyn ToolSource,
}

/// A run of an agent that is going on, as its tools can change it.
pub trait LiveRun: Send + Sync {
    /// Adds the tools of a source from the next iteration on: all of them or none (`MW-16`).
    ///
    /// # Errors
    /// A name is taken, or the run is over (`MW-17`).
    fn add_tools(&self, source: Arc<dyn ToolSource>) -> Result<(), NotChanged>;

    /// Takes tools away from the next iteration on. Names that are not known are passed over
    /// (`MW-16`).
    ///
    /// # Errors
    /// The run is over (`MW-17`).
    fn remove_tools(&self, names: &[&str]) -> Result<(), NotChanged>;

    /// Ends the loop after this batch of calls (`LOOP-25`).
    fn terminate(&self);
}

/// Why the tools of a run are what they were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotChanged {
    /// A name is taken.
    #[error("Duplicate tool name '{name}'. Tool names must be unique.")]
    Duplicate {
        /// The first of the names that are.
        name: String,
    },
    /// The run that tools were to be added to is over.
    #[error("Cannot add tools: this context is not bound to a live run.")]
    AddedTooLate,
    /// The run that tools were to be removed from is over.
    #[error("Cannot remove tools: this context is not bound to a live run.")]
    RemovedTooLate,
}

/// What a host gives to tools of remote servers beside the arguments of the model. It is kept apart
/// from them: nothing that a model or a server says selects or replaces one of these.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostValues {
    /// Values of the run. One is sent if a person has configured its name for the tool (`MCP-2`).
    pub arguments: Map<String, Value>,
    /// `_meta` of the request; anything but a map is refused (`MCP-7`).
    pub meta: Option<Value>,
    /// The trace that the call belongs to: `traceparent`, `tracestate`, `baggage`.
    pub trace: Option<Map<String, Value>>,
}

/// What becomes of the changes that a call makes to files. The default is that they are made when
/// it succeeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileEffects {
    /// They are recorded and not made.
    pub is_dry_run: bool,
    /// The record shows them line by line.
    pub shows_diffs: bool,
}

/// How far a call has come, as the tool says.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Work done so far, in the tool's own unit.
    pub done: f64,
    /// Work in all, if the tool knows.
    pub total: Option<f64>,
    /// What the tool is doing.
    pub message: Option<String>,
}

/// Receives progress. Called from within the call: it must not block.
pub trait ProgressSink: Send + Sync {
    /// Takes one report.
    fn report(&self, call_id: &str, progress: Progress);
}

impl CallContext {
    /// A context with an id and nothing else.
    pub fn new(call_id: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), ..Self::default() }
    }

    /// Whether the caller has given up or its deadline has passed; both are cancellation
    /// (`RES-12`).
    #[must_use]
    pub fn is_given_up(&self) -> bool {
        self.cancellation.is_cancelled()
            || self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Returns when [`CallContext::is_given_up`].
    pub async fn given_up(&self) {
        let deadline_passed = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = self.cancellation.cancelled() => {}
            () = deadline_passed => {}
        }
    }
}

impl std::fmt::Debug for ToolCall<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolCall")
            .field("tool", &self.tool.name)
            .field("arguments", &self.arguments)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for CallContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallContext")
            .field("call_id", &self.call_id)
            .field("session", &self.session)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}
