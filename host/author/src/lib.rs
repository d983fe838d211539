//! Commands for plugin authors: create a project, and build it into a component.
//!
//! [`create()`] writes a project from a template, with a copy of the SDK of its language, so that
//! it builds offline and with every later version of this host. [`Project::open`] detects what a
//! directory contains, and [`build()`] runs the toolchain of its language. This crate does not call
//! plugins: the caller checks and calls the component. Of programs in Go, it runs the start.
//!
//! [`wrap()`] makes a plugin of a program for WASI that was written for something else.
//!
//! Toolchains are found, never installed. If one is missing, [`BuildError::Missing`] names what was
//! searched for and the packages that contain it. [`find_toolchain`] finds one without a project.

mod build;
mod component;
mod create;
mod dependencies;
mod error;
mod language;
mod languages;
mod packed;
mod project;
mod read;
mod sections;
mod steps;
mod strip;
mod toolchain;
mod watch;
mod wit;
mod wrap;

pub use build::{BuildOptions, build};
pub use create::{CreateError, CreatedProject, create};
pub use error::{BuildError, MissingTool};
pub use language::{Language, UnknownLanguage};
pub use project::{BuildTable, Project, ProjectError};
pub use steps::{ProgramOutput, StepObserver, Steps};
pub use toolchain::find_toolchain;
pub use watch::is_source;
pub use wrap::{CommandTool, WrapError, wrap};
