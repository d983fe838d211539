//! Tests of overlays beyond the checks that all stores share.

use std::time::Duration;

use super::*;
use crate::{CreateOnly, DirectoryOptions, DirectoryStore, MemoryStore, Quota, testing};

fn over_memory(quota: &Quota) -> Arc<dyn FileStore> {
    Arc::new(Overlay::new(Arc::new(MemoryStore::new(*quota)), &Budget::new(u64::MAX)))
}

/// Creates an overlay in which every non-empty file goes to disk.
fn over_memory_on_disk(quota: &Quota) -> Arc<dyn FileStore> {
    let options = SpillOptions {
        directory_ambient: std::env::temp_dir(),
        bytes_max: 1 << 20,
        file_bytes_min: 1,
    };
    let budget = Budget::with_spill_ambient(u64::MAX, options);
    Arc::new(Overlay::new(Arc::new(MemoryStore::new(*quota)), &budget))
}

proptest::proptest! {
    #[test]
    fn agrees_with_the_model(plan in testing::plan()) {
        testing::check_plan(over_memory, &plan)?;
    }

    #[test]
    fn takes_over_what_inner_calls_have_changed(plan in testing::plan()) {
        testing::check_commits(over_memory, &plan)?;
    }

    #[test]
    fn agrees_with_the_model_on_disk(plan in testing::plan()) {
        testing::check_plan(over_memory_on_disk, &plan)?;
    }
}

#[tokio::test]
async fn keeps_the_contract_of_file_stores() {
    for check in testing::Check::all() {
        check.run(over_memory(&testing::QUOTA)).await.unwrap();
        check.run(over_memory_on_disk(&testing::QUOTA)).await.unwrap();
    }
}

fn path(text: &str) -> StorePath {
    StorePath::file(text).unwrap()
}

const WRITE: OpenMode =
    OpenMode { writes: true, creates: true, is_exclusive: false, truncates: false };

#[tokio::test]
async fn memory_is_refused_before_it_is_taken_and_given_back_after() {
    let large = Quota { bytes_max: u64::MAX, file_bytes_max: u64::MAX, ..Quota::default() };
    let budget = Budget::new(100_000);
    let overlay = Overlay::new(Arc::new(MemoryStore::new(large)), &budget);
    let file = overlay.open(&path("a"), WRITE).await.unwrap();
    for bytes in [100_000, 1 << 40, u64::MAX] {
        assert!(
            matches!(file.set_bytes(bytes).await, Err(FileError::Memory { bytes_max: 100_000 })),
            "{bytes}"
        );
    }
    assert!(matches!(file.write_at(u64::MAX, b"x").await, Err(FileError::Memory { .. })));
    assert_eq!(file.stat().bytes, 0);
    file.set_bytes(90_000).await.unwrap();
    let refused = overlay.write(&path("b"), vec![0; 20_000], WriteMode::Create).await;
    assert!(matches!(refused, Err(FileError::Memory { .. })));
    file.set_bytes(0).await.unwrap();
    overlay.write(&path("b"), vec![0; 20_000], WriteMode::Create).await.unwrap();
    drop((file, overlay));
    assert_eq!(budget.bytes_taken(), 0);
}

/// A quota without limits.
const LARGE: Quota = Quota::UNLIMITED;
const MIB: u64 = 1024 * 1024;

/// Returns content in which no two parts are equal.
fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes / 8).flat_map(u64::to_le_bytes).collect()
}

/// Creates a directory for spilled content, and a budget of `memory` and `disk` bytes that spills
/// files from 4 MiB on.
fn spilling(memory: u64, disk: u64) -> (tempfile::TempDir, Budget) {
    let folder = tempfile::tempdir().unwrap();
    let directory_ambient = folder.path().to_owned();
    let options = SpillOptions { directory_ambient, bytes_max: disk, file_bytes_min: 4 * MIB };
    (folder, Budget::with_spill_ambient(memory, options))
}

