//! File APIs of other languages, in components that their own toolchains build: stdio and POSIX
//! functions in C; `open`, `os` and their users in Python.
//!
//! Most steps and their answers are the same for every language. Each test runs over a store in
//! memory and over a directory, and checks the store afterwards. Guests that are not built are
//! skipped, except in CI.

mod c;
mod python;

use std::io::Write as _;
use std::sync::Arc;

use cofferdam_engine::Mount;
use cofferdam_files::{
    DirectoryOptions, DirectoryStore, EntryKind, FileStore, MemoryStore, Quota, Scope, StorePath,
    WriteMode,
};
use cofferdam_tests::{Host, root};
use cofferdam_tool::{Completion, FileAccess, MountName, Outcome, Output};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Mutex;

const C: &str = "files_c";
const PYTHON: &str = "files_python";

/// Locked while a guest is loaded, which may compile it.
static LOADING: Mutex<()> = Mutex::const_new(());

/// Guest with a writable store at `/data` and a read-only store at `/look`.
struct Case {
    host: Host,
    store: Arc<dyn FileStore>,
    /// Language and store.
    name: String,
    _folder: Option<TempDir>,
}

/// Returns whether a guest is built, and prints a notice if not.
fn is_built(guest: &str) -> bool {
    let is_built = root().join("target/plugins").join(format!("{guest}.wasm")).is_file();
    if !is_built {
        assert!(
            std::env::var_os("CI").is_none(),
            "{guest} is not built: run `cargo xtask guests` first"
        );
        // Not with a macro: the test harness hides its output if the test passes.
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: {guest} is not built; `cargo xtask guests` says what it needs"
        );
    }
    is_built
}

/// Returns a guest over every store.
async fn cases(guest: &str, quota: Quota) -> Vec<Case> {
    if !is_built(guest) {
        return Vec::new();
    }
    let folder = tempfile::tempdir().unwrap();
    let options = DirectoryOptions { quota, is_durable: false, ..DirectoryOptions::default() };
    let directory = DirectoryStore::open_ambient(folder.path(), options).unwrap();
    vec![
        case(guest, "memory", Arc::new(MemoryStore::new(quota)), None).await,
        case(guest, "directory", Arc::new(directory), Some(folder)).await,
    ]
}

/// Returns every guest over every store.
async fn everywhere(quota: Quota) -> Vec<Case> {
    let mut all = cases(C, quota).await;
    all.extend(cases(PYTHON, quota).await);
    all
}

async fn case(guest: &str, kind: &str, store: Arc<dyn FileStore>, folder: Option<TempDir>) -> Case {
    let look = MemoryStore::new(Quota::default());
    look.write(&StorePath::file("a").unwrap(), b"kept".to_vec(), WriteMode::Create).await.unwrap();
    let mut host = Host::new();
    host.grants.mounts = vec![
        mount("data", Arc::clone(&store), FileAccess::ReadWrite),
        mount("look", Arc::new(look), FileAccess::ReadOnly),
    ];
    // Compiled once; all others find it in the cache.
    let loading = LOADING.lock().await;
    host.load(guest).await;
    drop(loading);
    Case { host, store, name: format!("{guest} in {kind}"), _folder: folder }
}

fn mount(name: &str, store: Arc<dyn FileStore>, access: FileAccess) -> Mount {
    Mount::new(MountName::new(name).unwrap(), store, access)
}

impl Case {
    /// Returns the error of a write that exceeds the quota. The C library below Python does not ask
    /// for the cause of a failed stream.
    fn full(&self) -> &'static str {
        if self.name.starts_with(C) { "EFBIG" } else { "EIO" }
    }

    async fn call(&self, steps: &[Vec<&str>]) -> Completion {
        self.host.call("files", &json!({ "steps": steps }).to_string()).await
    }

    /// Returns the answers of the steps of a call that succeeds.
    async fn answers(&self, steps: &[Vec<&str>]) -> Vec<String> {
        let completion = self.call(steps).await;
        let Outcome::Ok(Output::Value(Value::Array(answers))) = completion.outcome else {
            panic!("{}: {:?} {:?}", self.name, completion.outcome, completion.record);
        };
        answers.iter().map(|answer| answer.as_str().unwrap().to_owned()).collect()
    }

    /// Runs steps in one call, words separated by spaces, and compares each answer.
    async fn check(&self, steps: &[(&str, &str)]) {
        let words: Vec<Vec<&str>> =
            steps.iter().map(|(step, _)| step.split(' ').collect()).collect();
        let answers = self.answers(&words).await;
        assert_eq!(answers.len(), steps.len());
        for ((step, expected), answer) in steps.iter().zip(answers) {
            assert_eq!(answer, *expected, "{}: {step}", self.name);
        }
    }

    /// Lists the store: directories with a `/`, files with their content if it is text.
    async fn shown(&self) -> String {
        let mut shown = Vec::new();
        for entry in self.store.list(&StorePath::ROOT, Scope::Recursive).await.unwrap().entries {
            shown.push(match entry.kind {
                EntryKind::Directory => format!("{}/", entry.name),
                EntryKind::File => format!("{}={}", entry.name, self.text(&entry.name).await),
            });
        }
        shown.join(" ")
    }

    async fn bytes(&self, path: &str) -> Vec<u8> {
        self.store.read(&StorePath::file(path).unwrap(), u64::MAX).await.unwrap()
    }

    async fn text(&self, path: &str) -> String {
        String::from_utf8_lossy(&self.bytes(path).await).into_owned()
    }
}

