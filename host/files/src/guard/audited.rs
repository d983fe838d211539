//! A store that reports its operations to an observer.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;

use crate::changes::{NewContent, RemovedPath};
use crate::{
    Changes, FileError, FileLocation, FileStore, Listing, MadeDirectory, NameRules, PreparedCommit,
    Room, Scope, Stat, StorePath, WriteMode,
};

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AccessKind {
    /// [`FileStore::stat`] or [`FileStore::probe`].
    Stat,
    /// [`FileStore::read`] or [`FileStore::read_range`].
    Read,
    /// [`FileStore::list`].
    List,
    /// A file was written.
    Write,
    /// A file was deleted.
    Delete,
    /// A directory was created.
    CreateDirectory,
    /// A directory was removed.
    RemoveDirectory,
    /// A file or a directory was moved to another path.
    Rename,
}

/// Outcome of an operation.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum AccessOutcome<'a> {
    /// The operation succeeded.
    Done,
    /// The operation failed. The system's message is in the `source` of the error, for logs only.
    Failed(&'a FileError),
    /// The caller stopped waiting before the end. A change may have been made anyway.
    Abandoned,
}

/// One operation on a store, or one change of a commit.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct Access<'a> {
    /// Kind of the operation.
    pub kind: AccessKind,
    /// Path that it applies to.
    pub path: &'a StorePath,
    /// New path of a renamed file or directory.
    pub to: Option<&'a StorePath>,
    /// Length of the content that was read or was to be written, in bytes.
    pub bytes: u64,
    /// True if it is part of a commit. All parts of a commit have the same outcome.
    pub is_committed: bool,
    /// Outcome of the operation.
    pub outcome: AccessOutcome<'a>,
}

impl Access<'_> {
    /// Returns whether the operation succeeded.
    #[must_use]
    pub fn is_done(&self) -> bool {
        matches!(self.outcome, AccessOutcome::Done)
    }
}

type Observer = Arc<dyn Fn(&Access<'_>) + Send + Sync>;

/// A store that reports every operation, including reads, to an observer once it is over. For a
/// commit it reports every change. It does not affect what the store does.
///
/// The observer is called on the thread that polls the operation, so it must not block.
#[derive(Clone)]
pub struct AuditedStore {
    store: Arc<dyn FileStore>,
    observer: Observer,
}

/// Operation in progress. Dropping it before its end reports it as abandoned.
struct PendingOperation<'a> {
    observer: &'a Observer,
    steps: Vec<AuditedStep>,
    is_committed: bool,
    is_reported: bool,
}

struct AuditedStep {
    kind: AccessKind,
    path: StorePath,
    to: Option<StorePath>,
    bytes: u64,
}

impl AuditedStore {
    /// Wraps `store` and reports its operations to `observer`.
    pub fn new(
        store: Arc<dyn FileStore>,
        observer: impl Fn(&Access<'_>) + Send + Sync + 'static,
    ) -> Self {
        Self { store, observer: Arc::new(observer) }
    }

    fn begin(&self, kind: AccessKind, path: &StorePath, bytes: u64) -> PendingOperation<'_> {
        let steps = vec![AuditedStep { kind, path: path.clone(), to: None, bytes }];
        PendingOperation {
            observer: &self.observer,
            steps,
            is_committed: false,
            is_reported: false,
        }
    }
}

impl<'a> PendingOperation<'a> {
    fn of_commit(observer: &'a Observer, steps: Vec<AuditedStep>) -> Self {
        Self { observer, steps, is_committed: true, is_reported: false }
    }

    fn end<T>(mut self, result: Result<T, FileError>) -> Result<T, FileError> {
        self.tell(result.as_ref().map_or_else(AccessOutcome::Failed, |_| AccessOutcome::Done));
        result
    }

    /// Ends a read, whose length is known only now.
    fn end_read(mut self, result: Result<Vec<u8>, FileError>) -> Result<Vec<u8>, FileError> {
        let bytes = result.as_ref().map_or(0, |content| length(content));
        self.steps.iter_mut().for_each(|step| step.bytes = bytes);
        self.end(result)
    }

    fn tell(&mut self, outcome: AccessOutcome<'_>) {
        self.is_reported = true;
        for AuditedStep { kind, path, to, bytes } in &self.steps {
            (self.observer)(&Access {
                kind: *kind,
                path,
                to: to.as_ref(),
                bytes: *bytes,
                is_committed: self.is_committed,
                outcome,
            });
        }
    }
}

impl Drop for PendingOperation<'_> {
    fn drop(&mut self) {
        if !self.is_reported {
            self.tell(AccessOutcome::Abandoned);
        }
    }
}

#[async_trait]
impl FileStore for AuditedStore {
    fn is_read_only(&self) -> bool {
        self.store.is_read_only()
    }

