//! Interface between the code that calls tools and the sources that provide them.

use std::any::Any;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::ask::{Asker, LogSink};
use crate::handover::Handover;
use crate::label::{Label, StatedBy, StatedLabels};
use crate::origin::ToolOrigin;
use crate::permission::RequestedLimits;
use crate::record::PluginIdentity;
use crate::trace::TraceContext;
use crate::{Arguments, CallRecord, Completion, ToolDefinition, ToolFailure, ToolName, Toolset};

/// Source of tools that lists and invokes them: a plugin, a set of host functions, a remote server.
///
/// All methods may be called from many tasks at once.
#[async_trait]
pub trait ToolSource: Any + Send + Sync {
    /// Returns the name of the source in messages, such as a plugin's configured name. It is not
    /// part of the tools' names.
    fn name(&self) -> &str;

    /// Returns the tools on offer. Called often, so implementations should cache the list and
    /// return a reference to it.
    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]>;

    /// Returns instructions for the model about the tools as a whole, in addition to their
    /// descriptions.
    fn instructions(&self) -> Option<&str> {
        None
    }

    /// Returns whether a user must approve each call that a model makes of this tool. The source
    /// decides for the host; claims by the tool's author never count.
    fn needs_approval(&self, _tool: &ToolName) -> bool {
        false
    }

    /// Identifies the origin of the tool. A standing approval by the user holds for this origin,
    /// not for the tool's name. A source that wraps another one must pass the other's origin on.
    fn origin(&self, _tool: &ToolName) -> ToolOrigin {
        ToolOrigin::program(self.name())
    }

    /// Returns the identity of the plugin, if the tools are a plugin's. A source that wraps another
    /// one must pass the other's identity on.
    fn plugin_identity(&self) -> Option<&PluginIdentity> {
        None
    }

    /// Returns whether a user must approve this call with its decoded `arguments`. Called only if
    /// [`needs_approval`](Self::needs_approval) returns true for the tool.
    fn needs_approval_for(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        let _ = arguments;
        self.needs_approval(tool)
    }

    /// Returns whether a call of this tool can be a dry run ([`FileEffects::is_dry_run`]), which
    /// changes no file. For other tools, a dry run is rejected before anything runs.
    fn supports_dry_run(&self, tool: &ToolName) -> bool {
        let _ = tool;
        false
    }

    /// Returns the file stores that calls of the source can change, in a type of the crate that
    /// implements them. A source that wraps another one must pass the other's stores on.
    fn file_stores(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        Vec::new()
    }

    /// Returns the labels that the source states about the flow of data into and out of a tool
    /// (`LBL-5`). [`states_for`](Self::states_for) determines how far they count.
    fn labels(&self, _tool: &ToolName) -> StatedLabels {
        StatedLabels::default()
    }

    /// Returns the party that states the labels: a third party, unless the functions are those of
    /// the program itself (`LBL-4`, `LBL-5`).
    fn states_for(&self) -> StatedBy {
        StatedBy::ThirdParty
    }

    /// Runs one call to its end. The arguments have been decoded by the definition's schema.
    ///
    /// A source returns every result, errors included, as an [`Outcome`](crate::Outcome). When the
    /// context is canceled, the source stops the work and returns
    /// [`Outcome::Cancelled`](crate::Outcome::Cancelled). Dropping the future also stops the work.
    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion;
}

/// A call with decoded arguments.
#[derive(Clone)]
pub struct ToolCall<'c> {
    /// Definition by which the arguments were decoded.
    pub tool: &'c Arc<ToolDefinition>,
    /// Decoded arguments.
    pub arguments: Arguments,
    /// Toolset that this tool belongs to, for tools that call others.
    pub toolset: Option<&'c Toolset>,
}

/// The call that made this one.
#[derive(Clone)]
pub struct OuterCall {
    /// Identifier that the outer call has in its context.
    pub call_id: String,
    /// Number of calls that this call is nested in.
    pub depth: u32,
    /// File state that the calls share, in a type of the crate that implements it.
    pub files: Arc<dyn Any + Send + Sync>,
}

