//! Files that an attacker puts where a commit would be prepared.
#![cfg(target_os = "linux")]

use std::os::unix::fs::symlink;

use super::*;

const COMMIT: &str = ".~cofferdam-commit";

/// Creates a store whose directory contains `mine` and, where a commit is prepared, the given
/// files. Outside of it there is `outside/secret`.
fn planted(files: &[(&str, &str)]) -> Scene {
    let scene = Scene::new();
    fs::create_dir(scene.outside("outside")).unwrap();
    fs::write(scene.outside("outside/secret"), "secret").unwrap();
    fs::write(scene.inside("mine"), "mine").unwrap();
    fs::create_dir(scene.inside(COMMIT)).unwrap();
    for (name, content) in files {
        fs::write(scene.inside(COMMIT).join(name), content).unwrap();
    }
    scene
}

fn open(scene: &Scene) -> Result<DirectoryStore, OpenDirectoryError> {
    DirectoryStore::open_ambient(&scene.inside(""), FAST)
}

/// Checks that everything outside of the commit is unchanged.
fn require_unharmed(scene: &Scene, what: &str) {
    assert_eq!(fs::read_to_string(scene.outside("outside/secret")).unwrap(), "secret", "{what}");
    assert_eq!(fs::read_dir(scene.outside("outside")).unwrap().count(), 1, "{what}");
    assert_eq!(fs::read_to_string(scene.inside("mine")).unwrap(), "mine", "{what}");
}

fn set_aside(scene: &Scene) -> Vec<String> {
    scene.names("").into_iter().filter(|name| name.ends_with("-set-aside")).collect()
}

