//! From a project to a checked component, once or whenever a source changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use cofferdam_author::{BuildError, BuildOptions, Project, ProjectError, Report, Steps, is_source};
use cofferdam_engine::Component;
use cofferdam_engine::manifest::{EmbedError, embed_manifest};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::watch;

use crate::changes::changes;
use crate::exit::UsageError;
use crate::policy_file::replace_file;
use crate::print;

/// How long to wait after a change for what belongs to it: editors write in several steps.
const QUIET: Duration = Duration::from_millis(150);
/// Directories that are watched at most; a project with more is built by hand.
const WATCHED_MAX: usize = 4096;

/// What is built, and where to.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) directory: PathBuf,
    pub(crate) output: Option<PathBuf>,
    pub(crate) keep_names: bool,
    pub(crate) is_verbose: bool,
}

/// A component that was written.
pub(crate) struct Built {
    pub(crate) project: Project,
    pub(crate) component: PathBuf,
}

/// Steps of the toolchain as notes: each when it is over, and what takes long when it begins.
struct Notes;

impl Report for Notes {
    fn begin(&self, step: &str) {
        print::note(&format!("{step} …"));
    }

    fn end(&self, step: &str, took: Duration) {
        print::note(&format!("{step}: {}", print::time(took)));
    }

    fn note(&self, text: &str) {
        print::note(text);
    }
}

/// Builds once. Takes as long as the toolchain takes and blocks.
pub(crate) fn build(recipe: &Recipe) -> anyhow::Result<Built> {
    let project = open(&recipe.directory)?;
    let options = BuildOptions {
        keep_names: recipe.keep_names,
        // Its own tools and many build systems find it by this variable.
        wasi_sdk: std::env::var_os("WASI_SDK_PATH").map(PathBuf::from),
    };
    let built = cofferdam_author::build(&project, &options, &Steps::new(&Notes, recipe.is_verbose));
    let mut component = built.map_err(|error| match error {
        BuildError::Read { .. } | BuildError::Write { .. } | BuildError::Start { .. } => {
            anyhow::Error::from(error)
        }
        error => UsageError(error.to_string()).into(),
    })?;
    if let Some(manifest) = project.manifest() {
        match embed_manifest(&component, manifest) {
            Ok(with) => component = with,
            // The Rust SDK can do that as well, with the same file.
            Err(EmbedError::Present) => {}
            Err(error) => return Err(UsageError(format!("plugin.toml: {error}")).into()),
        }
    }
    let path = recipe.output.clone().unwrap_or_else(|| project.component());
    let unwritable = || format!("{} cannot be written", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(unwritable)?;
    }
    replace_file(&path, &component).with_context(unwritable)?;
    Ok(Built { project, component: path })
}

/// State of the first build of a project that is served while it is built.
#[derive(Debug, Clone)]
pub(crate) struct FirstBuild {
    component: PathBuf,
    state: watch::Sender<BuildState>,
}

#[derive(Debug, Clone)]
enum BuildState {
    Building,
    /// No build has succeeded yet.
    Failed,
    /// A build has succeeded, and has written this component.
    Built(Component),
}

impl FirstBuild {
    /// A build that has just begun and writes `component`.
    pub(crate) fn new(component: PathBuf) -> Self {
        Self { component, state: watch::Sender::new(BuildState::Building) }
    }

    /// The component that is built.
    pub(crate) fn component(&self) -> &Path {
        &self.component
    }

    /// Notes the end of a build. Later ones do not matter once one has succeeded.
    pub(crate) fn end(&self, is_built: bool) {
        let component = || Component::from_file_ambient(&self.component);
        let ended = if is_built { BuildState::Built(component()) } else { BuildState::Failed };
        self.state.send_if_modified(|state| {
            let is_news = !matches!(state, BuildState::Built(_));
            if is_news {
                *state = ended;
            }
            is_news
        });
    }

    /// Returns whether a build has succeeded.
    pub(crate) fn is_built(&self) -> bool {
        matches!(*self.state.borrow(), BuildState::Built(_))
    }

    /// Returns the component as the first build that has succeeded wrote it.
    pub(crate) fn built_component(&self) -> Option<Component> {
        match &*self.state.borrow() {
            BuildState::Built(component) => Some(component.clone()),
            BuildState::Building | BuildState::Failed => None,
        }
    }

    /// Waits for the component.
    ///
    /// # Errors
    /// If the build fails.
    pub(crate) async fn built(&self) -> anyhow::Result<Component> {
        let mut state = self.state.subscribe();
        let ended = state.wait_for(|state| !matches!(state, BuildState::Building)).await;
        match ended.as_deref() {
            Ok(BuildState::Built(component)) => Ok(component.clone()),
            _ => bail!("the project does not build; it is built again when a source changes"),
        }
    }
}

/// Finds out what a directory holds.
pub(crate) fn open(directory: &Path) -> anyhow::Result<Project> {
    Project::open(directory).map_err(|error| match error {
        ProjectError::Read { .. } => anyhow::Error::from(error),
        error => UsageError(error.to_string()).into(),
    })
}

/// The sources of a project.
pub(crate) struct Sources {
    directory: PathBuf,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    changes: UnboundedReceiver<PathBuf>,
}

impl Sources {
    /// Watches a project.
    pub(crate) fn watch(directory: &Path) -> anyhow::Result<Self> {
        let directory = directory.canonicalize().context("the project is not there")?;
        let (watcher, changes) = changes("sources")?;
        let mut sources = Self { directory, watcher, watched: BTreeSet::new(), changes };
        sources.watch_directories();
        Ok(sources)
    }

    /// Waits until a source has changed and nothing more changes. False when there is nothing to wait for any more.
    pub(crate) async fn changed(&mut self) -> bool {
        loop {
            let Some(first) = self.changes.recv().await else { return false };
            let mut is_changed = self.is_source(&first);
            while let Ok(Some(path)) = tokio::time::timeout(QUIET, self.changes.recv()).await {
                is_changed |= self.is_source(&path);
            }
            if is_changed {
                self.watch_directories();
                return true;
            }
        }
    }

    fn is_source(&self, path: &Path) -> bool {
        path.strip_prefix(&self.directory).is_ok_and(is_source)
    }

    /// One by one and not as a tree: what toolchains install has more directories than a system lets one watch.
    fn watch_directories(&mut self) {
        let mut left = vec![self.directory.clone()];
        while let Some(directory) = left.pop() {
            if self.watched.len() >= WATCHED_MAX {
                print::note(&format!(
                    "changes below {} are not noticed: too many directories",
                    directory.display()
                ));
                return;
            }
            if self.watched.insert(directory.clone())
                && let Err(error) = self.watcher.watch(&directory, RecursiveMode::NonRecursive)
            {
                print::note(&format!("changes in {} are not noticed: {error}", directory.display()));
            }
            for entry in directory.read_dir().into_iter().flatten().flatten() {
                // No links: what they lead to belongs to somebody else.
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) && self.is_source(&entry.path()) {
                    left.push(entry.path());
                }
            }
        }
    }
}
