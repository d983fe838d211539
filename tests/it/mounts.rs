//! Files of a guest: what it can and cannot do to a mount with its standard library, and what
//! remains after a call.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cofferdam_engine::Mount;
use cofferdam_files::{
    DirectoryOptions, DirectoryStore, FileStore, MemoryStore, Quota, QuotaCounts, Scope,
    SpillOptions, StorePath, WriteMode,
};
use cofferdam_tests::Host;
use cofferdam_tool::permission::RequestedLimits;
use cofferdam_tool::record::FileChange;
use cofferdam_tool::{CallContext, Completion, FileAccess, MountName};
use tempfile::TempDir;

/// Directory of the host behind the mount `/data`.
struct Directory {
    folder: TempDir,
    host: Host,
}

impl Directory {
    async fn with(access: FileAccess, quota: Quota) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path(), quota);
        Self { folder, host: host(store, access).await }
    }

    async fn new() -> Self {
        Self::with(FileAccess::ReadWrite, Quota::default()).await
    }

    fn inside(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    /// Lists every path below the mount: directories with a `/`, files with their content.
    fn shown(&self) -> String {
        fn below(directory: &Path, prefix: &str, lines: &mut Vec<String>) {
            for entry in std::fs::read_dir(directory).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.file_type().unwrap().is_dir() {
                    lines.push(format!("{name}/"));
                    below(&entry.path(), &format!("{name}/"), lines);
                } else {
                    lines.push(format!(
                        "{name}={}",
                        std::fs::read_to_string(entry.path()).unwrap_or_default()
                    ));
                }
            }
        }
        let mut lines = Vec::new();
        below(self.folder.path(), "", &mut lines);
        lines.sort();
        lines.join(" ")
    }
}

fn open(directory: &Path, quota: Quota) -> Arc<dyn FileStore> {
    let options = DirectoryOptions { quota, is_durable: false, ..DirectoryOptions::default() };
    Arc::new(
        DirectoryStore::open_ambient(directory, options).expect("the directory can be mounted"),
    )
}

async fn host(store: Arc<dyn FileStore>, access: FileAccess) -> Host {
    let mut host = Host::new();
    host.grants.mounts = vec![mount("data", store, access)];
    host.load("files").await;
    host
}

fn mount(name: &str, store: Arc<dyn FileStore>, access: FileAccess) -> Mount {
    Mount::new(MountName::new(name).unwrap(), store, access)
}

async fn run(host: &Host, script: &str) -> Completion {
    host.call("files", &serde_json::json!({ "script": script }).to_string()).await
}

/// Returns the answers of the steps of a call that succeeded.
async fn answers(host: &Host, script: &str) -> String {
    let completion = run(host, script).await;
    assert_eq!(completion.record.outcome, "ok", "{script}: {:?}", completion.outcome);
    completion.outcome.shown().unwrap().text()
}

/// Splits pairs of step and answer into the script of one call and its expected output.
#[track_caller]
fn expect(steps: &[(&str, &str)]) -> (String, String) {
    let (steps, answers): (Vec<_>, Vec<_>) = steps.iter().copied().unzip();
    (steps.join("; "), answers.join("; "))
}

async fn check(host: &Host, steps: &[(&str, &str)]) {
    let (script, expected) = expect(steps);
    assert_eq!(answers(host, &script).await, expected, "{script}");
}

/// Returns the same host over a store in memory and over a directory.
async fn both(quota: Quota) -> [(Host, Option<TempDir>); 2] {
    let folder = tempfile::tempdir().unwrap();
    let directory = host(open(folder.path(), quota), FileAccess::ReadWrite).await;
    let memory = host(Arc::new(MemoryStore::new(quota)), FileAccess::ReadWrite).await;
    [(memory, None), (directory, Some(folder))]
}

/// The C library of WASI does not ask for the cause of a failed stream: every code becomes an
/// input/output error.
const FULL: &str = "error: os 29";

const SMALL: Quota = Quota {
    bytes_max: 100,
    entries_max: 6,
    file_bytes_max: 60,
    depth_max: 4,
    counts: QuotaCounts::Total,
};

