//! From sources to a component.

use std::path::PathBuf;

use crate::{BuildError, Language, Project, Steps, languages, strip};

/// Build options that do not come from the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// The names of functions stay, so that the backtrace of a trap has them.
    pub keep_names: bool,
    /// Directory of the WASI SDK of the Bytecode Alliance, for C and C++; the documented one if
    /// missing.
    pub wasi_sdk: Option<PathBuf>,
}

/// Builds a project: runs the toolchain of its language and takes out of the component what only
/// debuggers read.
///
/// The manifest is not in it yet: the caller embeds [`Project::manifest`] and checks it.
///
/// # Errors
///
/// When the toolchain is not there or does not succeed.
pub fn build(
    project: &Project,
    options: &BuildOptions,
    steps: &Steps<'_>,
) -> Result<Vec<u8>, BuildError> {
    let component = match project.language() {
        Language::Rust => languages::rust::build(project, steps),
        Language::Python => languages::python::build(project, steps),
        Language::JavaScript | Language::TypeScript => languages::javascript::build(project, steps),
        Language::Go => languages::go::build(project, steps),
        Language::C | Language::Cpp => {
            languages::c::build(project, options.wasi_sdk.as_deref(), steps)
        }
    }?;
    strip::strip(&component, options.keep_names).ok_or_else(|| {
        BuildError::Component(
            "the toolchain has written something else than a component".to_owned(),
        )
    })
}
