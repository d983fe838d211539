//! YAML files that define agents and workflows: reading, errors with positions, relative paths.

use std::path::{Path, PathBuf};

use cofferdam_workflow::definition::{InvalidDefinition, Location};

use crate::config::ConfigError;
use crate::{Error, Result};

/// Maximum bytes of a file.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum bytes of a file with instructions.
const TEXT_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Path of a file, to which positions of errors and paths in the file refer.
pub(crate) struct DefinitionFile(PathBuf);

impl DefinitionFile {
    /// Reads a file and checks its form.
    pub(crate) fn read_ambient<T>(
        path: &Path,
        parse: impl FnOnce(&str) -> Result<T, InvalidDefinition>,
    ) -> Result<(Self, T), ConfigError> {
        let file = Self(path.to_owned());
        let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX);
        let text = text.map_err(|error| file.error_anywhere(error.to_string()))?;
        let definition = parse(&text).map_err(|error| match error.at {
            Some(at) => file.error(at, error.message),
            None => file.error_anywhere(error.message),
        })?;
        Ok((file, definition))
    }

    /// Returns an error at a position of the file.
    pub(crate) fn error(&self, at: Location, message: impl Into<String>) -> ConfigError {
        let at = line_and_column(at);
        ConfigError { path: self.0.clone(), at, message: message.into() }
    }

    /// Returns an error without a position.
    pub(crate) fn error_anywhere(&self, message: impl Into<String>) -> ConfigError {
        ConfigError { path: self.0.clone(), at: None, message: message.into() }
    }

    /// Returns the name of the file without its extension.
    pub(crate) fn stem(&self) -> Option<String> {
        self.0.file_stem().map(|stem| stem.to_string_lossy().into_owned())
    }

    /// Resolves a path relative to the file.
    pub(crate) fn resolve(&self, path: &str) -> PathBuf {
        self.0.parent().unwrap_or(Path::new("")).join(path)
    }

    /// Returns `text`, or the content of the file if it is `@PATH`.
    pub(crate) fn text(&self, text: &str) -> Result<String> {
        match text.strip_prefix('@') {
            Some(path) => self.content(path),
            None => Ok(text.to_owned()),
        }
    }

    /// Returns the content of a file with a path relative to this one.
    pub(crate) fn content(&self, path: &str) -> Result<String> {
        let path = self.resolve(path);
        cofferdam_files::read_named_text_ambient(&path, TEXT_BYTES_MAX)
            .map_err(|error| Error::invalid(format!("{}: {error}", path.display())))
    }
}

/// Returns line and column, if they are known.
fn line_and_column(at: Location) -> Option<(usize, usize)> {
    let number = |number: u64| usize::try_from(number).ok().filter(|number| *number > 0);
    Some((number(at.line())?, number(at.column())?))
}
