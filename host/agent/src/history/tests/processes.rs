//! Tests of several processes that share one file. The test runs itself as child processes.

use std::process::{Command, Stdio};

use super::*;

const DIRECTORY: &str = "COFFERDAM_HISTORY_DIRECTORY";
const WRITER: &str = "COFFERDAM_HISTORY_WRITER";
const APPENDS: usize = 40;

/// Runs the work of a child process. Not a test by itself.
#[tokio::test]
async fn child() {
    let (Some(directory), Ok(writer)) = (std::env::var_os(DIRECTORY), std::env::var(WRITER)) else {
        return;
    };
    let files = open(Path::new(&directory));
    for number in 0..APPENDS {
        // Longer than the kernel copies in one step.
        let batch =
            [format!("{writer} {number}"), format!("{writer} {number} {}", "x".repeat(20_000))];
        files.append("s1", &texts(&batch.each_ref().map(String::as_str))).await.unwrap();
        assert!(files.read("s1").await.unwrap().len().is_multiple_of(2));
    }
}

#[tokio::test]
async fn appends_of_several_processes_do_not_mix() {
    let directory = tempfile::tempdir().unwrap();
    let children = ["a", "b", "c"].map(|writer| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "history::tests::processes::child"])
            .env(DIRECTORY, directory.path())
            .env(WRITER, writer)
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    });
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let read = shown(&open(directory.path()), "s1").await.unwrap();
    for writer in ["a", "b", "c"] {
        let own: Vec<_> = read.chunks(2).filter(|pair| pair[0].starts_with(writer)).collect();
        assert_eq!(own.len(), APPENDS);
        for (number, pair) in own.into_iter().enumerate() {
            assert_eq!(pair[0], format!("{writer} {number}"));
            assert!(pair[1].starts_with(&format!("{writer} {number} x")));
        }
    }
}
