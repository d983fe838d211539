//! Files of one call and of its inner calls (`FILE-21`, `FILE-23`).
//!
//! A call sees each store through an overlay, its *layer*. An inner call has its own layers over
//! those of the outer call: it sees the outer call's changes. Its own changes become the outer
//! call's if it succeeds, and are dropped if it fails. Only the outermost call commits to the
//! stores: all of them prepare their changes before the first one changes ([`commit`]).
//!
//! The permissions of a call are those of its own grant: a call that may only read can call a tool
//! that may write.

mod commit;
mod record;

use std::sync::Arc;

use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::record::FileChange;
use cofferdam_tool::{ErrorType, FileAccess, ToolError};

use crate::blocking::to_completion;
use crate::{
    Budget, CreateOnly, FileError, FileStore, Overlay, StorePath, StoreRecorder, StoreRecordings,
    Subtree,
};

use commit::StoreChanges;
use parking_lot::Mutex;
pub use record::{SharedStore, TransactionRecord};

/// The layers of one call. Clones share state.
#[derive(Clone)]
pub struct Transaction {
    inner: Arc<TransactionState>,
}

struct TransactionState {
    outer: Option<Transaction>,
    budget: Budget,
    layers: Mutex<Vec<OverlayLayer>>,
    /// Recordings of what the call reads from its stores, if it is recorded.
    recordings: Option<Arc<StoreRecordings>>,
}

struct OverlayLayer {
    /// Store under the layer; `None` for a layer that inner calls do not share.
    store: Option<Arc<dyn FileStore>>,
    /// True if it lies over a part of another layer of the call, which receives and reports its
    /// changes.
    is_part: bool,
    name: String,
    overlay: Overlay,
}

/// Error for a store whose changes could not be committed.
#[derive(Debug, thiserror::Error)]
#[error("the changes in `{name}` could not be committed: {source}")]
pub struct CommitError {
    /// Name of the store in the call.
    pub name: String,
    /// Cause of the failure.
    pub source: FileError,
    /// Changes of other stores that had been made before and stay. Empty unless the store failed
    /// after it had prepared its changes.
    pub committed: Vec<FileChange>,
}

impl CommitError {
    fn new(name: String, source: FileError) -> Self {
        Self { name, source, committed: Vec::new() }
    }
}

/// A commit fails because of changes by others, or because the host could not make it. If other
/// stores have changed, the error is not transient: a retry would change them again.
impl From<CommitError> for ToolError {
    fn from(error: CommitError) -> Self {
        let error_type = match error.source {
            FileError::Conflict { .. }
            | FileError::Busy
            | FileError::Quota(_)
            | FileError::Link => ErrorType::Conflict,
            _ => ErrorType::PluginUnavailable,
        };
        let path = match &error.source {
            FileError::Conflict { path } => format!(" (at `{path}`)"),
            _ => String::new(),
        };
        let service =
            error.source.for_operator().map(|text| format!(" ({text})")).unwrap_or_default();
        if error.committed.is_empty() {
            return Self::new(error_type).with_detail(format!("{error}{path}{service}"));
        }
        let remains = "the changes of the call in other stores had already been made";
        Self::new(error_type)
            .with_detail(format!("{error}{path}{service}; {remains}"))
            .without_retry()
    }
}