#[tokio::test]
async fn the_standard_library_works_on_every_store() {
    for (host, _folder) in both(Quota::default()).await {
        check(
            &host,
            &[
                ("write /data/a hello", "done"),
                ("append /data/a -world", "done"),
                ("read /data/a", "hello-world"),
                ("size /data/a", "11"),
                ("set_len /data/a 5", "done"),
                ("read /data/a", "hello"),
                ("create_new /data/a", "error: AlreadyExists"),
                ("create_dir /data/d", "done"),
                ("create_dir /data/d", "error: AlreadyExists"),
                ("create_dir /data/x/y", "error: NotFound"),
                ("create_dir_all /data/x/y", "done"),
                ("rename /data/a /data/x/y/b", "done"),
                ("read /data/a", "error: NotFound"),
                ("copy /data/x/y/b /data/c", "5"),
                ("list /data", "c d/ x/"),
                ("remove_dir /data/x", "error: os 55"),
                ("rename /data/x /data/d/z", "done"),
                ("read /data/d/z/y/b", "hello"),
                ("remove_file /data/d", "error: IsADirectory"),
                ("remove_dir /data/c", "error: NotADirectory"),
                ("is_new /data/c", "true"),
            ],
        )
        .await;
        // The next call sees the files of the first.
        check(
            &host,
            &[
                ("list /data", "c d/"),
                ("list /data/d/z/y", "b"),
                ("remove_dir_all /data/d", "done"),
                ("remove_file /data/c", "done"),
                ("list /data", ""),
            ],
        )
        .await;
        check(&host, &[("list /data", "")]).await;
    }
}

#[tokio::test]
async fn open_files_see_each_other_and_outlive_their_names() {
    for (host, _folder) in both(Quota::default()).await {
        check(&host, &[("write /data/a 0123456789", "done")]).await;
        check(
            &host,
            &[
                ("open r /data/a", "0"),
                ("open rw /data/a", "1"),
                ("seek 1 20", "20"),
                ("put 1 end", "done"),
                ("length 0", "23"),
                ("rename /data/a /data/b", "done"),
                ("cut 1 12", "done"),
                ("get 0", "0123456789\0\0"),
                ("remove_file /data/b", "done"),
                ("seek 0 8", "8"),
                ("get 0", "89\0\0"),
                ("open cwt /data/b", "2"),
                ("put 2 new", "done"),
                ("put 2 er", "done"),
                ("read /data/b", "newer"),
                ("sync 2", "done"),
            ],
        )
        .await;
        check(&host, &[("list /data", "b"), ("read /data/b", "newer")]).await;
    }
}

#[tokio::test]
async fn quotas_hold_exactly_against_every_trick() {
    for (host, _folder) in both(SMALL).await {
        check(
            &host,
            &[
                ("open rwc /data/a", "0"),
                ("cut 0 1099511627776", "error: FileTooLarge"),
                ("cut 0 61", "error: FileTooLarge"),
                ("seek 0 1099511627776", "1099511627776"),
                ("put 0 x", FULL),
                ("length 0", "0"),
                ("cut 0 60", "done"),
                ("append /data/a x", FULL),
                ("fill /data/b 40", "done"),
                ("append /data/b x", FULL),
                ("cut 0 59", "done"),
                ("append /data/b x", "done"),
                ("append /data/b x", FULL),
                ("cut 0 60", "error: QuotaExceeded"),
                ("set_len /data/b 0", "done"),
                ("remove_file /data/a", "done"),
                ("many /data 10", "5 QuotaExceeded"),
                ("create_dir /data/d", "error: QuotaExceeded"),
            ],
        )
        .await;
        // The lower store has counted the same usage.
        check(
            &host,
            &[("list /data", "0 1 2 3 4 b"), ("create_new /data/x", "error: QuotaExceeded")],
        )
        .await;
        let all =
            "remove_file /data/0; remove_file /data/1; remove_file /data/2; remove_file /data/3";
        assert_eq!(answers(&host, all).await, "done; done; done; done");
        check(&host, &[("deep /data 9", "4 QuotaExceeded"), ("fill /data/b 60", "done")]).await;
        check(&host, &[("fill /data/4 41", FULL), ("size /data/4", "0")]).await;
    }
}

#[tokio::test]
async fn a_file_that_is_deleted_while_it_is_open_gives_its_room_back() {
    for (host, _folder) in both(SMALL).await {
        let script = "open rwc /data/a; cut 0 60; remove_file /data/a; open rwc /data/b; cut 1 \
            60; fill /data/c 40";
        assert_eq!(answers(&host, script).await, "0; done; done; 1; done; done");
        check(&host, &[("list /data", "b c"), ("append /data/c x", FULL)]).await;
    }
}

