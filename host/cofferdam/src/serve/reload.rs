//! Reloads plugins and configuration when they change.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::RunningService;
use crate::Operator;
use crate::watch::changes;

/// Time to wait after a change for related changes: a component is often written in several steps.
const QUIET: Duration = Duration::from_millis(150);

/// Interval of attempts to watch a directory that does not exist.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Reloads changed files until the process ends. If a plugin or configuration cannot be loaded,
/// nothing changes and the operator gets a note.
pub(super) async fn follow(running: Arc<RunningService>) -> crate::Result<()> {
    let (mut watcher, mut changes) = changes("plugins")?;
    let mut watched = WatchedDirectories::default();
    // A change of one of these reloads everything.
    let mut deciding = running.options.agents.paths();
    deciding.extend(running.options.selection.config.clone());
    let operator = running.operator.clone();
    watched.add(&mut watcher, &running.files().await, &operator);
    // The watch is complete from here on. Earlier changes can wait until the first requests are
    // answered.
    tokio::time::sleep(QUIET).await;
    let mut real = CanonicalFiles::default();
    let mut unseen: BTreeSet<PathBuf> =
        running.unnoticed_changes().await.iter().map(|path| real.path(path)).collect();
    loop {
        let files = running.files().await;
        let new = watched.add(&mut watcher, &files, &operator);
        // Not cached across iterations: a directory may have been replaced by a symbolic link, or
        // the reverse.
        real = CanonicalFiles::default();
        let mut paths = std::mem::take(&mut unseen);
        // Files of a directory that exists again may have changed before it was watched.
        let files_of_new = files.iter().map(|file| real.path(file));
        paths.extend(files_of_new.filter(|file| new.iter().any(|it| file.starts_with(it))));
        if paths.is_empty() {
            let first = match watched.missing.is_empty() {
                true => changes.recv().await,
                false => match tokio::time::timeout(RETRY_INTERVAL, changes.recv()).await {
                    Ok(first) => first,
                    Err(_) => continue,
                },
            };
            let Some(first) = first else { return Ok(()) };
            paths.insert(first);
        }
        while let Ok(Some(path)) = tokio::time::timeout(QUIET, changes.recv()).await {
            paths.insert(path);
        }
        watched.remove_deleted(&paths);
        let changed: Vec<PathBuf> =
            files.into_iter().filter(|file| paths.contains(&real.path(file))).collect();
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

/// Directories of all files, because replacing a file changes its inode, and its directory stays.
#[derive(Default)]
struct WatchedDirectories {
    watched: BTreeSet<PathBuf>,
    /// Directories that do not exist, or that the system does not watch.
    missing: BTreeSet<PathBuf>,
}

impl WatchedDirectories {
    /// Watches the directories of `files`. Returns those that could not be watched before.
    fn add(
        &mut self,
        watcher: &mut RecommendedWatcher,
        files: &[PathBuf],
        operator: &Operator,
    ) -> Vec<PathBuf> {
        let mut first_of: BTreeMap<&Path, &PathBuf> = BTreeMap::new();
        for path in files {
            first_of.entry(path.parent().unwrap_or(path)).or_insert(path);
        }
        let mut real = CanonicalFiles::default();
        let directories: BTreeSet<PathBuf> = first_of
            .into_values()
            .filter_map(|path| Some(real.path(path).parent()?.to_owned()))
            .collect();
        self.missing.retain(|directory| directories.contains(directory));
        let mut new = Vec::new();
        for directory in directories {
            if self.watched.contains(&directory) {
                continue;
            }
            let shown = directory.display();
            match watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => {
                    if self.missing.remove(&directory) {
                        new.push(directory.clone());
                    }
                    self.watched.insert(directory);
                }
                Err(error) => {
                    if !self.missing.contains(&directory) {
                        operator.note(&format!("changes in {shown} are not noticed: {error}"));
                        self.missing.insert(directory);
                    }
                }
            }
        }
        new
    }

    /// Forgets directories that were deleted, which the system no longer watches, to watch them
    /// again once they exist.
    fn remove_deleted(&mut self, changed: &BTreeSet<PathBuf>) {
        let deleted = |directory: &PathBuf| changed.contains(directory) || !directory.exists();
        let deleted: Vec<_> = self.watched.extract_if(.., |it| deleted(it)).collect();
        self.missing.extend(deleted);
    }
}

/// Maps files to canonical paths, because events contain the watched directory's canonical path.
#[derive(Default)]
struct CanonicalFiles {
    /// Canonical paths of directories. Many files share few directories.
    directories: HashMap<PathBuf, Option<PathBuf>>,
}

impl CanonicalFiles {
    fn path(&mut self, path: &Path) -> PathBuf {
        self.found(path).unwrap_or_else(|| path.to_owned())
    }

    fn found(&mut self, path: &Path) -> Option<PathBuf> {
        let (directory, name) = (path.parent()?, path.file_name()?);
        if let Some(known) = self.directories.get(directory) {
            return Some(known.as_ref()?.join(name));
        }
        let real = std::path::absolute(path).ok();
        let real = real.and_then(|path| path.parent()?.canonicalize().ok());
        let found = real.as_ref().map(|real| real.join(name));
        self.directories.insert(directory.to_owned(), real);
        found
    }
}
