//! Watches files for changes.

mod directory_watcher;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

pub(crate) use self::directory_watcher::{DirectoryWatcher, QUIET};

use crate::error::Context as _;
use crate::{Operator, Result};

/// Maximum number of watched directories. A larger project has to be built manually.
const WATCHED_MAX: usize = 4096;

/// Watched source files of a project.
pub struct Sources {
    directory: PathBuf,
    watcher: DirectoryWatcher,
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
        let watcher = DirectoryWatcher::new("sources", operator.clone())?;
        let mut sources = Self { directory, watcher, is_source, operator };
        sources.watch_directories();
        Ok(sources)
    }

    /// Waits until a source has changed and changes have stopped, at most two seconds after the
    /// first one. Returns false when changes can no longer be noticed.
    pub async fn changed(&mut self) -> bool {
        let (directory, is_source) = (&self.directory, self.is_source);
        let is_relevant = |path: &Path| path.strip_prefix(directory).is_ok_and(is_source);
        let changed = self.watcher.changed(BTreeSet::new(), is_relevant).await;
        self.watch_directories();
        changed.is_some()
    }

    fn is_source(&self, path: &Path) -> bool {
        path.strip_prefix(&self.directory).is_ok_and(self.is_source)
    }

    /// Watches each source directory individually, because a recursive watch would include
    /// directories of toolchains, which can exceed the system's limit.
    fn watch_directories(&mut self) {
        let (mut found, mut left) = (BTreeSet::new(), vec![self.directory.clone()]);
        while let Some(directory) = left.pop() {
            if found.len() >= WATCHED_MAX {
                self.operator.note(&format!(
                    "changes below {} are not noticed: too many directories",
                    directory.display()
                ));
                break;
            }
            for entry in directory.read_dir().into_iter().flatten().flatten() {
                // Skips symbolic links, whose targets belong to other owners.
                if entry.file_type().is_ok_and(|kind| kind.is_dir())
                    && self.is_source(&entry.path())
                {
                    left.push(entry.path());
                }
            }
            found.insert(directory);
        }
        self.watcher.watch(found);
    }
}