#[tokio::test]
async fn the_memory_of_one_call_is_bounded_whatever_the_quota() {
    let large = Quota { bytes_max: 1 << 40, file_bytes_max: 1 << 40, ..Quota::default() };
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(large));
    let host = host(Arc::clone(&store), FileAccess::ReadWrite).await;
    let steps = [
        ("open rwc /data/a", "0"),
        ("cut 0 1000000000000", "error: StorageFull"),
        ("cut 0 83000000", "done"),
        ("fill /data/b 3000000", FULL),
        ("cut 0 0", "done"),
        ("fill /data/b 3000000", "done"),
    ];
    check(&host, &steps).await;
}

#[tokio::test]
async fn changes_that_are_too_large_for_memory_go_to_disk() {
    let (folder, spilled) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let unlimited = Quota { bytes_max: 1 << 40, file_bytes_max: 1 << 40, ..Quota::default() };
    let mut config = cofferdam_tests::config();
    config.cache_directory = Some(cofferdam_tests::shared_cache());
    config.spill = Some(SpillOptions {
        directory_ambient: spilled.path().to_owned(),
        bytes_max: 120 << 20,
        file_bytes_min: 4 << 20,
    });
    let mut host = Host::with(config);
    host.grants.mounts = vec![mount("data", open(folder.path(), unlimited), FileAccess::ReadWrite)];
    host.load("files").await;
    let bytes = 100 << 20;
    let script = format!(
        "fill /data/large {bytes}; size /data/large; write /data/small x; fill /data/more {bytes}"
    );
    assert_eq!(answers(&host, &script).await, format!("done; {bytes}; done; {FULL}"));
    assert_eq!(std::fs::metadata(folder.path().join("large")).unwrap().len(), bytes);
    assert_eq!(std::fs::read_dir(spilled.path()).unwrap().count(), 0);

    let exposed = open(spilled.path(), unlimited);
    host.grants.mounts = vec![mount("data", exposed, FileAccess::ReadOnly)];
    let component = cofferdam_engine::Component::from_file_ambient(cofferdam_tests::guest("files"));
    assert!(host.try_load(&component).await.is_err());
}

