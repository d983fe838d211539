//! Directory trees that an attacker has planted, or changes while the store uses them.
#![cfg(target_os = "linux")]

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

use super::*;

const LINK: &str = "Invalid path: the resolved path contains a symbolic link or reparse point.";
const SPECIAL: &str = "this path is not a regular file. Choose a different file name.";
const BELOW_FILE: &str = "a parent path is already a file. Choose a different path.";

/// Nothing here waits, so anything that takes this long would wait forever.
const FOREVER: Duration = Duration::from_secs(20);

pub(super) fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

/// Returns the results of every operation on `path`, in the order stat, read, range, create,
/// replace, delete, list, make.
async fn say_all(store: &DirectoryStore, path: &str) -> [String; 8] {
    fn text<T: std::fmt::Debug>(result: Result<T, FileError>) -> String {
        result.map_or_else(|error| error.to_string(), |value| format!("{value:?}"))
    }
    let at = &file(path);
    let all = async {
        [
            text(store.stat(at).await),
            text(store.read(at, 99).await),
            text(store.read_range(at, 0, 99).await),
            text(store.write(at, b"mine".to_vec(), WriteMode::Create).await),
            text(store.write(at, b"mine".to_vec(), WriteMode::Replace).await),
            text(store.delete(at).await),
            text(store.list(at, Scope::Recursive).await.map(|listing| listing.entries)),
            text(store.create_directory(at).await),
        ]
    };
    tokio::time::timeout(FOREVER, all).await.expect("an operation blocks")
}

#[tokio::test]
async fn a_link_at_any_segment_is_refused_by_every_operation() {
    let scene = Scene::new();
    fs::create_dir_all(scene.outside("secret/sub")).unwrap();
    fs::write(scene.outside("secret/sub/f"), "secret").unwrap();
    fs::create_dir_all(scene.inside("d/sub")).unwrap();
    fs::write(scene.inside("d/sub/f"), "mine").unwrap();
    let targets = [
        "../../secret",
        "../../secret/sub/f",
        "/etc/passwd",
        "/proc/self/root",
        "../d",
        ".",
        "sub",
        "link",
        "nowhere",
    ];
    for target in targets {
        symlink(target, scene.inside("d/link")).unwrap();
        for path in ["d/link", "d/link/f", "d/link/sub/f", "d/link/etc/passwd"] {
            assert_eq!(say_all(&scene.store, path).await, [LINK; 8], "{path} -> {target}");
        }
        assert_eq!(scene.list().await, ["d", "d/sub", "d/sub/f"]);
        fs::remove_file(scene.inside("d/link")).unwrap();
    }
    assert_eq!(fs::read_to_string(scene.outside("secret/sub/f")).unwrap(), "secret");
    assert_eq!(fs::read_dir(scene.outside("secret")).unwrap().count(), 1);
}

#[tokio::test]
async fn links_are_not_counted() {
    let quota = Quota { bytes_max: 5, entries_max: 1, ..QUOTA_DEFAULT };
    let scene = Scene::with(DirectoryOptions { quota, ..FAST });
    fs::write(scene.outside("large"), "0123456789").unwrap();
    symlink("../large", scene.inside("link")).unwrap();
    symlink("..", scene.inside("up")).unwrap();
    make_fifo(&scene.inside("pipe"));
    scene.write("a", "12345").await.unwrap();
}

#[tokio::test]
async fn the_root_itself_may_be_given_as_a_link() {
    let scene = Scene::new();
    symlink("store", scene.outside("alias")).unwrap();
    fs::write(scene.inside("a"), "x").unwrap();
    let store = DirectoryStore::open_ambient(&scene.outside("alias"), FAST).unwrap();
    assert_eq!(store.read(&file("a"), 9).await.unwrap(), b"x");
    assert_eq!(store.root_ambient(), scene.inside("").canonicalize().unwrap());
}

#[tokio::test]
async fn pipes_and_sockets_are_invisible_and_block_nothing() {
    let scene = Scene::new();
    make_fifo(&scene.inside("pipe"));
    let _socket = UnixListener::bind(scene.inside("socket")).unwrap();
    for path in ["pipe", "socket"] {
        let said = say_all(&scene.store, path).await;
        let is_file = "this path is already a file. Choose a different name.";
        let missing = "not found";
        assert_eq!(
            said,
            [missing, missing, missing, SPECIAL, SPECIAL, missing, "[]", is_file],
            "{path}"
        );
        let below = say_all(&scene.store, &format!("{path}/a")).await;
        assert_eq!(
            below,
            [missing, missing, missing, BELOW_FILE, BELOW_FILE, missing, "[]", BELOW_FILE]
        );
    }
    assert_eq!(scene.list().await, [""; 0]);
    scene.write("a", "x").await.unwrap();
    assert_eq!(scene.names(""), ["a", "pipe", "socket"]);
}

