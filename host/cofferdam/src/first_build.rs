//! First build of a project that is served while it is built.

use std::path::{Path, PathBuf};

use cofferdam_engine::Component;
use tokio::sync::watch;

use crate::{Error, Result};

/// State of the first build of a project that is served while it is built. Clones share state.
#[derive(Debug, Clone)]
pub struct FirstBuild {
    component: PathBuf,
    state: watch::Sender<BuildState>,
}

#[derive(Debug, Clone)]
enum BuildState {
    Building,
    /// No build has succeeded yet.
    Failed,
    /// A build has succeeded, and has written this component.
    Built(Box<Component>),
}

impl FirstBuild {
    /// Creates the state of a build that has just started and writes `component`.
    pub fn new(component: PathBuf) -> Self {
        Self { component, state: watch::Sender::new(BuildState::Building) }
    }

    /// Returns the path of the component.
    pub fn component(&self) -> &Path {
        &self.component
    }

    /// Records the end of a build. Has no effect after a build that succeeded.
    pub fn end(&self, is_built: bool) {
        let component = || Component::from_file_ambient(&self.component);
        let ended =
            if is_built { BuildState::Built(Box::new(component())) } else { BuildState::Failed };
        self.state.send_if_modified(|state| {
            let is_news = !matches!(state, BuildState::Built(_));
            if is_news {
                *state = ended;
            }
            is_news
        });
    }

    /// Returns whether a build has succeeded.
    pub fn is_built(&self) -> bool {
        matches!(*self.state.borrow(), BuildState::Built(_))
    }

    /// Returns the component that the first successful build wrote.
    pub(crate) fn built_component(&self) -> Option<Component> {
        match &*self.state.borrow() {
            BuildState::Built(component) => Some(Component::clone(component)),
            BuildState::Building | BuildState::Failed => None,
        }
    }

    /// Waits for the component.
    ///
    /// # Errors
    /// Returns an error if the build fails.
    pub async fn built(&self) -> Result<Component> {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| !matches!(state, BuildState::Building)).await;
        match ended.as_deref() {
            Ok(BuildState::Built(component)) => Ok(Component::clone(component)),
            _ => Err(Error::failed(
                "the project does not build; it is built again when a source changes",
            )),
        }
    }
}
