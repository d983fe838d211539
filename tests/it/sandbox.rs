//! What a guest can reach, and what survives a call.

use std::sync::Arc;

use cofferdam_engine::{Component, LoadError, Mount};
use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_tests::{Host, guest, shared_cache};
use cofferdam_tool::{FileAccess, MountName};

#[tokio::test]
async fn nothing_is_ambient() {
    let mut host = Host::new();
    host.load("looks_around").await;
    let seen = host.call("looks_around", "{}").await.outcome.shown().unwrap().text();
    // No variables, arguments or directories, and standard input is empty.
    assert!(seen.starts_with("0 0 Err("), "{seen}");
    assert!(seen.ends_with("Ok(0)"), "{seen}");
    assert_eq!(seen.matches("Err(").count(), 2, "{seen}");
}

#[tokio::test]
async fn no_state_survives_a_call() {
    let mut host = Host::new();
    host.load("remember").await;
    for _ in 0..3 {
        assert_eq!(host.call("remember", "{}").await.outcome.shown().unwrap().text(), "1");
    }
}

#[tokio::test]
async fn what_a_guest_prints_is_bounded_and_goes_nowhere() {
    let mut host = Host::new();
    host.load("floods").await;
    let record = host.call("floods", "{}").await.record;
    assert_eq!(record.outcome, "ok");
    assert_eq!(record.stdout_tail.len(), 8192);
    assert!(record.stdout_tail.ends_with("the end\u{1b}[2J\n"));
}

#[tokio::test]
async fn concurrent_calls_do_not_see_each_other() {
    let mut host = Host::new();
    host.load("remember").await;
    let host = Arc::new(host);
    let calls: Vec<_> = (0..64)
        .map(|_| {
            let host = Arc::clone(&host);
            tokio::spawn(async move {
                host.call("remember", "{}").await.outcome.shown().unwrap().text()
            })
        })
        .collect();
    // More calls than the pool has instances: the rest waits.
    for call in calls {
        assert_eq!(call.await.unwrap(), "1");
    }
}

fn mount(directory: &std::path::Path, access: FileAccess) -> Mount {
    mount_as("data", directory, access)
}

fn mount_as(name: &str, directory: &std::path::Path, access: FileAccess) -> Mount {
    let options = DirectoryOptions {
        is_read_only: access == FileAccess::ReadOnly,
        ..DirectoryOptions::default()
    };
    let store =
        DirectoryStore::open_ambient(directory, options).expect("the directory can be mounted");
    Mount::new(MountName::new(name).unwrap(), Arc::new(store), access)
}

#[tokio::test]
async fn a_mount_shows_its_files_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.md"), "# Title\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.md")).unwrap();
    let mut host = Host::new();
    host.grants.mounts.push(mount(folder.path(), FileAccess::ReadOnly));
    host.load("markdown").await;

    let outline = host.call("outline", r#"{"file":"/data/a.md"}"#).await;
    assert_eq!(outline.record.outcome, "ok", "{:?}", outline.outcome);
    for outside in
        ["/etc/passwd", "/data/../etc/passwd", "/data/link.md", "/data/../../etc/passwd", "a.md"]
    {
        let arguments = serde_json::json!({ "file": outside }).to_string();
        let ended = host.call("outline", &arguments).await;
        assert_eq!(ended.record.outcome, "failure", "{outside}: {:?}", ended.outcome);
        assert!(!ended.outcome.shown().unwrap().text().contains("root:"), "{outside}");
    }
}

#[tokio::test]
async fn a_mount_cannot_reach_the_cache() {
    let mut host = Host::new();
    for exposed in [shared_cache(), shared_cache().parent().unwrap().to_owned()] {
        host.grants.mounts = vec![mount(&exposed, FileAccess::ReadOnly)];
        let error =
            host.try_load(&Component::from_file_ambient(guest("crash"))).await.err().unwrap();
        assert!(matches!(error, LoadError::MountExposesCache { .. }), "{error}");
    }
}

/// Returns a host whose guest `files` may write in the given folders.
async fn files(mounts: &[(&str, &std::path::Path)]) -> Host {
    let mut host = Host::new();
    host.limits.wall_ms_max = 500;
    host.grants.mounts =
        mounts.iter().map(|(name, folder)| mount_as(name, folder, FileAccess::ReadWrite)).collect();
    host.load("files").await;
    host
}

async fn act(host: &Host, what: &str, from: &str, to: &str) -> String {
    let arguments = serde_json::json!({ "do": what, "from": from, "to": to }).to_string();
    let completion = host.call("files", &arguments).await;
    completion.outcome.shown().unwrap().text()
}

#[tokio::test]
async fn a_guest_can_work_on_files_and_cannot_plant_links() {
    let folder = tempfile::tempdir().unwrap();
    let host = files(&[("data", folder.path())]).await;
    assert_eq!(act(&host, "write", "/data/a.txt", "hello").await, "done");
    assert_eq!(act(&host, "read", "/data/a.txt", "").await, "hello");
    assert_eq!(act(&host, "rename", "/data/a.txt", "/data/b.txt").await, "done");
    assert!(act(&host, "symlink", "../outside", "/data/link").await.starts_with("error"));
    assert!(act(&host, "symlink", "b.txt", "/data/link").await.starts_with("error"));
    assert!(act(&host, "link", "/data/b.txt", "/data/hard").await.starts_with("error"));
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["b.txt"]);
}

#[tokio::test]
async fn a_read_only_mount_cannot_be_changed() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.txt"), "hello").unwrap();
    let mut host = Host::new();
    host.grants.mounts = vec![mount(folder.path(), FileAccess::ReadOnly)];
    host.load("files").await;
    assert_eq!(act(&host, "read", "/data/a.txt", "").await, "hello");
    for (what, to) in [("write", "x"), ("rename", "/data/b.txt"), ("link", "/data/b.txt")] {
        assert!(act(&host, what, "/data/a.txt", to).await.starts_with("error"), "{what}");
    }
    assert_eq!(std::fs::read_to_string(folder.path().join("a.txt")).unwrap(), "hello");
}

/// A mount inside another one, replaced through the outer one between two calls: the inner mount
/// stays the same directory.
#[tokio::test]
async fn a_mount_cannot_be_moved_by_way_of_another_one() {
    let folder = tempfile::tempdir().unwrap();
    let (outer, outside) = (folder.path().join("outer"), folder.path().join("outside"));
    std::fs::create_dir_all(outer.join("inner")).unwrap();
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("secret"), "secret").unwrap();
    let host = files(&[("a", &outer), ("b", &outer.join("inner"))]).await;
    assert_eq!(act(&host, "rename", "/a/inner", "/a/moved").await, "done");
    // The guest cannot make this link itself; another program might.
    std::os::unix::fs::symlink("../outside", outer.join("inner")).unwrap();
    assert!(act(&host, "read", "/b/secret", "").await.starts_with("error"));
    assert_eq!(act(&host, "write", "/b/new", "mine").await, "done");
    assert!(!outside.join("new").exists());
    assert_eq!(std::fs::read_to_string(outer.join("moved/new")).unwrap(), "mine");
}

#[tokio::test]
async fn a_pipe_in_a_mount_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    std::os::unix::fs::symlink("pipe", folder.path().join("link")).unwrap();
    let host = files(&[("data", folder.path())]).await;
    for path in ["/data/pipe", "/data/link"] {
        let read = act(&host, "read", path, "").await;
        assert!(read.starts_with("error"), "{path}: {read}");
        let written = act(&host, "write", path, "x").await;
        assert!(written.starts_with("error"), "{path}: {written}");
    }
}
