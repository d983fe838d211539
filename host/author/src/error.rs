//! Errors of builds.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Error returned when a project cannot be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A tool of the toolchain is not installed.
    #[error("{0}")]
    Missing(MissingTool),
    /// The sources or settings of the project are invalid.
    #[error("{0}")]
    Project(String),
    /// The directory of the SDK is missing.
    #[error(
        "there is no SDK at {}; `cofferdam new` puts one into each project: copy the folder `sdk` from a new one, or say where it is \
         with `[build] sdk` in plugin.toml", looked_for.display()
    )]
    NoSdk {
        /// Expected path.
        looked_for: PathBuf,
    },
    /// A program cannot be started.
    #[error("{program} cannot be started: {error}")]
    Start {
        /// Program.
        program: String,
        /// Cause.
        error: std::io::Error,
    },
    /// A program of the toolchain failed.
    #[error("{step} failed ({status}){}{output}", if output.is_empty() { "" } else { ":\n" })]
    Failed {
        /// Purpose of the program.
        step: String,
        /// Exit status.
        status: ExitStatus,
        /// Output of the program, unless it was already shown.
        output: String,
    },
    /// The core module cannot be made into a component.
    #[error("the core module does not become a component: {0}")]
    Component(String),
    /// A file cannot be read.
    #[error("{} cannot be read: {error}", path.display())]
    Read {
        /// Path.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        /// Path.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
}

impl BuildError {
    pub(crate) fn read(path: &Path, error: std::io::Error) -> Self {
        Self::Read { path: path.to_owned(), error }
    }

    pub(crate) fn write(path: &Path, error: std::io::Error) -> Self {
        Self::Write { path: path.to_owned(), error }
    }
}

/// Missing tool of a toolchain.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{tool} is missing (looked for {looked_for}). Install it with\n{}", commands(install))]
pub struct MissingTool {
    /// The missing tool in words, such as `the Go compiler, 1.24 or newer`.
    pub tool: String,
    /// Where the tool was looked for, such as `go on the PATH`.
    pub looked_for: String,
    /// Alternative commands that install the tool, the usual one first.
    pub install: Vec<String>,
}

impl From<MissingTool> for BuildError {
    fn from(missing: MissingTool) -> Self {
        Self::Missing(missing)
    }
}

fn commands(install: &[String]) -> String {
    install.iter().map(|command| format!("  {command}")).collect::<Vec<_>>().join("\nor\n")
}
