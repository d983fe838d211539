//! `cofferdam:plugin/files`: the stores of a plugin without a file API between.

use std::sync::Arc;

use cofferdam_engine::Mount;
use cofferdam_files::{FileStore, MemoryStore, Quota, Scope, StorePath, StoreSharing, WriteMode};
use cofferdam_tests::Host;
use cofferdam_tool::{CallContext, Completion, FileAccess, MountName};

use crate::script;

async fn host(store: &Arc<MemoryStore>, access: FileAccess) -> Host {
    let mut host = Host::new();
    let store = Arc::clone(store) as Arc<dyn FileStore>;
    host.grants.mounts = vec![Mount::new(MountName::new("data").unwrap(), store, access)];
    host.load("stores").await;
    host
}

fn memory(quota: Quota) -> Arc<MemoryStore> {
    Arc::new(MemoryStore::new(quota))
}

async fn run(host: &Host, steps: &[&[&str]]) -> Completion {
    host.call("stores", &script::arguments(steps)).await
}

async fn answers(host: &Host, steps: &[&[&str]]) -> Vec<String> {
    let completion = run(host, steps).await;
    let shown = completion.outcome.shown().unwrap();
    assert!(!shown.is_error, "{:?}", completion.outcome);
    script::answers(&shown.text())
}

#[tokio::test]
async fn every_operation_works_and_the_standard_library_sees_the_same_files() {
    let store = memory(Quota::default());
    let host = host(&store, FileAccess::ReadWrite).await;
    let steps: &[(&[&str], &str)] = &[
        (&["stores"], "data true"),
        (&["create", "data", "d/a.txt", "eins\nzwei\r\ndrei Eins"], "done"),
        (&["create", "data", "d/a.txt", ""], "already-exists"),
        (&["std_read", "", "/data/d/a.txt"], "eins\nzwei\r\ndrei Eins"),
        (&["std_write", "", "/data/b.md", "# eins"], "done"),
        (&["stat", "data", "b.md"], "file 6"),
        (&["stat", "data", "d"], "directory 0"),
        (&["stat", "data", ""], "directory 0"),
        (&["read", "data", "d/a.txt", "5", "4"], "zwei"),
        (&["read", "data", "d/a.txt", "99", "4"], ""),
        (&["list", "data", "", "", "recursive"], "directory d, file b.md, file d/a.txt"),
        (&["list", "data", "", "*.md", "recursive"], "file b.md"),
        (
            &["search", "data", "", "^.*eins$"],
            "b.md [1:# eins], d/a.txt [1:eins|3:drei Eins] false",
        ),
        (&["search", "data", "", "eins", "*.md"], "b.md [1:# eins] false"),
        (&["replace", "data", "b.md", "new"], "done"),
        (&["create_directory", "data", "e/f"], "done"),
        (&["create_directory", "data", "e"], "already-exists"),
        (&["delete", "data", "b.md"], "done"),
        (&["delete", "data", "b.md"], "not-found"),
    ];
    let (script, expected): (Vec<_>, Vec<_>) = steps.iter().copied().unzip();
    assert_eq!(answers(&host, &script).await, expected);
    let path = StorePath::file("d/a.txt").unwrap();
    assert_eq!(store.read(&path, 99).await.unwrap(), b"eins\nzwei\r\ndrei Eins");
}

#[tokio::test]
async fn errors_say_what_a_tool_can_act_on() {
    let quota = Quota { bytes_max: 20, ..Quota::default() };
    let host = host(&memory(quota), FileAccess::ReadWrite).await;
    let steps: &[(&[&str], &str)] = &[
        (&["create", "data", "d/a", "x"], "done"),
        (
            &["create", "data", "../a", ""],
            "invalid-path: Invalid path: '../a'. Paths must not contain '.' or '..' segments.",
        ),
        (
            &["create", "data", "d/a/b", ""],
            "wrong-type: a parent path is already a file. Choose a different path.",
        ),
        (
            &["create", "data", "d", ""],
            "wrong-type: this path is already a directory. Choose a different file name.",
        ),
        (
            &["create", "data", "b", "123456789012345678901"],
            "limit: the store's limit of 20 bytes would be exceeded.",
        ),
        (
            &["search", "data", "", "(?=a)"],
            "invalid-pattern: Invalid regex pattern: look-around and back-references are not \
             supported.",
        ),
        (
            &["list", "data", "", "{a,{b}}"],
            "invalid-pattern: Invalid glob pattern: braces must not be nested.",
        ),
        (&["read", "data", "nothing"], "not-found"),
        (&["read", "other", "a"], "unknown-store"),
    ];
    let (script, expected): (Vec<_>, Vec<_>) = steps.iter().copied().unzip();
    assert_eq!(answers(&host, &script).await, expected);
    let completion = run(&host, &[&["read", "other", "a"], &["read", "/etc", "a"]]).await;
    let refused: Vec<_> =
        completion.record.refused.iter().map(|refusal| refusal.capability.as_str()).collect();
    assert_eq!(refused, ["files:other=read-only"]);
}

