//! Disks that are full or read-only, and file systems that are mounted inside of a store.
//!
//! The test runs itself in its own mount namespace, in which it can mount file systems. If that is
//! not permitted, it reports that and checks nothing.
#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test a panic is the message, and what is skipped is said"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use cofferdam_files::{
    Budget, DirectoryOptions, DirectoryStore, FileError, FileStore as _, Overlay, Quota, StorePath,
    WriteMode,
};

/// Environment variable that is set in the namespace to the name of the test that runs there.
const INSIDE: &str = "COFFERDAM_DISK_INSIDE";
const FULL: &str = "the file store failed: no storage space.";
const READ_ONLY: &str = "the file store failed: read-only filesystem or storage medium.";

/// Returns whether this process runs in the namespace. If not, runs the test `name` there before it
/// returns.
fn is_inside(name: &str) -> bool {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == name) {
        return true;
    }
    let namespace = |program: &std::ffi::OsStr| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "--"]).arg(program);
        command
    };
    // Mounting may be forbidden.
    let trial = tempfile::tempdir().unwrap();
    let is_allowed = namespace("mount".as_ref())
        .args(["-t", "tmpfs", "none"])
        .arg(trial.path())
        .output()
        .is_ok_and(|output| output.status.success());
    if !is_allowed {
        println!("skipped {name}: nothing may be mounted here");
        return false;
    }
    let exe = std::env::current_exe().unwrap();
    let status = namespace(exe.as_os_str())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, name)
        .env("RUST_BACKTRACE", "0")
        .status()
        .unwrap();
    assert!(status.success(), "in the namespace");
    false
}

fn mount(options: &str, at: &Path) {
    let output = Command::new("mount")
        .args(["-t", "tmpfs", "-o", options, "none"])
        .arg(at)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn open(root: &Path) -> Arc<DirectoryStore> {
    let quota = Quota { bytes_max: 1 << 30, file_bytes_max: 1 << 30, ..Quota::default() };
    let options = DirectoryOptions { quota, ..DirectoryOptions::default() };
    Arc::new(DirectoryStore::open_ambient(root, options).unwrap())
}

fn overlay(store: &Arc<DirectoryStore>) -> Overlay {
    Overlay::new(Arc::clone(store) as _, &Budget::new(64 << 20))
}

fn path(text: &str) -> StorePath {
    StorePath::file(text).unwrap()
}

/// Returns everything that the system shows, with the content of files.
fn snapshot(root: &Path) -> BTreeMap<String, Option<Vec<u8>>> {
    let mut all = BTreeMap::new();
    let mut pending = vec![root.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                all.insert(name, None);
                pending.push(path);
            } else {
                all.insert(name, Some(fs::read(path).unwrap()));
            }
        }
    }
    all
}

/// Creates files in a store, and changes of every kind to them, with `bytes` of new content.
async fn change_all(root: &Path, store: &Arc<DirectoryStore>, bytes: usize) -> Overlay {
    if !root.join("moved").exists() {
        fs::create_dir(root.join("moved")).unwrap();
        for name in ["replaced", "deleted", "moved/kept"] {
            fs::write(root.join(name), name).unwrap();
        }
    }
    let overlay = overlay(store);
    overlay.write(&path("replaced"), b"new".to_vec(), WriteMode::Replace).await.unwrap();
    overlay.delete(&path("deleted")).await.unwrap();
    overlay.rename(&path("moved"), &path("elsewhere")).await.unwrap();
    overlay.write(&path("new/a"), vec![1; bytes / 2], WriteMode::Create).await.unwrap();
    overlay.write(&path("new/b"), vec![1; bytes / 2], WriteMode::Create).await.unwrap();
    overlay
}