impl Transaction {
    /// Creates the transaction of a call whose changes, in all stores together, may use `budget`.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self::over(None, budget, None)
    }

    /// Creates the transaction of a call inside `outer`, if there is one. What it reads from its
    /// stores, or from the outer call's view of them, is added to `recordings`.
    #[must_use]
    pub fn over(
        outer: Option<&Self>,
        budget: Budget,
        recordings: Option<Arc<StoreRecordings>>,
    ) -> Self {
        let (outer, layers) = (outer.cloned(), Mutex::default());
        Self { inner: Arc::new(TransactionState { outer, budget, layers, recordings }) }
    }

    /// Returns the call's view of `store`, named `name`, with the permissions of `access`.
    pub fn view(&self, name: &str, store: &Arc<dyn FileStore>, access: FileAccess) -> Overlay {
        match access {
            FileAccess::ReadWrite => self.layer(name, store),
            FileAccess::ReadOnly => self.layer(name, store).read_only(),
            FileAccess::CreateOnly => {
                // No other call may read the created files, so inner calls do not share this layer.
                let guarded = Arc::new(CreateOnly::new(self.below(name, store)));
                self.add(None, false, name, Overlay::new(guarded, &self.inner.budget))
            }
        }
    }

    /// Like [`view`](Self::view), for the directory `root` of `store`, presented as the whole
    /// store.
    pub fn view_below(
        &self,
        name: &str,
        store: &Arc<dyn FileStore>,
        root: StorePath,
        access: FileAccess,
    ) -> Overlay {
        let part: Arc<dyn FileStore> =
            Arc::new(Subtree::new(Arc::new(self.layer(name, store)), root));
        let part =
            if access == FileAccess::CreateOnly { Arc::new(CreateOnly::new(part)) } else { part };
        let overlay = self.add(None, true, name, Overlay::new(part, &self.inner.budget));
        if access == FileAccess::ReadOnly { overlay.read_only() } else { overlay }
    }

    fn layer(&self, name: &str, store: &Arc<dyn FileStore>) -> Overlay {
        let is_same =
            |other: &Arc<dyn FileStore>| std::ptr::addr_eq(Arc::as_ptr(other), Arc::as_ptr(store));
        // Held until the layer is added: inner calls that run at the same time share one layer. The
        // layers of the outer call, which `below` looks up, have another lock.
        let mut layers = self.inner.layers.lock();
        let known = layers.iter().find(|layer| layer.store.as_ref().is_some_and(is_same));
        if let Some(known) = known {
            return known.overlay.clone();
        }
        let overlay = Overlay::new(self.below(name, store), &self.inner.budget);
        layers.push(OverlayLayer {
            store: Some(Arc::clone(store)),
            is_part: false,
            name: name.to_owned(),
            overlay: overlay.clone(),
        });
        overlay
    }

    /// Returns the store under the layer over `store`: the outer call's layer, if there is one.
    fn below(&self, name: &str, store: &Arc<dyn FileStore>) -> Arc<dyn FileStore> {
        let below: Arc<dyn FileStore> = match &self.inner.outer {
            Some(outer) => Arc::new(outer.layer(name, store)),
            None => Arc::clone(store),
        };
        match &self.inner.recordings {
            Some(recordings) => Arc::new(StoreRecorder::new(name, below, Arc::clone(recordings))),
            None => below,
        }
    }

    fn add(
        &self,
        store: Option<Arc<dyn FileStore>>,
        is_part: bool,
        name: &str,
        overlay: Overlay,
    ) -> Overlay {
        let layer =
            OverlayLayer { store, is_part, name: name.to_owned(), overlay: overlay.clone() };
        self.inner.layers.lock().push(layer);
        overlay
    }

    /// Returns the store in which a change of this call was refused because another call had
    /// committed first. Such a call ends as a conflict (`FILE-23`), however the guest handled the
    /// refusal. An inner call's conflicts are its own.
    pub async fn conflict(&self) -> Option<CommitError> {
        let overlays: Vec<_> = {
            let layers = self.inner.layers.lock();
            layers.iter().map(|layer| (layer.name.clone(), layer.overlay.clone())).collect()
        };
        for (name, overlay) in overlays {
            if let Some(path) = overlay.conflict().await {
                return Some(CommitError::new(name, FileError::Conflict { path }));
            }
        }
        None
    }

    /// Ends a call that has succeeded: its changes are made in the stores or become the outer
    /// call's, and are returned. For the outermost call, `effects` decides whether they are made at
    /// all.
    ///
    /// # Errors
    /// The [`conflict`](Self::conflict) of the call, if there is one, or the error of the first
    /// store that refuses its changes. If other stores have been changed before, it lists their
    /// changes.
    pub async fn finish(&self, effects: FileEffects) -> Result<Vec<FileChange>, CommitError> {
        if let Some(conflict) = self.conflict().await {
            return Err(conflict);
        }
        let layers = std::mem::take(&mut *self.inner.layers.lock());
        if layers.is_empty() {
            return Ok(Vec::new());
        }
        let effects = if self.inner.outer.is_some() { FileEffects::default() } else { effects };
        let (parts, layers): (Vec<_>, Vec<_>) = layers.into_iter().partition(|layer| layer.is_part);
        // Changes other layers of this call only, which are dropped if this fails.
        for OverlayLayer { name, overlay, .. } in parts {
            if let Err(source) = overlay.commit_changes().await {
                return Err(CommitError::new(name, source));
            }
        }
        if effects.is_dry_run {
            return Ok(dry_run(&layers, effects).await);
        }
        let mut changes = Vec::new();
        for (number, OverlayLayer { name, overlay, .. }) in layers.into_iter().enumerate() {
            changes.push(StoreChanges::take(number, name, &overlay, effects).await?);
        }
        let prepared = commit::prepare(changes).await?;
        if self.inner.outer.is_some() || prepared.is_empty() {
            return prepared.commit().await;
        }
        // Not interrupted between two stores if the caller stops waiting.
        to_completion(prepared.commit()).await.unwrap_or_else(|| {
            let interrupted = std::io::Error::other("the commit was interrupted");
            Err(CommitError::new("files".to_owned(), interrupted.into()))
        })
    }
}

