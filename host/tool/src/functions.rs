//! Functions of the embedding program as tools.

mod panic;
#[cfg(feature = "macros")]
mod schema;
#[cfg(test)]
mod tests;
#[cfg(feature = "macros")]
mod typed;

use std::collections::HashMap;
use std::fmt;
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

/// [`tool`] for the facade, which exports it as `cofferdam::tool`.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use cofferdam_tool_macros::facade_tool;
/// Makes a tool of a function, sync or `async`, from its signature and its doc comments.
///
/// ```
/// use std::sync::Arc;
///
/// use cofferdam_tool::functions::{Functions, tool};
/// use cofferdam_tool::{CallContext, ToolFailure, Toolset};
///
/// /// Repeats a string.
/// #[tool(read_only, idempotent)]
/// async fn repeat(
///     /// The text to repeat.
///     text: String,
///     /// Number of repetitions; at most 100.
///     #[tool(default = 2)]
///     times: usize,
/// ) -> Result<String, ToolFailure> {
///     if times > 100 {
///         return Err(ToolFailure::new(format!("expected at most 100 times, found {times}")));
///     }
///     Ok(text.repeat(times))
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let functions = Functions::new("strings").with_tool::<repeat>()?;
/// # let mut toolset = Toolset::new();
/// # toolset.add(Arc::new(functions))?;
/// # let context = CallContext::new("1");
/// # let ended = toolset.call("repeat", Some(br#"{"text":"ab","times":"3"}"#), &context).await?;
/// # assert_eq!(ended.outcome.shown().unwrap().text(), "ababab");
/// # Ok(())
/// # }
/// ```
///
/// The function is not changed and can be called and tested like any other. The macro adds a type
/// with the same name that implements [`FunctionTool`]; `use strings::repeat` imports both.
///
/// In a program that depends on the crate `cofferdam`, write `#[cofferdam::tool]`: the generated
/// code names the crate that exports the attribute.
///
/// # Description and arguments
///
/// The doc comment of the function is the description of the tool. It is required, because a model
/// knows nothing else about the tool. The doc comment of a parameter is the description of that
/// argument.
///
/// | parameter | the model |
/// |---|---|
/// | `name: T` | must send it |
/// | `name: Option<T>` | may omit it or send null: `None` |
/// | `#[tool(default = …)] name: T` | may omit it or send null: the default |
/// | `#[tool(default)] name: T` | may omit it or send null: `T::default()` |
/// | `context: &CallContext` | does not see it: the [context](CallContext) of the call |
///
/// `T` is any type that owns its value and implements `serde::Deserialize` and
/// [`schemars::JsonSchema`]. Derive both for your own structs and enums (and `serde::Serialize` for
/// a parameter with a default). Their doc comments are published too. The host decodes the model's
/// arguments by the schema before the function runs.
///
/// # Return types
///
/// | return type | result |
/// |---|---|
/// | anything that implements `serde::Serialize` | a JSON value; null for `()` |
/// | [`Output`], [`Content`](crate::Content), `Vec<Content>` | exactly these items |
/// | `Result<T, E>` with one of these as `T` | the same, or the end of the call |
///
/// `E` is [`ToolFailure`], which the model sees; any standard error, of which it sees the type at
/// most; or [`FunctionEnd`], to which the `?` operator converts both.
///
/// # Options
///
/// `#[tool(name = "…", title = "…", group = "…", read_only, destructive, idempotent, open_world,
/// long_running, output_schema)]`
///
/// - `name`: replaces the function's name.
/// - `title`: a display name for users.
/// - `group`: the name of a group of tools that belong together, 1 to 64 characters from
///   `A-Z a-z 0-9 _ . -`.
/// - `read_only` to `long_running`: hints, see [`Annotations`](crate::Annotations). `read_only`
///   means `read_only = true`; a missing hint means unknown.
/// - `output_schema`: publishes the schema of the return type, which must implement
///   [`schemars::JsonSchema`]. Each result is validated against it (`RES-22`).
///
/// A sync function occupies a thread of the runtime until it returns, and cannot be canceled
/// before. Move long work to `tokio::task::spawn_blocking`.
#[cfg(feature = "macros")]
pub use cofferdam_tool_macros::tool;
#[cfg(feature = "macros")]
#[doc(no_inline)]
pub use schemars;

/// Items for the code that [`tool`] generates. Not for direct use; it can change at any time.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub mod __private {
    pub use super::schema::ObjectSchema;
    pub use super::typed::{
        JsonOutput, PlainOutcome, PlainSchema, ReturnType, ReturnValue, SuccessValue,
        TypedArguments,
    };
}

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
///
/// With the feature `macros`, the attribute `tool` of this module makes the declaration from a Rust
/// function.
///
/// A panic in a function ends its call with an unexpected error of the type `Panic` (`RES-5`). The
/// model does not see its message, which is in the record of the call. Other calls go on. A program
/// that is compiled with `panic = "abort"` ends.
#[must_use]
pub struct Functions {
    name: String,
    definitions: Arc<[Arc<ToolDefinition>]>,
    functions: HashMap<ToolName, Function>,
    /// Labels by the name of the function, which need not exist yet.
    labels: HashMap<String, StatedLabels>,
    shows_details: bool,
}

