//! `cofferdam:plugin/toolbox` and `cofferdam:plugin/tool-calls`: tools that call other tools.
//!
//! An inner call is processed like every call, by the toolset that the outer one came through: its
//! arguments are decoded, the grants and limits of its own plugin apply, and it has a record. It
//! gains nothing from its caller, and the caller gains only its answer. Its file changes belong to
//! the outer call ([`cofferdam_files::Transaction`]).
//!
//! It runs in a separate task, with a separate instance. The outer guest waits for it in
//! `toolbox.call-tool`; [`started`] runs several at the same time for `tool-calls`. It ends at the
//! latest when the outer call ends.

mod inner;
mod recorded;
mod started;

use std::sync::Arc;

use cofferdam_files::Transaction;
use cofferdam_tool::invoke::OuterCall;
use cofferdam_tool::record::{InnerRecords, Refusal};
use cofferdam_tool::{
    CallContext, CallRecord, ErrorType, Permission, ToolDefinition, ToolName, Toolset,
};
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use self::inner::{InnerCall, InnerEnd, InnerError};
use self::started::StartedCalls;
use super::CallState;
use crate::Capability;
use crate::Grants;
use crate::guest::Content;
use crate::guest::cofferdam::plugin::toolbox::{Error, Host};
use crate::guest::cofferdam::plugin::types;

/// Maximum depth of nested calls.
const DEPTH_MAX: u32 = 4;

/// State of a call that calls other tools.
pub(crate) struct Toolbox {
    toolset: Option<Toolset>,
    /// Runtime of the embedder: an inner call is not part of the outer call's computation.
    runtime: Option<Handle>,
    files: Transaction,
    depth: u32,
    made: u64,
    records: InnerRecords,
    /// Calls that the guest has started; `None` before the first.
    started: Option<Box<StartedCalls>>,
}

impl Toolbox {
    /// Creates the toolbox of a call. Without granted tools, it keeps neither the toolset nor a
    /// runtime.
    pub(crate) fn new(
        toolset: Option<&Toolset>,
        grants: &Grants,
        files: &Transaction,
        context: &CallContext,
    ) -> Self {
        let has_tools = grants.all_tools || !grants.tools.is_empty();
        let toolset = toolset.filter(|_| has_tools).cloned();
        Self {
            runtime: toolset.as_ref().and_then(|_| Handle::try_current().ok()),
            toolset,
            files: files.clone(),
            depth: context.outer.as_ref().map_or(0, |outer| outer.depth),
            made: 0,
            records: InnerRecords::default(),
            started: None,
        }
    }

    /// Stops the inner calls that are still running, and writes all of them into the record of the
    /// outer call. Call this before the files of the outer call are committed.
    pub(crate) async fn end(self, record: &mut CallRecord) {
        let Self { mut records, started, .. } = self;
        if let Some(started) = started {
            started.stop(&mut records).await;
        }
        record.add_all_inner(records);
    }
}

/// Record of an inner call that the guest waits for. Dropping it adds the record to those of the
/// outer call, also when the outer call is stopped meanwhile.
struct PendingRecord<'r> {
    records: &'r mut InnerRecords,
    /// Record of a stopped call until the call has ended; `None` if nothing has run.
    record: Option<CallRecord>,
}

impl Drop for PendingRecord<'_> {
    fn drop(&mut self) {
        self.records.extend(self.record.take());
    }
}

impl CallState {
    /// Returns the granted tools that exist.
    fn granted_tools(&self) -> impl Iterator<Item = &Arc<ToolDefinition>> {
        let all = self.toolbox.toolset.as_ref().into_iter().flat_map(Toolset::definitions);
        all.filter(|definition| self.grants().has_tool(&definition.name))
    }

    /// Returns whether a tool is granted and exists.
    fn has_tool(&self, name: &str) -> bool {
        let toolset = self.toolbox.toolset.as_ref();
        let definition = toolset.and_then(|toolset| toolset.definition(name).ok());
        definition.is_some_and(|definition| self.grants().has_tool(&definition.name))
    }

    /// Records that the guest wanted to call a tool that it may not call.
    fn refuse_tool(&mut self, name: ToolName, reason: Option<&str>) {
        let wanted = Permission::Tool(name).to_string();
        self.refuse(Capability::Toolbox, &wanted);
        if let Some(refusal) =
            self.refused.iter_mut().find(|refusal: &&mut Refusal| refusal.capability == wanted)
        {
            refusal.reason = reason.map(str::to_owned);
        }
    }
}