/// Context that the caller provides for a call.
#[derive(Clone, Default)]
pub struct CallContext {
    /// Identifier for the call record, taken from the model or client if it has one.
    pub call_id: String,
    /// Session that the call belongs to.
    pub session: Option<String>,
    /// Time at which the caller stops waiting. Passing it counts as cancellation, not as a timeout
    /// of the tool (`RES-12`).
    pub deadline: Option<Instant>,
    /// Token that is canceled when the caller gives up.
    pub cancellation: CancellationToken,
    /// The call that made this one, if a tool did.
    pub outer: Option<OuterCall>,
    /// Limits for this call only. They lower the plugin's limits and never raise them.
    pub limits: Option<Arc<RequestedLimits>>,
    /// Treatment of the file changes that the call makes.
    pub file_effects: FileEffects,
    /// Receiver of the tool's progress reports.
    pub progress: Option<Arc<dyn ProgressSink>>,
    /// Answers the tool's questions, if set. Calls that the tool makes of other tools get none.
    pub asker: Option<Arc<dyn Asker>>,
    /// Receiver of the log messages that the tool writes for its caller.
    pub log: Option<Arc<dyn LogSink>>,
    /// Values that the host adds for third-party tools.
    pub host: Option<Arc<HostValues>>,
    /// Agent run that the call is part of. For host tools: it never reaches a plugin or a remote
    /// server.
    pub run: Option<Arc<dyn LiveRun>>,
    /// Decides about calls that the call makes of other tools. Those calls inherit it.
    pub inner_calls: Option<Arc<dyn InnerCalls>>,
    /// Span of the caller. A toolset replaces it by the span of the call itself before it calls the
    /// source.
    pub trace: Option<TraceContext>,
    /// MCP request that the call answers.
    pub request: Option<Arc<McpRequest>>,
    /// Name that the caller gives to the effect of the call. A source that stores results returns
    /// that of the first call with this key to all further ones. Calls that the call makes of other
    /// tools have none.
    pub idempotency_key: Option<String>,
    /// Lets another process continue the call. Calls that the call makes of other tools have none.
    pub handover: Option<Arc<Handover>>,
}

/// MCP request that a call answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpRequest {
    /// Principal that the request was authenticated for, or `local`.
    pub principal: String,
    /// Name and version that the client states about itself.
    pub client: Option<String>,
    /// Revision of the protocol.
    pub protocol_version: Option<String>,
    /// `pipe` for standard input and output, `tcp` for HTTP.
    pub transport: &'static str,
}

/// Decides about the calls that a call makes of other tools (`LBL-9`, `LBL-10`). Called from within
/// the call, so it must not block.
#[async_trait]
pub trait InnerCalls: Send + Sync {
    /// Checks whether the call may be made.
    ///
    /// # Errors
    /// The failure to report to the calling tool instead.
    fn admit(&self, call: &InnerCall<'_>) -> Result<(), Box<ToolFailure>>;

    /// Returns whether [`invoke`](Self::invoke) asks a user for the approval that some tools need.
    /// Otherwise calls of such tools are refused.
    fn asks_for_approval(&self) -> bool {
        false
    }

    /// Returns whether a user must approve a call that a program of the model makes. `None` leaves
    /// the decision to the source of the tool.
    fn approval(
        &self,
        call: &InnerCall<'_>,
        arguments: &Map<String, Value>,
    ) -> Option<ApprovalNeed> {
        let _ = (call, arguments);
        None
    }

    /// Runs an admitted call to its end.
    async fn invoke(
        &self,
        call: ToolCall<'_>,
        source: &dyn ToolSource,
        context: &CallContext,
    ) -> Completion {
        source.invoke(call, context).await
    }

    /// Called when the call has ended and its result goes to the calling tool.
    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord);

    /// Returns the combined label of everything that the calling tool has, if there is a label
    /// policy.
    fn label(&self) -> Option<Label> {
        None
    }

    /// Returns the maximum bytes of a ledger that [`suspend`](Self::suspend) accepts; 0 if a
    /// program cannot be suspended.
    fn ledger_bytes_max(&self) -> usize {
        0
    }

    /// Keeps a program until a user has decided about one of its calls. Returns whether it is kept;
    /// the caller then ends the program.
    fn suspend(&self, program: SuspendedProgram) -> bool {
        let _ = program;
        false
    }

    /// Returns the suspended program that the call continues, with the user's decision.
    fn resumed(&self) -> Option<ResumedProgram> {
        None
    }
}

