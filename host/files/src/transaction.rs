//! The files of one call and of the calls that it makes (`FILE-21`, `FILE-23`).
//!
//! A call sees each store through an overlay, its *layer*. A call that another one makes has layers
//! of its own over those of the outer call: it sees what the outer call has changed, its own
//! changes become the outer call's when it succeeds, and are gone when it does not. Only the
//! outermost call commits to the stores, so that all of it becomes visible together or not at all.
//!
//! What a call may do with a store is up to its own grant: a call that may only read can call a
//! tool that may write.

use std::sync::{Arc, Mutex, PoisonError};

use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::record::FileChange;
use cofferdam_tool::{ErrorType, FileAccess, ToolError};

use crate::{Budget, CreateOnly, FileError, FileStore, Overlay, StorePath, Subtree, finish};

/// The layers of one call. Clones are the same.
#[derive(Clone)]
pub struct Transaction {
    inner: Arc<Inner>,
}

struct Inner {
    outer: Option<Transaction>,
    budget: Budget,
    layers: Mutex<Vec<Layer>>,
}

struct Layer {
    /// Which store it lies over; `None` for a layer that inner calls do not share.
    store: Option<Arc<dyn FileStore>>,
    /// Whether it lies over a part of another layer of the call, which takes its changes and tells
    /// them.
    is_part: bool,
    name: String,
    overlay: Overlay,
}

/// A store whose changes could not be committed.
#[derive(Debug, thiserror::Error)]
#[error("the changes in `{name}` could not be committed: {source}")]
pub struct CommitError {
    /// What the call knows the store as.
    pub name: String,
    /// Why.
    pub source: FileError,
}

/// A commit fails over what others did meanwhile, or because the host could not do it.
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
        Self::new(error_type).with_detail(format!("{error}{path}{service}"))
    }
}

impl Transaction {
    /// The files of a call whose changes, all stores together, may take what `budget` has.
    #[must_use]
    pub fn new(budget: Budget) -> Self {
        Self { inner: Arc::new(Inner { outer: None, budget, layers: Mutex::default() }) }
    }

    /// The files of a call that is made by the one whose files are `self`.
    #[must_use]
    pub fn inner(&self, budget: Budget) -> Self {
        Self {
            inner: Arc::new(Inner { outer: Some(self.clone()), budget, layers: Mutex::default() }),
        }
    }

    /// What the call may see and do of `store`, which it knows as `name`.
    pub fn view(&self, name: &str, store: &Arc<dyn FileStore>, access: FileAccess) -> Overlay {
        match access {
            FileAccess::ReadWrite => self.layer(name, store),
            FileAccess::ReadOnly => self.layer(name, store).read_only(),
            FileAccess::CreateOnly => {
                // What it takes is nobody else's to read, so inner calls have no part in it.
                let guarded = Arc::new(CreateOnly::new(self.below(name, store)));
                self.add(None, false, name, Overlay::new(guarded, &self.inner.budget))
            }
        }
    }

