//! Watches directories, each without those below it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher as _};
use tokio::sync::mpsc::{self, UnboundedReceiver};
use tokio::time::{Instant, timeout_at};

use crate::error::Context as _;
use crate::{Operator, Result};

/// Time without a relevant change after which changes count as complete: editors and compilers
/// write in several steps.
pub(crate) const QUIET: Duration = Duration::from_millis(150);
/// Maximum time from the first relevant change until it is reported, for files that never rest.
const DELAY_MAX: Duration = Duration::from_secs(2);
/// Interval of attempts to watch directories that do not exist.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Watches directories, and notices when one is deleted and created again.
pub(crate) struct DirectoryWatcher {
    watcher: RecommendedWatcher,
    changes: UnboundedReceiver<PathBuf>,
    watched: BTreeSet<PathBuf>,
    /// Directories that do not exist, or that the system does not watch.
    missing: BTreeSet<PathBuf>,
    operator: Operator,
}

impl DirectoryWatcher {
    /// Returns a watcher that watches nothing yet. `subject` names the watched files in an error.
    ///
    /// # Errors
    /// Returns an error if the system does not report changes.
    pub(crate) fn new(subject: &str, operator: Operator) -> Result<Self> {
        let (send, changes) = mpsc::unbounded_channel();
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
        let watcher = watcher.with_context(|| format!("changes of {subject} are not noticed"))?;
        let (watched, missing) = (BTreeSet::new(), BTreeSet::new());
        Ok(Self { watcher, changes, watched, missing, operator })
    }

    /// Replaces the set of watched directories. Those that cannot be watched now are tried again
    /// while [`changed`](Self::changed) waits.
    pub(crate) fn watch(&mut self, directories: BTreeSet<PathBuf>) {
        for directory in self.watched.extract_if(.., |it| !directories.contains(it)) {
            // Fails for a directory that was deleted.
            let _ = self.watcher.unwatch(&directory);
        }
        self.missing.retain(|it| directories.contains(it));
        for directory in directories {
            if self.watched.contains(&directory) || self.missing.contains(&directory) {
                continue;
            }
            match self.watcher.watch(&directory, RecursiveMode::NonRecursive) {
                Ok(()) => self.watched.insert(directory),
                Err(error) => {
                    let shown = directory.display();
                    self.operator.note(&format!("changes in {shown} are not noticed: {error}"));
                    self.missing.insert(directory)
                }
            };
        }
    }

    /// Waits until relevant paths have changed and their changes have stopped, and returns them.
    /// Returns a directory if it can be watched again: any file in it may have changed before.
    /// Changes in `known` count as noticed already. Returns `None` if changes can no longer be
    /// noticed.
    pub(crate) async fn changed(
        &mut self,
        known: BTreeSet<PathBuf>,
        is_relevant: impl Fn(&Path) -> bool,
    ) -> Option<BTreeSet<PathBuf>> {
        let mut paths = known;
        loop {
            let mut again = self.watch_missing();
            if paths.is_empty() && again.is_empty() {
                let retry = (!self.missing.is_empty()).then_some(RETRY_INTERVAL);
                let retry = retry.map(|interval| Instant::now() + interval);
                match self.next(retry, &is_relevant).await {
                    NextChange::Path(path) => paths.insert(path),
                    NextChange::Timeout => continue,
                    NextChange::End => return None,
                };
            }
            let latest = Instant::now() + DELAY_MAX;
            loop {
                let until = latest.min(Instant::now() + QUIET);
                match self.next(Some(until), &is_relevant).await {
                    NextChange::Path(path) => paths.insert(path),
                    NextChange::Timeout | NextChange::End => break,
                };
            }
            let gone = self.watched.extract_if(.., |it| paths.contains(it) || !it.exists());
            self.missing.extend(gone);
            again.append(&mut self.watch_missing());
            paths.retain(|path| is_relevant(path));
            paths.append(&mut again);
            if !paths.is_empty() {
                return Some(paths);
            }
        }
    }