#[tokio::test]
async fn names_are_those_of_stores() {
    let scene = Directory::new().await;
    for name in ["CON", "a:b", "end.", "a\\\\b", ".~cofferdam-x", "nul.txt"] {
        let arguments = format!(r#"{{"do":"write","from":"/data/{name}","to":"x"}}"#);
        let answer = scene.host.call("files", &arguments).await.outcome.shown().unwrap().text();
        assert_eq!(answer, "error: InvalidInput", "{name}");
    }
    check(
        &scene.host,
        &[
            ("create_dir /data/d/", "done"),
            ("write /data/./d//a x", "done"),
            ("read /data/d/../d/./a", "x"),
            ("kind /data/d/", "directory"),
            ("read /data/d/a/", "error: NotADirectory"),
            ("kind /data/d/a/.", "error: NotADirectory"),
            ("list /data/.", "d/"),
        ],
    )
    .await;
    for outside in ["/data/../etc/passwd", "/data/d/../../x", "/etc/passwd", "../x", "/data/.."] {
        let answer =
            answers(&scene.host, &format!("read {outside}; write {outside} x; list {outside}"))
                .await;
        assert_eq!(answer.matches("error: ").count(), 3, "{outside}: {answer}");
    }
    assert_eq!(scene.shown(), "d/ d/a=x");
}

#[tokio::test]
async fn links_that_are_there_are_refused_and_invisible() {
    use std::os::unix::fs::symlink;
    let scene = Directory::new().await;
    std::fs::create_dir(scene.inside("d")).unwrap();
    std::fs::write(scene.inside("d/a"), "inside").unwrap();
    for (name, target) in
        [("f", "d/a"), ("dir", "d"), ("out", "/etc"), ("passwd", "/etc/passwd"), ("loop", "loop")]
    {
        symlink(target, scene.inside(name)).unwrap();
    }
    let before = scene.shown();
    for path in [
        "/data/f",
        "/data/dir/a",
        "/data/out/passwd",
        "/data/passwd",
        "/data/loop",
        "/data/dir/new",
    ] {
        let script = format!(
            "read {path}; write {path} x; append {path} x; remove_file {path}; size {path}; rename {path} /data/n; \
             rename /data/d/a {path}; create_dir {path}; set_len {path} 0"
        );
        assert_eq!(
            answers(&scene.host, &script).await,
            ["error: PermissionDenied"; 9].join("; "),
            "{path}"
        );
    }
    // A directory that contains a link cannot be removed.
    symlink("a", scene.inside("d/link")).unwrap();
    std::fs::remove_file(scene.inside("d/link")).unwrap();
    symlink("../f", scene.inside("d/hidden")).unwrap();
    check(
        &scene.host,
        &[
            ("list /data", "d/"),
            ("list /data/d", "a"),
            ("remove_file /data/d/a", "done"),
            ("remove_dir /data/d", "error: os 55"),
            ("write /data/d/a inside", "done"),
        ],
    )
    .await;
    std::fs::remove_file(scene.inside("d/hidden")).unwrap();
    assert_eq!(scene.shown(), before);
}

#[tokio::test]
async fn pipes_and_devices_block_nothing() {
    let scene = Directory::new().await;
    for name in ["pipe", "old"] {
        let made = std::process::Command::new("mkfifo").arg(scene.inside(name)).status().unwrap();
        assert!(made.success());
    }
    let calls = (0..200).map(|_| "read /data/pipe").collect::<Vec<_>>().join("; ");
    let answer =
        tokio::time::timeout(Duration::from_secs(20), answers(&scene.host, &calls)).await.unwrap();
    assert_eq!(answer, ["error: NotFound"; 200].join("; "));
    check(
        &scene.host,
        &[
            ("list /data", ""),
            ("kind /data/pipe", "error: NotFound"),
            ("remove_file /data/pipe", "error: NotFound"),
        ],
    )
    .await;
    let script = "write /data/pipe x; create_new /data/pipe; create_dir /data/pipe; write /data/a \
        x; rename /data/a /data/pipe";
    let denied = "error: PermissionDenied";
    let expected = [denied, denied, "error: AlreadyExists", "done", denied].join("; ");
    assert_eq!(answers(&scene.host, script).await, expected);
}

#[tokio::test]
async fn a_call_that_does_not_succeed_leaves_no_trace() {
    let scene = Directory::new().await;
    std::fs::create_dir(scene.inside("d")).unwrap();
    std::fs::write(scene.inside("d/a"), "old").unwrap();
    let before = scene.shown();
    let work = "write /data/d/a new; write /data/b new; create_dir_all /data/x/y; rename /data/d /data/e; \
                remove_file /data/e/a";
    for (end, error_type) in
        [("fail", None), ("trap", Some("Trap.Unreachable")), ("flood", Some("OutputLimit"))]
    {
        let ended = run(&scene.host, &format!("{work}; {end}")).await;
        assert_eq!(ended.record.error_type.as_deref(), error_type);
        assert_eq!((scene.shown(), ended.record.files.len()), (before.clone(), 0), "{end}");
    }
    let arguments = serde_json::json!({ "script": work }).to_string();
    let ended = scene.host.call("lies_about_files", &arguments).await;
    assert_eq!(ended.record.error_type.as_deref(), Some("InvalidResult"));
    assert_eq!(scene.shown(), before);

    let spin = serde_json::json!({ "script": format!("{work}; spin") }).to_string();
    let context = CallContext::new("given up");
    let cancellation = context.cancellation.clone();
    let canceller = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        cancellation.cancel();
    });
    let ended = scene.host.try_call("files", &spin, &context).await.unwrap();
    canceller.await.unwrap();
    assert_eq!((ended.record.outcome, scene.shown()), ("cancelled", before.clone()));

    let limits = RequestedLimits { wall_ms_max: Some(500), ..RequestedLimits::default() };
    let context = CallContext { limits: Some(Arc::new(limits)), ..CallContext::new("late") };
    let ended = scene.host.try_call("files", &spin, &context).await.unwrap();
    assert_eq!(ended.record.error_type.as_deref(), Some("Timeout"));
    assert_eq!(scene.shown(), before);
    // The same work is committed if the call succeeds.
    assert!(!answers(&scene.host, work).await.contains("error"));
    assert_eq!(scene.shown(), "b=new e/ x/ x/y/");
}