    /// The same of the directory `root` of `store`, which is seen as the whole store.
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
        let known = {
            let layers = self.inner.layers.lock().unwrap_or_else(PoisonError::into_inner);
            let known = layers.iter().find(|layer| layer.store.as_ref().is_some_and(is_same));
            known.map(|layer| layer.overlay.clone())
        };
        // A call has its views made one after another, so nobody adds the same layer in between.
        known.unwrap_or_else(|| {
            let overlay = Overlay::new(self.below(name, store), &self.inner.budget);
            self.add(Some(Arc::clone(store)), false, name, overlay)
        })
    }

    /// What the layer over `store` lies on: the outer call's, if there is one.
    fn below(&self, name: &str, store: &Arc<dyn FileStore>) -> Arc<dyn FileStore> {
        match &self.inner.outer {
            Some(outer) => Arc::new(outer.layer(name, store)),
            None => Arc::clone(store),
        }
    }

    fn add(
        &self,
        store: Option<Arc<dyn FileStore>>,
        is_part: bool,
        name: &str,
        overlay: Overlay,
    ) -> Overlay {
        let layer = Layer { store, is_part, name: name.to_owned(), overlay: overlay.clone() };
        self.inner.layers.lock().unwrap_or_else(PoisonError::into_inner).push(layer);
        overlay
    }

    /// Returns the store in which a change of this call was refused because another call had
    /// committed first. Such a call ends as a conflict (`FILE-23`), whatever the guest has made of
    /// the refusal. An inner call answers for itself.
    pub async fn conflict(&self) -> Option<CommitError> {
        let overlays: Vec<_> = {
            let layers = self.inner.layers.lock().unwrap_or_else(PoisonError::into_inner);
            layers.iter().map(|layer| (layer.name.clone(), layer.overlay.clone())).collect()
        };
        for (name, overlay) in overlays {
            if let Some(path) = overlay.conflict().await {
                return Some(CommitError { name, source: FileError::Conflict { path } });
            }
        }
        None
    }

    /// Ends a call that has succeeded: its changes are made in the stores or become the outer
    /// call's, and are told. For the outermost call `effects` says whether they are made at all.
    /// One store comes after the other, and those before one that fails stay changed.
    ///
    /// # Errors
    /// The [`conflict`](Self::conflict) of the call, if it has met one: then no store is changed.
    /// Otherwise the first store that does not take the changes.
    pub async fn finish(&self, effects: FileEffects) -> Result<Vec<FileChange>, CommitError> {
        if let Some(conflict) = self.conflict().await {
            return Err(conflict);
        }
        let layers =
            std::mem::take(&mut *self.inner.layers.lock().unwrap_or_else(PoisonError::into_inner));
        let effects = if self.inner.outer.is_some() { FileEffects::default() } else { effects };
        let (parts, layers): (Vec<_>, Vec<_>) = layers.into_iter().partition(|layer| layer.is_part);
        for Layer { name, overlay, .. } in parts {
            if let Err(source) = overlay.commit_changes().await {
                return Err(CommitError { name, source });
            }
        }
        let mut changes = Vec::new();
        for Layer { name, overlay, .. } in layers {
            match finish(&overlay, &name, effects).await {
                Ok(mut changed) => changes.append(&mut changed),
                Err(source) => return Err(CommitError { name, source }),
            }
        }
        Ok(changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MemoryStore, OpenMode, Quota, Sharing, WriteMode};

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
        let inner = outer.inner(budget());
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
        let inner = outer.inner(budget());
        let deeper = inner.inner(budget());
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
        let inner = outer.inner(budget());
        put(&inner.view("data", &store, FileAccess::ReadWrite), "a", "inner").await;
        drop(inner);
        assert_eq!(get(&mine, "a").await.unwrap(), "outer");
        outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!(get(&*store, "a").await.unwrap(), "outer");
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
            let root = || Sharing::PerSession.directory(Some(session)).unwrap();
            let outer = Transaction::new(budget());
            let mine = outer.view_below("data", &store, root(), FileAccess::ReadWrite);
            assert_eq!(get(&mine, "shared").await, None, "{session}");
            put(&mine, "a", "outer").await;
            outer.finish(FileEffects::default()).await.unwrap();
            let outer = Transaction::new(budget());
            let reading = outer.view_below("data", &store, root(), FileAccess::ReadOnly);
            assert!(reading.delete(&path("a")).await.is_err());
            let inner = outer.inner(budget());
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

    /// Has `call` read the file `log` of `store`, has another call commit a longer one, and has the
    /// append refused.
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
        // The guest passes over the error and works on.
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
        let root = Sharing::PerSession.directory(Some("s")).unwrap();
        let view = call.view_below("data", &store, root, FileAccess::ReadWrite);
        let file = view.open(&path("log"), WRITE).await.unwrap();
        put(&*store, "s/log", "a line of another call").await;
        assert!(file.append(b"mine").await.is_err());
        assert!(call.conflict().await.is_some());

        put(&*store, "log", "").await;
        let outer = Transaction::new(budget());
        put(&outer.view("data", &store, FileAccess::ReadWrite), "kept", "1").await;
        let inner = outer.inner(budget());
        lose_the_race(&inner, &store).await;
        assert!(inner.finish(FileEffects::default()).await.is_err());
        // The outer call was refused nothing: what becomes of it is its own decision.
        outer.finish(FileEffects::default()).await.unwrap();
        assert_eq!(get(&*store, "kept").await.as_deref(), Some("1"));
    }

    #[tokio::test]
    async fn create_only_stays_create_only_for_inner_calls() {
        let store = store();
        put(&*store, "a", "secret").await;
        let outer = Transaction::new(budget());
        let creating = outer.view("data", &store, FileAccess::CreateOnly);
        put(&creating, "new", "1").await;
        let inner = outer.inner(budget());
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
