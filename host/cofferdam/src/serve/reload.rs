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

/// Reloads changed files until the process ends. If a plugin or configuration cannot be loaded,
/// nothing changes and the operator gets a note.
pub(super) async fn follow(running: Arc<RunningService>) -> crate::Result<()> {
    let (mut watcher, mut changes) = changes("plugins")?;
    let mut watched = BTreeSet::new();
    // A change of one of these reloads everything.
    let mut deciding = running.options.agents.paths();
    deciding.extend(running.options.selection.config.clone());
    let operator = running.operator.clone();
    watch(&mut watcher, &mut watched, &running.files().await, &operator);
    // The watch is complete from here on. Earlier changes can wait until the first requests are
    // answered.
    tokio::time::sleep(QUIET).await;
    let mut real = CanonicalFiles::default();
    let mut unseen: BTreeSet<PathBuf> =
        running.unnoticed_changes().await.iter().map(|path| real.path(path)).collect();
    loop {
        let files = running.files().await;
        watch(&mut watcher, &mut watched, &files, &operator);
        // Not cached across iterations: a directory may have been replaced by a symbolic link, or
        // the reverse.
        real = CanonicalFiles::default();
        let mut paths = std::mem::take(&mut unseen);
        if paths.is_empty() {
            let Some(first) = changes.recv().await else { return Ok(()) };
            paths.insert(first);
        }
        while let Ok(Some(path)) = tokio::time::timeout(QUIET, changes.recv()).await {
            paths.insert(path);
        }
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

/// Watches the directories of all files, because replacing a file changes its inode, and its
/// directory stays.
fn watch(
    watcher: &mut RecommendedWatcher,
    watched: &mut BTreeSet<PathBuf>,
    files: &[PathBuf],
    operator: &Operator,
) {
    let mut first_of: BTreeMap<&Path, &PathBuf> = BTreeMap::new();
    for path in files {
        first_of.entry(path.parent().unwrap_or(path)).or_insert(path);
    }
    let mut real = CanonicalFiles::default();
    let directories: BTreeSet<PathBuf> = first_of
        .into_values()
        .filter_map(|path| Some(real.path(path).parent()?.to_owned()))
        .collect();
    for directory in directories {
        if watched.insert(directory.clone())
            && let Err(error) = watcher.watch(&directory, RecursiveMode::NonRecursive)
        {
            operator.note(&format!("changes in {} are not noticed: {error}", directory.display()));
        }
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