fn record(leaving: &[(&str, &str)], coming: &[(&str, &str)]) -> String {
    let leaving: Vec<_> = leaving
        .iter()
        .map(|(path, end)| {
            format!(r#"{{"path":"{path}","is_directory":false,"end":"{end}","state":1}}"#)
        })
        .collect();
    let coming: Vec<_> = coming
        .iter()
        .map(|(path, from)| {
            format!(r#"{{"path":"{path}","is_directory":false,"from":{from},"replaces":null}}"#)
        })
        .collect();
    format!(r#"{{"format":1,"leaving":[{}],"coming":[{}]}}"#, leaving.join(","), coming.join(","))
}

#[tokio::test]
async fn a_record_that_names_anything_but_paths_of_the_store_is_not_carried_out() {
    let outside = "../outside/secret";
    let records = [
        ("deletes outside", record(&[(outside, "deleted")], &[])),
        ("moves in", record(&[(outside, "moved")], &[("stolen", r#"{"vacated":0}"#)])),
        ("writes outside", record(&[], &[("../outside/new", r#""staged""#)])),
        ("absolute", record(&[("/etc/hostname", "deleted")], &[])),
        ("reserved", record(&[], &[(".~cofferdam-x", r#""staged""#)])),
        ("no text", "\u{0}\u{0}\u{0}".to_owned()),
        ("empty", String::new()),
        ("another format", r#"{"format":7,"leaving":[],"coming":[]}"#.to_owned()),
    ];
    for (what, text) in records {
        for phase in ["vacate", "fill", "unfill", "unvacate"] {
            let scene =
                planted(&[(&format!("record-{phase}"), &text), ("n0", "new"), ("v0", "old")]);
            let store = open(&scene).unwrap();
            require_unharmed(&scene, what);
            // Everything in it still exists.
            let [aside] = &set_aside(&scene)[..] else { panic!("{what}: {:?}", scene.names("")) };
            assert_eq!(scene.names(aside).len(), 3, "{what}");
            assert_eq!(
                store.list(&StorePath::ROOT, Scope::Recursive).await.unwrap().entries.len(),
                1,
                "{what}"
            );
            store.write(&file("later"), b"x".to_vec(), WriteMode::Create).await.unwrap();
        }
    }
}

#[test]
fn a_record_does_not_lead_through_links() {
    let texts = [
        record(&[("link/secret", "deleted")], &[]),
        record(&[("link", "deleted")], &[]),
        record(&[("link/secret", "moved")], &[("stolen", r#"{"vacated":0}"#)]),
        record(&[], &[("link/new", r#""staged""#)]),
        record(&[], &[("link", r#""staged""#)]),
    ];
    for text in texts {
        for phase in ["vacate", "fill", "unfill", "unvacate"] {
            let scene =
                planted(&[(&format!("record-{phase}"), &text), ("n0", "new"), ("v0", "old")]);
            symlink("../outside", scene.inside("link")).unwrap();
            let _opened = open(&scene);
            require_unharmed(&scene, &text);
            assert!(scene.inside("link").is_symlink(), "{text}");
        }
    }
}

#[test]
fn links_instead_of_a_commit_lead_nowhere() {
    for target in ["../outside", "mine", "nowhere", "."] {
        let scene = planted(&[]);
        fs::remove_dir(scene.inside(COMMIT)).unwrap();
        symlink(target, scene.inside(COMMIT)).unwrap();
        open(&scene).unwrap();
        require_unharmed(&scene, target);
        assert_eq!(scene.names(""), ["mine"], "{target}");
    }
    let scene = planted(&[]);
    for (name, target) in
        [("record-vacate", "../mine"), ("v0", "../../outside"), ("n0", "../../outside/secret")]
    {
        symlink(target, scene.inside(COMMIT).join(name)).unwrap();
    }
    open(&scene).unwrap();
    require_unharmed(&scene, "links inside");
}

#[test]
fn what_blocks_or_is_no_directory_is_no_commit() {
    let scene = planted(&[]);
    hostile::make_fifo(&scene.inside(COMMIT).join("record-vacate"));
    open(&scene).unwrap();
    require_unharmed(&scene, "a pipe for a record");
    let scene = planted(&[]);
    fs::remove_dir(scene.inside(COMMIT)).unwrap();
    fs::write(scene.inside(COMMIT), "a file").unwrap();
    open(&scene).unwrap();
    assert_eq!(scene.names(""), ["mine"]);
}

#[test]
fn without_a_record_files_go_and_directories_with_something_in_them_stay() {
    let scene = planted(&[("n0", "x"), ("v1", "x"), ("record", "{")]);
    fs::create_dir(scene.inside(COMMIT).join("n1")).unwrap();
    open(&scene).unwrap();
    assert_eq!(scene.names(""), ["mine"]);
    let scene = planted(&[]);
    fs::create_dir(scene.inside(COMMIT).join("v0")).unwrap();
    fs::write(scene.inside(COMMIT).join("v0/precious"), "x").unwrap();
    open(&scene).unwrap();
    let [aside] = &set_aside(&scene)[..] else { panic!("{:?}", scene.names("")) };
    assert_eq!(scene.names(&format!("{aside}/v0")), ["precious"]);
}

#[tokio::test]
async fn a_read_only_store_recovers_nothing() {
    let scene = planted(&[("n0", "x")]);
    let options = DirectoryOptions { is_read_only: true, ..FAST };
    let store = DirectoryStore::open_ambient(&scene.inside(""), options).unwrap();
    assert_eq!(store.read(&file("mine"), 9).await.unwrap(), b"mine");
    store.write(&file("a"), Vec::new(), WriteMode::Create).await.unwrap_err();
    assert_eq!(scene.names(COMMIT), ["n0"]);
}

#[tokio::test]
async fn the_commit_of_another_user_is_left_alone() {
    use rustix::fs::{AtFlags, CWD, Uid, chownat};
    let scene = planted(&[("record-vacate", &record(&[("mine", "deleted")], &[]))]);
    let owner = Some(Uid::from_raw(12_345));
    if chownat(CWD, scene.inside(COMMIT), owner, None, AtFlags::empty()).is_err() {
        println!("skipped: only root may give files away");
        return;
    }
    open(&scene).unwrap_err();
    let refused = scene.write("a", "x").await.unwrap_err();
    assert_eq!(refused, "the file store failed: permission denied.");
    require_unharmed(&scene, "another user");
    assert_eq!(scene.names(COMMIT), ["record-vacate"]);
}
