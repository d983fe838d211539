//! Runs any plan of operations on every kind of store and on a plain map: single operations, and
//! calls that commit.

use std::sync::Arc;

use cofferdam_files::testing::{Operation, check_commits, check_plan};
use cofferdam_files::{
    AuditedStore, BucketStore, Budget, DirectoryOptions, DirectoryStore, FileStore, MemoryStore,
    Overlay, Quota, StorePath, Subtree,
};

/// Maximum number of operations. Longer plans take longer and find nothing more.
const OPERATIONS_MAX: usize = 64;

type Fresh = fn(&Quota) -> Arc<dyn FileStore>;

/// Every kind of store to which changes are committed.
const KINDS: [Fresh; 5] = [memory, directory, bucket, subtree, audited];

/// Parses a kind of store and a plan of operations, and runs the plan.
pub(crate) fn check(bytes: &[u8]) {
    let Some((kind, plan)) = bytes.split_first() else { return };
    let operations = plan.chunks_exact(3).take(OPERATIONS_MAX);
    let plan: Vec<_> =
        operations.map(|three| Operation::from_bytes([three[0], three[1], three[2]])).collect();
    let fresh = KINDS[usize::from(*kind) % KINDS.len()];
    for result in [
        check_plan(fresh, &plan),
        check_plan(|quota| overlay(fresh(quota)), &plan),
        check_commits(fresh, &plan),
    ] {
        if let Err(difference) = result {
            panic!("{difference}");
        }
    }
}

fn memory(quota: &Quota) -> Arc<dyn FileStore> {
    Arc::new(MemoryStore::new(*quota))
}

/// Returns a store that owns its directory.
fn directory(quota: &Quota) -> Arc<dyn FileStore> {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let options =
        DirectoryOptions { quota: *quota, is_durable: false, ..DirectoryOptions::default() };
    let store = DirectoryStore::open_ambient(directory.path(), options).expect("it can be opened");
    Arc::new(AuditedStore::new(Arc::new(store), move |_| {
        // The observer owns it and lives as long as the store.
        let _ = &directory;
    }))
}

fn bucket(quota: &Quota) -> Arc<dyn FileStore> {
    Arc::new(BucketStore::in_memory(*quota))
}

fn subtree(quota: &Quota) -> Arc<dyn FileStore> {
    let wider =
        Quota { entries_max: quota.entries_max + 1, depth_max: quota.depth_max + 1, ..*quota };
    Arc::new(Subtree::new(memory(&wider), StorePath::file("d").expect("a path")))
}

fn audited(quota: &Quota) -> Arc<dyn FileStore> {
    Arc::new(AuditedStore::new(bucket(quota), |access| assert!(access.bytes < 1 << 20)))
}

fn overlay(store: Arc<dyn FileStore>) -> Arc<dyn FileStore> {
    Arc::new(Overlay::new(store, &Budget::new(u64::MAX)))
}