#[tokio::test]
async fn the_access_of_a_mount_holds_here_too() {
    let store = memory(Quota::default());
    store
        .write(&StorePath::file("a").unwrap(), b"secret".to_vec(), WriteMode::Create)
        .await
        .unwrap();
    let reading = host(&store, FileAccess::ReadOnly).await;
    let steps: &[&[&str]] = &[
        &["stores"],
        &["read", "data", "a"],
        &["create", "data", "b", ""],
        &["replace", "data", "a", ""],
        &["delete", "data", "a"],
        &["create_directory", "data", "d"],
    ];
    let refused = "read-only";
    assert_eq!(
        answers(&reading, steps).await,
        ["data false", "secret", refused, refused, refused, refused]
    );
    let creating = host(&store, FileAccess::CreateOnly).await;
    let steps: &[&[&str]] = &[
        &["stores"],
        &["create", "data", "b", "new"],
        &["read", "data", "a"],
        &["search", "data", "", "secret"],
        &["list", "data", ""],
        &["replace", "data", "a", ""],
    ];
    let answers = answers(&creating, steps).await;
    assert_eq!(&answers[..2], ["data true", "done"]);
    assert!(answers[2..].iter().all(|answer| answer.starts_with("denied: ")), "{answers:?}");
    assert_eq!(store.read(&StorePath::file("a").unwrap(), 99).await.unwrap(), b"secret");
}

#[tokio::test]
async fn a_call_that_fails_leaves_nothing() {
    let store = memory(Quota::default());
    let host = host(&store, FileAccess::ReadWrite).await;
    for end in ["trap", "exit", "fail"] {
        let completion = run(&host, &[&["create", "data", "d/a", "x"], &[end]]).await;
        assert_ne!(completion.record.outcome, "ok");
        assert!(store.stat(&StorePath::file("d").unwrap()).await.is_err(), "{end}");
    }
}

#[tokio::test]
async fn sessions_can_have_a_directory_of_their_own() {
    let store = memory(Quota::default());
    let mut host = Host::new();
    let shared = Arc::clone(&store) as Arc<dyn FileStore>;
    let mount = Mount::new(MountName::new("data").unwrap(), shared, FileAccess::ReadWrite);
    host.grants.mounts = vec![Mount { sharing: StoreSharing::PerSession, ..mount }];
    host.load("stores").await;
    let steps: &[&[&str]] =
        &[&["create", "data", "a", "x"], &["std_read", "", "/data/a"], &["list", "data", ""]];
    for session in ["one", "two", "../one"] {
        let context = CallContext { session: Some(session.to_owned()), ..CallContext::new("c") };
        let ended = host.try_call("stores", &script::arguments(steps), &context).await.unwrap();
        assert_eq!(ended.record.outcome, "ok", "{session}: {:?}", ended.outcome);
        // The directory of the session and the file.
        assert_eq!(ended.record.files.len(), 2);
    }
    let listed = store.list(&StorePath::ROOT, Scope::Children).await.unwrap();
    assert_eq!(listed.entries.len(), 3);
    assert_eq!(store.read(&StorePath::file("two/a").unwrap(), 9).await.unwrap(), b"x");
}

#[tokio::test]
async fn what_a_guest_asks_for_is_not_allocated_before_it_is_known_to_fit() {
    let quota = Quota { bytes_max: u64::MAX, file_bytes_max: u64::MAX, ..Quota::default() };
    let store = memory(quota);
    store
        .write(&StorePath::file("a").unwrap(), vec![b'x'; 100 << 20], WriteMode::Create)
        .await
        .unwrap();
    let host = host(&store, FileAccess::ReadOnly).await;
    let limit = "limit: the changes of one call may take 83886080 bytes of memory at most.";
    assert_eq!(
        answers(&host, &[&["read", "data", "a"], &["read", "data", "a", "0", "3"]]).await,
        [limit, "xxx"]
    );
}