#[tokio::test]
async fn names_that_no_path_denotes_do_not_exist() {
    use std::os::unix::ffi::OsStrExt as _;
    let quota = Quota { bytes_max: 1, entries_max: 2, ..QUOTA_DEFAULT };
    let scene = Scene::with(DirectoryOptions { quota, ..FAST });
    let names: [&[u8]; 13] = [
        b"a\\b",
        b"CON",
        b"nul.txt",
        b"end.",
        b"end ",
        b" start",
        b"a:b",
        b"...",
        b"a\nb",
        b"a\x1bb",
        b"\xff",
        b".~cofferdam-x",
        b"C:",
    ];
    for name in names {
        fs::write(scene.inside("").join(std::ffi::OsStr::from_bytes(name)), "outside the rules")
            .unwrap();
    }
    fs::create_dir_all(scene.inside("prn/below")).unwrap();
    fs::create_dir(scene.inside("d")).unwrap();
    assert_eq!(scene.list().await, ["d"]);
    scene.write("a", "1").await.unwrap();
    for name in ["a\\b", "CON", "end.", "a:b"] {
        let given = StorePath::file(name);
        assert!(given.is_err() || given.is_ok_and(|path| path.as_str() == "a/b"), "{name}");
    }
}

#[tokio::test]
async fn a_deep_tree_is_listed_without_holding_it_open() {
    let scene = Scene::new();
    let mut path = scene.inside("");
    for _ in 0..300 {
        path.push("d");
    }
    fs::create_dir_all(&path).unwrap();
    assert_eq!(scene.list().await.len(), 300);
}

#[tokio::test]
async fn an_unreadable_directory_is_listed_and_passed_over() {
    use std::os::unix::fs::PermissionsExt as _;
    let scene = Scene::new();
    scene.write("locked/a", "x").await.unwrap();
    scene.write("open/a", "x").await.unwrap();
    fs::set_permissions(scene.inside("locked"), fs::Permissions::from_mode(0o000)).unwrap();
    let listed = scene.list().await;
    fs::set_permissions(scene.inside("locked"), fs::Permissions::from_mode(0o700)).unwrap();
    // Root can read it anyway.
    assert!(
        listed == ["locked", "open", "open/a"]
            || listed == ["locked", "open", "locked/a", "open/a"]
    );
}

/// Swaps two names in one step repeatedly while `body` runs.
async fn while_swapping<T>(one: PathBuf, other: PathBuf, body: impl Future<Output = T>) -> T {
    while_swapping_with_pauses(one, other, Duration::ZERO, body).await
}

/// Like [`while_swapping`], but pauses every 256 swaps, with both names restored,
/// for operations with more steps than fit between two swaps.
async fn while_swapping_with_pauses<T>(
    one: PathBuf,
    other: PathBuf,
    pause: Duration,
    body: impl Future<Output = T>,
) -> T {
    let is_over = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let mut swaps = 0_u64;
            while !is_over.load(Ordering::Relaxed) || swaps % 2 == 1 {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
                if swaps.is_multiple_of(256) {
                    std::thread::sleep(pause);
                }
            }
            swaps
        }
    });
    let result = tokio::time::timeout(FOREVER, body).await;
    is_over.store(true, Ordering::Relaxed);
    assert!(swapper.join().unwrap() > 1000);
    result.expect("an operation blocks")
}

