//! Hosts that are killed during commits, and hosts that commit to one directory at the same time.
//!
//! The test runs itself as a child process, which makes one transaction after another and reports
//! each when it is done; then the child is killed. `COFFERDAM_CRASHES` is the number of kills (30
//! by default).
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "in a test a panic is the message")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cofferdam_files::{
    Budget, DirectoryOptions, DirectoryStore, FileError, FileStore as _, Overlay, SpillOptions,
    StorePath, WriteMode,
};

/// Environment variables with the work of a child and its directory.
const WORK: &str = "COFFERDAM_CRASH_WORK";
const ROOT: &str = "COFFERDAM_CRASH_ROOT";
/// Number of groups of files. Each transaction works on one of them.
const GROUPS: u64 = 3;
/// Directory in which a commit is prepared.
const COMMIT: &str = ".~cofferdam-commit";

type Tree = BTreeMap<String, Option<String>>;

fn open(root: &Path, is_durable: bool) -> Arc<DirectoryStore> {
    let options = DirectoryOptions { is_durable, ..DirectoryOptions::default() };
    Arc::new(DirectoryStore::open_ambient(root, options).unwrap())
}

fn path(text: &str) -> StorePath {
    StorePath::file(text).unwrap()
}

/// Adds the state of a group after the transaction `last`, the last one that worked on it.
fn group(number: u64, last: u64, into: &mut Tree) {
    let text = || Some(format!("{last}"));
    let mut put =
        |path: String, content: Option<String>| into.insert(format!("g{number}{path}"), content);
    put(String::new(), None);
    put("/replaced".into(), text());
    put(format!("/created-{last}"), text());
    put(format!("/moved-{last}"), None);
    put(format!("/moved-{last}/deep"), None);
    put(format!("/moved-{last}/deep/changed"), text());
    put(format!("/moved-{last}/kept"), Some("kept".into()));
    put(format!("/made-{last}"), None);
    put(format!("/made-{last}/a"), text());
    put(format!("/made-{last}/b"), text());
    let [odd, even] =
        if (last / GROUPS).is_multiple_of(2) { ["one", "two"] } else { ["two", "one"] };
    put("/swapped-1".into(), Some(odd.into()));
    put("/swapped-2".into(), Some(even.into()));
}

/// Returns the state of the directory after the transaction `last`. The first ones create the
/// groups.
fn expected(last: u64) -> Tree {
    let mut tree = Tree::new();
    for number in 0..GROUPS {
        if let Some(since) = last.checked_sub(number) {
            group(number, last - since % GROUPS, &mut tree);
        }
    }
    tree
}

/// Makes the changes of the transaction `number`, without committing them.
async fn transact(overlay: &Overlay, number: u64) -> Result<(), FileError> {
    let home = format!("g{}", number % GROUPS);
    let at = |rest: &str| path(&format!("{home}/{rest}"));
    let text = || number.to_string().into_bytes();
    if let Some(before) = number.checked_sub(GROUPS) {
        overlay.delete(&at(&format!("created-{before}"))).await?;
        overlay.rename(&at(&format!("moved-{before}")), &at(&format!("moved-{number}"))).await?;
        for name in ["a", "b"] {
            overlay.delete(&at(&format!("made-{before}/{name}"))).await?;
        }
        overlay.remove_directory(&at(&format!("made-{before}"))).await?;
        overlay.rename(&at("swapped-1"), &at("aside")).await?;
        overlay.rename(&at("swapped-2"), &at("swapped-1")).await?;
        overlay.rename(&at("aside"), &at("swapped-2")).await?;
    } else {
        overlay
            .write(&at(&format!("moved-{number}/kept")), b"kept".to_vec(), WriteMode::Create)
            .await?;
        overlay.write(&at("swapped-1"), b"one".to_vec(), WriteMode::Create).await?;
        overlay.write(&at("swapped-2"), b"two".to_vec(), WriteMode::Create).await?;
    }
    for name in ["replaced", "created-N", "moved-N/deep/changed", "made-N/a", "made-N/b"] {
        let name = name.replace('N', &number.to_string());
        overlay.write(&at(&name), text(), WriteMode::Replace).await?;
    }
    Ok(())
}

/// Every other transaction has its contents on disk from the first byte on, so that they are linked
/// without a copy.
fn budget(number: u64) -> Budget {
    if number.is_multiple_of(2) {
        return Budget::new(1 << 20);
    }
    let directory_ambient = std::env::temp_dir();
    Budget::with_spill_ambient(
        1 << 20,
        SpillOptions { directory_ambient, bytes_max: 1 << 20, file_bytes_min: 1 },
    )
}

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // The parent process may be gone.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// Runs the work of a child process. Not a test by itself.
#[tokio::test]
async fn child() {
    let (Ok(work), Some(root)) = (std::env::var(WORK), std::env::var_os(ROOT)) else { return };
    match work.split_once(' ').unwrap() {
        ("transact", rest) => {
            let (from, is_durable) = rest.split_once(' ').unwrap();
            let store = open(Path::new(&root), is_durable == "true");
            for number in from.parse().unwrap().. {
                let overlay = Overlay::new(Arc::clone(&store) as _, &budget(number));
                transact(&overlay, number).await.unwrap();
                overlay.commit_changes().await.unwrap();
                say(&format!("done {number}"));
            }
        }
        ("add", times) => {
            let store = open(Path::new(&root), false);
            for _ in 0..times.parse().unwrap() {
                while !add_one(&store).await {
                    say("conflict");
                }
            }
        }
        other => panic!("{other:?}"),
    }
}

