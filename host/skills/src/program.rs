//! In-program skills (`SKILL-17`, `SKILL-21`).

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use cofferdam_agent::BoxError;
use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::functions::FunctionEnd;
use cofferdam_tool::{
    Arguments, CallContext, Completion, Functions, Outcome, RefusedCall, ToolError, ToolFailure,
    ToolSource, Toolset,
};
use serde_json::Value;

use super::xml::escaped;
use super::{InvalidSkill, check_description, check_name};

/// Skill that is part of the embedding program. Its resources are strings or functions that return
/// strings, and its scripts are functions.
///
/// Scripts do not run in a sandbox, because they are code of the program.
pub struct ProgramSkill {
    name: String,
    description: String,
    instructions: String,
    /// Resources in the order in which they were added.
    resources: Vec<(String, Resource)>,
    /// Scripts. A toolset decodes their arguments.
    scripts: Toolset,
}

enum Resource {
    Text(String),
    Made(Box<dyn Fn() -> SkillFuture + Send + Sync>),
}

type SkillFuture = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send>>;

impl ProgramSkill {
    /// Creates a skill without resources and scripts.
    ///
    /// # Errors
    /// The name or the description breaks `SKILL-2` or `SKILL-3`.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        instructions: impl Into<String>,
    ) -> Result<Self, InvalidSkill> {
        let (name, description) = (name.into(), description.into());
        check_name(&name)?;
        check_description(&name, &description)?;
        let (resources, scripts) = (Vec::new(), Toolset::new());
        Ok(Self { name, description, instructions: instructions.into(), resources, scripts })
    }

    /// Adds a resource that is a string.
    ///
    /// # Errors
    /// [`InvalidSkill::Twice`].
    pub fn resource(
        self,
        name: impl Into<String>,
        text: impl Into<String>,
    ) -> Result<Self, InvalidSkill> {
        self.with(name.into(), Resource::Text(text.into()))
    }

    /// Adds a resource that `make` generates at each use. An error of `make` is logged; the model
    /// sees only that the resource could not be read (`SKILL-18`).
    ///
    /// # Errors
    /// [`InvalidSkill::Twice`].
    pub fn made_resource<F, R>(self, name: impl Into<String>, make: F) -> Result<Self, InvalidSkill>
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.with(name.into(), Resource::Made(Box::new(move || Box::pin(make()))))
    }

    fn with(mut self, name: String, resource: Resource) -> Result<Self, InvalidSkill> {
        let folded = name.to_lowercase();
        if self.resources.iter().any(|(known, _)| known.to_lowercase() == folded) {
            return Err(InvalidSkill::Twice { name });
        }
        self.resources.push((name, resource));
        Ok(self)
    }

    /// Adds a script. Its arguments are decoded by the schema of its declaration before the call.
    ///
    /// # Errors
    /// The declaration breaks the rules for declarations of tools, or [`InvalidSkill::Twice`].
    pub fn script<F, R>(
        mut self,
        declaration: Declaration,
        function: F,
    ) -> Result<Self, InvalidSkill>
    where
        F: Fn(Arguments, CallContext) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, FunctionEnd>> + Send + 'static,
    {
        let name = declaration.name.clone();
        let script = Functions::new(self.name.clone()).with(declaration, function)?;
        self.scripts
            .add(Arc::new(script) as Arc<dyn ToolSource>)
            .map_err(|_| InvalidSkill::Twice { name })?;
        Ok(self)
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.description
    }

    pub(super) fn resources(&self) -> impl Iterator<Item = &str> {
        self.resources.iter().map(|(name, _)| name.as_str())
    }

    pub(super) fn scripts(&self) -> impl Iterator<Item = &str> {
        self.scripts.definitions().map(|script| script.name.as_str())
    }

    /// Returns the first part of the result of `load_skill` (`SKILL-17`).
    pub(super) fn text(&self) -> String {
        let Self { name, description, instructions, .. } = self;
        let (name, description) = (escaped(name), escaped(description));
        format!(
            "<name>{name}</name>\n<description>{description}</description>\n\n<instructions>\n{instructions}\n</instructions>"
        )
    }

    /// Returns the schema of a script for the model.
    pub(super) fn parameters(&self, script: &str) -> Option<&Value> {
        self.scripts.definition(script).ok().map(|definition| definition.input.published())
    }

    pub(super) async fn read(&self, resource: &str) -> Option<String> {
        match &self.resources.iter().find(|(name, _)| name == resource)?.1 {
            Resource::Text(text) => Some(text.clone()),
            Resource::Made(make) => match make().await {
                Ok(text) => Some(text),
                Err(error) => {
                    tracing::warn!(skill = self.name, resource, %error, "a resource cannot be \
                        made");
                    None
                }
            },
        }
    }

    pub(super) async fn run(
        &self,
        script: &str,
        given: &str,
        args: Value,
        context: &CallContext,
    ) -> Completion {
        let arguments = match args {
            Value::Null => String::from("{}"),
            Value::Object(_) => args.to_string(),
            _ => return failed(format!("Script '{given}' takes an object of arguments."), context),
        };
        match self.scripts.call(script, Some(arguments.as_bytes()), context).await {
            Ok(completion) => completion,
            Err(refused) => undecoded(&refused, context),
        }
    }
}

/// Returns the failure of a script whose arguments do not decode. The rules for arguments define
/// its message.
pub(super) fn undecoded(refused: &RefusedCall, context: &CallContext) -> Completion {
    match refused {
        RefusedCall::UnknownTool { .. } => {
            let error = ToolError::host("UnknownScript").with_detail(refused.to_string());
            Completion::ended(Outcome::Error(error), context)
        }
        refused => failed(refused.to_string(), context),
    }
}

fn failed(message: String, context: &CallContext) -> Completion {
    Completion::ended(Outcome::Failure(ToolFailure::new(message)), context)
}

impl fmt::Debug for ProgramSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgramSkill").field("name", &self.name).finish_non_exhaustive()
    }
}
