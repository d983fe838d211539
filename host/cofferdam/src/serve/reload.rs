//! Follows changes of plugins and configuration.

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

/// Reloads what changes, until the process ends. A plugin or a configuration that cannot be loaded
/// leaves everything as it is, and a note on standard error says why.
pub(super) async fn follow(running: Arc<RunningService>) -> crate::Result<()> {
    let (mut watcher, mut changes) = changes("plugins")?;
    let mut watched = BTreeSet::new();
    let config = running.options.selection.config.clone();
    let operator = running.operator.clone();
    watch(&mut watcher, &mut watched, &running.files().await, &operator);
    // Nothing is missed from here on. What changed before can wait until the first requests are
    // answered.
    tokio::time::sleep(QUIET).await;
    let mut real = CanonicalFiles::default();
    let mut unseen: BTreeSet<PathBuf> =
        running.changed_unseen().await.iter().map(|path| real.path(path)).collect();
    loop {
        let files = running.files().await;
        watch(&mut watcher, &mut watched, &files, &operator);
        // A directory that was replaced by a link, or the other way round, counts as changed.
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
        let reloaded = if config.as_ref().is_some_and(|config| changed.contains(config)) {
            running.reload_all().await
        } else if changed.is_empty() {
            continue;
        } else {
            running.reload(&changed).await
        };
        match reloaded {
            // A lock file was written that no plugin waited for, or a component is the one that was
            // loaded.
            Ok(what) if what.is_empty() => {}
            Ok(what) => running.operator.note(&format!("reloaded: {what}")),
            Err(error) => running
                .operator
                .note(&format!("not reloaded, what was there before stays: {error:#}")),
        }
    }
}

/// Watches the directories of all files: a file that is replaced is another one, and its directory
/// stays.
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

/// Files by the one name of their directory: events come under the name that the directory is
/// watched by.
#[derive(Default)]
struct CanonicalFiles {
    /// Directories as they are named, and where they are. Many files are in few of them.
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
