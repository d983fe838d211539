//! Reloads plugins and configuration when they change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::RunningService;
use crate::watch::{DirectoryWatcher, QUIET};

/// Reloads changed files until the process ends. If a plugin or configuration cannot be loaded,
/// nothing changes and the operator gets a note.
pub(super) async fn follow(running: Arc<RunningService>) -> crate::Result<()> {
    let mut watcher = DirectoryWatcher::new("plugins", running.operator.clone())?;
    // A change of one of these reloads everything.
    let mut deciding = running.options.agents.paths();
    deciding.extend(running.options.selection.config.clone());
    let mut files = WatchedFiles::new(running.files().await);
    watcher.watch(files.directories());
    // The watch is complete from here on. Earlier changes can wait until the first requests are
    // answered.
    tokio::time::sleep(QUIET).await;
    let unnoticed = running.unnoticed_changes().await;
    let mut unnoticed = WatchedFiles::new(unnoticed).by_path.into_keys().collect();
    loop {
        // The directories of files may have been replaced by symbolic links, or the reverse.
        files = WatchedFiles::new(running.files().await);
        watcher.watch(files.directories());
        let known = std::mem::take(&mut unnoticed);
        let is_watched = |path: &Path| files.by_path.contains_key(path);
        let Some(paths) = watcher.changed(known, is_watched).await else { return Ok(()) };
        let changed = files.changed(&paths);
        let reloaded = if deciding.iter().any(|file| changed.contains(file)) {
            running.reload_all().await
        } else if changed.is_empty() {
            continue;
        } else {
            running.reload(&changed).await
        };
        running.note_reload(reloaded);
    }
}

/// Watched files by canonical path, because events contain the watched directory's canonical path.
struct WatchedFiles {
    by_path: BTreeMap<PathBuf, Vec<PathBuf>>,
}

impl WatchedFiles {
    fn new(files: Vec<PathBuf>) -> Self {
        let (mut by_path, mut real) = (BTreeMap::<_, Vec<_>>::new(), CanonicalFiles::default());
        for file in files {
            by_path.entry(real.path(&file)).or_default().push(file);
        }
        Self { by_path }
    }

    /// Returns the directories of all files: replacing a file changes its inode, and its directory
    /// stays.
    fn directories(&self) -> BTreeSet<PathBuf> {
        self.by_path.keys().filter_map(|path| path.parent()).map(Path::to_owned).collect()
    }

    /// Returns the files of which `paths` contains the path or the directory.
    fn changed(&self, paths: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
        let is_changed = |path: &Path| {
            paths.contains(path) || path.parent().is_some_and(|parent| paths.contains(parent))
        };
        let changed = self.by_path.iter().filter(|(path, _)| is_changed(path));
        changed.flat_map(|(_, files)| files).cloned().collect()
    }
}

/// Canonical paths of the directories of files. Many files share few directories.
#[derive(Default)]
struct CanonicalFiles {
    directories: HashMap<PathBuf, PathBuf>,
}

impl CanonicalFiles {
    /// Returns the path of a file in its canonical directory, or the absolute path if the directory
    /// does not exist.
    fn path(&mut self, path: &Path) -> PathBuf {
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
            return path.to_owned();
        };
        if let Some(known) = self.directories.get(directory) {
            return known.join(name);
        }
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let real = absolute.parent().unwrap_or(directory);
        let real = real.canonicalize().unwrap_or_else(|_| real.to_owned());
        let found = real.join(name);
        self.directories.insert(directory.to_owned(), real);
        found
    }
}
