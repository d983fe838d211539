//! Watches files for changes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::Context as _;
use crate::{Operator, Result};
use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::{self, UnboundedReceiver};

/// Time without a change after which a change counts as complete: editors write in several steps.
const QUIET: Duration = Duration::from_millis(150);
/// Maximum number of watched directories. A larger project has to be built manually.
const WATCHED_MAX: usize = 4096;

/// Returns a watcher that watches nothing yet, and a channel that receives changed paths. Ignores
/// read access.
pub(crate) fn changes(of: &str) -> Result<(RecommendedWatcher, UnboundedReceiver<PathBuf>)> {
    let (send, receive) = mpsc::unbounded_channel();
    let watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if let Ok(event) = event
            && !event.kind.is_access()
        {
            for path in event.paths {
                // Fails if the receiver is gone.
                let _ = send.send(path);
            }
        }
    });
    Ok((watcher.with_context(|| format!("changes of {of} are not noticed"))?, receive))
}

/// Watched source files of a project.
pub struct Sources {
    directory: PathBuf,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    changes: UnboundedReceiver<PathBuf>,
    is_source: fn(&Path) -> bool,
    operator: Operator,
}

impl Sources {
    /// Watches the files below a directory for which `is_source` returns true, given their path
    /// relative to it.
    ///
    /// # Errors
    /// Returns an error if there is no such directory, or if the system does not report changes.
    pub fn watch(
        directory: &Path,
        is_source: fn(&Path) -> bool,
        operator: Operator,
    ) -> Result<Self> {
        let directory = directory.canonicalize().context("the project is not there")?;
        let (watcher, changes) = changes("sources")?;
        let mut sources =
            Self { directory, watcher, watched: BTreeSet::new(), changes, is_source, operator };
        sources.watch_directories();
        Ok(sources)
    }

    /// Waits until a source has changed and changes have stopped. Returns false when changes can no
    /// longer be noticed.
    pub async fn changed(&mut self) -> bool {
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
        path.strip_prefix(&self.directory).is_ok_and(self.is_source)
    }

    /// Watches each source directory individually, because a recursive watch would include
    /// directories of toolchains, which can exceed the system's limit.
    fn watch_directories(&mut self) {
        let mut left = vec![self.directory.clone()];
        while let Some(directory) = left.pop() {
            if self.watched.len() >= WATCHED_MAX {
                self.operator.note(&format!(
                    "changes below {} are not noticed: too many directories",
                    directory.display()
                ));
                return;
            }
            if self.watched.insert(directory.clone())
                && let Err(error) = self.watcher.watch(&directory, RecursiveMode::NonRecursive)
            {
                self.operator
                    .note(&format!("changes in {} are not noticed: {error}", directory.display()));
            }
            for entry in directory.read_dir().into_iter().flatten().flatten() {
                // Skips symbolic links, whose targets belong to other owners.
                if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && self.is_source(&entry.path())
                {
                    left.push(entry.path());
                }
            }
        }
    }
}