impl Host for CallState {
    async fn list_tools(&mut self) -> Vec<types::ToolDefinition> {
        let granted = || self.granted_tools().map(|tool| recorded::tool(tool)).collect();
        let tools = match &self.recorder {
            Some(recorder) => recorder.list_tools(granted),
            None => granted(),
        };
        tools.into_iter().map(recorded::to_guest_definition).collect()
    }

    async fn call_tool(
        &mut self,
        name: String,
        arguments_json: String,
    ) -> Result<Vec<Content>, Error> {
        let Some(recorder) = self.recorder.clone() else {
            return self.call_inner(name, arguments_json).await;
        };
        let answer = match recorder.playback() {
            Some(playback) => {
                let played = playback.inner_call(&name, &arguments_json);
                let answer = played.map_or(Err(Error::UnknownTool), recorded::to_guest_answer);
                self.refuse_again(&name, &answer);
                answer
            }
            None => self.call_inner(name.clone(), arguments_json.clone()).await,
        };
        recorder.add_inner_call(name, arguments_json, recorded::answer(&answer));
        answer
    }
}

impl CallState {
    /// Records the refusal of an inner call in a replay, as the live call did.
    fn refuse_again(&mut self, name: &str, answer: &Result<Vec<Content>, Error>) {
        let is_refused = match answer {
            Err(Error::UnknownTool) => true,
            Err(Error::Ended(error)) => error == ErrorType::CapabilityDenied.name(),
            _ => false,
        };
        if let (true, Ok(name)) = (is_refused, ToolName::new(name)) {
            self.refuse_tool(name, None);
        }
    }

    /// Makes an inner call and waits for its end.
    async fn call_inner(
        &mut self,
        name: String,
        arguments_json: String,
    ) -> Result<Vec<Content>, Error> {
        let call = self.inner_call(name, arguments_json)?;
        let runtime = call.runtime.clone();
        let mut pending = PendingRecord {
            records: &mut self.toolbox.records,
            record: Some(call.stopped_record()),
        };
        let ended = AbortOnDropHandle::new(runtime.spawn(call.run())).await;
        // Only a panic ends the task before the call.
        let InnerEnd { result, record } =
            ended.unwrap_or_else(|_| InnerEnd::of_panic(pending.record.take()));
        pending.record = record;
        result.map_err(Error::from)
    }

    /// Checks whether the guest may make an inner call, and returns the call.
    fn inner_call(
        &mut self,
        name: String,
        arguments_json: String,
    ) -> Result<InnerCall, InnerError> {
        if !self.has_tool(&name) {
            let granted = self.granted_tools().map(|tool| tool.name.as_str());
            let error = InnerError::unknown_tool(&name, granted);
            if let Ok(name) = ToolName::new(name) {
                self.refuse_tool(name, None);
            }
            return Err(error);
        }
        if self.toolbox.depth >= DEPTH_MAX {
            return Err(InnerError::TooDeep);
        }
        let (Some(toolset), Some(runtime)) =
            (self.toolbox.toolset.clone(), self.toolbox.runtime.clone())
        else {
            return Err(InnerError::unknown_tool(&name, std::iter::empty()));
        };
        let asks =
            self.context().inner_calls.as_ref().is_some_and(|calls| calls.asks_for_approval());
        if !asks && toolset.needs_approval_for(&name, Some(arguments_json.as_bytes())) {
            if let Ok(name) = ToolName::new(name) {
                self.refuse_tool(
                    name,
                    Some(
                        "each call of this tool needs a person's approval, which no tool can give",
                    ),
                );
            }
            return Err(InnerError::NeedsApproval);
        }
        let context = self.inner_context();
        let deadline = Arc::clone(self.deadline());
        Ok(InnerCall { toolset, name, arguments_json, context, deadline, runtime })
    }

    /// Returns the context of an inner call, without a deadline.
    fn inner_context(&mut self) -> CallContext {
        self.toolbox.made = self.toolbox.made.saturating_add(1);
        let Toolbox { made, depth, files, .. } = &self.toolbox;
        let outer = self.context();
        CallContext {
            call_id: format!("{}.{made}", outer.call_id),
            session: outer.session.clone(),
            cancellation: outer.cancellation.child_token(),
            outer: Some(OuterCall {
                call_id: outer.call_id.clone(),
                depth: depth.saturating_add(1),
                files: Arc::new(files.clone()),
            }),
            inner_calls: outer.inner_calls.clone(),
            trace: outer.trace,
            // The changes of an inner call belong to the outer one; this is for tools without
            // support for dry runs.
            file_effects: outer.file_effects,
            ..CallContext::default()
        }
    }
}
