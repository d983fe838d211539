//! Functions of the embedding program as tools.

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;

use crate::declaration::{Declaration, DeclarationError};
use crate::label::{StatedBy, StatedLabels};
use crate::{
    Arguments, CallContext, Completion, Outcome, Output, ToolCall, ToolDefinition, ToolError,
    ToolFailure, ToolName, ToolSource,
};

/// Source of tools that are functions of the embedding program. They run outside the sandbox, so
/// their author is responsible for what they do.
///
/// ```
/// use cofferdam_tool::declaration::Declaration;
/// use cofferdam_tool::Functions;
/// use serde_json::json;
///
/// let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
/// let double = Declaration::new("double", "Twice a number.", schema);
/// let functions = Functions::new("math").with(double, async |arguments, _context| {
///     Ok(json!(2 * arguments.value()["a"].as_i64().unwrap_or_default()))
/// })?;
/// # Ok::<(), cofferdam_tool::declaration::DeclarationError>(())
/// ```
#[must_use]
pub struct Functions {
    name: String,
    definitions: Arc<[Arc<ToolDefinition>]>,
    functions: HashMap<ToolName, Function>,
    labels: HashMap<ToolName, StatedLabels>,
}

type FunctionFuture = Pin<Box<dyn Future<Output = Result<Value, FunctionEnd>> + Send>>;
type Function = Arc<dyn Fn(Arguments, CallContext) -> FunctionFuture + Send + Sync>;

/// Outcome of a function that returns no value. The `?` operator converts any error of the program.
#[derive(Debug)]
#[non_exhaustive]
pub enum FunctionEnd {
    /// A reported failure, which the model sees (`RES-2`).
    Failure(Box<ToolFailure>),
    /// An error of the program. The model sees its type at most (`RES-5`).
    Error(Box<ToolError>),
    /// The caller gave up (`RES-12`).
    Cancelled,
}

impl FunctionEnd {
    /// Returns a failure with this message for the model.
    pub fn failure(message: impl Into<String>) -> Self {
        Self::Failure(Box::new(ToolFailure::new(message)))
    }
}

impl<E: std::error::Error> From<E> for FunctionEnd {
    fn from(error: E) -> Self {
        let path = std::any::type_name::<E>();
        // Strips the modules: the location of the type in the program is internal.
        let generic = path.split('<').next().unwrap_or(path);
        let name = generic.rsplit("::").next().unwrap_or(generic);
        Self::Error(Box::new(ToolError::host(name).with_detail(error.to_string())))
    }
}

impl Functions {
    /// Returns an empty source with the given name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            definitions: Arc::from([]),
            functions: HashMap::new(),
            labels: HashMap::new(),
        }
    }

    /// Adds a function, replacing any of the same name. Labels that were set for the name stay.
    ///
    /// # Errors
    /// If the declaration is rejected by the rules for plugins.
    pub fn with<F, R>(
        mut self,
        declaration: Declaration,
        function: F,
    ) -> Result<Self, DeclarationError>
    where
        F: Fn(Arguments, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, FunctionEnd>> + Send + 'static,
    {
        let definition = Arc::new(declaration.compile()?);
        let others = self.definitions.iter().filter(|other| other.name != definition.name).cloned();
        self.definitions = others.chain([Arc::clone(&definition)]).collect();
        let function: Function =
            Arc::new(move |arguments, context| Box::pin(function(arguments, context)));
        self.functions.insert(definition.name.clone(), function);
        Ok(self)
    }

    /// Sets the labels of the function named `tool`. They count as given (`LBL-5`). Without labels,
    /// its results are trusted and public, and it may receive any data.
    pub fn with_labels(mut self, tool: &str, labels: StatedLabels) -> Self {
        if let Some(name) = self.functions.keys().find(|name| name.as_str() == tool) {
            self.labels.insert(name.clone(), labels);
        }
        self
    }
}

#[async_trait]
impl ToolSource for Functions {
    fn name(&self) -> &str {
        &self.name
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        Arc::clone(&self.definitions)
    }

    fn labels(&self, tool: &ToolName) -> StatedLabels {
        self.labels.get(tool).cloned().unwrap_or_default()
    }

    fn states_for(&self) -> StatedBy {
        StatedBy::Program
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let outcome = match self.functions.get(&call.tool.name) {
            None => Outcome::Error(ToolError::host("UnknownFunction")),
            Some(function) => tokio::select! {
                biased;
                () = context.cancelled() => Outcome::Cancelled,
                ended = function(call.arguments, context.clone()) => match ended {
                    Ok(value) => Outcome::Ok(Output::Value(value)),
                    Err(FunctionEnd::Failure(failure)) => Outcome::Failure(*failure),
                    Err(FunctionEnd::Error(error)) => Outcome::Error(*error),
                    Err(FunctionEnd::Cancelled) => Outcome::Cancelled,
                },
            },
        };
        let mut completion = Completion::ended(outcome, context);
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{RefusedCall, Toolset};

    fn toolset() -> Toolset {
        let schema = r#"{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}"#;
        let functions = Functions::new("math")
            .with(Declaration::new("half", "Half of a number.", schema), async |arguments, _| {
                match arguments.value()["a"].as_i64() {
                    Some(13) => Err(FunctionEnd::failure("13 is unlucky")),
                    Some(a) if a % 2 == 0 => Ok(json!(a / 2)),
                    _ => Err("x".parse::<i64>().unwrap_err().into()),
                }
            })
            .unwrap();
        let mut toolset = Toolset::new();
        toolset.add(Arc::new(functions)).unwrap();
        toolset
    }

    async fn shown(arguments: &str) -> Result<String, RefusedCall> {
        let context = CallContext::new("1");
        let completion = toolset().call("half", Some(arguments.as_bytes()), &context).await?;
        Ok(completion.outcome.shown().unwrap().text())
    }

    #[tokio::test]
    async fn a_function_ends_like_a_tool() {
        assert_eq!(shown(r#"{"a":"8"}"#).await.unwrap(), "4");
        assert_eq!(shown(r#"{"a":13}"#).await.unwrap(), r#"{"error":{"message":"13 is unlucky"}}"#);
        let error = r#"{"error":{"message":"An unexpected error occurred (ParseIntError). Please try again."}}"#;
        assert_eq!(shown(r#"{"a":7}"#).await.unwrap(), error);
        assert!(matches!(shown("{}").await, Err(RefusedCall::InvalidArguments(_))));
    }
}