#[tokio::test]
async fn streams_work_in_every_mode() {
    for case in everywhere(Quota::default()).await {
        case.check(&[
            ("open r /data/a", "ENOENT"),
            ("open r+ /data/a", "ENOENT"),
            ("open w /data/a", "0"),
            ("put 0 one\ntwo\nthree\n", "done"),
            ("tell 0", "14"),
            ("status_of 0", "file 0"),
            ("flush 0", "done"),
            ("status_of 0", "file 14"),
            ("close 0", "done"),
            ("open wx /data/a", "EEXIST"),
            ("open wx /data/new", "1"),
            ("close 1", "done"),
            ("open r /data/a", "2"),
            ("line 2", "one"),
            ("tell 2", "4"),
            ("line 2", "two"),
            ("line 2", "three"),
            ("line 2", "end"),
            ("seek 2 4 start", "4"),
            ("get 2 3", "two"),
            ("seek 2 -3 current", "4"),
            ("get 2 3", "two"),
            ("seek 2 -6 end", "8"),
            ("get 2 99", "three\n"),
            ("get 2 9", ""),
            ("close 2", "done"),
            ("open r+ /data/a", "3"),
            ("seek 3 4 start", "4"),
            ("put 3 TWO", "done"),
            ("seek 3 0 start", "0"),
            ("get 3 99", "one\nTWO\nthree\n"),
            ("cut 3 5", "done"),
            ("seek 3 0 end", "5"),
            ("cut 3 8", "done"),
            ("close 3", "done"),
            ("show /data/a", "6f6e650a54000000"),
            ("open a /data/a", "4"),
            ("put 4 -end", "done"),
            ("close 4", "done"),
            ("show /data/a", "6f6e650a540000002d656e64"),
            ("open a /data/appended", "5"),
            ("put 5 new", "done"),
            ("close 5", "done"),
            ("open w+ /data/b", "6"),
            ("put 6 12", "done"),
            ("seek 6 5 start", "5"),
            ("put 6 x", "done"),
            ("seek 6 0 start", "0"),
            ("get 6 2", "12"),
            ("close 6", "done"),
            ("show /data/b", "313200000078"),
        ])
        .await;
        assert_eq!(
            case.shown().await,
            "a=one\nT\0\0\0-end appended=new b=12\0\0\0x new=",
            "{}",
            case.name
        );
        // The next call truncates the file of the last one.
        case.check(&[("open w /data/b", "0"), ("close 0", "done"), ("status /data/b", "file 0")])
            .await;
        assert_eq!(case.text("b").await, "", "{}", case.name);
    }
}

#[tokio::test]
async fn descriptors_work_at_positions_and_at_the_end() {
    for case in everywhere(Quota::default()).await {
        case.check(&[
            ("os_open wcx /data/o", "0"),
            ("os_open wcx /data/o", "EEXIST"),
            ("os_open w /data/none", "ENOENT"),
            ("os_write 0 hello", "5"),
            ("os_close 0", "done"),
            ("os_open rw /data/o", "1"),
            ("pread 1 3 1", "ell"),
            ("pwrite 1 EE 1", "2"),
            ("pread 1 99 0", "hEElo"),
            ("pread 1 99 5", ""),
            ("pwrite 1 end 8", "3"),
            ("sync 1", "done"),
            ("os_open wa /data/o", "2"),
            ("os_write 2 app", "3"),
            ("show /data/o", "6845456c6f000000656e64617070"),
            ("truncate /data/o 4", "done"),
            ("pread 1 99 0", "hEEl"),
            ("os_open r /data/o", "3"),
            ("os_write 3 x", "EBADF"),
            ("os_open wt /data/o", "4"),
            ("status /data/o", "file 0"),
            ("truncate /data/o 3", "done"),
            ("truncate /data/none 3", "ENOENT"),
            ("make /data/d", "done"),
            ("truncate /data/d 3", "EISDIR"),
            ("os_open rd /data/o", "ENOTDIR"),
            ("os_open rd /data/d", "5"),
            ("os_open w /data/d", "EISDIR"),
        ])
        .await;
        assert_eq!(case.shown().await, "d/ o=\0\0\0", "{}", case.name);
    }
}

