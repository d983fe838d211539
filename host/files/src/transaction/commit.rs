//! Commits the changes of a call in all of its stores.
//!
//! First every store prepares its changes: it checks them, puts new contents beside its own, and
//! then keeps the changes of other calls waiting. Only when all are prepared are they made, one
//! store after another. The stores are always prepared in the same order, so that two calls never
//! wait for each other.
//!
//! What can still fail after another store has changed is an error of the system, a request to a
//! service, and a commit of a second layer of the call over one store, which cannot be prepared
//! together with the first. The error then lists the changes that have been made.

use std::sync::Arc;

use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::record::{FILE_CHANGES_MAX, FileChange, FileChangeKind};

use super::CommitError;
use crate::{
    ChangeKind, ChangedFile, Changes, EntryKind, FileError, FileStore, Overlay, PreparedCommit,
    StorePath, unified_diff,
};

/// Maximum length of all diffs of one store together, in bytes. Changes beyond it are listed
/// without a diff.
const DIFFS_BYTES_MAX: usize = 1024 * 1024;

/// Changes of one store.
pub(super) struct StoreChanges {
    /// Place among the stores of the call, in whose order the changes are reported.
    number: usize,
    name: String,
    store: Arc<dyn FileStore>,
    changes: Changes,
    reported: Vec<FileChange>,
}

/// Changes of all stores, ready to be made.
pub(super) struct PreparedStores {
    prepared: Vec<(CommittedChanges, Box<dyn PreparedCommit>)>,
    /// Changes of stores among the prepared ones, which can only be prepared after those.
    late: Vec<StoreChanges>,
}

struct CommittedChanges {
    number: usize,
    name: String,
    reported: Vec<FileChange>,
}

impl StoreChanges {
    /// Takes the changes of `overlay`, which the records call `name`.
    ///
    /// # Errors
    /// As for [`Overlay::take_changes`].
    pub(super) async fn take(
        number: usize,
        name: String,
        overlay: &Overlay,
        effects: FileEffects,
    ) -> Result<Self, CommitError> {
        let with_diffs = match effects.shows_diffs {
            true => Some(report(&name, overlay, effects).await),
            false => None,
        };
        match overlay.take_changes().await {
            Ok((changes, changed)) => {
                let reported = with_diffs
                    .unwrap_or_else(|| changed.iter().map(|it| file_change(&name, it)).collect());
                Ok(Self { number, name, store: Arc::clone(overlay.base()), changes, reported })
            }
            Err(source) => Err(CommitError::new(name, source)),
        }
    }

    fn split(self) -> (CommittedChanges, Arc<dyn FileStore>, Changes) {
        let Self { number, name, store, changes, reported } = self;
        (CommittedChanges { number, name, reported }, store, changes)
    }
}

/// Returns the changes that `overlay` would commit, with diffs if `effects` requests them.
pub(super) async fn report(name: &str, overlay: &Overlay, effects: FileEffects) -> Vec<FileChange> {
    let changed = overlay.changed_files().await;
    let mut reported: Vec<_> = changed.iter().map(|change| file_change(name, change)).collect();
    if effects.shows_diffs {
        let mut bytes_left = DIFFS_BYTES_MAX;
        for (reported, change) in reported.iter_mut().zip(&changed).take(FILE_CHANGES_MAX) {
            let diff =
                unified_diff(overlay, name, change).await.filter(|diff| diff.len() <= bytes_left);
            bytes_left = bytes_left.saturating_sub(diff.as_ref().map_or(0, String::len));
            reported.diff = diff;
        }
    }
    reported
}

/// Prepares the changes of all stores.
///
/// # Errors
/// The error of the first store that refuses its changes. Then no store has changed.
pub(super) async fn prepare(mut all: Vec<StoreChanges>) -> Result<PreparedStores, CommitError> {
    all.retain(|one| !one.changes.is_empty());
    all.sort_by_cached_key(|one| one.location());
    let mut last = None;
    let (mut prepared, mut late) = (Vec::new(), Vec::new());
    for one in all {
        if last.replace(one.location()) == Some(one.location()) {
            late.push(one);
            continue;
        }
        let (committed, store, changes) = one.split();
        match store.prepare(changes).await {
            Ok(commit) => prepared.push((committed, commit)),
            Err(source) => return Err(CommitError::new(committed.name, source)),
        }
    }
    // A stable sort: stores of this machine stay in their order.
    prepared.sort_by_key(|(_, commit)| !commit.is_remote());
    Ok(PreparedStores { prepared, late })
}

