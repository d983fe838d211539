//! Not written yet.

use crate::{BuildError, Project, Steps};

/// Builds the component of a project.
pub(crate) fn build(project: &Project, _steps: &Steps<'_>) -> Result<Vec<u8>, BuildError> {
    Err(BuildError::Project(format!("{} cannot be built yet", project.language())))
}
