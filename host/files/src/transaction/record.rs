//! Uncommitted changes of a transaction in a form for a file, so that another process can continue
//! it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::Transaction;
use crate::overlay::OverlayRecord;
use crate::{FileStore, UnrecordedChanges, UnrestoredChanges};

/// Uncommitted changes of a transaction.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TransactionRecord(Vec<LayerRecord>);

/// Changes of one store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct LayerRecord {
    /// Digest of the path of the store's directory.
    store: String,
    /// Name of the store in the call.
    name: String,
    changes: OverlayRecord,
}

/// A store that a source of tools can change.
#[derive(Clone)]
pub struct SharedStore(pub Arc<dyn FileStore>);

impl Transaction {
    /// Returns the changes, which stay where they are. Written files may have `bytes_max` together,
    /// which is checked before they are copied. `stores` are those that
    /// [`restore`](Self::restore) will find: directories, each under its path only.
    ///
    /// # Errors
    /// [`UnrecordedChanges`].
    pub async fn record(
        &self,
        bytes_max: u64,
        stores: &[SharedStore],
    ) -> Result<TransactionRecord, UnrecordedChanges> {
        if self.inner.outer.is_some() {
            return Err(UnrecordedChanges::Dependent);
        }
        let layers: Vec<_> = {
            let layers = self.inner.layers.lock();
            let parts = |layer: &super::OverlayLayer| {
                (layer.store.clone(), layer.is_part, layer.name.clone(), layer.overlay.clone())
            };
            layers.iter().map(parts).collect()
        };
        let mut bytes_left = bytes_max;
        let mut record = TransactionRecord::default();
        for (store, is_part, name, overlay) in layers {
            if overlay.changed_files().await.is_empty() && overlay.conflict().await.is_none() {
                continue;
            }
            let store = store.filter(|_| !is_part).ok_or(UnrecordedChanges::Dependent)?;
            let is_found =
                |wanted: &String| find(stores, wanted).is_some_and(|s| is_same(s, &store));
            let Some(store) = identity(&*store).filter(is_found) else {
                return Err(UnrecordedChanges::NoDirectory { name });
            };
            let changes = overlay.record(&name, &mut bytes_left, bytes_max).await?;
            record.0.push(LayerRecord { store, name, changes });
        }
        Ok(record)
    }

    /// Makes recorded changes in this transaction, which must be without changes. `stores` are
    /// those that it can find.
    ///
    /// # Errors
    /// [`UnrestoredChanges`], if a store is missing, or if something that the transaction has
    /// changed is no longer as it was.
    pub async fn restore(
        &self,
        record: TransactionRecord,
        stores: &[SharedStore],
    ) -> Result<(), UnrestoredChanges> {
        for LayerRecord { store: wanted, name, changes } in record.0 {
            let Some(store) = find(stores, &wanted) else {
                return Err(UnrestoredChanges::NoStore { name });
            };
            self.layer(&name, store).restore(&name, changes).await?;
        }
        Ok(())
    }
}

/// Returns the only store with an identity that can be changed.
fn find<'s>(stores: &'s [SharedStore], wanted: &str) -> Option<&'s Arc<dyn FileStore>> {
    let matches = |store: &&Arc<dyn FileStore>| {
        !store.is_read_only() && identity(&***store).as_deref() == Some(wanted)
    };
    let mut found = stores.iter().map(|SharedStore(store)| store).filter(matches);
    let first = found.next()?;
    found.all(|other| is_same(first, other)).then_some(first)
}

