//! Builds a project into a component that can be loaded.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use cofferdam_author::{BuildError, BuildOptions, Project, ProjectError, StepObserver, Steps};
use cofferdam_engine::manifest::{EmbedError, embed_manifest};

use crate::exit::UsageError;
use crate::{print, progress};
use cofferdam::config::edit::replace_file;

/// Project, output and options of a build.
#[derive(Clone)]
pub(crate) struct Recipe {
    pub(crate) directory: PathBuf,
    pub(crate) output: Option<PathBuf>,
    pub(crate) keep_names: bool,
    pub(crate) is_verbose: bool,
}

/// Component that was written by a build.
pub(crate) struct BuiltComponent {
    pub(crate) project: Project,
    pub(crate) component: PathBuf,
}

/// Prints the steps of the toolchain as notes: each when it ends. A long one is shown while it
/// runs, as a spinner on a terminal and as a note elsewhere.
struct Notes {
    /// True if the programs of the toolchain write to standard error themselves.
    is_verbose: bool,
}

impl StepObserver for Notes {
    fn begin(&self, step: &str) {
        if self.is_verbose || !progress::show(step, None) {
            print::note(&format!("{step} …"));
        }
    }

    fn end(&self, step: &str, took: Duration) {
        progress::clear();
        print::note(&format!("{step}: {}", print::time(took)));
    }

    fn note(&self, text: &str) {
        print::note(text);
    }
}

/// Builds once. Blocks until the toolchain has finished.
pub(crate) fn build(recipe: &Recipe) -> anyhow::Result<BuiltComponent> {
    let project = open(&recipe.directory)?;
    let options = BuildOptions {
        keep_names: recipe.keep_names,
        // WASI SDK's own tools and many build systems read this variable.
        wasi_sdk: std::env::var_os("WASI_SDK_PATH").map(PathBuf::from),
    };
    let notes = Notes { is_verbose: recipe.is_verbose };
    let built = cofferdam_author::build(&project, &options, &Steps::new(&notes, recipe.is_verbose));
    // A step that failed has not ended.
    progress::clear();
    let mut component = built.map_err(|error| match error {
        BuildError::Read { .. } | BuildError::Write { .. } | BuildError::Start { .. } => {
            anyhow::Error::from(error)
        }
        error => UsageError(error.to_string()).into(),
    })?;
    if let Some(manifest) = project.manifest() {
        match embed_manifest(&component, manifest) {
            Ok(with) => component = with,
            // The Rust SDK embeds the same file itself.
            Err(EmbedError::Present) => {}
            Err(error) => return Err(UsageError(format!("plugin.toml: {error}")).into()),
        }
    }
    let path = recipe.output.clone().unwrap_or_else(|| project.component());
    write_component(&path, &component)?;
    Ok(BuiltComponent { project, component: path })
}

/// Opens the project in a directory and detects its language.
pub(crate) fn open(directory: &Path) -> anyhow::Result<Project> {
    Project::open(directory).map_err(|error| match error {
        ProjectError::Read { .. } => anyhow::Error::from(error),
        error => UsageError(error.to_string()).into(),
    })
}

/// Writes a component in one step, and creates its directory.
pub(crate) fn write_component(path: &Path, component: &[u8]) -> anyhow::Result<()> {
    let unwritable = || format!("{} cannot be written", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(unwritable)?;
    }
    replace_file(path, component).with_context(unwritable)
}