/// A program that waits for a user's decision about one of its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspendedProgram {
    /// Identifier of the call that needs approval.
    pub call_id: String,
    /// Tool that the call is of.
    pub tool: ToolName,
    /// Decoded arguments of the call.
    pub arguments: Map<String, Value>,
    /// Origin of the tool.
    pub origin: ToolOrigin,
    /// State from which the program continues, in a form that only its host can write.
    pub ledger: String,
}

/// A suspended program about whose call the user has decided.
#[derive(Debug, Clone, PartialEq)]
pub struct ResumedProgram {
    /// State from which the program continues ([`SuspendedProgram::ledger`]).
    pub ledger: String,
    /// True if the user approves the call.
    pub is_approved: bool,
    /// Reason for a refusal.
    pub reason: Option<String>,
}

/// Need of a user's approval for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApprovalNeed {
    /// The call may run.
    NotNeeded,
    /// The user has to be asked.
    Needed,
    /// The call may not run.
    Denied,
}

/// A call that another call makes.
pub struct InnerCall<'c> {
    /// Identifier of its record.
    pub call_id: &'c str,
    /// Identifier of the call that makes it, which may be an inner call itself.
    pub outer_call_id: Option<&'c str>,
    /// Tool that is called.
    pub tool: &'c ToolDefinition,
    /// Source that the tool belongs to.
    pub source: &'c dyn ToolSource,
}

/// A running agent, as its tools can change it.
pub trait LiveRun: Any + Send + Sync {
    /// Adds all tools of a source, or none, from the next iteration on (`MW-16`).
    ///
    /// # Errors
    /// If a name is taken or the run is over (`MW-17`).
    fn add_tools(&self, source: Arc<dyn ToolSource>) -> Result<(), ToolChangeError>;

    /// Removes tools from the next iteration on. Unknown names are ignored (`MW-16`).
    ///
    /// # Errors
    /// If the run is over (`MW-17`).
    fn remove_tools(&self, names: &[&str]) -> Result<(), ToolChangeError>;

    /// Ends the loop after this batch of calls (`LOOP-25`).
    fn terminate(&self);
}

/// Error returned when the tools of a run cannot be changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolChangeError {
    /// A name is already taken.
    #[error("Duplicate tool name '{name}'. Tool names must be unique.")]
    Duplicate {
        /// First of the taken names.
        name: String,
    },
    /// Tools were added after the run was over.
    #[error("Cannot add tools: this context is not bound to a live run.")]
    AddedTooLate,
    /// Tools were removed after the run was over.
    #[error("Cannot remove tools: this context is not bound to a live run.")]
    RemovedTooLate,
}

/// Values that a host passes to tools of remote servers in addition to the model's arguments. They
/// are separate: nothing that a model or a server says selects or replaces one of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HostValues {
    /// Values of the run. A value is sent only if the operator has configured its name for the tool
    /// (`MCP-2`).
    pub arguments: Map<String, Value>,
    /// `_meta` of the request. Anything but a map is rejected (`MCP-7`).
    pub meta: Option<Value>,
    /// Trace that the call belongs to: `traceparent`, `tracestate`, `baggage`.
    pub trace: Option<Map<String, Value>>,
}

/// Treatment of the file changes that a call makes. By default they are applied when the call
/// succeeds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileEffects {
    /// True if the changes are recorded but not applied.
    pub is_dry_run: bool,
    /// True if the record includes line diffs.
    pub shows_diffs: bool,
}

/// Progress of a call as reported by the tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Work done so far, in the tool's own unit.
    pub done: f64,
    /// Total work, if the tool knows it.
    pub total: Option<f64>,
    /// Current activity of the tool.
    pub message: Option<String>,
}

/// Receives progress reports. Called from within the call, so it must not block.
pub trait ProgressSink: Send + Sync {
    /// Receives one report.
    fn report(&self, call_id: &str, progress: Progress);
}

impl CallContext {
    /// Returns a context with only an identifier.
    pub fn new(call_id: impl Into<String>) -> Self {
        Self { call_id: call_id.into(), ..Self::default() }
    }

    /// Returns whether the caller has given up or its deadline has passed. Both are cancellation
    /// (`RES-12`).
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
            || self.deadline.is_some_and(|deadline| deadline <= Instant::now())
    }

    /// Waits until [`CallContext::is_cancelled`] is true.
    pub async fn cancelled(&self) {
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