impl StoreChanges {
    /// Returns the number of the store, which is the same for all of its views.
    fn location(&self) -> u64 {
        self.store.locate(&StorePath::ROOT).store()
    }
}

impl PreparedStores {
    /// Returns whether no store changes.
    pub(super) fn is_empty(&self) -> bool {
        self.prepared.is_empty() && self.late.is_empty()
    }

    /// Makes the changes and returns them.
    ///
    /// # Errors
    /// The error of the first store that fails, with the changes of those before it.
    pub(super) async fn commit(self) -> Result<Vec<FileChange>, CommitError> {
        let mut done = Vec::new();
        for (changes, commit) in self.prepared {
            add(&mut done, changes, commit.commit().await)?;
        }
        for one in self.late {
            let (committed, store, changes) = one.split();
            add(&mut done, committed, store.commit(changes).await)?;
        }
        Ok(reported(done))
    }
}

/// Adds changes to those that have been made.
fn add(
    done: &mut Vec<CommittedChanges>,
    changes: CommittedChanges,
    made: Result<(), FileError>,
) -> Result<(), CommitError> {
    match made {
        Ok(()) => {
            done.push(changes);
            Ok(())
        }
        Err(source) => {
            let committed = reported(std::mem::take(done));
            Err(CommitError { name: changes.name, source, committed })
        }
    }
}

fn reported(mut done: Vec<CommittedChanges>) -> Vec<FileChange> {
    done.sort_by_key(|changes| changes.number);
    done.into_iter().flat_map(|changes| changes.reported).collect()
}

