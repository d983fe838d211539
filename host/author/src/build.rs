//! Builds a component from sources.

use std::path::PathBuf;

use crate::{BuildError, Language, Project, Steps, languages, strip};

/// Build options that do not come from the project.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BuildOptions {
    /// True if function names stay in the component, for the backtraces of traps.
    pub keep_names: bool,
    /// Directory of the WASI SDK of the Bytecode Alliance, for C and C++. Defaults to the
    /// documented directory.
    pub wasi_sdk: Option<PathBuf>,
}

/// Builds a project: runs the toolchain of its language and removes from the component what only
/// debuggers read.
///
/// The component does not contain the manifest yet: the caller checks and embeds
/// [`Project::manifest`].
///
/// # Errors
/// [`BuildError`] if the toolchain is missing or fails.
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
        Language::Zig => languages::zig::build(project, steps),
    }?;
    strip::strip(&component, options.keep_names).ok_or_else(|| {
        BuildError::Component(
            "the toolchain has written something else than a component".to_owned(),
        )
    })
}