#[tokio::test]
async fn content_too_large_for_memory_is_stored_on_disk_and_committed_from_there() {
    let target = tempfile::tempdir().unwrap();
    let (spilled, budget) = spilling(5 * MIB, 100 * MIB);
    let options =
        DirectoryOptions { is_durable: false, quota: LARGE, ..DirectoryOptions::default() };
    let store = Arc::new(DirectoryStore::open_ambient(target.path(), options).unwrap());
    let old = pattern(6 * MIB);
    std::fs::write(target.path().join("old"), &old).unwrap();
    let overlay = Overlay::new(store, &budget);
    // One file grows, one is written as a whole, and one existing file changes a little.
    let (grown, whole) = (pattern(9 * MIB), pattern(5 * MIB));
    let file = overlay.open(&path("grown"), WRITE).await.unwrap();
    for part in grown.chunks(1 << 16) {
        file.append(part).await.unwrap();
    }
    overlay.write(&path("whole"), whole.clone(), WriteMode::Create).await.unwrap();
    let changed = overlay.open(&path("old"), WRITE).await.unwrap();
    changed.write_at(3 * MIB, b"changed").await.unwrap();
    assert_eq!(budget.bytes_spilled(), 20 * MIB);
    assert!(budget.bytes_taken() < 10_000, "{}", budget.bytes_taken());
    assert_eq!(std::fs::read_dir(spilled.path()).unwrap().count(), 0, "they have no names");
    // Content on disk reads like any other.
    assert!(file.is_in_memory());
    assert_eq!(file.read_in_memory(8 * MIB, 2 * MIB).unwrap(), grown[8 << 20..]);
    assert_eq!(file.read_at(10 * MIB, 1).await.unwrap(), b"");
    assert_eq!(overlay.read(&path("whole"), 5 * MIB).await.unwrap(), whole);
    assert!(matches!(overlay.read(&path("whole"), MIB).await, Err(FileError::TooLarge { .. })));
    changed.set_bytes(5 * MIB).await.unwrap();
    assert_eq!(budget.bytes_spilled(), 19 * MIB);
    drop((file, changed));
    let report = overlay.commit_changes().await.unwrap();
    assert_eq!(
        report.iter().map(|changed| changed.bytes).collect::<Vec<_>>(),
        [9 * MIB, 5 * MIB, 5 * MIB]
    );
    let mut expected = old;
    expected[3 << 20..][..7].copy_from_slice(b"changed");
    expected.truncate(5 << 20);
    for (name, content) in [("grown", &grown), ("whole", &whole), ("old", &expected)] {
        assert!(std::fs::read(target.path().join(name)).unwrap() == *content, "{name}");
    }
    assert_eq!((budget.bytes_taken(), budget.bytes_spilled()), (0, 0));
}

#[tokio::test]
async fn a_memory_store_takes_what_was_on_disk() {
    let (_spilled, budget) = spilling(MIB, 100 * MIB);
    let store = Arc::new(MemoryStore::new(LARGE));
    let overlay = Overlay::new(Arc::clone(&store) as Arc<dyn FileStore>, &budget);
    overlay.write(&path("a"), pattern(5 * MIB), WriteMode::Create).await.unwrap();
    overlay.commit_changes().await.unwrap();
    assert!(store.read(&path("a"), u64::MAX).await.unwrap() == pattern(5 * MIB));
}

#[tokio::test]
async fn the_disk_has_a_limit_and_says_so() {
    let (_spilled, budget) = spilling(MIB, 10 * MIB);
    let overlay = Overlay::new(Arc::new(MemoryStore::new(LARGE)), &budget);
    let file = overlay.open(&path("a"), WRITE).await.unwrap();
    file.set_bytes(9 * MIB).await.unwrap();
    let refused = file.set_bytes(11 * MIB).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the changes of one call may take 10485760 bytes of disk at most."
    );
    let refused = overlay.write(&path("b"), pattern(5 * MIB), WriteMode::Create).await;
    assert!(matches!(refused, Err(FileError::Disk { bytes_max }) if bytes_max == 10 * MIB));
    assert_eq!((file.stat().bytes, budget.bytes_spilled()), (9 * MIB, 9 * MIB));
    assert!(matches!(overlay.stat(&path("b")).await, Err(FileError::NotFound)));
    // Truncating the file returns its disk space.
    file.set_bytes(0).await.unwrap();
    assert_eq!(budget.bytes_spilled(), 0);
    overlay.write(&path("b"), pattern(5 * MIB), WriteMode::Create).await.unwrap();
}

#[tokio::test]
async fn files_go_to_disk_earlier_when_memory_is_short_but_only_so_many() {
    let (_spilled, budget) = spilling(MIB, 100 * MIB);
    let overlay = Overlay::new(Arc::new(MemoryStore::new(LARGE)), &budget);
    let mut made = 0;
    let refused = loop {
        match overlay.write(&path(&made.to_string()), pattern(MIB / 8), WriteMode::Create).await {
            Ok(()) => made += 1,
            Err(refused) => break refused,
        }
    };
    assert!(matches!(refused, FileError::Memory { .. }), "{refused:?}");
    // Files in memory, and as many on disk as descriptors are allowed.
    assert!((64..64 + 8).contains(&made), "{made}");
    for name in 0..made {
        assert!(overlay.read(&path(&name.to_string()), MIB).await.unwrap() == pattern(MIB / 8));
    }
    assert!(budget.bytes_taken() <= MIB);
    // Short files never take a descriptor.
    let (_spilled, budget) = spilling(4096, 100 * MIB);
    let overlay = Overlay::new(Arc::new(MemoryStore::new(LARGE)), &budget);
    let refused = overlay.write(&path("short"), vec![0; 5000], WriteMode::Create).await;
    assert!(matches!(refused, Err(FileError::Memory { .. })));
    assert_eq!(budget.bytes_spilled(), 0);
}

