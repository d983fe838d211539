//! Tests of directories, links and devices with the name of a history file.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::time::Duration;

use super::*;

#[tokio::test]
async fn what_is_not_a_regular_file_is_neither_read_nor_written_nor_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join("h").join(format!("{name}.jsonl"));
    let files = open(&directory.path().join("h"));
    fs::write(directory.path().join("outside"), "unchanged").unwrap();
    fs::write(at("real"), "").unwrap();
    symlink(directory.path().join("outside"), at("link-out")).unwrap();
    symlink("real.jsonl", at("link-in")).unwrap();
    symlink("nowhere", at("link-dangling")).unwrap();
    fs::create_dir(at("directory")).unwrap();
    assert!(Command::new("mkfifo").arg(at("fifo")).status().unwrap().success());
    let _listener = UnixListener::bind(at("socket")).unwrap();
    for name in ["link-out", "link-in", "link-dangling", "directory", "fifo", "socket"] {
        let all = async {
            let append =
                files.append(name, &texts(&["b"])).await.map_err(|error| error.to_string());
            let repair = files.repair(name).await.map_err(|error| error.to_string());
            [shown(&files, name).await.err(), append.err(), repair.err()]
        };
        let errors = tokio::time::timeout(Duration::from_secs(20), all).await.unwrap();
        let expected = format!("History file '{name}.jsonl' is not a regular file.");
        assert_eq!(errors.map(Option::unwrap), [expected.clone(), expected.clone(), expected]);
    }
    assert_eq!(fs::read_to_string(directory.path().join("outside")).unwrap(), "unchanged");
    assert_eq!(fs::read_to_string(at("real")).unwrap(), "");
    assert!(!directory.path().join("h/nowhere").exists());
}

#[tokio::test]
async fn an_error_of_the_system_names_no_directory() {
    let directory = tempfile::tempdir().unwrap();
    let files = open(&directory.path().join("secret-folder"));
    fs::remove_dir(directory.path().join("secret-folder")).unwrap();
    assert_eq!(shown(&files, "s").await, Ok(vec![]));
    let error = files.append("s", &texts(&["a"])).await.unwrap_err();
    assert_eq!(error.to_string(), "history file 's.jsonl' cannot be used: entity not found");
    assert!(!format!("{error:?}").contains("secret-folder"));
    assert!(!format!("{files:?}").contains("secret-folder"));
}

#[tokio::test]
async fn an_id_leads_nowhere_else() {
    let directory = tempfile::tempdir().unwrap();
    let files = open(&directory.path().join("h"));
    for id in ["../x", "/etc/x", "a/../../x", "..", "a\0b", "\\x", "CON"] {
        files.append(id, &texts(&[id])).await.unwrap();
        assert_eq!(shown(&files, id).await.unwrap(), [id]);
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    assert_eq!(fs::read_dir(directory.path().join("h")).unwrap().count(), 7);
}