    /// Returns the next change of a relevant path or of a watched directory itself.
    async fn next(
        &mut self,
        until: Option<Instant>,
        is_relevant: &impl Fn(&Path) -> bool,
    ) -> NextChange {
        loop {
            let received = match until {
                Some(until) => timeout_at(until, self.changes.recv()).await,
                None => Ok(self.changes.recv().await),
            };
            match received {
                Ok(Some(path)) if is_relevant(&path) || self.watched.contains(&path) => {
                    return NextChange::Path(path);
                }
                Ok(Some(_)) => {}
                Ok(None) => return NextChange::End,
                Err(_) => return NextChange::Timeout,
            }
        }
    }

    /// Watches the missing directories that exist again, and returns them.
    fn watch_missing(&mut self) -> BTreeSet<PathBuf> {
        let Self { watcher, missing, .. } = self;
        let again: BTreeSet<_> = missing
            .extract_if(.., |it| watcher.watch(it, RecursiveMode::NonRecursive).is_ok())
            .collect();
        self.watched.extend(again.iter().cloned());
        again
    }
}

enum NextChange {
    Path(PathBuf),
    Timeout,
    End,
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    fn watcher(directories: &[&Path]) -> DirectoryWatcher {
        let mut watcher = DirectoryWatcher::new("tests", Operator::default()).unwrap();
        watcher.watch(directories.iter().map(|it| (*it).to_owned()).collect());
        watcher
    }

    async fn changed(watcher: &mut DirectoryWatcher, name: &str) -> Vec<String> {
        let waiting = watcher.changed(BTreeSet::new(), |path| path.ends_with(name));
        let paths = tokio::time::timeout(SOON, waiting).await.unwrap().unwrap();
        let names = paths.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    /// Changes a file every 20 ms until the guard is dropped.
    fn noise(file: PathBuf) -> impl Drop {
        struct Abort(tokio::task::JoinHandle<()>);
        impl Drop for Abort {
            fn drop(&mut self) {
                self.0.abort();
            }
        }
        Abort(tokio::spawn(async move {
            for round in 0_u64.. {
                let _ = fs::write(&file, round.to_string());
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }))
    }

    #[tokio::test]
    async fn other_files_do_not_delay_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().canonicalize().unwrap();
        let mut watcher = watcher(&[&directory]);
        let _noise = noise(directory.join("app.log"));
        fs::write(directory.join("config"), "1").unwrap();
        let started = Instant::now();
        assert_eq!(changed(&mut watcher, "config").await, ["config"]);
        assert!(started.elapsed() < DELAY_MAX, "{:?}", started.elapsed());
    }

    #[tokio::test]
    async fn a_file_that_never_rests_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().canonicalize().unwrap();
        let mut watcher = watcher(&[&directory]);
        let _noise = noise(directory.join("config"));
        assert_eq!(changed(&mut watcher, "config").await, ["config"]);
    }

    #[tokio::test]
    async fn a_directory_that_is_created_again_is_watched_again() {
        let folder = tempfile::tempdir().unwrap();
        let parent = folder.path().canonicalize().unwrap();
        let directory = parent.join("out");
        fs::create_dir(&directory).unwrap();
        let mut watcher = watcher(&[&parent, &directory]);
        for _ in 0..2 {
            fs::remove_dir_all(&directory).unwrap();
            fs::create_dir(&directory).unwrap();
            assert!(changed(&mut watcher, "config").await.contains(&"out".to_owned()));
            fs::write(directory.join("config"), "1").unwrap();
            assert_eq!(changed(&mut watcher, "config").await, ["config"]);
        }
    }

    #[tokio::test]
    async fn a_missing_directory_is_watched_once_it_exists() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().canonicalize().unwrap().join("out");
        let mut watcher = watcher(&[&directory]);
        fs::create_dir(&directory).unwrap();
        assert_eq!(changed(&mut watcher, "config").await, ["out"]);
        fs::write(directory.join("config"), "1").unwrap();
        assert_eq!(changed(&mut watcher, "config").await, ["config"]);
    }
}