/// Adds one to the number in two files. Returns false if another host was faster.
async fn add_one(store: &Arc<DirectoryStore>) -> bool {
    let overlay = Overlay::new(Arc::clone(store) as _, &Budget::new(1 << 20));
    let old = overlay.read(&path("sum"), 99).await.unwrap();
    let sum: u64 = String::from_utf8(old).unwrap().parse().unwrap();
    for name in ["sum", "copy"] {
        let text = (sum + 1).to_string().into_bytes();
        overlay.write(&path(name), text, WriteMode::Replace).await.unwrap();
    }
    match overlay.commit_changes().await {
        Ok(_) => true,
        Err(FileError::Conflict { .. }) => false,
        Err(other) => panic!("{other:?}"),
    }
}

fn start(root: &Path, work: &str) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child", "--nocapture"])
        .env(WORK, work)
        .env(ROOT, root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Collects everything that the system shows in `root`.
fn look(root: &Path, prefix: &str, into: &mut Tree) {
    for entry in fs::read_dir(root).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            look(&entry.path(), &format!("{name}/"), into);
            into.insert(name, None);
        } else {
            into.insert(name, Some(fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

/// Random enough to choose the moment of a kill.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn a_host_that_is_killed_leaves_every_transaction_whole_or_absent() {
    if std::env::var_os(WORK).is_some() {
        return;
    }
    let crashes: u64 =
        std::env::var("COFFERDAM_CRASHES").ok().and_then(|text| text.parse().ok()).unwrap_or(30);
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos();
    let mut dice = Dice(u64::try_from(seed % u128::from(u64::MAX)).unwrap() | 1);
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    let started = Instant::now();
    let (mut last_done, mut prepared, mut recorded) = (None, 0, 0);
    // Repeat until enough kills have hit a commit: the duration of a commit differs between
    // machines.
    for crash in 0..crashes * 4 {
        if crash >= crashes && prepared + recorded >= crashes / 10 {
            break;
        }
        let from = last_done.map_or(0, |last| last + 1);
        let mut child = start(root, &format!("transact {from} {}", crash % 2 == 0));
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let mut heard = 0;
        // Wait until the process has started, and then for a random time.
        let waits_for = dice.below(4);
        let mut done = |line: String| {
            // The first line follows output of the test harness.
            if let Some((_, number)) = line.split_once("done ") {
                last_done = Some(number.parse::<u64>().unwrap());
                heard += 1;
            }
            heard
        };
        while lines.next().map(&mut done).expect("the child lives") <= waits_for {}
        std::thread::sleep(Duration::from_micros(dice.below(6_000)));
        child.kill().unwrap();
        for line in lines {
            done(line);
        }
        child.wait().unwrap();

        let left =
            fs::read_dir(root.join(COMMIT)).map(|all| all.map(|entry| entry.unwrap().file_name()));
        let left: Vec<_> = left.into_iter().flatten().collect();
        let has_record = left.iter().any(|name| name.to_str().unwrap().starts_with("record-"));
        prepared += u64::from(root.join(COMMIT).exists() && !has_record);
        recorded += u64::from(has_record);

        let acknowledged = last_done.unwrap();
        drop(open(root, true));
        let mut found = Tree::new();
        look(root, "", &mut found);
        // The last, unacknowledged transaction may exist or not.
        let last =
            if found == expected(acknowledged + 1) { acknowledged + 1 } else { acknowledged };
        assert_eq!(
            found,
            expected(last),
            "crash {crash}, seed {seed}, {acknowledged} acknowledged, {left:?}"
        );
        last_done = Some(last);
    }
    println!(
        "{crashes} hosts killed in {:?}: {prepared} while a commit was prepared, {recorded} while \
         one was made; {} transactions",
        started.elapsed(),
        last_done.unwrap_or(0) + 1,
    );
    // If no kill hits a commit, this tests nothing.
    assert!(prepared + recorded >= crashes / 10, "{prepared} + {recorded} of {crashes}");
}

#[test]
fn two_hosts_on_one_directory_lose_no_update() {
    if std::env::var_os(WORK).is_some() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    for name in ["sum", "copy"] {
        fs::write(directory.path().join(name), "0").unwrap();
    }
    let children = [(); 2].map(|()| start(directory.path(), "add 150"));
    let mut conflicts = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        conflicts +=
            String::from_utf8(output.stdout).unwrap().lines().filter(|l| *l == "conflict").count();
    }
    for name in ["sum", "copy"] {
        assert_eq!(
            fs::read_to_string(directory.path().join(name)).unwrap(),
            "300",
            "{conflicts} conflicts"
        );
    }
    assert!(conflicts > 0, "they never met");
}