#[tokio::test]
async fn directories_are_made_listed_renamed_and_removed() {
    for case in everywhere(Quota::default()).await {
        case.check(&[
            ("make /data/d", "done"),
            ("make /data/d", "EEXIST"),
            ("make /data/none/d", "ENOENT"),
            ("make /data/d/e/", "done"),
            ("open w /data/d", "EISDIR"),
            ("open w /data/none/a", "ENOENT"),
            ("open w /data/d/a", "0"),
            ("put 0 text", "done"),
            ("close 0", "done"),
            ("open r /data/d/a/", "ENOTDIR"),
            ("make /data/d/a", "EEXIST"),
            ("make /data/d/a/b", "ENOTDIR"),
            ("unlink /data/d", "EISDIR"),
            ("unlink /data/none", "ENOENT"),
            ("remove_directory /data/d", "ENOTEMPTY"),
            ("remove_directory /data/d/a", "ENOTDIR"),
            ("list /data", "d/"),
            ("list /data/d", "a e/"),
            ("list /data/d/a", "ENOTDIR"),
            ("list /data/none", "ENOENT"),
            ("status /data/d", "directory"),
            ("status /data/d/a", "file 4"),
            ("status /data/d/a/b", "ENOENT"),
            ("exists /data/d/a", "true"),
            ("exists /data/none", "false"),
            ("is_new /data/d/a", "true"),
            ("same /data/d/a /data/d/../d/a", "true"),
            ("same /data/d/a /data/d/e", "false"),
            ("rename /data/d/a /data/d/b", "done"),
            ("rename /data/none /data/x", "ENOENT"),
            ("rename /data/d /data/d/e/f", "EINVAL"),
            ("rename /data/d/b /data/d/e", "EISDIR"),
            ("rename /data/d/e /data/d/b", "ENOTDIR"),
            ("rename /data/d/b /look/b", "EXDEV"),
            ("rename /data/d /data/moved", "done"),
            ("open w /data/c", "1"),
            ("close 1", "done"),
            ("rename /data/moved/b /data/c", "done"),
            ("list /data", "c moved/"),
        ])
        .await;
        // The next call reads from the store.
        assert_eq!(case.shown().await, "moved/ moved/e/ c=text", "{}", case.name);
        case.check(&[
            ("list /data", "c moved/"),
            ("remove /data/c", "done"),
            ("remove_directory /data/moved/e", "done"),
            ("remove_directory /data/moved", "done"),
            ("list /data", ""),
        ])
        .await;
        assert_eq!(case.shown().await, "", "{}", case.name);
    }
}

#[tokio::test]
async fn relative_paths_start_where_the_guest_is() {
    for case in everywhere(Quota::default()).await {
        case.check(&[
            ("cwd", "/"),
            ("make data/d", "done"),
            ("open w data/a", "0"),
            ("close 0", "done"),
            ("chdir /data/d", "done"),
            ("cwd", "/data/d"),
            ("open w in", "1"),
            ("close 1", "done"),
            ("list .", "in"),
            ("exists ../a", "true"),
            ("chdir ..", "done"),
            ("list .", "a d/"),
            ("chdir /data/none", "ENOENT"),
            ("chdir /data/a", "ENOTDIR"),
        ])
        .await;
        assert_eq!(case.shown().await, "d/ a= d/in=", "{}", case.name);
    }
}