type FunctionFuture = Pin<Box<dyn Future<Output = Result<Output, FunctionEnd>> + Send>>;
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

impl From<ToolFailure> for FunctionEnd {
    fn from(failure: ToolFailure) -> Self {
        Self::Failure(Box::new(failure))
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

/// Function with its declaration. `#[tool]` implements this trait for an empty type that has the
/// name of the function. Implement it by hand if the schema is not known from types.
pub trait FunctionTool {
    /// Returns the declaration, which has to be the same each time.
    fn declaration() -> Declaration;

    /// Runs the function. The arguments have been decoded by the declared schema.
    ///
    /// # Errors
    /// The outcome of a call that returns no value.
    fn call(
        arguments: Arguments,
        context: CallContext,
    ) -> impl Future<Output = Result<Output, FunctionEnd>> + Send + 'static;
}

impl Functions {
    /// Returns an empty source with the given name.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            definitions: Arc::from([]),
            functions: HashMap::new(),
            labels: HashMap::new(),
            shows_details: false,
        }
    }

    /// Adds a function, replacing any of the same name. Labels that were set for the name stay.
    ///
    /// # Errors
    /// If the declaration is rejected by the rules for plugins.
    pub fn with<F, R>(self, declaration: Declaration, function: F) -> Result<Self, DeclarationError>
    where
        F: Fn(Arguments, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, FunctionEnd>> + Send + 'static,
    {
        let function = move |arguments, context| -> FunctionFuture {
            let ended = function(arguments, context);
            Box::pin(async { ended.await.map(Output::Value) })
        };
        self.with_function(&declaration, Arc::new(function))
    }

    /// Adds a function that `#[tool]` has made a tool, as [`with`](Self::with) does.
    ///
    /// # Errors
    /// If the declaration is rejected by the rules for plugins.
    pub fn with_tool<T: FunctionTool>(self) -> Result<Self, DeclarationError> {
        let function =
            |arguments, context| -> FunctionFuture { Box::pin(T::call(arguments, context)) };
        self.with_function(&T::declaration(), Arc::new(function))
    }

    fn outcome(&self, tool: &ToolDefinition, ended: Result<Output, FunctionEnd>) -> Outcome {
        match ended {
            Ok(output) => match tool.check_output(&output) {
                Ok(()) => Outcome::Ok(output),
                Err(error) => Outcome::Error(error),
            },
            Err(FunctionEnd::Failure(failure)) => Outcome::Failure(*failure),
            Err(FunctionEnd::Error(error)) if self.shows_details => {
                Outcome::Error(error.with_shown_detail())
            }
            Err(FunctionEnd::Error(error)) => Outcome::Error(*error),
            Err(FunctionEnd::Cancelled) => Outcome::Cancelled,
        }
    }

    fn with_function(
        mut self,
        declaration: &Declaration,
        function: Function,
    ) -> Result<Self, DeclarationError> {
        let definition = Arc::new(declaration.compile()?);
        let others = self.definitions.iter().filter(|other| other.name != definition.name).cloned();
        self.definitions = others.chain([Arc::clone(&definition)]).collect();
        self.functions.insert(definition.name.clone(), function);
        Ok(self)
    }

    /// Sets whether the model sees the messages of errors and panics of these functions. It then
    /// gets the same text from an agent, an MCP server and a host: `An unexpected error occurred
    /// (<Type>): <message>` (`RES-6`). For development only, because such messages may contain
    /// confidential information.
    pub fn with_detailed_errors(mut self, shows_details: bool) -> Self {
        self.shows_details = shows_details;
        self
    }

    /// Sets the labels of the function named `tool`, which can be added before or after. They count
    /// as given (`LBL-5`). Without labels, its results are trusted and public, and it may receive
    /// any data. Labels of a function that is never added have no effect, so check the name.
    pub fn with_labels(mut self, tool: &str, labels: StatedLabels) -> Self {
        self.labels.insert(tool.to_owned(), labels);
        self
    }
}

impl fmt::Debug for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools: Vec<_> = self.definitions.iter().map(|tool| tool.name.as_str()).collect();
        let mut fields = f.debug_struct("Functions");
        fields.field("name", &self.name).field("tools", &tools).finish_non_exhaustive()
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
        self.labels.get(tool.as_str()).cloned().unwrap_or_default()
    }

    fn states_for(&self) -> StatedBy {
        StatedBy::Program
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        let outcome = match self.functions.get(&call.tool.name) {
            None => Outcome::Error(ToolError::host("UnknownFunction")),
            Some(function) => {
                let run = async { function(call.arguments, context.clone()).await };
                tokio::select! {
                    biased;
                    () = context.cancelled() => Outcome::Cancelled,
                    ended = panic::catch(run) => self.outcome(call.tool, ended),
                }
            }
        };
        let mut completion = Completion::ended(outcome, context);
        completion.record.tool = Some(call.tool.name.clone());
        completion
    }
}
