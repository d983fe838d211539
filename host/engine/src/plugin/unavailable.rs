//! Plugin that is installed but cannot be run.

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::{
    CallContext, Completion, ErrorType, Outcome, PluginName, ToolCall, ToolDefinition, ToolError,
    ToolName, ToolSource,
};

/// Stands in for a plugin that does not load, with the tools that it had before: for example if its
/// file was replaced by a broken one, or a new version of the host no longer accepts the component.
///
/// The other plugins keep working, and a model that calls one of these tools learns that it is
/// unavailable (`PluginUnavailable`). Only the call record contains the reason.
pub struct UnavailablePlugin {
    name: PluginName,
    definitions: Arc<[Arc<ToolDefinition>]>,
    reason: String,
}

impl UnavailablePlugin {
    /// Creates a stand-in that offers `definitions` and fails all calls because of `error`.
    #[must_use]
    pub fn new(
        name: PluginName,
        definitions: Arc<[Arc<ToolDefinition>]>,
        error: &(impl Display + ?Sized),
    ) -> Self {
        Self { name, definitions, reason: format!("{error:#}") }
    }

    /// Returns the reason why the plugin is not used, for the operator.
    #[must_use]
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

#[async_trait]
impl ToolSource for UnavailablePlugin {
    fn name(&self) -> &str {
        self.name.as_str()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn supports_dry_run(&self, _: &ToolName) -> bool {
        true
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let detail = format!("the plugin `{}` is not available: {}", self.name, self.reason);
        let error = ToolError::new(ErrorType::PluginUnavailable).with_detail(detail);
        let mut completion = Completion::ended(Outcome::Error(error), context);
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}
