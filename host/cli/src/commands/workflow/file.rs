//! The file of a workflow, and errors that name positions in it.

use std::path::{Path, PathBuf};

use cofferdam_workflow::definition::{Location, WorkflowDefinition};

use crate::config::ConfigError;

/// Maximum bytes of a workflow file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;

/// A workflow's file.
pub(super) struct WorkflowFile {
    pub(super) path: PathBuf,
    pub(super) definition: WorkflowDefinition,
}

impl WorkflowFile {
    /// Reads a file and checks its form.
    pub(super) fn read_ambient(path: &Path) -> Result<Self, ConfigError> {
        let wrong = |at, message: String| ConfigError { path: path.to_owned(), at, message };
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| wrong(None, error.to_string()))?;
        let definition = WorkflowDefinition::parse(&text)
            .map_err(|error| wrong(error.at.and_then(line_and_column), error.message))?;
        Ok(Self { path: path.to_owned(), definition })
    }

    /// An error at a position of the file.
    pub(super) fn error(&self, at: Location, message: impl Into<String>) -> ConfigError {
        ConfigError { path: self.path.clone(), at: line_and_column(at), message: message.into() }
    }

    /// An error about the file as a whole.
    pub(super) fn error_anywhere(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { path: self.path.clone(), at: None, message: message.into() }
    }

    /// Returns the name of the workflow: that of the definition, or that of the file.
    pub(super) fn name(&self) -> String {
        let stem = || self.path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        self.definition.name.clone().or_else(stem).unwrap_or_else(|| "workflow".to_owned())
    }

    /// Resolves a path that the file names, relative to the file.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }
}

/// Returns line and column, if they are known.
fn line_and_column(at: Location) -> Option<(usize, usize)> {
    let number = |number: u64| usize::try_from(number).ok().filter(|number| *number > 0);
    Some((number(at.line())?, number(at.column())?))
}
