//! Follows changes of plugins and configuration.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};

use super::Running;
use crate::changes::changes;
use crate::print;

/// How long to wait after a change for what belongs to it: a component is often written in several steps.
const QUIET: Duration = Duration::from_millis(150);

/// Reloads what changes, until the process ends. A plugin or a configuration that cannot be loaded leaves everything as it is,
/// and a note on standard error says why.
pub(crate) async fn follow(running: Arc<Running>) -> anyhow::Result<()> {
    let (mut watcher, mut changes) = changes("plugins")?;
    let mut watched = BTreeSet::new();
    let config = running.args.plugins.config.clone();
    watch(&mut watcher, &mut watched, &running.files().await);
    let mut unseen: BTreeSet<PathBuf> =
        running.changed_unseen().await.iter().map(|path| absolute(path)).collect();
    loop {
        let files = running.files().await;
        watch(&mut watcher, &mut watched, &files);
        let mut paths = std::mem::take(&mut unseen);
        if paths.is_empty() {
            let Some(first) = changes.recv().await else { return Ok(()) };
            paths.insert(first);
        }
        while let Ok(Some(path)) = tokio::time::timeout(QUIET, changes.recv()).await {
            paths.insert(path);
        }
        let changed: Vec<PathBuf> =
            files.into_iter().filter(|file| paths.contains(&absolute(file))).collect();
        let reloaded = if config.as_ref().is_some_and(|config| changed.contains(config)) {
            running.reload_all().await
        } else if changed.is_empty() {
            continue;
        } else {
            running.reload(&changed).await
        };
        match reloaded {
            Ok(what) => print::note(&format!("reloaded: {what}")),
            Err(error) => print::note(&format!("not reloaded, what was there before stays: {error:#}")),
        }
    }
}

/// Watches the directories of all files: a file that is replaced is another one, and its directory stays.
fn watch(watcher: &mut RecommendedWatcher, watched: &mut BTreeSet<PathBuf>, files: &[PathBuf]) {
    let directories: BTreeSet<PathBuf> =
        files.iter().filter_map(|path| Some(absolute(path).parent()?.to_owned())).collect();
    for directory in directories {
        if watched.insert(directory.clone())
            && let Err(error) = watcher.watch(&directory, RecursiveMode::NonRecursive)
        {
            print::note(&format!("changes in {} are not noticed: {error}", directory.display()));
        }
    }
}

/// A file by the one name of its directory: events come under the name that the directory is watched by.
fn absolute(path: &Path) -> PathBuf {
    let found = std::path::absolute(path).ok().and_then(|path| {
        let directory = path.parent()?.canonicalize().ok()?;
        Some(directory.join(path.file_name()?))
    });
    found.unwrap_or_else(|| path.to_owned())
}
