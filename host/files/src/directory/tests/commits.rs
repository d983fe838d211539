//! Commits that are interrupted, that fail, or during which another program makes changes, at each
//! of their steps.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::directory::fault::{CommitStep, FaultPlan, SimulatedKill};
use crate::{Budget, Overlay};

/// Contents of a directory: the mode and the content of each path, with `None` for a directory.
type Snapshot = BTreeMap<String, (u32, Option<String>)>;

/// Runs a future that never waits, which is the case for all operations without a runtime.
fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match std::pin::pin!(future).poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => panic!("it waits"),
    }
}

/// Creates the store with everything that [`change`] works on.
fn scene() -> Scene {
    // There are thousands of scenes, and the behavior of disks is not tested here.
    let memory = Path::new("/dev/shm");
    let host = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let scene = Scene::on(host.unwrap(), FAST);
    for directory in ["keep", "old", "d/sub", "empty", "full"] {
        fs::create_dir_all(scene.inside(directory)).unwrap();
    }
    let files = [
        ("keep/f", 0o644),
        ("r", 0o640),
        ("gone", 0o644),
        ("old/f", 0o644),
        ("s1", 0o644),
        ("s2", 0o600),
        ("d/in", 0o755),
        ("d/rm", 0o644),
        ("d/kept", 0o644),
        ("d/sub/x", 0o644),
        ("m", 0o755),
        ("src", 0o644),
        ("over", 0o644),
        ("full/f", 0o644),
    ];
    for (path, mode) in files {
        fs::write(scene.inside(path), path).unwrap();
        fs::set_permissions(scene.inside(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    scene
}

/// Makes every kind of change in one call.
fn change(store: &DirectoryStore) -> Overlay {
    let overlay = Overlay::new(Arc::new(store.clone()), &Budget::new(1 << 20));
    let write = |path, text: &str| {
        now(overlay.write(&file(path), text.into(), WriteMode::Replace)).unwrap();
    };
    let rename = |from, to| now(overlay.rename(&file(from), &file(to))).unwrap();
    let delete = |path| now(overlay.delete(&file(path))).unwrap();
    write("r", "replaced");
    delete("gone");
    delete("old/f");
    now(overlay.remove_directory(&file("old"))).unwrap();
    write("old", "now a file");
    rename("s1", "t");
    rename("s2", "s1");
    rename("t", "s2");
    rename("d", "e");
    write("e/in", "changed inside of what moved");
    delete("e/rm");
    write("e/sub/new", "new inside of what moved");
    rename("m", "n");
    write("n", "moved and changed");
    rename("src", "over");
    rename("full", "empty");
    write("new/a/b", "deep");
    overlay
}

fn snapshot(scene: &Scene) -> Snapshot {
    fn read(directory: &Path, prefix: &str, into: &mut Snapshot) {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name.starts_with(crate::path::RESERVED_PREFIX) {
                continue;
            }
            let (path, metadata) = (format!("{prefix}{name}"), entry.metadata().unwrap());
            let is_file = metadata.is_file();
            let content = is_file.then(|| fs::read_to_string(entry.path()).unwrap());
            into.insert(path.clone(), (metadata.permissions().mode() & 0o777, content));
            if metadata.is_dir() {
                read(&entry.path(), &format!("{path}/"), into);
            }
        }
    }
    let mut all = Snapshot::new();
    read(&scene.inside(""), "", &mut all);
    all
}

fn reserved(scene: &Scene) -> Vec<String> {
    scene
        .names("")
        .into_iter()
        .filter(|name| name.starts_with(crate::path::RESERVED_PREFIX))
        .collect()
}

/// Outcome of a commit.
#[derive(Debug)]
enum End {
    Done,
    Failed(FileError),
    Killed,
}

/// Commits with `plan`, and returns the outcome and the steps taken.
fn commit(scene: &Scene, plan: FaultPlan) -> (End, Vec<CommitStep>) {
    let overlay = change(&scene.store);
    scene.store.tree.faults.set(plan);
    let committed = std::panic::catch_unwind(AssertUnwindSafe(|| now(overlay.commit_changes())));
    let passed = scene.store.tree.faults.passed();
    scene.store.tree.faults.set(FaultPlan::default());
    let end = match committed {
        Ok(Ok(_)) => End::Done,
        Ok(Err(error)) => End::Failed(error),
        Err(thrown) => {
            assert!(thrown.is::<SimulatedKill>(), "not a fault of the test");
            End::Killed
        }
    };
    (end, passed)
}

/// Opens the store again, as the next host does.
fn reopen(scene: &Scene) {
    let _store = DirectoryStore::open_ambient(&scene.inside(""), FAST).unwrap();
}

fn killed_at(number: usize) -> FaultPlan {
    FaultPlan { is_killed_at: Some(number), ..FaultPlan::default() }
}

/// Returns the directory before and after an undisturbed commit, and the steps of the commit.
fn undisturbed() -> (Snapshot, Snapshot, Vec<CommitStep>) {
    let scene = scene();
    let before = snapshot(&scene);
    let (end, steps) = commit(&scene, FaultPlan::default());
    assert!(matches!(end, End::Done), "{end:?}");
    assert_eq!(reserved(&scene), [""; 0]);
    (before, snapshot(&scene), steps)
}

#[test]
fn a_commit_makes_all_changes_and_keeps_permissions() {
    let (_, after, steps) = undisturbed();
    let mode_and_text = |path: &str| {
        let (mode, text) = &after[path];
        (*mode, text.as_deref().unwrap_or("a directory"))
    };
    assert_eq!(mode_and_text("r"), (0o640, "replaced"));
    assert_eq!(mode_and_text("old").1, "now a file");
    assert_eq!(mode_and_text("s1"), (0o600, "s2"));
    assert_eq!(mode_and_text("s2"), (0o644, "s1"));
    assert_eq!(mode_and_text("e/in"), (0o755, "changed inside of what moved"));
    assert_eq!(mode_and_text("e/kept").1, "d/kept");
    assert_eq!(mode_and_text("e/sub/x").1, "d/sub/x");
    assert_eq!(mode_and_text("e/sub/new").1, "new inside of what moved");
    assert_eq!(mode_and_text("n"), (0o755, "moved and changed"));
    assert_eq!(mode_and_text("over").1, "src");
    assert_eq!(mode_and_text("empty/f").1, "full/f");
    assert_eq!(mode_and_text("new/a/b").1, "deep");
    assert_eq!(mode_and_text("keep/f").1, "keep/f");
    assert_eq!(after.len(), 19, "{after:?}");
    let kinds: BTreeSet<CommitStep> = steps.into_iter().collect();
    assert_eq!(kinds.len(), 11, "all but the two of taking back: {kinds:?}");
}

#[test]
fn a_host_that_is_killed_at_any_step_leaves_all_or_nothing() {
    let (before, after, steps) = undisturbed();
    let point_of_no_return = steps.iter().position(|step| *step == CommitStep::Vacate).unwrap();
    for (number, step) in steps.iter().enumerate() {
        let scene = scene();
        let (end, _) = commit(&scene, killed_at(number));
        assert!(matches!(end, End::Killed), "{number}");
        reopen(&scene);
        let expected = if number < point_of_no_return { &before } else { &after };
        assert_eq!(snapshot(&scene), *expected, "killed at step {number}, {step:?}");
        assert_eq!(reserved(&scene), [""; 0], "{number}");
    }
}

#[test]
fn the_next_change_of_a_store_that_was_open_finishes_first() {
    let (before, after, steps) = undisturbed();
    for number in (0..steps.len()).step_by(5) {
        let scene = scene();
        let other = DirectoryStore::open_ambient(&scene.inside(""), FAST).unwrap();
        commit(&scene, killed_at(number));
        now(other.write(&file("later"), b"x".to_vec(), WriteMode::Create)).unwrap();
        let mut left = snapshot(&scene);
        assert!(left.remove("later").is_some());
        assert!(left == before || left == after, "{number}");
        assert_eq!(reserved(&scene), [""; 0], "{number}");
    }
}

#[test]
fn a_recovery_that_is_killed_at_any_step_is_finished_by_the_next() {
    let (before, after, steps) = undisturbed();
    for number in 0..steps.len() {
        for again in (number % 3..).step_by(3) {
            let scene = scene();
            commit(&scene, killed_at(number));
            // This store was already open, because opening one would finish the commit undisturbed.
            scene.store.tree.faults.set(killed_at(again));
            let change = || now(scene.store.create_directory(&file("keep")));
            let is_killed = std::panic::catch_unwind(AssertUnwindSafe(change)).is_err();
            scene.store.tree.faults.set(FaultPlan::default());
            reopen(&scene);
            let left = snapshot(&scene);
            assert!(left == before || left == after, "{number}, {again}");
            assert_eq!(reserved(&scene), [""; 0], "{number}, {again}");
            if !is_killed {
                break;
            }
        }
    }
}

#[test]
fn a_step_that_fails_leaves_the_store_as_it_was() {
    let (before, after, steps) = undisturbed();
    let mut taken_back = BTreeSet::new();
    for (number, step) in steps.iter().enumerate() {
        let scene = scene();
        let (end, passed) =
            commit(&scene, FaultPlan { fails_at: Some(number), ..FaultPlan::default() });
        taken_back.extend(passed);
        let expected = match (&end, step) {
            // The changes are already made at these steps.
            (
                End::Done,
                CommitStep::RemoveRecord | CommitStep::Clean | CommitStep::RemoveDirectory,
            ) => &after,
            (End::Failed(error), _) => {
                assert_eq!(error.to_string(), "the file store failed: no storage space.");
                &before
            }
            _ => panic!("{number}, {step:?}: {end:?}"),
        };
        assert_eq!(snapshot(&scene), *expected, "failed at step {number}, {step:?}");
        reopen(&scene);
        assert_eq!(
            snapshot(&scene),
            *expected,
            "failed at step {number}, {step:?}, and opened again"
        );
        let (end, _) = match end {
            End::Done => continue,
            _ => commit(&scene, FaultPlan::default()),
        };
        assert!(matches!(end, End::Done), "{number}: {end:?}");
        assert_eq!(snapshot(&scene), after, "{number}");
        assert_eq!(reserved(&scene), [""; 0], "{number}");
    }
    assert!(taken_back.contains(&CommitStep::Unfill) && taken_back.contains(&CommitStep::Unvacate));
}

#[test]
fn a_host_that_is_killed_while_it_takes_changes_back_leaves_all_or_nothing() {
    let (before, after, steps) = undisturbed();
    let first = steps.iter().position(|step| *step == CommitStep::Vacate).unwrap();
    for number in (first..steps.len()).step_by(2) {
        for later in (number + 1 + number % 4..).step_by(4) {
            let scene = scene();
            let plan =
                FaultPlan { fails_at: Some(number), is_killed_at: Some(later), meanwhile: None };
            let (end, _) = commit(&scene, plan);
            if !matches!(end, End::Killed) {
                break;
            }
            reopen(&scene);
            let left = snapshot(&scene);
            assert!(left == before || left == after, "failed at {number}, killed at {later}");
            assert_eq!(reserved(&scene), [""; 0], "{number}, {later}");
        }
    }
}

/// A change by another program during a commit.
struct Intrusion {
    name: &'static str,
    /// Fails if it is too late.
    act: fn(&Path) -> std::io::Result<()>,
    /// Path of the intruder's own file afterward.
    own: &'static str,
}

const INTRUSIONS: [Intrusion; 6] = [
    Intrusion {
        name: "takes a path at which something is created",
        act: |root| fs::write(root.join("new"), "theirs"),
        own: "new",
    },
    Intrusion {
        name: "puts a file where something moves",
        act: |root| fs::write(root.join("n"), "theirs"),
        own: "n",
    },
    Intrusion {
        name: "puts a file into a directory that is removed",
        act: |root| fs::write(root.join("old/theirs"), "theirs"),
        own: "old/theirs",
    },
    Intrusion {
        name: "replaces a file that is replaced",
        act: |root| {
            fs::write(root.join("theirs"), "theirs")?;
            fs::rename(root.join("theirs"), root.join("r"))
        },
        own: "r",
    },
    Intrusion {
        name: "replaces a file that is deleted",
        act: |root| {
            fs::write(root.join("theirs"), "theirs")?;
            fs::rename(root.join("theirs"), root.join("gone"))
        },
        own: "gone",
    },
    Intrusion {
        name: "makes a link where something is created",
        act: |root| std::os::unix::fs::symlink("../outside", root.join("new")),
        own: "new",
    },
];

#[test]
fn a_change_by_another_program_in_the_middle_is_a_conflict_and_is_never_lost() {
    let (before, after, steps) = undisturbed();
    let mut refusals = BTreeMap::new();
    let first = steps.iter().position(|step| *step == CommitStep::WriteRecord).unwrap();
    let last = steps.iter().rposition(|step| *step == CommitStep::Fill).unwrap();
    for (Intrusion { name, act, own }, number) in INTRUSIONS
        .iter()
        .flat_map(|intrusion| (first..=last).map(move |number| (intrusion, number)))
    {
        let scene = scene();
        let root = scene.inside("");
        fs::create_dir(scene.outside("outside")).unwrap();
        let has_acted = Arc::new(AtomicBool::new(false));
        let acted = Arc::clone(&has_acted);
        let meanwhile: Box<dyn FnOnce() + Send> =
            Box::new(move || acted.store(act(&root).is_ok(), Ordering::Relaxed));
        let (end, _) = commit(
            &scene,
            FaultPlan { meanwhile: Some((number, meanwhile)), ..FaultPlan::default() },
        );
        let where_it_was = format!("{name} at step {number}, {:?}: {end:?}", steps[number]);
        let mut left = snapshot(&scene);
        match &end {
            End::Failed(FileError::Conflict { .. } | FileError::Link) => {
                let theirs = left.remove(*own);
                assert!(
                    theirs.is_some_and(|(_, text)| text.is_none_or(|text| text == "theirs")),
                    "{where_it_was}"
                );
                let mut expected = before.clone();
                expected.remove(*own);
                assert_eq!(left, expected, "{where_it_was}");
                *refusals.entry(name).or_insert(0) += 1;
            }
            // It was too late, either for the commit or for itself.
            End::Done => {
                if has_acted.load(Ordering::Relaxed) {
                    let theirs = left.remove(*own);
                    left.extend(
                        after
                            .get_key_value(*own)
                            .map(|(path, state)| (path.clone(), state.clone())),
                    );
                    assert_eq!(theirs.unwrap().1.as_deref(), Some("theirs"), "{where_it_was}");
                }
                assert_eq!(left, after, "{where_it_was}");
            }
            _ => panic!("{where_it_was}"),
        }
        assert_eq!(fs::read_dir(scene.outside("outside")).unwrap().count(), 0, "{where_it_was}");
    }
    assert_eq!(refusals.len(), INTRUSIONS.len(), "{refusals:?}");
}

#[test]
fn readers_of_the_store_see_all_changes_at_once() {
    let scene = Scene::new();
    let names = ["a", "b", "c", "d"];
    let write_all = |round: u64| {
        let overlay = Overlay::new(Arc::new(scene.store.clone()), &Budget::new(1 << 20));
        for name in names {
            now(overlay.write(&file(name), round.to_string().into(), WriteMode::Replace)).unwrap();
        }
        now(overlay.commit_changes()).unwrap();
    };
    write_all(0);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let reader = threads.spawn(|| {
            let mut reads = 0_u64;
            while !is_over.load(Ordering::Relaxed) {
                let mut seen = 0;
                // A reader that sees one change sees the others afterward, in any order.
                let mut order = names;
                if reads % 2 == 1 {
                    order.reverse();
                }
                for name in order {
                    let text =
                        String::from_utf8(now(scene.store.read(&file(name), 99)).unwrap()).unwrap();
                    let round: u64 = text.parse().unwrap();
                    assert!(round >= seen, "{name} is of round {round} after one of round {seen}");
                    seen = round;
                }
                reads += 1;
            }
            reads
        });
        (1..300).for_each(write_all);
        is_over.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn the_count_after_a_commit_is_that_of_a_fresh_look() {
    let scene = scene();
    let (end, _) = commit(&scene, FaultPlan::default());
    assert!(matches!(end, End::Done));
    let known = now(scene.store.room()).unwrap().usage;
    let fresh = DirectoryStore::open_ambient(&scene.inside(""), FAST).unwrap();
    assert_eq!(known, now(fresh.room()).unwrap().usage);
}

#[test]
fn two_stores_on_one_directory_take_turns() {
    let scene = Scene::new();
    let add_one_hundred = || {
        let store = DirectoryStore::open_ambient(&scene.inside(""), FAST).unwrap();
        for _ in 0..100 {
            loop {
                let overlay = Overlay::new(Arc::new(store.clone()), &Budget::new(1 << 20));
                let old = now(overlay.read(&file("sum"), 99)).unwrap_or_default();
                let sum: u64 = String::from_utf8(old).unwrap().parse().unwrap_or(0);
                let text = (sum + 1).to_string();
                for path in ["sum", "copy"] {
                    now(overlay.write(&file(path), text.clone().into(), WriteMode::Replace))
                        .unwrap();
                }
                match now(overlay.commit_changes()) {
                    Ok(_) => break,
                    Err(FileError::Conflict { .. }) => {}
                    Err(other) => panic!("{other:?}"),
                }
            }
        }
    };
    std::thread::scope(|threads| {
        threads.spawn(add_one_hundred);
        threads.spawn(add_one_hundred);
    });
    for path in ["sum", "copy"] {
        assert_eq!(fs::read_to_string(scene.inside(path)).unwrap(), "200");
    }
}