#[tokio::test]
async fn the_record_lists_what_was_changed() {
    let scene = Directory::new().await;
    check(
        &scene.host,
        &[
            ("write /data/a old", "done"),
            ("write /data/b gone", "done"),
            ("create_dir /data/m", "done"),
        ],
    )
    .await;
    let script = "write /data/a newer; remove_file /data/b; create_dir /data/d; write /data/d/c x; read /data/a; \
                  write /data/t x; remove_file /data/t; rename /data/m /data/n";
    let record = run(&scene.host, script).await.record;
    let line = |change: &FileChange| {
        format!("{} {:?} {} {}", change.mount, change.what, change.path, change.bytes)
    };
    let lines: Vec<_> = record.files.iter().map(line).collect();
    let expected = [
        "data Changed a 5",
        "data Deleted b 0",
        "data Created d/ 0",
        "data Created d/c 1",
        "data Deleted m/ 0",
        "data Created n/ 0",
    ];
    assert_eq!(lines, expected);
    let many = run(&scene.host, "many /data/d 1500").await.record;
    assert_eq!((many.files.len(), many.files_left_out), (1000, 500));
    assert!(run(&scene.host, "read /data/a; list /data").await.record.files.is_empty());
}

#[tokio::test]
async fn the_second_of_two_calls_on_one_file_gets_a_conflict() {
    let store: Arc<dyn FileStore> = Arc::new(MemoryStore::new(Quota::default()));
    let path = StorePath::file("a").unwrap();
    store.write(&path, b"0".to_vec(), WriteMode::Create).await.unwrap();
    let host = Arc::new(host(Arc::clone(&store), FileAccess::ReadWrite).await);
    let call = tokio::spawn({
        let host = Arc::clone(&host);
        async move { run(&host, "write /data/b mine; await_change /data/a; write /data/a mine").await }
    });
    let mut number = 0_u32;
    while !call.is_finished() {
        number += 1;
        store.write(&path, number.to_string().into_bytes(), WriteMode::Replace).await.unwrap();
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let ended = call.await.unwrap();
    assert_eq!(ended.record.error_type.as_deref(), Some("Conflict"), "{:?}", ended.outcome);
    assert_eq!(ended.outcome.transient(), Some(true));
    assert!(ended.record.files.is_empty());
    // Nothing of it remains, and a call that only reads meets no conflict.
    let listing = store.list(&StorePath::ROOT, Scope::Recursive).await.unwrap();
    assert_eq!(listing.entries.len(), 1);
    assert_eq!(answers(&host, "read /data/a; write /data/b mine").await, format!("{number}; done"));
}

#[tokio::test]
async fn a_read_only_mount_refuses_every_change() {
    let scene = Directory::with(FileAccess::ReadOnly, Quota::default()).await;
    std::fs::create_dir(scene.inside("d")).unwrap();
    std::fs::write(scene.inside("a"), "hello").unwrap();
    let before = scene.shown();
    check(&scene.host, &[("read /data/a", "hello"), ("list /data", "a d/"), ("scan /data/a", "5")])
        .await;
    let changes = "write /data/a x; append /data/a x; write /data/new x; create_new /data/new; set_len /data/a 0; \
                   create_dir /data/x; remove_file /data/a; remove_dir /data/d; rename /data/a \
                   /data/b";
    let answer = answers(&scene.host, changes).await;
    assert_eq!(answer, ["error: ReadOnlyFilesystem"; 9].join("; "));
    assert_eq!(scene.shown(), before);
}

#[tokio::test]
async fn a_file_that_is_open_for_reading_cannot_be_written() {
    let scene = Directory::new().await;
    let steps = [
        ("write /data/a x", "done"),
        ("open r /data/a", "0"),
        ("put 0 y", "error"),
        ("cut 0 0", "error"),
    ];
    let (script, _) = expect(&steps);
    let answer = answers(&scene.host, &script).await;
    assert_eq!(answer.matches("error: ").count(), 2, "{answer}");
    assert_eq!(scene.shown(), "a=x");
}

#[tokio::test]
async fn a_create_only_mount_takes_new_files_and_gives_nothing_out() {
    let scene = Directory::with(FileAccess::CreateOnly, Quota::default()).await;
    std::fs::create_dir(scene.inside("d")).unwrap();
    std::fs::write(scene.inside("d/secret"), "secret").unwrap();
    let denied = "error: PermissionDenied";
    check(
        &scene.host,
        &[
            ("read /data/d/secret", denied),
            ("size /data/d/secret", denied),
            ("write /data/d/secret x", denied),
            ("append /data/d/secret x", denied),
            ("set_len /data/d/secret 0", denied),
            ("remove_file /data/d/secret", denied),
            ("rename /data/d/secret /data/mine", denied),
            ("list /data", denied),
            ("list /data/d", denied),
            ("remove_dir /data/d", denied),
            ("rename /data/d /data/e", denied),
            ("read /data/d/other", "error: NotFound"),
            ("write /data/d/mine one", "done"),
            ("append /data/d/mine -two", "done"),
            ("read /data/d/mine", "one-two"),
            ("create_dir_all /data/d/new/er", "done"),
            ("write /data/d/new/er/a x", "done"),
            ("list /data/d/new/er", "a"),
            ("rename /data/d/mine /data/d/secret", denied),
        ],
    )
    .await;
    assert_eq!(scene.shown(), "d/ d/mine=one-two d/new/ d/new/er/ d/new/er/a=x d/secret=secret");
    // These files were made by another call.
    check(&scene.host, &[("read /data/d/mine", denied), ("write /data/d/mine x", denied)]).await;
}

#[tokio::test]
async fn mounts_do_not_touch_each_other() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut host = Host::new();
    host.grants.mounts = vec![
        mount("one", open(one.path(), SMALL), FileAccess::ReadWrite),
        mount("two", open(two.path(), SMALL), FileAccess::ReadWrite),
    ];
    host.load("files").await;
    check(
        &host,
        &[
            ("write /one/a x", "done"),
            ("rename /one/a /two/a", "error: CrossesDevices"),
            ("copy /one/a /two/a", "1"),
            ("read /one/../two/a", "error: PermissionDenied"),
            ("list /two", "a"),
        ],
    )
    .await;
}