/// Creates a store with `d/f` in it and a link `swap` to `target`, outside or inside the store,
/// where a file with the same name exists.
fn scene_of_a_swap(target: &str) -> Scene {
    let scene = Scene::new();
    for (directory, content) in
        [("store/d", "inside"), ("secret", "secret"), ("store/other", "other")]
    {
        fs::create_dir(scene.outside(directory)).unwrap();
        fs::write(scene.outside(directory).join("f"), content).unwrap();
    }
    symlink(target, scene.inside("swap")).unwrap();
    scene
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_directory_for_a_link_leaks_nothing() {
    for target in ["../secret", "other"] {
        let scene = scene_of_a_swap(target);
        while_swapping(scene.inside("d"), scene.inside("swap"), read_both_ways(&scene, "d/f"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_file_for_a_link_leaks_nothing() {
    for target in ["../../secret/f", "../other/f", "g"] {
        let scene = scene_of_a_swap(target);
        fs::write(scene.inside("d/g"), "a neighbour").unwrap();
        while_swapping(scene.inside("d/f"), scene.inside("swap"), read_both_ways(&scene, "d/f"))
            .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_file_for_a_pipe_blocks_nothing() {
    let scene = scene_of_a_swap("other");
    make_fifo(&scene.inside("pipe"));
    while_swapping(scene.inside("d/f"), scene.inside("pipe"), read_both_ways(&scene, "d/f")).await;
}

/// Reads the file until reads have both succeeded and been refused, and at least 3000 times.
async fn read_both_ways(scene: &Scene, path: &str) {
    let (mut given, mut refused) = (0, 0);
    while given + refused < 3000 || given == 0 || refused == 0 {
        match scene.read(path).await {
            Ok(content) => {
                assert_eq!(content, "inside");
                given += 1;
            }
            Err(refusal) => {
                assert!(!refusal.contains("secret"), "{refusal}");
                refused += 1;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn swapping_a_directory_for_a_link_lets_nothing_out() {
    for target in ["../secret", "other"] {
        let scene = scene_of_a_swap(target);
        while_swapping(scene.inside("d"), scene.inside("swap"), async {
            for number in 0..300 {
                let _refused = scene.write("d/f", "mine").await;
                let _refused =
                    scene.write_with(&format!("d/new{number}"), "mine", WriteMode::Create).await;
                let _refused =
                    scene.store.create_directory(&file(&format!("d/made{number}"))).await;
                let _refused = scene.store.delete(&file("d/f")).await;
                let listed = scene.store.list(&file("d"), Scope::Recursive).await;
                assert!(!format!("{listed:?}").contains("secret"));
            }
        })
        .await;
        for (directory, content) in [("secret", "secret"), ("store/other", "other")] {
            assert_eq!(fs::read_to_string(scene.outside(directory).join("f")).unwrap(), content);
            assert_eq!(fs::read_dir(scene.outside(directory)).unwrap().count(), 1);
        }
    }
}

/// Number of operations of the long race.
const OPERATIONS: usize = 10_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_operations_during_swaps_reach_nothing_outside() {
    let mut went_well = [0_usize; 9];
    let mut refused = went_well;
    for target in ["../secret", "other"] {
        let scene = scene_of_a_swap(target);
        let pause = Duration::from_millis(1);
        let seen =
            while_swapping_with_pauses(scene.inside("d"), scene.inside("swap"), pause, async {
                let mut seen = Vec::new();
                for number in 0..OPERATIONS / 2 {
                    let (kind, said) = operate(&scene.store, number).await;
                    // Files behind the link have content that identifies them.
                    let is_outside =
                        |said: &String| said.contains("secret") || said.contains("other");
                    assert!(!said.as_ref().is_ok_and(is_outside), "{kind}: {said:?}");
                    seen.push((kind, said.is_ok()));
                }
                seen
            })
            .await;
        for (kind, is_well) in seen {
            if is_well { went_well[kind] += 1 } else { refused[kind] += 1 }
        }
        for (directory, content) in [("secret", "secret"), ("store/other", "other")] {
            assert_eq!(fs::read_to_string(scene.outside(directory).join("f")).unwrap(), content);
            assert_eq!(fs::read_dir(scene.outside(directory)).unwrap().count(), 1, "{directory}");
        }
        assert!(scene.inside("swap").is_symlink(), "the link is not where it was");
    }
    let all = went_well.iter().zip(&refused).all(|(well, refused)| *well > 0 && *refused > 0);
    assert!(
        all,
        "each kind goes well at times and is refused at others: {went_well:?}, {refused:?}"
    );
}

/// Runs one of nine kinds of operations, in and around `d`. Returns its kind and its result.
async fn operate(store: &DirectoryStore, number: usize) -> (usize, Result<String, FileError>) {
    let (in_d, mine) = (file("d/f"), || b"mine".to_vec());
    let text = |content: Vec<u8>| String::from_utf8(content).unwrap();
    let kind = number % 9;
    let said = match kind {
        0 => store.read(&in_d, 99).await.map(text),
        1 => store.read_range(&in_d, 0, 99).await.map(text),
        2 => store
            .list(&file("d"), Scope::Recursive)
            .await
            .map(|listing| format!("{:?}", listing.entries)),
        3 => store.write(&in_d, mine(), WriteMode::Replace).await.map(|()| String::new()),
        4 => store.write(&file("d/a"), mine(), WriteMode::Create).await.map(|()| String::new()),
        5 => store.rename(&file("d/a"), &file("d/b")).await.map(|()| String::new()),
        6 => store.delete(&file("d/b")).await.map(|()| String::new()),
        7 => store.stat(&file("d/f")).await.map(|stat| format!("{:?}", stat.kind)),
        _ => commit_around(store, number).await.map(|()| String::new()),
    };
    (kind, said)
}

/// Commits changes that replace, create, move and delete in `d`, into it and out of it.
async fn commit_around(store: &DirectoryStore, number: usize) -> Result<(), FileError> {
    let overlay = crate::Overlay::new(Arc::new(store.clone()), &crate::Budget::new(1 << 20));
    overlay.write(&file("d/f"), b"mine".to_vec(), WriteMode::Replace).await?;
    overlay.write(&file("d/new/deep"), number.to_string().into(), WriteMode::Replace).await?;
    match number / 9 % 3 {
        0 => overlay.write(&file("d/in"), b"mine".to_vec(), WriteMode::Replace).await?,
        1 => overlay.rename(&file("d/in"), &file("out")).await?,
        _ => overlay.rename(&file("out"), &file("d/in")).await?,
    }
    overlay.commit_changes().await.map(drop)
}
