//! A source of tools that workers run.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::invoke::Progress;
use cofferdam_tool::label::{StatedBy, StatedLabels};
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::record::PluginIdentity;
use cofferdam_tool::{
    CallContext, Completion, Outcome, ToolCall, ToolDefinition, ToolName, ToolSource,
};

use super::Dispatcher;
use super::call::{CallClient, CallRequest, Handovers, RemoteCall};
use super::inner::InnerCallPolicy;
use crate::catalog::{SourceEntry, ToolEntry};
use crate::keyed::KeyedCall;
use crate::message::{CallHeader, WorkerMessage, log_level};
use crate::{DispatchError, result};

/// A source of tools that workers run.
pub struct RemoteSource {
    dispatcher: Arc<Dispatcher>,
    route: String,
    entry: SourceEntry,
    plugin: Option<PluginIdentity>,
    definitions: Arc<[Arc<ToolDefinition>]>,
    /// True if calls are refused, because no worker has this version.
    is_absent: bool,
}

impl RemoteSource {
    pub(super) fn new(dispatcher: Arc<Dispatcher>, route: &str, entry: SourceEntry) -> Self {
        let definitions = entry.tools.iter().map(|tool| Arc::new(tool.definition())).collect();
        let plugin = entry.plugin_identity();
        Self { dispatcher, route: route.to_owned(), entry, plugin, definitions, is_absent: false }
    }

    /// Returns the version of the source: a digest over its plugin and its definitions. Only
    /// workers with this version run its calls.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.route
    }

    /// Returns a source with the same tools whose calls are refused, for a version that no worker
    /// has.
    #[must_use]
    pub fn absent(&self, version: &str) -> Self {
        let dispatcher = Arc::clone(&self.dispatcher);
        Self { is_absent: true, ..Self::new(dispatcher, version, self.entry.clone()) }
    }

    fn tool(&self, name: &ToolName) -> Option<&ToolEntry> {
        self.entry.tools.iter().find(|tool| tool.name() == name)
    }

    /// Returns the requests to let other gateways continue a call, if they could.
    fn handovers(&self, call: &ToolCall<'_>, context: &CallContext) -> Option<Handovers> {
        if !self.dispatcher.options.results.is_shared() {
            return None;
        }
        Some(Handovers {
            requests: context.handover.as_ref()?.requests()?,
            session: context.session.clone().unwrap_or_default(),
            tool: call.tool.name.clone(),
        })
    }

    async fn call(
        &self,
        call: &ToolCall<'_>,
        context: &CallContext,
    ) -> Result<Completion, DispatchError> {
        if self.is_absent {
            return Err(DispatchError::VersionAbsent(self.route.clone()));
        }
        let annotations = call.tool.annotations;
        let is_read_only = annotations.read_only == Some(true);
        let arguments = call.arguments.to_json();
        let reports = |message| report(message, context);
        let names = (self.name(), call.tool.name.as_str());
        let keyed = KeyedCall::new(names, &arguments, context);
        let request = CallRequest {
            route: self.route.clone(),
            header: CallHeader::new(call.tool.name.clone(), context),
            is_repeatable: is_read_only || annotations.idempotent == Some(true) || keyed.is_some(),
            is_read_only,
        };
        let remote = RemoteCall {
            request: &request,
            arguments: arguments.as_bytes(),
            deadline: context.deadline,
            client: CallClient {
                reports: &reports,
                asker: context.asker.as_ref(),
                inner_calls: context.inner_calls.as_ref().map(|inner_calls| InnerCallPolicy {
                    inner_calls,
                    toolset: call.toolset,
                    tool: call.tool,
                    source: self,
                    context,
                    header: &request.header,
                }),
                handover: None,
            },
        };
        let mut pending = self.dispatcher.pending(context.cancellation.clone());
        let route = (self.route.as_str(), call.tool.name.as_str());
        let returning = self.dispatcher.asking_workers.call(route, &arguments, context);
        pending.return_to_worker(returning);
        let result = match keyed {
            Some(keyed) => Box::pin(pending.run_keyed(keyed, &remote)).await?,
            None => {
                pending.handovers = self.handovers(call, context);
                pending.run(&remote).await?
            }
        };
        result::decode(&result, context).map_err(DispatchError::InvalidResult)
    }
}

/// Passes a progress report or log message on.
pub(super) fn report(message: WorkerMessage, context: &CallContext) {
    match message {
        WorkerMessage::Progress { done, total, message, .. } => {
            if let Some(sink) = &context.progress {
                sink.report(&context.call_id, Progress { done, total, message });
            }
        }
        WorkerMessage::Log { level, message, .. } => {
            if let Some(sink) = &context.log {
                sink.log(&context.call_id, log_level(level), &message);
            }
        }
        _ => {}
    }
}

#[async_trait]
impl ToolSource for RemoteSource {
    fn name(&self) -> &str {
        &self.entry.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn instructions(&self) -> Option<&str> {
        self.entry.instructions.as_deref()
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        self.tool(tool).is_none_or(|tool| tool.needs_approval)
    }

    fn origin(&self, tool: &ToolName) -> ToolOrigin {
        self.tool(tool)
            .map_or_else(|| ToolOrigin::program(&self.entry.name), |tool| tool.origin.clone())
    }

    fn plugin_identity(&self) -> Option<&PluginIdentity> {
        self.plugin.as_ref()
    }

    fn supports_dry_run(&self, tool: &ToolName) -> bool {
        self.tool(tool).is_some_and(|tool| tool.has_dry_run)
    }

    fn labels(&self, tool: &ToolName) -> StatedLabels {
        self.tool(tool).map(|tool| tool.labels.clone()).unwrap_or_default()
    }

    fn states_for(&self) -> StatedBy {
        if self.entry.is_program { StatedBy::Program } else { StatedBy::ThirdParty }
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let ended = tokio::select! {
            biased;
            () = context.cancelled() => return Completion::ended(Outcome::Cancelled, context),
            ended = self.call(&call, context) => ended,
        };
        completion(ended, &call.tool.name, context)
    }
}

/// Returns the end of a call of a tool.
pub(super) fn completion(
    ended: Result<Completion, DispatchError>,
    tool: &ToolName,
    context: &CallContext,
) -> Completion {
    if let (Err(DispatchError::Moved), Some(handover)) = (&ended, &context.handover) {
        handover.set_moved();
    }
    let mut completion = ended.unwrap_or_else(|error| {
        Completion::ended(Outcome::Error(error.into_tool_error()), context)
    });
    completion.record.tool = Some(tool.clone());
    completion
}