    fn names(&self) -> NameRules {
        self.store.names()
    }

    fn root_ambient(&self) -> Option<&Path> {
        self.store.root_ambient()
    }

    fn locate(&self, path: &StorePath) -> FileLocation {
        self.store.locate(path)
    }

    async fn stat(&self, path: &StorePath) -> Result<Stat, FileError> {
        let pending = self.begin(AccessKind::Stat, path, 0);
        pending.end(self.store.stat(path).await)
    }

    async fn probe(&self, path: &StorePath) -> Result<Option<Stat>, FileError> {
        let pending = self.begin(AccessKind::Stat, path, 0);
        pending.end(self.store.probe(path).await)
    }

    async fn read(&self, path: &StorePath, bytes_max: u64) -> Result<Vec<u8>, FileError> {
        let pending = self.begin(AccessKind::Read, path, 0);
        pending.end_read(self.store.read(path, bytes_max).await)
    }

    async fn read_range(
        &self,
        path: &StorePath,
        offset: u64,
        length: u64,
    ) -> Result<Vec<u8>, FileError> {
        let pending = self.begin(AccessKind::Read, path, 0);
        pending.end_read(self.store.read_range(path, offset, length).await)
    }

    async fn write(
        &self,
        path: &StorePath,
        content: Vec<u8>,
        mode: WriteMode,
    ) -> Result<(), FileError> {
        let pending = self.begin(AccessKind::Write, path, length(&content));
        pending.end(self.store.write(path, content, mode).await)
    }

    async fn delete(&self, path: &StorePath) -> Result<(), FileError> {
        let pending = self.begin(AccessKind::Delete, path, 0);
        pending.end(self.store.delete(path).await)
    }

    async fn list(&self, directory: &StorePath, scope: Scope) -> Result<Listing, FileError> {
        let pending = self.begin(AccessKind::List, directory, 0);
        pending.end(self.store.list(directory, scope).await)
    }

    async fn create_directory(&self, path: &StorePath) -> Result<MadeDirectory, FileError> {
        let pending = self.begin(AccessKind::CreateDirectory, path, 0);
        pending.end(self.store.create_directory(path).await)
    }

    async fn remove_directory(&self, path: &StorePath) -> Result<(), FileError> {
        let pending = self.begin(AccessKind::RemoveDirectory, path, 0);
        pending.end(self.store.remove_directory(path).await)
    }

    async fn rename(&self, from: &StorePath, to: &StorePath) -> Result<(), FileError> {
        let mut pending = self.begin(AccessKind::Rename, from, 0);
        pending.steps.iter_mut().for_each(|step| step.to = Some(to.clone()));
        pending.end(self.store.rename(from, to).await)
    }

    async fn room(&self) -> Result<Room, FileError> {
        self.store.room().await
    }

    async fn prepare(&self, changes: Changes) -> Result<Box<dyn PreparedCommit>, FileError> {
        let steps = changes.steps();
        match self.store.prepare(changes).await {
            Ok(prepared) => Ok(Box::new(AuditedCommit {
                observer: Arc::clone(&self.observer),
                steps,
                prepared,
            })),
            Err(error) => PendingOperation::of_commit(&self.observer, steps).end(Err(error)),
        }
    }
}

/// A prepared commit, which is not reported if it is dropped.
struct AuditedCommit {
    observer: Observer,
    steps: Vec<AuditedStep>,
    prepared: Box<dyn PreparedCommit>,
}

#[async_trait]
impl PreparedCommit for AuditedCommit {
    fn is_remote(&self) -> bool {
        self.prepared.is_remote()
    }

    async fn commit(self: Box<Self>) -> Result<(), FileError> {
        let Self { observer, steps, prepared } = *self;
        let pending = PendingOperation::of_commit(&observer, steps);
        pending.end(prepared.commit().await)
    }
}

impl Changes {
    /// Lists the changes one by one.
    fn steps(&self) -> Vec<AuditedStep> {
        let step = |kind, path: &StorePath, bytes| AuditedStep {
            kind,
            path: path.clone(),
            to: None,
            bytes,
        };
        let vacated = self.vacated.iter().filter_map(|change| match change {
            RemovedPath::File(path) => Some(step(AccessKind::Delete, path, 0)),
            RemovedPath::Directory(path) => Some(step(AccessKind::RemoveDirectory, path, 0)),
            // The move is reported with its destination.
            RemovedPath::Staged { .. } => None,
        });
        let origin = |from: &StorePath| {
            let staged = self.vacated.iter().find_map(|change| match change {
                RemovedPath::Staged { from: origin, stage } if stage == from => {
                    Some(origin.clone())
                }
                _ => None,
            });
            staged.unwrap_or_else(|| from.clone())
        };
        let filled = self.filled.iter().map(|(path, filled)| match filled {
            NewContent::Directory => step(AccessKind::CreateDirectory, path, 0),
            NewContent::File { content, .. } => step(AccessKind::Write, path, content.bytes()),
            NewContent::Moved { from } => AuditedStep {
                kind: AccessKind::Rename,
                path: origin(from),
                to: Some(path.clone()),
                bytes: 0,
            },
        });
        vacated.chain(filled).collect()
    }
}