#[tokio::test]
async fn a_file_that_others_cut_while_it_is_copied_to_disk_is_a_conflict() {
    let (_spilled, budget) = spilling(MIB, 100 * MIB);
    let folder = tempfile::tempdir().unwrap();
    let options =
        DirectoryOptions { is_durable: false, quota: LARGE, ..DirectoryOptions::default() };
    let store = Arc::new(DirectoryStore::open_ambient(folder.path(), options).unwrap());
    for bytes in [MIB, 9 * MIB] {
        std::fs::write(folder.path().join("a"), pattern(8 * MIB)).unwrap();
        let overlay = Overlay::new(Arc::clone(&store) as Arc<dyn FileStore>, &budget);
        let file = overlay.open(&path("a"), WRITE).await.unwrap();
        std::fs::write(folder.path().join("a"), pattern(bytes)).unwrap();
        assert!(matches!(file.write_at(0, b"x").await, Err(FileError::Conflict { .. })), "{bytes}");
        drop((file, overlay));
        assert_eq!(budget.bytes_spilled(), 0);
    }
}

#[test]
fn debug_does_not_show_where_the_disk_is() {
    let (folder, budget) = spilling(MIB, MIB);
    assert!(!format!("{budget:?}").contains(folder.path().to_str().unwrap()));
}

#[tokio::test]
async fn names_cost_memory_too() {
    let overlay = Overlay::new(Arc::new(MemoryStore::new(Quota::default())), &Budget::new(100_000));
    let mut made = 0;
    while overlay.write(&path(&made.to_string()), Vec::new(), WriteMode::Create).await.is_ok() {
        made += 1;
    }
    assert!((50..500).contains(&made), "{made}");
}

#[tokio::test]
async fn any_number_of_files_may_be_looked_at_one_after_another() {
    let store = Arc::new(MemoryStore::new(Quota::default()));
    for number in 0..3000 {
        store.write(&path(&number.to_string()), b"x".to_vec(), WriteMode::Create).await.unwrap();
    }
    let budget = Budget::new(2_000_000);
    let overlay = Overlay::new(store, &budget);
    let open = overlay.open(&path("7"), OpenMode::default()).await.unwrap();
    for number in (0..3000).chain(0..3000) {
        let file = overlay.open(&path(&number.to_string()), OpenMode::default()).await.unwrap();
        assert_eq!(file.read_at(0, 9).await.unwrap(), b"x");
    }
    overlay.write(&path("7"), b"new".to_vec(), WriteMode::Replace).await.unwrap();
    assert_eq!(open.read_at(0, 9).await.unwrap(), b"new");
    assert_eq!(overlay.commit_changes().await.unwrap().len(), 1);
}

#[tokio::test]
async fn what_others_did_in_the_directory_meanwhile_is_a_conflict() {
    let folder = tempfile::tempdir().unwrap();
    let options = DirectoryOptions { is_durable: false, ..DirectoryOptions::default() };
    let store = Arc::new(DirectoryStore::open_ambient(folder.path(), options).unwrap());
    std::fs::write(folder.path().join("a"), "old").unwrap();
    for (name, text) in [("a", "changed"), ("new", "created")] {
        let overlay = Overlay::new(Arc::clone(&store) as Arc<dyn FileStore>, &Budget::new(1 << 20));
        overlay.write(&path(name), b"mine".to_vec(), WriteMode::Replace).await.unwrap();
        overlay.write(&path("also"), b"mine".to_vec(), WriteMode::Create).await.unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
        let refused = overlay.commit_changes().await.unwrap_err();
        assert!(
            matches!(&refused, FileError::Conflict { path } if path.as_str() == name),
            "{refused:?}"
        );
        assert_eq!(std::fs::read_to_string(folder.path().join(name)).unwrap(), text);
        assert!(!folder.path().join("also").exists());
    }
}

#[tokio::test]
async fn a_commit_that_only_creates_passes_the_guard_and_no_other() {
    let store = Arc::new(MemoryStore::new(Quota::default()));
    store.write(&path("old"), b"1".to_vec(), WriteMode::Create).await.unwrap();
    let guard: Arc<dyn FileStore> =
        Arc::new(CreateOnly::new(Arc::clone(&store) as Arc<dyn FileStore>));
    let overlay = Overlay::new(Arc::clone(&guard), &Budget::new(1 << 20));
    overlay.write(&path("d/new"), b"2".to_vec(), WriteMode::Replace).await.unwrap();
    overlay.commit_changes().await.unwrap();
    // Changes from an overlay over the unguarded store.
    let direct = Overlay::new(Arc::clone(&store) as Arc<dyn FileStore>, &Budget::new(1 << 20));
    direct.delete(&path("old")).await.unwrap();
    let (changes, _) = direct.state.lock().await.take_changes();
    assert!(matches!(guard.commit(changes).await, Err(FileError::CreateOnly)));
    assert_eq!(store.read(&path("old"), 9).await.unwrap(), b"1");
}