fn file_change(name: &str, change: &ChangedFile) -> FileChange {
    let end = if change.kind == EntryKind::Directory { "/" } else { "" };
    FileChange {
        mount: name.to_owned(),
        path: format!("{}{end}", change.path),
        what: match change.what {
            ChangeKind::Created => FileChangeKind::Created,
            ChangeKind::Changed => FileChangeKind::Changed,
            ChangeKind::Deleted => FileChangeKind::Deleted,
        },
        bytes: change.bytes,
        diff: None,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, Instant};

    use cofferdam_tool::{ErrorType, FileAccess, ToolError};

    use super::*;
    use crate::{
        Budget, DirectoryOptions, DirectoryStore, MemoryStore, Quota, Transaction, WriteMode,
    };

    type Store = Arc<dyn FileStore>;

    fn path(name: &str) -> StorePath {
        StorePath::file(name).unwrap()
    }

    fn open(folder: &Path) -> Store {
        let options = DirectoryOptions { is_durable: false, ..DirectoryOptions::default() };
        Arc::new(DirectoryStore::open_ambient(folder, options).unwrap())
    }

    fn memory() -> Store {
        Arc::new(MemoryStore::new(Quota::default()))
    }

    async fn put(store: &dyn FileStore, name: &str, content: &str) {
        store.write(&path(name), content.into(), WriteMode::Replace).await.unwrap();
    }

    async fn get(store: &Store, name: &str) -> Option<String> {
        let content = store.read(&path(name), 99).await.ok()?;
        Some(String::from_utf8(content).unwrap())
    }

    /// Creates a call, or one inside `outer`, that writes several files of each store.
    async fn call(outer: Option<&Transaction>, stores: [&Store; 2], content: &str) -> Transaction {
        let call = Transaction::over(outer, Budget::new(1 << 20), None);
        for (name, store) in ["one", "two"].into_iter().zip(stores) {
            let view = call.view(name, store, FileAccess::ReadWrite);
            put(&view, "log", content).await;
            put(&view, "new/file", content).await;
        }
        call
    }

    #[tokio::test]
    async fn a_store_that_refuses_its_changes_keeps_the_others_from_changing() {
        let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let [first, second, third] = folders.each_ref().map(|folder| open(folder.path()));
        let kinds = [(memory(), memory()), (first, second), (memory(), third)];
        for (one, two) in kinds {
            for (taken, other) in [(&one, &two), (&two, &one)] {
                let call = call(None, [&one, &two], "mine").await;
                put(&**taken, "log", "others").await;
                let refused = call.finish(FileEffects::default()).await.unwrap_err();
                assert!(matches!(refused.source, FileError::Conflict { .. }), "{refused:?}");
                assert_eq!(refused.committed, []);
                assert_eq!(get(taken, "new/file").await, None);
                assert_eq!((get(other, "log").await, get(other, "new/file").await), (None, None));
                // Nothing keeps the next change waiting.
                for store in [&one, &two] {
                    put(&**store, "log", "later").await;
                    store.delete(&path("log")).await.unwrap();
                }
            }
            let done = call(None, [&one, &two], "mine").await.finish(FileEffects::default()).await;
            let mounts: Vec<_> = done.unwrap().into_iter().map(|change| change.mount).collect();
            assert_eq!(mounts, ["one", "one", "one", "two", "two", "two"]);
            assert_eq!(get(&one, "log").await, get(&two, "new/file").await);
        }
        for folder in &folders {
            let names = std::fs::read_dir(folder.path()).unwrap();
            assert_eq!(names.count(), 2, "nothing that was prepared is left");
        }
    }

    #[tokio::test]
    async fn an_inner_call_changes_all_stores_of_the_outer_one_or_none() {
        let (one, two) = (memory(), memory());
        for taken in [&one, &two] {
            let outer = Transaction::new(Budget::new(1 << 20));
            let views = [&one, &two].map(|store| outer.view("data", store, FileAccess::ReadWrite));
            let inner = call(Some(&outer), [&one, &two], "inner").await;
            put(&outer.view("data", taken, FileAccess::ReadWrite), "log", "outer").await;
            inner.finish(FileEffects::default()).await.unwrap_err();
            let changed = outer.finish(FileEffects::default()).await.unwrap();
            assert_eq!(changed.len(), 1, "{changed:?}");
            drop(views);
            taken.delete(&path("log")).await.unwrap();
        }
    }

    #[tokio::test]
    async fn changes_that_remain_are_listed_and_no_reason_for_a_retry() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let stores = folders.each_ref().map(|folder| open(folder.path()));
        let call = call(None, stores.each_ref(), "mine").await;
        let layers = std::mem::take(&mut *call.inner.layers.lock());
        let mut changes = Vec::new();
        for (number, layer) in layers.into_iter().enumerate() {
            let effects = FileEffects::default();
            changes.push(
                StoreChanges::take(number, layer.name, &layer.overlay, effects).await.unwrap(),
            );
        }
        let prepared = prepare(changes).await.unwrap();
        let names: Vec<_> = prepared.prepared.iter().map(|(it, _)| it.name.clone()).collect();
        // Another program does not wait.
        let last = if names == ["one", "two"] { &folders[1] } else { &folders[0] };
        std::fs::write(last.path().join("log"), "others").unwrap();
        let error = prepared.commit().await.unwrap_err();
        assert_eq!(error.name, names[1]);
        assert!(error.committed.iter().all(|change| change.mount == names[0]));
        assert_eq!(error.committed.len(), 3);
        let error = ToolError::from(error);
        assert_eq!(
            (error.error_type(), error.transient()),
            (Some(ErrorType::Conflict), Some(false))
        );
        assert!(error.detail.unwrap().ends_with("in other stores had already been made"));
    }

    #[tokio::test]
    async fn a_directory_under_two_names_is_prepared_once() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (open(folder.path()), open(folder.path()));
        let call = Transaction::new(Budget::new(1 << 20));
        put(&call.view("one", &one, FileAccess::ReadWrite), "a", "1").await;
        put(&call.view("two", &two, FileAccess::ReadWrite), "b", "2").await;
        let started = Instant::now();
        assert_eq!(call.finish(FileEffects::default()).await.unwrap().len(), 2);
        assert!(started.elapsed() < Duration::from_secs(5), "it does not wait for itself");
        assert_eq!(
            (get(&one, "a").await, get(&one, "b").await),
            (Some("1".into()), Some("2".into()))
        );
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn calls_with_the_same_stores_in_another_order_do_not_wait_for_each_other() {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let run = |order: [usize; 2], name: &'static str| {
            // Two hosts: only the locks of the system are shared.
            let stores = order.map(|number| open(folders[number].path()));
            tokio::spawn(async move {
                for number in 0..100 {
                    let call = Transaction::new(Budget::new(1 << 20));
                    for store in &stores {
                        let view = call.view("data", store, FileAccess::ReadWrite);
                        put(&view, &format!("{name}{number}"), "x").await;
                        put(&view, name, "x").await;
                    }
                    assert_eq!(call.finish(FileEffects::default()).await.unwrap().len(), 4);
                }
            })
        };
        let (first, second) = (run([0, 1], "a"), run([1, 0], "b"));
        first.await.unwrap();
        second.await.unwrap();
    }
}