#[tokio::test]
async fn a_full_disk_leaves_the_store_as_it_was() {
    if !is_inside("a_full_disk_leaves_the_store_as_it_was") {
        return;
    }
    for (options, bytes) in [("size=256k", 1 << 20), ("size=4m,nr_inodes=12", 1000)] {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        mount(options, root);
        let store = open(root);
        let changed = change_all(root, &store, bytes).await;
        if options.contains("nr_inodes") {
            // Take the last inodes, so that only a part of the new files can be created.
            (0..4).for_each(|number| fs::write(root.join(format!("filler{number}")), "").unwrap());
        }
        let before = snapshot(root);
        let refused = changed.commit_changes().await.unwrap_err();
        assert_eq!(refused.to_string(), FULL, "{options}");
        assert_eq!(snapshot(root), before, "{options}");
        if bytes > 1000 {
            let refused = store
                .write(&path("replaced"), vec![1; bytes], WriteMode::Replace)
                .await
                .unwrap_err();
            assert_eq!(refused.to_string(), FULL);
            assert_eq!(snapshot(root), before);
        }
        // With room again, everything works.
        (0..4).for_each(|number| drop(fs::remove_file(root.join(format!("filler{number}")))));
        change_all(root, &store, 1000).await.commit_changes().await.unwrap();
        assert_eq!(fs::read(root.join("elsewhere/kept")).unwrap(), b"moved/kept");
        assert_eq!(snapshot(root).len(), 6);
    }
}

#[tokio::test]
async fn a_read_only_disk_leaves_the_store_as_it_was() {
    if !is_inside("a_read_only_disk_leaves_the_store_as_it_was") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    mount("size=1m", root);
    let store = open(root);
    let changed = change_all(root, &store, 1000).await;
    mount("remount,ro", root);
    let before = snapshot(root);
    for refused in [
        changed.commit_changes().await.map(drop),
        change_all(root, &store, 1000).await.commit_changes().await.map(drop),
        store.write(&path("replaced"), Vec::new(), WriteMode::Replace).await,
        store.write(&path("n/e/w"), Vec::new(), WriteMode::Create).await,
        store.delete(&path("deleted")).await,
        store.rename(&path("deleted"), &path("x")).await,
    ] {
        assert_eq!(refused.unwrap_err().to_string(), READ_ONLY);
    }
    assert_eq!(snapshot(root), before);
    assert_eq!(open(root).read(&path("replaced"), 99).await.unwrap(), b"replaced");
}

#[tokio::test]
async fn a_commit_across_a_mount_point_is_refused_and_leaves_the_store_as_it_was() {
    if !is_inside("a_commit_across_a_mount_point_is_refused_and_leaves_the_store_as_it_was") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    fs::create_dir(root.join("mounted")).unwrap();
    mount("size=1m", &root.join("mounted"));
    for name in ["old", "replaced"] {
        fs::write(root.join("mounted").join(name), name).unwrap();
    }
    let store = open(root);
    store.write(&path("mounted/single"), b"x".to_vec(), WriteMode::Create).await.unwrap();
    let before = {
        change_all(root, &store, 1000).await;
        snapshot(root)
    };
    for number in 0..4 {
        let overlay = change_all(root, &store, 1000).await;
        let changed = match number {
            0 => overlay.write(&path("mounted/new"), vec![1], WriteMode::Create).await,
            1 => overlay.write(&path("mounted/replaced"), vec![1], WriteMode::Replace).await,
            2 => overlay.delete(&path("mounted/old")).await,
            _ => overlay.rename(&path("mounted/old"), &path("out")).await,
        };
        changed.unwrap();
        let refused = overlay.commit_changes().await.unwrap_err();
        assert!(matches!(refused, FileError::MountPoint), "{number}: {refused:?}");
        assert_eq!(snapshot(root), before, "{number}");
    }
}

#[tokio::test]
async fn a_directory_without_the_right_to_write_leaves_the_store_as_it_was() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let store = open(root);
    drop(change_all(root, &store, 1000).await);
    let before = snapshot(root);
    for locked in ["", "moved"] {
        let locked = root.join(locked);
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o555)).unwrap();
        if fs::write(locked.join("trial"), "").is_ok() {
            println!("skipped: root may write everywhere");
            fs::remove_file(locked.join("trial")).unwrap();
            return;
        }
        let overlay = change_all(root, &store, 1000).await;
        overlay.write(&path("elsewhere/new"), Vec::new(), WriteMode::Create).await.unwrap();
        overlay.delete(&path("elsewhere/kept")).await.unwrap();
        let refused = overlay.commit_changes().await.unwrap_err();
        fs::set_permissions(&locked, fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(refused.to_string(), "the file store failed: permission denied.", "{locked:?}");
        assert_eq!(snapshot(root), before, "{locked:?}");
    }
}