/// Returns the changes that the layers would commit.
async fn dry_run(layers: &[OverlayLayer], effects: FileEffects) -> Vec<FileChange> {
    let mut changes = Vec::new();
    for OverlayLayer { name, overlay, .. } in layers {
        changes.extend(commit::report(name, overlay, effects).await);
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, OpenMode, Quota, StoreSharing, WriteMode};

    fn store() -> Arc<dyn FileStore> {
        Arc::new(MemoryStore::new(Quota::default()))
    }

    fn path(text: &str) -> StorePath {
        StorePath::file(text).unwrap()
    }

    fn budget() -> Budget {
        Budget::new(1 << 20)
    }

    async fn put(store: &dyn FileStore, name: &str, content: &str) {
        store.write(&path(name), content.into(), WriteMode::Replace).await.unwrap();
    }

    async fn get(store: &dyn FileStore, name: &str) -> Option<String> {
        let content = store.read(&path(name), 99).await.ok()?;
        Some(String::from_utf8(content).unwrap())
    }

    #[tokio::test]
    async fn an_inner_call_works_on_what_the_outer_one_has_changed() {
        let store = store();
        put(&*store, "a", "old").await;
        let outer = Transaction::new(budget());
        let reading = outer.view("data", &store, FileAccess::ReadOnly);
        assert!(matches!(
            reading.write(&path("a"), Vec::new(), WriteMode::Replace).await,
            Err(FileError::ReadOnly)
        ));
        // The inner call may write what the outer one may only read.
        let inner = Transaction::over(Some(&outer), budget(), None);
        put(&inner.view("same", &store, FileAccess::ReadWrite), "a", "inner").await;
        assert_eq!(inner.finish(FileEffects::default()).await.unwrap().len(), 1);
        assert_eq!(get(&reading, "a").await.unwrap(), "inner");
        assert_eq!(get(&*store, "a").await.unwrap(), "old");
        let changes = outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!((changes.len(), changes[0].mount.as_str()), (1, "data"));
        assert_eq!(get(&*store, "a").await.unwrap(), "inner");
    }

    #[tokio::test]
    async fn a_store_that_only_an_inner_call_knows_is_committed_with_the_outer_one() {
        let (known, unknown) = (store(), store());
        let outer = Transaction::new(budget());
        put(&outer.view("known", &known, FileAccess::ReadWrite), "a", "1").await;
        let inner = Transaction::over(Some(&outer), budget(), None);
        let deeper = Transaction::over(Some(&inner), budget(), None);
        put(&deeper.view("unknown", &unknown, FileAccess::ReadWrite), "b", "2").await;
        deeper.finish(FileEffects::default()).await.unwrap();
        inner.finish(FileEffects::default()).await.unwrap();
        assert_eq!(get(&*unknown, "b").await, None);
        outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!(
            (get(&*known, "a").await, get(&*unknown, "b").await),
            (Some("1".into()), Some("2".into()))
        );
    }

    #[tokio::test]
    async fn an_inner_call_that_fails_takes_nothing_but_its_own_changes_with_it() {
        let store = store();
        let outer = Transaction::new(budget());
        let mine = outer.view("data", &store, FileAccess::ReadWrite);
        put(&mine, "a", "outer").await;
        let inner = Transaction::over(Some(&outer), budget(), None);
        put(&inner.view("data", &store, FileAccess::ReadWrite), "a", "inner").await;
        drop(inner);
        assert_eq!(get(&mine, "a").await.unwrap(), "outer");
        outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!(get(&*store, "a").await.unwrap(), "outer");
    }

    #[tokio::test]
    async fn inner_calls_that_run_at_once_share_the_layer_of_the_outer_call() {
        for _ in 0..200 {
            let (store, outer) = (store(), Transaction::new(budget()));
            let barrier = std::sync::Barrier::new(4);
            let inner: Vec<_> = std::thread::scope(|scope| {
                let enter = || {
                    barrier.wait();
                    let inner = Transaction::over(Some(&outer), budget(), None);
                    let view = inner.view("data", &store, FileAccess::ReadWrite);
                    (inner, view)
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(enter)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            for (number, (inner, view)) in inner.iter().enumerate() {
                put(view, &format!("f{number}"), "1").await;
                inner.finish(FileEffects::default()).await.unwrap();
            }
            assert_eq!(outer.inner.layers.lock().len(), 1);
            assert_eq!(outer.finish(FileEffects::default()).await.unwrap().len(), 4);
        }
    }

    #[tokio::test]
    async fn of_inner_calls_that_change_one_file_the_last_to_end_is_a_conflict() {
        let (store, outer) = (store(), Transaction::new(budget()));
        let mine = outer.view("data", &store, FileAccess::ReadWrite);
        let [first, second] = [(); 2].map(|()| Transaction::over(Some(&outer), budget(), None));
        for (inner, content) in [(&first, "first"), (&second, "second")] {
            put(&inner.view("data", &store, FileAccess::ReadWrite), "a", content).await;
        }
        first.finish(FileEffects::default()).await.unwrap();
        let conflict = second.finish(FileEffects::default()).await.unwrap_err();
        assert_eq!(ToolError::from(conflict).error_type(), Some(ErrorType::Conflict));
        assert_eq!(get(&mine, "a").await.as_deref(), Some("first"));
        // The conflict is that of the inner call.
        outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!(get(&*store, "a").await.as_deref(), Some("first"));
    }

    #[tokio::test]
    async fn one_store_under_two_names_is_one_store() {
        let store = store();
        let call = Transaction::new(budget());
        put(&call.view("one", &store, FileAccess::ReadWrite), "a", "1").await;
        assert_eq!(get(&call.view("two", &store, FileAccess::ReadOnly), "a").await.unwrap(), "1");
        assert_eq!(call.finish(FileEffects::default()).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_session_has_a_directory_of_its_own_and_its_calls_share_it() {
        let store = store();
        put(&*store, "shared", "x").await;
        for session in ["one", "../two", ""] {
            let root = || StoreSharing::PerSession.directory(Some(session)).unwrap();
            let outer = Transaction::new(budget());
            let mine = outer.view_below("data", &store, root(), FileAccess::ReadWrite);
            assert_eq!(get(&mine, "shared").await, None, "{session}");
            put(&mine, "a", "outer").await;
            outer.finish(FileEffects::default()).await.unwrap();
            let outer = Transaction::new(budget());
            let reading = outer.view_below("data", &store, root(), FileAccess::ReadOnly);
            assert!(reading.delete(&path("a")).await.is_err());
            let inner = Transaction::over(Some(&outer), budget(), None);
            put(&inner.view_below("data", &store, root(), FileAccess::ReadWrite), "b", session)
                .await;
            inner.finish(FileEffects::default()).await.unwrap();
            assert_eq!(get(&reading, "b").await.as_deref(), Some(session));
            let changes = outer.finish(FileEffects::default()).await.unwrap();
            assert_eq!(changes.len(), 1);
            assert!(changes[0].path.ends_with("/b"), "{}", changes[0].path);
        }
        assert_eq!(get(&*store, "one/b").await.as_deref(), Some("one"));
        assert_eq!(get(&*store, "default/a").await.as_deref(), Some("outer"));
    }

    const WRITE: OpenMode =
        OpenMode { writes: true, creates: true, is_exclusive: false, truncates: false };

    /// Reads the file `log` of `store` in `call`, commits a longer one in another call, and checks
    /// that the append is refused.
    async fn lose_the_race(call: &Transaction, store: &Arc<dyn FileStore>) {
        let view = call.view("logs", store, FileAccess::ReadWrite);
        let file = view.open(&path("log"), WRITE).await.unwrap();
        put(&**store, "log", "a line of another call").await;
        assert!(matches!(file.append(b"mine").await, Err(FileError::Conflict { .. })));
    }

    #[tokio::test]
    async fn a_refused_write_decides_about_the_whole_call() {
        let (logs, others) = (store(), store());
        put(&*logs, "log", "").await;
        let call = Transaction::new(budget());
        put(&call.view("others", &others, FileAccess::ReadWrite), "a", "1").await;
        assert!(call.conflict().await.is_none());
        lose_the_race(&call, &logs).await;
        // The guest ignores the error and continues.
        put(&call.view("logs", &logs, FileAccess::ReadWrite), "b", "2").await;
        let conflict = call.finish(FileEffects::default()).await.unwrap_err();
        assert_eq!(conflict.name, "logs");
        assert!(matches!(&conflict.source, FileError::Conflict { path } if path.as_str() == "log"));
        assert_eq!(ToolError::from(conflict).error_type(), Some(ErrorType::Conflict));
        assert_eq!((get(&*others, "a").await, get(&*logs, "b").await), (None, None));
    }

    #[tokio::test]
    async fn a_conflict_of_a_session_or_of_an_inner_call_is_found() {
        let store = store();
        put(&*store, "s/log", "").await;
        let call = Transaction::new(budget());
        let root = StoreSharing::PerSession.directory(Some("s")).unwrap();
        let view = call.view_below("data", &store, root, FileAccess::ReadWrite);
        let file = view.open(&path("log"), WRITE).await.unwrap();
        put(&*store, "s/log", "a line of another call").await;
        assert!(file.append(b"mine").await.is_err());
        assert!(call.conflict().await.is_some());

        put(&*store, "log", "").await;
        let outer = Transaction::new(budget());
        put(&outer.view("data", &store, FileAccess::ReadWrite), "own", "1").await;
        let inner = Transaction::over(Some(&outer), budget(), None);
        lose_the_race(&inner, &store).await;
        assert!(inner.finish(FileEffects::default()).await.is_err());
        // No change of the outer call was refused, so it may still commit.
        outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!(get(&*store, "own").await.as_deref(), Some("1"));
    }

    #[tokio::test]
    async fn create_only_stays_create_only_for_inner_calls() {
        let store = store();
        put(&*store, "a", "secret").await;
        let outer = Transaction::new(budget());
        let creating = outer.view("data", &store, FileAccess::CreateOnly);
        put(&creating, "new", "1").await;
        let inner = Transaction::over(Some(&outer), budget(), None);
        let view = inner.view("data", &store, FileAccess::CreateOnly);
        assert!(matches!(view.read(&path("a"), 99).await, Err(FileError::CreateOnly)));
        put(&view, "other", "2").await;
        inner.finish(FileEffects::default()).await.unwrap();
        outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!(
            (get(&*store, "new").await, get(&*store, "other").await),
            (Some("1".into()), Some("2".into()))
        );
    }
}
