//! A plugin that is installed and cannot be run.

use std::fmt::Display;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::{
    CallContext, Completion, ErrorType, Outcome, PluginName, ToolCall, ToolDefinition, ToolError,
    ToolName, ToolSource,
};

/// Stands in for a plugin that does not load, with the tools that are known of it from before: a
/// file that was replaced by a broken one, a component that a new version of the host no longer
/// takes.
///
/// The other plugins go on working, and a model that calls one of these tools learns that it is
/// unavailable (`PluginUnavailable`). Why is in the call record alone.
pub struct UnavailablePlugin {
    name: PluginName,
    definitions: Arc<[Arc<ToolDefinition>]>,
    reason: String,
}

impl UnavailablePlugin {
    /// A plugin that offers `definitions` and is not used because of `error`.
    #[must_use]
    pub fn new(
        name: PluginName,
        definitions: Arc<[Arc<ToolDefinition>]>,
        error: &(impl Display + ?Sized),
    ) -> Self {
        Self { name, definitions, reason: format!("{error:#}") }
    }

    /// The reason why the plugin is not used, for the operator.
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