#[tokio::test]
async fn descriptors_and_listings_are_limited() {
    let folder = tempfile::tempdir().unwrap();
    let mut host = Host::new();
    host.limits.handles_max = 40;
    host.grants.mounts =
        vec![mount("data", open(folder.path(), Quota::default()), FileAccess::ReadWrite)];
    host.load("files").await;
    let hoard = ["open rwc /data/a"; 60].join("; ");
    assert_eq!(run(&host, &hoard).await.record.error_type.as_deref(), Some("HandleLimit"));
    // Any number is possible one after another.
    let polite = ["write /data/a x; list /data"; 60].join("; ");
    assert!(!answers(&host, &polite).await.contains("error"));
}

/// Another thread swaps a directory for a link to a secret while a guest reads by that path. The
/// directory is in memory: elsewhere, each swap waits until the disk has what other tests write.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_directory_for_a_link_shows_a_guest_nothing_outside() {
    let outer = tempfile::tempdir_in("/dev/shm").unwrap();
    let inside = |name: &str| outer.path().join("mount").join(name);
    std::fs::create_dir_all(inside("d")).unwrap();
    std::fs::create_dir(outer.path().join("secret")).unwrap();
    std::fs::write(inside("d/f"), "inside").unwrap();
    std::fs::write(outer.path().join("secret/f"), "outside").unwrap();
    std::os::unix::fs::symlink("../secret", inside("link")).unwrap();
    let mut host = Host::new();
    host.limits.wall_ms_max = 120_000;
    host.grants.mounts =
        vec![mount("data", open(&inside(""), Quota::default()), FileAccess::ReadWrite)];
    host.load("files").await;
    let is_over = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (is_over, one, two, spare) =
            (Arc::clone(&is_over), inside("d"), inside("link"), inside("spare"));
        move || {
            let mut swaps = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                for (from, to) in [(&one, &spare), (&two, &one), (&spare, &two)] {
                    std::fs::rename(from, to).unwrap();
                }
                swaps += 1;
                // Lookups start again after a rename, and would never end beside endless ones.
                std::thread::sleep(Duration::from_micros(50));
            }
            swaps
        }
    });
    let answer = answers(&host, "watch /data/d/f 500").await;
    is_over.store(true, Ordering::Relaxed);
    assert!(swapper.join().unwrap() > 100);
    assert!(!answer.contains("outside"), "{answer}");
    assert!(answer.starts_with("inside refused "), "{answer}");
    assert!(!answer.ends_with(" 0"), "nothing was ever swapped: {answer}");
}
