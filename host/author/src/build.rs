//! From sources to a component.

use crate::{BuildError, Language, Project, Steps, languages, strip};

/// Builds a project: runs the toolchain of its language and takes out of the component what only debuggers read.
///
/// The manifest is not in it yet: whoever calls this embeds [`Project::manifest`] and checks it.
///
/// With `keep_names` the names of functions stay, so that the backtrace of a trap has them.
///
/// # Errors
///
/// When the toolchain is not there or does not succeed.
pub fn build(project: &Project, steps: &Steps<'_>, keep_names: bool) -> Result<Vec<u8>, BuildError> {
    let component = match project.language() {
        Language::Rust => languages::rust::build(project, steps),
        Language::Python => languages::python::build(project, steps),
        Language::JavaScript | Language::TypeScript => languages::javascript::build(project, steps),
        Language::Go => languages::go::build(project, steps),
        Language::C | Language::Cpp => languages::c::build(project, steps),
    }?;
    strip::strip(&component, keep_names).ok_or_else(|| {
        BuildError::Component("the toolchain has written something else than a component".to_owned())
    })
}
