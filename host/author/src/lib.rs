//! Commands for plugin authors: create a project, and build it into a component.
//!
//! [`create()`] writes a project from a template, with a copy of the SDK of its language, so that
//! it builds offline and on every later version of this host. [`Project::open`] finds out what a
//! directory holds, and [`build()`] runs the toolchain of its language. Nothing here knows how a
//! plugin is run: checking and calling what was built is up to the caller.
//!
//! Toolchains are found, never installed. A missing one is [`BuildError::Missing`], which names
//! what was looked for and the packages that bring it.

mod build;
mod component;
mod create;
mod error;
mod language;
mod languages;
mod packed;
mod project;
mod read;
mod steps;
mod strip;
mod watch;
mod wit;

pub use build::{BuildOptions, build};
pub use create::{CreateError, CreatedProject, create};
pub use error::{BuildError, MissingTool};
pub use language::{Language, UnknownLanguage};
pub use project::{BuildTable, Project, ProjectError};
pub use steps::{ProgramOutput, StepObserver, Steps};
pub use watch::is_source;