fn length(content: &[u8]) -> u64 {
    u64::try_from(content.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::{Budget, MemoryStore, Overlay, Quota, testing};

    fn path(text: &str) -> StorePath {
        StorePath::directory(text).unwrap()
    }

    fn unheard(quota: &Quota) -> Arc<dyn FileStore> {
        Arc::new(AuditedStore::new(Arc::new(MemoryStore::new(*quota)), |_| {}))
    }

    #[tokio::test]
    async fn keeps_the_contract_of_file_stores() {
        testing::run(unheard).await.unwrap();
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_model(plan in testing::plan()) {
            testing::check_plan(unheard, &plan)?;
        }

        #[test]
        fn takes_over_what_calls_have_changed(plan in testing::plan()) {
            testing::check_commits(unheard, &plan)?;
        }
    }

    fn show(access: &Access<'_>) -> String {
        let Access { kind, path, to, bytes, is_committed, outcome } = access;
        let to = to.map(|to| format!(" to {to}")).unwrap_or_default();
        let commit = if *is_committed { "commit: " } else { "" };
        let outcome = match outcome {
            AccessOutcome::Done => "done".to_owned(),
            AccessOutcome::Failed(error) => error.to_string(),
            AccessOutcome::Abandoned => "abandoned".to_owned(),
        };
        format!("{commit}{kind:?} {path}{to} {bytes}: {outcome}")
    }

    fn heard() -> (Arc<dyn FileStore>, Arc<Mutex<Vec<String>>>) {
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        let store =
            AuditedStore::new(Arc::new(MemoryStore::new(Quota::default())), move |access| {
                lines.lock().unwrap().push(show(access));
            });
        (Arc::new(store), log)
    }

    #[tokio::test]
    async fn every_operation_is_reported_with_its_end() {
        let (store, log) = heard();
        store.write(&path("d/a"), b"12345".to_vec(), WriteMode::Create).await.unwrap();
        store.read(&path("d/a"), 9).await.unwrap();
        store.read_range(&path("d/a"), 1, 2).await.unwrap();
        assert!(store.read(&path("d/a"), 1).await.is_err());
        store.rename(&path("d/a"), &path("b")).await.unwrap();
        store.list(&path("d"), Scope::Children).await.unwrap();
        assert!(store.delete(&path("x")).await.is_err());
        drop(store.read(&path("b"), 9));
        let expected = [
            "Write d/a 5: done",
            "Read d/a 5: done",
            "Read d/a 2: done",
            "Read d/a 0: it is 5 bytes long; one read returns at most 1 bytes.",
            "Rename d/a to b 0: done",
            "List d 0: done",
            "Delete x 0: not found",
        ];
        assert_eq!(*log.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn every_change_of_a_commit_is_reported() {
        let (store, log) = heard();
        for name in ["a", "b", "c"] {
            store.write(&path(name), Vec::new(), WriteMode::Create).await.unwrap();
        }
        let call = Overlay::new(Arc::clone(&store), &Budget::new(u64::MAX));
        for (from, to) in [("a", "t"), ("b", "a"), ("t", "b")] {
            call.rename(&path(from), &path(to)).await.unwrap();
        }
        call.delete(&path("c")).await.unwrap();
        call.write(&path("d/x"), b"123".to_vec(), WriteMode::Create).await.unwrap();
        log.lock().unwrap().clear();
        call.commit_changes().await.unwrap();
        let expected = [
            "commit: Delete c 0: done",
            "commit: Rename b to a 0: done",
            "commit: Rename a to b 0: done",
            "commit: CreateDirectory d 0: done",
            "commit: Write d/x 3: done",
        ];
        assert_eq!(*log.lock().unwrap(), expected);
    }

    #[tokio::test]
    async fn an_abandoned_operation_is_reported() {
        let log = Arc::new(Mutex::new(Vec::new()));
        let lines = Arc::clone(&log);
        let below = Arc::new(crate::object::BucketStore::in_memory(Quota::default()));
        let store =
            AuditedStore::new(below, move |access| lines.lock().unwrap().push(show(access)));
        let name = path("a");
        let mut write = store.write(&name, Vec::new(), WriteMode::Create);
        // It waits for the task that makes the change.
        assert!(futures_util::poll!(&mut write).is_pending());
        drop(write);
        assert_eq!(*log.lock().unwrap(), ["Write a 0: abandoned"]);
    }
}