#[tokio::test]
async fn what_is_refused_has_an_error_number() {
    for case in everywhere(Quota::default()).await {
        case.check(&[
            ("open r+ /look/a", "EROFS"),
            ("open w /look/a", "EROFS"),
            ("open a /look/a", "EROFS"),
            ("open w /look/b", "EROFS"),
            ("make /look/d", "EROFS"),
            ("unlink /look/a", "EROFS"),
            ("rename /look/a /look/b", "EROFS"),
            ("truncate /look/a 1", "EROFS"),
            ("show /look/a", "6b657074"),
            ("open r /data/../look/a", "EPERM"),
            ("open r /data/../../etc/passwd", "EPERM"),
            ("open w /data/CON", "EINVAL"),
            ("open w /data/a:b", "EINVAL"),
            ("open w /data/x.", "EINVAL"),
            ("symlink a /data/l", "EPERM"),
            ("open w /data/a", "0"),
            ("link /data/a /data/l", "EPERM"),
        ])
        .await;
        assert_eq!(case.shown().await, "a=", "{}", case.name);
    }
}

/// Pattern of the guests' files.
fn byte_at(at: usize) -> u8 {
    u8::try_from((at * 31 + (at >> 8)) & 255).unwrap()
}

#[tokio::test]
async fn large_files_of_any_bytes_come_back_as_they_were() {
    const BYTES: usize = 6_000_001;
    for case in everywhere(Quota::default()).await {
        case.check(&[("fill /data/big 6000001", "done"), ("verify /data/big", "6000001")]).await;
        let content = case.bytes("big").await;
        assert_eq!(content.len(), BYTES, "{}", case.name);
        let wrong = content.iter().enumerate().position(|(at, byte)| *byte != byte_at(at));
        assert_eq!(wrong, None, "{}", case.name);
        case.check(&[("verify /data/big", "6000001"), ("status /data/big", "file 6000001")]).await;
    }
}

#[tokio::test]
async fn quotas_are_errors_of_the_step_that_meets_them() {
    let quota = Quota {
        bytes_max: 100,
        entries_max: 3,
        file_bytes_max: 60,
        depth_max: 2,
        counts: cofferdam_files::QuotaCounts::Total,
    };
    for case in everywhere(quota).await {
        case.check(&[
            ("make /data/d", "done"),
            ("make /data/d/e", "done"),
            ("make /data/d/e/f", "EDQUOT"),
        ])
        .await;
        let forty = "0123456789012345678901234567890123456789";
        let put = format!("os_write 0 {forty}");
        case.check(&[
            ("os_open wc /data/a", "0"),
            ("os_write 0 first", "5"),
            ("truncate /data/a 61", "EFBIG"),
            ("os_open wc /data/b", "EDQUOT"),
            (&put, "40"),
            (&put, case.full()),
        ])
        .await;
        assert_eq!(case.shown().await, format!("d/ d/e/ a=first{forty}"), "{}", case.name);
    }
}

#[tokio::test]
async fn what_a_buffer_holds_back_fails_when_it_is_written() {
    let quota = Quota { file_bytes_max: 4, ..Quota::default() };
    for case in everywhere(quota).await {
        case.check(&[("open w /data/a", "0"), ("put 0 12345", "done"), ("close 0", case.full())])
            .await;
        case.check(&[("status /data/a", "file 0")]).await;
    }
}

#[tokio::test]
async fn a_call_that_fails_leaves_nothing() {
    for case in everywhere(Quota::default()).await {
        case.check(&[("open w /data/kept", "0"), ("put 0 text", "done"), ("close 0", "done")])
            .await;
        for (end, outcome) in [("fail", "failure"), ("crash", "error")] {
            let steps = [
                vec!["make", "/data/d"],
                vec!["open", "w", "/data/d/a"],
                vec!["put", "0", "x"],
                vec!["close", "0"],
                vec!["truncate", "/data/kept", "1"],
                vec!["rename", "/data/kept", "/data/d/kept"],
                vec![end],
            ];
            let completion = case.call(&steps).await;
            assert_eq!(completion.record.outcome, outcome, "{}", case.name);
            assert_eq!(case.shown().await, "kept=text", "{}: {end}", case.name);
        }
    }
}

#[tokio::test]
async fn what_was_not_closed_is_there_as_far_as_it_was_written() {
    for case in everywhere(Quota::default()).await {
        case.check(&[
            ("open w /data/a", "0"),
            ("put 0 flushed", "done"),
            ("flush 0", "done"),
            ("unlink /data/a", "done"),
            ("exists /data/a", "false"),
            ("put 0 -more", "done"),
            ("seek 0 0 end", "12"),
            ("os_open wc /data/b", "0"),
            ("os_write 0 text", "4"),
        ])
        .await;
        assert_eq!(case.shown().await, "b=text", "{}", case.name);
    }
}
