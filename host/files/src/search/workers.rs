//! Searches several files concurrently.
//!
//! Each worker has its own thread of the blocking pool, takes the next file of the list, reads it
//! and searches it there. There are no more workers than processors, because searching is
//! CPU-bound. When the search is dropped, the workers stop before they read on.

use std::ffi::OsStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use super::file::{self, LongLine};
use super::pattern::SearchPattern;
use super::tally::MatchTally;
use super::{SearchQuery, SearchResults};
use crate::store::RefusedName;
use crate::{FileError, FileStore, StorePath, blocking};

/// More do not help, because then the list of files and the memory are the bottleneck.
const WORKERS_MAX: usize = 8;
/// Minimum number of files that are worth another thread.
const FILES_PER_WORKER_MIN: usize = 4;

/// State shared by the workers of one search.
struct Job {
    store: Arc<dyn FileStore>,
    query: SearchQuery,
    /// Directory that is searched.
    directory: StorePath,
    paths: Vec<StorePath>,
    /// Index of the next file to take.
    next: AtomicUsize,
    /// Files from this index on are not wanted.
    end: AtomicUsize,
    tally: Mutex<MatchTally>,
    /// Indexes of files with a line that is too long, with its limit.
    long: Mutex<Vec<(usize, usize)>>,
}

/// Searches `paths` below `directory` and returns the matches in their order.
pub(super) async fn search(
    store: &Arc<dyn FileStore>,
    directory: &StorePath,
    paths: Vec<StorePath>,
    query: &SearchQuery,
) -> Result<SearchResults, FileError> {
    let job = Arc::new(Job::new(store, directory, paths, query));
    let _stop = StopOnDrop(&job);
    if blocking::can_spawn() {
        let start = || {
            let job = Arc::clone(&job);
            blocking::spawn(|| async move { job.work().await })
        };
        let workers: Vec<_> = (0..worker_count(job.paths.len())).map(|_| start()).collect();
        for worker in workers {
            // This fails if the runtime is shutting down.
            worker.await.map_err(std::io::Error::other)?;
        }
    } else {
        job.work().await;
    }
    Ok(job.take_results())
}

fn long_file(directory: &StorePath, path: &StorePath, bytes_max: usize) -> RefusedName {
    let name = path.below(directory).unwrap_or(path.as_str());
    let (folder, name) = name.rsplit_once('/').unwrap_or(("", name));
    let reason = format!("a line has more than {bytes_max} bytes");
    RefusedName::new(folder, OsStr::new(name), reason)
}

fn worker_count(files: usize) -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    files.div_ceil(FILES_PER_WORKER_MIN).min(processors).min(WORKERS_MAX)
}

impl Job {
    fn new(
        store: &Arc<dyn FileStore>,
        directory: &StorePath,
        paths: Vec<StorePath>,
        query: &SearchQuery,
    ) -> Self {
        Self {
            store: Arc::clone(store),
            directory: directory.clone(),
            query: query.clone(),
            next: AtomicUsize::new(0),
            end: AtomicUsize::new(paths.len()),
            tally: Mutex::new(MatchTally::new(paths.len(), query.caps.matches_max)),
            long: Mutex::default(),
            paths,
        }
    }

    async fn work(&self) {
        let pattern = SearchPattern::clone(&self.query.pattern);
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            let is_wanted = || index < self.end.load(Ordering::Relaxed);
            let Some(path) = self.paths.get(index).filter(|_| is_wanted()) else { return };
            let found =
                file::search(&*self.store, path, &pattern, self.query.caps, is_wanted).await;
            match found {
                Ok(Some(matches)) => {
                    let mut tally = self.tally.lock();
                    self.end.fetch_min(tally.add(index, matches), Ordering::Relaxed);
                }
                Ok(None) => {}
                Err(LongLine { bytes_max }) => {
                    let mut long = self.long.lock();
                    long.push((index, bytes_max));
                }
            }
        }
    }

    /// Takes the results. All workers must be done.
    fn take_results(&self) -> SearchResults {
        let mut tally = self.tally.lock();
        let mut results =
            std::mem::replace(&mut *tally, MatchTally::new(0, 0)).into_results(&self.paths);
        drop(tally);
        let mut long = self.long.lock();
        long.sort_unstable();
        for (index, bytes_max) in long.drain(..) {
            if let Some(path) = self.paths.get(index) {
                results.not_shown.add(|| long_file(&self.directory, path, bytes_max));
            }
        }
        results
    }
}

/// Stops the workers when the search is dropped.
struct StopOnDrop<'j>(&'j Job);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.end.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, WriteMode};

    #[tokio::test]
    async fn workers_stop_when_the_search_is_given_up() {
        let store = MemoryStore::default();
        let paths: Vec<_> = ["a", "b", "c"].map(|name| StorePath::file(name).unwrap()).into();
        for path in &paths {
            store.write(path, b"match".to_vec(), WriteMode::Create).await.unwrap();
        }
        let query = SearchQuery::new("match", true).unwrap();
        let store = Arc::new(store) as Arc<dyn FileStore>;
        let job = Job::new(&store, &StorePath::ROOT, paths, &query);
        drop(StopOnDrop(&job));
        job.work().await;
        assert_eq!(job.take_results(), SearchResults::default());
        assert!(job.next.load(Ordering::Relaxed) <= 1);
    }
}
