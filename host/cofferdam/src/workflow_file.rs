//! Workflows of agents, defined in YAML files.

mod agents;
mod build;
mod person;

use std::path::{Path, PathBuf};

use cofferdam_workflow::Workflow;
use cofferdam_workflow::definition::{Location, WorkflowDefinition};

pub use self::agents::AgentParts;
pub use self::person::is_yes;
use crate::Result;
use crate::config::ConfigError;

/// Maximum bytes of a workflow file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A parsed workflow file.
pub struct WorkflowFile {
    pub(crate) path: PathBuf,
    pub(crate) definition: WorkflowDefinition,
}

impl WorkflowFile {
    /// Reads a file and checks its form.
    pub fn read_ambient(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |at, message: String| ConfigError { path: path.to_owned(), at, message };
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| wrong(None, error.to_string()))?;
        let definition = WorkflowDefinition::parse(&text)
            .map_err(|error| wrong(error.at.and_then(line_and_column), error.message))?;
        Ok(Self { path: path.to_owned(), definition })
    }

    /// Builds the workflow. `max_iterations` overrides the maximum number of supersteps in the
    /// file.
    ///
    /// # Errors
    /// Returns an error if the file is inconsistent, or names a model or a tool that does not
    /// exist.
    pub fn workflow(
        &self,
        parts: &AgentParts<'_>,
        max_iterations: Option<u64>,
    ) -> Result<Workflow> {
        build::workflow(self, max_iterations, |id| parts.agent(self, id))
    }

    /// Builds the workflow with agents that cannot be run, to check or draw it.
    ///
    /// # Errors
    /// Returns an error if the file is inconsistent.
    pub fn outline(&self) -> Result<Workflow> {
        build::workflow(self, None, agents::placeholder_agent)
    }

    /// Returns an error at a position of the file.
    pub(crate) fn error(&self, at: Location, message: impl Into<String>) -> ConfigError {
        ConfigError { path: self.path.clone(), at: line_and_column(at), message: message.into() }
    }

    /// Returns an error without a position.
    pub(crate) fn error_anywhere(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { path: self.path.clone(), at: None, message: message.into() }
    }

    /// Returns the name of the workflow; by default the name of the file.
    pub fn name(&self) -> String {
        let stem = || self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.definition.name.clone().or_else(stem).unwrap_or_else(|| "workflow".to_owned())
    }

    /// Resolves a path relative to the file.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// Returns line and column, if they are known.
fn line_and_column(at: Location) -> Option<(usize, usize)> {
    let number = |number: u64| usize::try_from(number).ok().filter(|number| *number > 0);
    Some((number(at.line())?, number(at.column())?))
}
