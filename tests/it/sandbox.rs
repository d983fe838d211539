//! What a guest can reach, and what survives a call.

use std::sync::Arc;

use cofferdam_engine::{Access, Component, LoadError, Mount, MountName};
use cofferdam_files::{DirectoryOptions, DirectoryStore};
use cofferdam_tests::{Host, guest, shared_cache};

#[tokio::test]
async fn nothing_is_ambient() {
    let mut host = Host::new();
    host.load("looks_around").await;
    let seen = host.call("looks_around", "{}").await.outcome.shown().unwrap().text();
    // No variables, no arguments, no directories, and standard input ends at once.
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
async fn what_a_guest_prints_is_kept_bounded_and_goes_nowhere() {
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
            tokio::spawn(async move { host.call("remember", "{}").await.outcome.shown().unwrap().text() })
        })
        .collect();
    // More calls than the pool has places: the rest waits for its turn.
    for call in calls {
        assert_eq!(call.await.unwrap(), "1");
    }
}

fn mount(directory: &std::path::Path, access: Access) -> Mount {
    let options =
        DirectoryOptions { is_read_only: access == Access::ReadOnly, ..DirectoryOptions::default() };
    let store = DirectoryStore::open_ambient(directory, options).expect("the directory can be mounted");
    Mount { name: MountName::new("data").unwrap(), store: Arc::new(store), access }
}

#[tokio::test]
async fn a_mount_shows_its_files_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.md"), "# Title\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.md")).unwrap();
    let mut host = Host::new();
    host.grants.mounts.push(mount(folder.path(), Access::ReadOnly));
    host.load("markdown").await;

    let outline = host.call("outline", r#"{"file":"/data/a.md"}"#).await;
    assert_eq!(outline.record.outcome, "ok", "{:?}", outline.outcome);
    for outside in ["/etc/passwd", "/data/../etc/passwd", "/data/link.md", "/data/../../etc/passwd", "a.md"] {
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
        host.grants.mounts = vec![mount(&exposed, Access::ReadOnly)];
        let error = host.try_load(&Component::from_file_ambient(guest("crash"))).await.err().unwrap();
        assert!(matches!(error, LoadError::MountExposesCache { .. }), "{error}");
    }
}