fn is_same(one: &Arc<dyn FileStore>, other: &Arc<dyn FileStore>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// Returns what identifies a directory in another process, or `None` for a store of another kind.
fn identity(store: &dyn FileStore) -> Option<String> {
    let root = store.root_ambient()?.canonicalize().ok()?;
    let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
    Some(format!("sha256:{}", data_encoding::HEXLOWER.encode(&digest)))
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::FileAccess;
    use cofferdam_tool::invoke::FileEffects;

    use super::*;
    use crate::{
        Budget, DirectoryOptions, DirectoryStore, MemoryStore, Quota, StorePath, WriteMode,
    };

    const BYTES_MAX: u64 = 1024;

    fn open(directory: &std::path::Path) -> Arc<dyn FileStore> {
        Arc::new(DirectoryStore::open_ambient(directory, DirectoryOptions::default()).unwrap())
    }

    fn path(text: &str) -> StorePath {
        StorePath::file(text).unwrap()
    }

    fn transaction() -> Transaction {
        Transaction::new(Budget::new(1 << 20))
    }

    async fn put(store: &dyn FileStore, name: &str, content: &[u8]) {
        store.write(&path(name), content.into(), WriteMode::Replace).await.unwrap();
    }

    /// Changes files of a directory in a transaction and returns what is recorded, as JSON.
    async fn recorded(directory: &std::path::Path) -> String {
        let (store, call) = (open(directory), transaction());
        for name in ["old", "gone", "sub/inner"] {
            put(&*store, name, b"before").await;
        }
        let view = call.view("data", &store, FileAccess::ReadWrite);
        put(&view, "old", b"after").await;
        put(&view, "new/deep", &[0, 255]).await;
        view.delete(&path("gone")).await.unwrap();
        view.delete(&path("sub/inner")).await.unwrap();
        view.remove_directory(&StorePath::directory("sub").unwrap()).await.unwrap();
        serde_json::to_string(&call.record(BYTES_MAX, &[SharedStore(store)]).await.unwrap())
            .unwrap()
    }

    #[tokio::test]
    async fn another_process_commits_recorded_changes() {
        let directory = tempfile::tempdir().unwrap();
        let record = recorded(directory.path()).await;
        assert!(!record.contains(directory.path().to_str().unwrap()), "{record}");
        let at = |name: &str| std::fs::read(directory.path().join(name)).ok();
        assert_eq!((at("old"), at("new/deep")), (Some(b"before".into()), None));
        let call = transaction();
        let stores = [SharedStore(open(directory.path()))];
        call.restore(serde_json::from_str(&record).unwrap(), &stores).await.unwrap();
        assert_eq!(at("old"), Some(b"before".into()), "nothing is committed yet");
        let again = call.record(BYTES_MAX, &stores).await.unwrap();
        assert_eq!(serde_json::to_string(&again).unwrap(), record);
        assert_eq!(call.finish(FileEffects::default()).await.unwrap().len(), 6);
        assert_eq!((at("old"), at("new/deep")), (Some(b"after".into()), Some(vec![0, 255])));
        assert_eq!((at("gone"), directory.path().join("sub").exists()), (None, false));
    }

    #[tokio::test]
    async fn changes_by_others_are_a_conflict() {
        for (name, content) in [("old", "x"), ("gone", "x"), ("new", "a file")] {
            let directory = tempfile::tempdir().unwrap();
            let record = recorded(directory.path()).await;
            std::fs::write(directory.path().join(name), content).unwrap();
            let stores = [SharedStore(open(directory.path()))];
            let restored =
                transaction().restore(serde_json::from_str(&record).unwrap(), &stores).await;
            let conflict = UnrestoredChanges::Conflict { name: "data".into(), path: name.into() };
            assert_eq!(restored, Err(conflict), "{name}");
        }
    }

    #[tokio::test]
    async fn another_or_a_read_only_directory_is_refused() {
        let (directory, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let record = recorded(directory.path()).await;
        let options = DirectoryOptions { is_read_only: true, ..DirectoryOptions::default() };
        let read_only = DirectoryStore::open_ambient(directory.path(), options).unwrap();
        let stores = [SharedStore(open(other.path())), SharedStore(Arc::new(read_only))];
        let restored = transaction().restore(serde_json::from_str(&record).unwrap(), &stores).await;
        assert_eq!(restored, Err(UnrestoredChanges::NoStore { name: "data".into() }));
        // Two stores in one directory do not see each other's changes.
        let stores = [SharedStore(open(directory.path())), SharedStore(open(directory.path()))];
        let restored = transaction().restore(serde_json::from_str(&record).unwrap(), &stores).await;
        assert_eq!(restored, Err(UnrestoredChanges::NoStore { name: "data".into() }));
    }

    #[tokio::test]
    async fn what_cannot_be_recorded_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let store = open(directory.path());
        put(&*store, "a", b"x").await;
        let call = transaction();
        let view = call.view("data", &store, FileAccess::ReadWrite);
        let stores = [SharedStore(Arc::clone(&store))];
        assert_eq!(call.record(0, &stores).await, Ok(TransactionRecord::default()));
        put(&view, "b", &[0; 1025]).await;
        assert_eq!(
            call.record(BYTES_MAX, &stores).await,
            Err(UnrecordedChanges::TooLarge { bytes_max: BYTES_MAX })
        );
        let unknown = Err(UnrecordedChanges::NoDirectory { name: "data".into() });
        assert_eq!(call.record(1 << 20, &[]).await, unknown);
        view.rename(&path("a"), &path("c")).await.unwrap();
        let moved = Err(UnrecordedChanges::Moved { name: "data".into() });
        assert_eq!(call.record(1 << 20, &stores).await, moved);
        let memory: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
        let call = transaction();
        put(&call.view("notes", &memory, FileAccess::ReadWrite), "a", b"x").await;
        let no_directory = Err(UnrecordedChanges::NoDirectory { name: "notes".into() });
        assert_eq!(call.record(BYTES_MAX, &[SharedStore(memory)]).await, no_directory);
        let inner = Transaction::over(Some(&call), Budget::new(1 << 20), None);
        assert_eq!(inner.record(BYTES_MAX, &[]).await, Err(UnrecordedChanges::Dependent));
    }
}
