//! Tools of context providers, which work on the session of a run.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::declaration::{Declaration, DeclarationError, check_declarations};
use cofferdam_tool::label::{StatedBy, StatedLabels};
use cofferdam_tool::{
    Annotations, CallContext, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolFailure,
    ToolName, ToolSource,
};
use serde_json::{Map, Value, json};

use crate::{BeforeRun, Session};

/// Functions of a provider's tools.
#[async_trait]
pub(super) trait SessionFunctions: Send + Sync + 'static {
    /// Runs a call with decoded arguments. The error is the message for the model.
    async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        session: &Session,
    ) -> Result<Value, String>;

    /// Returns the labels of a tool.
    fn labels(&self, tool: &str) -> StatedLabels;

    /// Returns whether the user has to approve a call; by default none.
    fn needs_approval(&self, tool: &str, arguments: Option<&Map<String, Value>>) -> bool {
        let _ = (tool, arguments);
        false
    }
}

/// Source of the tools of a provider in one run.
pub(super) struct SessionTools<F> {
    name: &'static str,
    definitions: Arc<[Arc<ToolDefinition>]>,
    functions: F,
    session: Session,
}

impl<F: SessionFunctions + 'static> SessionTools<F> {
    pub(super) fn new(
        name: &'static str,
        definitions: &Arc<[Arc<ToolDefinition>]>,
        functions: F,
        session: Session,
    ) -> Self {
        Self { name, definitions: Arc::clone(definitions), functions, session }
    }

    /// Adds the tools to a run.
    pub(super) fn add_to(self, run: &mut BeforeRun<'_>) {
        run.add_tools(Arc::new(self));
    }
}

#[async_trait]
impl<F: SessionFunctions> ToolSource for SessionTools<F> {
    fn name(&self) -> &str {
        self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        self.functions.needs_approval(tool.as_str(), None)
    }

    fn needs_approval_for(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        self.functions.needs_approval(tool.as_str(), Some(arguments))
    }

    fn labels(&self, tool: &ToolName) -> StatedLabels {
        self.functions.labels(tool.as_str())
    }

    fn states_for(&self) -> StatedBy {
        StatedBy::Program
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let (name, arguments) = (call.tool.name.as_str(), call.arguments.value());
        let outcome = tokio::select! {
            biased;
            () = context.cancelled() => Outcome::Cancelled,
            ended = self.functions.call(name, arguments, &self.session) => match ended {
                Ok(value) => Outcome::Ok(Output::Value(value)),
                Err(message) => Outcome::Failure(ToolFailure::bare(message)),
            },
        };
        let mut completion = Completion::ended(outcome, context);
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}

/// Declares a tool. `changes` is true if it changes something beyond the session.
pub(super) fn declare(
    name: &str,
    description: &str,
    properties: &Value,
    required: &[&str],
    changes: bool,
) -> Declaration {
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    let mut declaration = Declaration::new(name, description, schema.to_string());
    declaration.annotations = Annotations {
        read_only: Some(!changes),
        open_world: Some(false),
        ..Annotations::default()
    };
    declaration
}

/// Compiles the declarations of a provider's tools.
pub(super) fn compiled(
    declarations: &[Declaration],
) -> Result<Arc<[Arc<ToolDefinition>]>, DeclarationError> {
    Ok(check_declarations(declarations)?.into_iter().map(Arc::new).collect())
}
