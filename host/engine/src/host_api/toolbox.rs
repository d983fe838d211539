//! `cofferdam:plugin/toolbox`: tools that call other tools.
//!
//! An inner call is processed like every call, by the toolset that the outer one came through: its
//! arguments are decoded, the grants and limits of its own plugin apply, and it has a record. It
//! gains nothing from its caller, and the caller gains only its answer. Its file changes belong to
//! the outer call ([`cofferdam_files::Transaction`]).
//!
//! It runs in a separate task, with a separate instance, while the outer guest waits. It ends at
//! the latest when the outer call ends.

mod recorded;

use std::sync::Arc;
use std::time::Instant;

use cofferdam_files::Transaction;
use cofferdam_tool::invoke::OuterCall;
use cofferdam_tool::output::ResourceBody as ToolResourceBody;
use cofferdam_tool::record::Refusal;
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Content as ToolContent, ErrorType, Outcome, Output,
    Permission, RefusedCall, ToolDefinition, ToolFailure, ToolName, Toolset,
};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;

use super::CallState;
use crate::Capability;
use crate::Grants;
use crate::guest::cofferdam::plugin::toolbox::{Error, Host};
use crate::guest::cofferdam::plugin::types;
use crate::guest::{Content, EmbeddedResource, Failure, Link, ResourceBody};

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
    records: Vec<CallRecord>,
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
        let toolset = toolset.filter(|_| !grants.tools.is_empty()).cloned();
        Self {
            runtime: toolset.as_ref().and_then(|_| Handle::try_current().ok()),
            toolset,
            files: files.clone(),
            depth: context.outer.as_ref().map_or(0, |outer| outer.depth),
            made: 0,
            records: Vec::new(),
        }
    }

    /// Writes the inner calls into the record of the outer call.
    pub(crate) fn report(self, record: &mut CallRecord) {
        self.records.into_iter().for_each(|inner| record.add_inner(inner));
    }
}

impl CallState {
    /// Returns the granted tools that exist.
    fn granted_tools(&self) -> impl Iterator<Item = &Arc<ToolDefinition>> {
        let granted = &self.grants().tools;
        let all = self.toolbox.toolset.as_ref().into_iter().flat_map(Toolset::definitions);
        all.filter(|definition| granted.contains(&definition.name))
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

    /// Makes an inner call.
    async fn call_inner(
        &mut self,
        name: String,
        arguments_json: String,
    ) -> Result<Vec<Content>, Error> {
        if !self.granted_tools().any(|definition| definition.name.as_str() == name) {
            if let Ok(name) = ToolName::new(name) {
                self.refuse_tool(name, None);
            }
            return Err(Error::UnknownTool);
        }
        if self.toolbox.depth >= DEPTH_MAX {
            return Err(Error::TooDeep);
        }
        let (Some(toolset), Some(runtime)) =
            (self.toolbox.toolset.clone(), self.toolbox.runtime.clone())
        else {
            return Err(Error::UnknownTool);
        };
        if toolset.needs_approval_for(&name, Some(arguments_json.as_bytes())) {
            if let Ok(name) = ToolName::new(name) {
                self.refuse_tool(
                    name,
                    Some(
                        "each call of this tool needs a person's approval, which no tool can give",
                    ),
                );
            }
            return Err(Error::Ended(ErrorType::CapabilityDenied.name().to_owned()));
        }
        let context = self.inner_context();
        let call =
            async move { toolset.call(&name, Some(arguments_json.as_bytes()), &context).await };
        match AbortOnDropHandle::new(runtime.spawn(call)).await {
            Ok(Ok(Completion { outcome, record })) => {
                self.toolbox.records.push(record);
                to_guest_result(outcome)
            }
            Ok(Err(RefusedCall::UnknownTool { .. })) => Err(Error::UnknownTool),
            Ok(Err(RefusedCall::InvalidArguments(error))) => {
                Err(Error::InvalidArguments(error.to_string()))
            }
            Ok(Err(refused)) => {
                Err(Error::Failed(to_guest_failure(ToolFailure::new(refused.to_string()))))
            }
            Err(_) => Err(Error::Ended(ErrorType::PluginUnavailable.name().to_owned())),
        }
    }

    /// Returns the context of an inner call.
    fn inner_context(&mut self) -> CallContext {
        self.toolbox.made = self.toolbox.made.saturating_add(1);
        let Toolbox { made, depth, files, .. } = &self.toolbox;
        let (outer, outer_left) = (self.context(), self.deadline().remaining());
        CallContext {
            call_id: format!("{}.{made}", outer.call_id),
            session: outer.session.clone(),
            deadline: Some((Instant::now() + outer_left).into()),
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

fn to_guest_result(outcome: Outcome) -> Result<Vec<Content>, Error> {
    match outcome {
        Outcome::Ok(output) => Ok(contents(output)),
        Outcome::Failure(failure) => Err(Error::Failed(to_guest_failure(failure))),
        Outcome::Error(error) => Err(Error::Ended(error.type_name().to_owned())),
        _ => Err(Error::Ended("Cancelled".to_owned())),
    }
}

/// Converts an output to the form in which the guest would have returned it.
fn contents(output: Output) -> Vec<Content> {
    match output {
        Output::Value(Value::Null) => Vec::new(),
        Output::Value(Value::String(text)) => vec![Content::Text(text)],
        Output::Value(value) => vec![Content::Json(value.to_string())],
        Output::Contents(contents) => contents.into_iter().filter_map(content).collect(),
    }
}

fn content(content: ToolContent) -> Option<Content> {
    Some(match content {
        ToolContent::Text(text) => Content::Text(text),
        ToolContent::Json(value) => Content::Json(value.to_string()),
        ToolContent::Blob { media_type, data } => Content::Blob(types::Blob { media_type, data }),
        ToolContent::Resource { uri, media_type, body } => {
            let body = match body {
                ToolResourceBody::Text(text) => ResourceBody::Text(text),
                ToolResourceBody::Blob(data) => ResourceBody::Blob(data),
            };
            Content::Resource(EmbeddedResource { uri, media_type, body })
        }
        ToolContent::Link { uri, name, media_type } => {
            Content::Link(Link { uri, name, media_type })
        }
        _ => return None,
    })
}

fn to_guest_failure(failure: ToolFailure) -> Failure {
    Failure {
        value: failure.value.map(|value| value.to_string()),
        message: failure.message,
        suggestion: failure.suggestion,
        transient: failure.transient,
    }
}