#[tokio::test]
async fn an_inner_commit_that_does_not_fit_leaves_the_outer_call_as_it_was() {
    let store = Arc::new(MemoryStore::new(Quota::default()));
    store.write(&path("old"), b"old".to_vec(), WriteMode::Create).await.unwrap();
    let outer = Overlay::new(store, &Budget::new(100_000));
    let open = outer.open(&path("old"), OpenMode { truncates: true, ..WRITE }).await.unwrap();
    open.append(b"outer").await.unwrap();
    let inner = Overlay::new(Arc::new(outer.clone()), &Budget::new(u64::MAX));
    inner.write(&path("a"), vec![0; 30_000], WriteMode::Create).await.unwrap();
    inner.rename(&path("old"), &path("moved")).await.unwrap();
    inner.write(&path("z"), vec![0; 90_000], WriteMode::Create).await.unwrap();
    let refused = inner.commit_changes().await;
    assert!(matches!(refused, Err(FileError::Memory { .. })), "{refused:?}");
    let listed = outer.list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
    assert_eq!(listed.entries.iter().map(|entry| entry.name.as_str()).collect::<Vec<_>>(), ["old"]);
    open.append(b"!").await.unwrap();
    assert_eq!(outer.read(&path("old"), 99).await.unwrap(), b"outer!");
    assert_eq!(outer.room().await.unwrap().usage.bytes, 6);
}

#[tokio::test]
async fn an_inner_call_sees_the_changes_of_the_outer_one_and_the_store_sees_neither_before_the_end()
{
    let store = Arc::new(MemoryStore::new(Quota::default()));
    let outer = Overlay::new(Arc::clone(&store) as Arc<dyn FileStore>, &Budget::new(1 << 20));
    outer.write(&path("a"), b"outer".to_vec(), WriteMode::Create).await.unwrap();
    let inner = Overlay::new(Arc::new(outer.clone()), &Budget::new(1 << 20));
    assert_eq!(inner.read(&path("a"), 9).await.unwrap(), b"outer");
    inner.write(&path("a"), b"inner".to_vec(), WriteMode::Replace).await.unwrap();
    inner.commit_changes().await.unwrap();
    assert_eq!(outer.read(&path("a"), 9).await.unwrap(), b"inner");
    assert!(store.stat(&path("a")).await.is_err());
    let changed = outer.commit_changes().await.unwrap();
    assert_eq!(
        changed.iter().map(|change| (change.what, change.bytes)).collect::<Vec<_>>(),
        [(ChangeKind::Created, 5)]
    );
    assert_eq!(store.read(&path("a"), 9).await.unwrap(), b"inner");
}

#[tokio::test]
async fn an_inner_commit_that_is_stopped_at_any_point_is_made_as_a_whole_or_not_at_all() {
    let mut stopped = 0;
    for polls in 1.. {
        let store = Arc::new(MemoryStore::new(Quota::default()));
        store.write(&path("old"), b"old".to_vec(), WriteMode::Create).await.unwrap();
        let outer = Overlay::new(store, &Budget::new(1 << 20));
        let before = outer.room().await.unwrap();
        let inner = Overlay::new(Arc::new(outer.clone()), &Budget::new(1 << 20));
        inner.rename(&path("old"), &path("moved")).await.unwrap();
        for name in ["a", "b", "c"] {
            inner.write(&path(name), b"new".to_vec(), WriteMode::Create).await.unwrap();
        }
        let mut commit = Box::pin(inner.commit_changes());
        let mut is_done = false;
        for _ in 0..polls {
            is_done = futures_util::poll!(&mut commit).is_ready();
            if is_done {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        drop(commit);
        let listed = outer.list(&StorePath::ROOT, Scope::Children).await.unwrap().entries;
        let names: Vec<_> = listed.iter().map(|entry| entry.name.as_str()).collect();
        let room = outer.room().await.unwrap();
        assert_eq!(room.quota, before.quota, "{polls}");
        if is_done {
            assert_eq!(names, ["a", "b", "c", "moved"]);
            break;
        }
        stopped += 1;
        assert_eq!((names, room.usage), (vec!["old"], before.usage), "{polls}");
        assert_eq!(outer.read(&path("old"), 9).await.unwrap(), b"old");
    }
    assert!(stopped > 0);
}
