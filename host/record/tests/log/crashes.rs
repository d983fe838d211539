use std::collections::HashSet;
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use cofferdam_record::{CallFilter, Log};

use super::stream::assert_complete;
use super::{Place, call, toolset};

/// Variable by which the test program knows that it is a child.
const CHILD: &str = "COFFERDAM_RECORD_CHILD";

/// Variable with the number of processes that are killed.
const ROUNDS: &str = "COFFERDAM_RECORD_KILLS";

/// Records calls until it is killed, or as many as it is told. Does nothing as a test.
#[tokio::test]
async fn child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (number, directory) = task.split_once(' ').unwrap();
    let options = cofferdam_record::RecordOptions::new(directory);
    let recorder = std::sync::Arc::new(cofferdam_record::Recorder::open(options).unwrap());
    let tools = toolset(&recorder);
    println!("ready");
    for index in 0..number.parse::<u64>().unwrap() {
        let tool = if index % 100 == 0 { "sleep" } else { "echo" };
        let call = call(&tools, tool, r#"{"a":1}"#, "child");
        if tool == "sleep" {
            let _ = tokio::time::timeout(Duration::from_millis(15), call).await;
        } else {
            call.await;
        }
    }
    recorder.close();
}

fn spawn(place: &Place, calls: u64) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crashes::child", "--nocapture"])
        .env(CHILD, format!("{calls} {}", place.path().display()))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

fn wait_until_ready(child: &mut std::process::Child) {
    let (mut seen, mut byte) = (Vec::new(), [0]);
    let stdout = child.stdout.as_mut().unwrap();
    while !seen.ends_with(b"ready") {
        assert_eq!(stdout.read(&mut byte).unwrap(), 1, "the child has ended");
        seen.push(byte[0]);
    }
}

#[test]
fn a_killed_process_leaves_whole_lines() {
    let place = Place::new();
    let mut lost = 0;
    let rounds = std::env::var(ROUNDS).ok().map_or(30, |rounds| rounds.parse().unwrap());
    for round in 0..rounds {
        let mut child = spawn(&place, u64::MAX);
        wait_until_ready(&mut child);
        std::thread::sleep(Duration::from_millis(round * 7 % 60_u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let log = Log::open(place.path()).unwrap();
        let found = log.query(&CallFilter::default()).unwrap();
        assert!(found.damage.unreadable.is_empty());
        let outcomes: HashSet<_> = found.calls.iter().map(|call| &*call.outcome).collect();
        assert!(outcomes.is_subset(&HashSet::from(["ok", "cancelled", "lost"])), "{outcomes:?}");
        let lost_now = found.calls.iter().filter(|call| call.outcome == "lost").count();
        assert!((lost..=lost + 1).contains(&lost_now));
        lost = lost_now;
        check_numbers(&log);
        assert_complete(&log, &CallFilter::default());
        let report = cofferdam_record::verify(&place.path(), &[], None).unwrap();
        assert!(report.is_intact(), "{report:?}");
    }
    assert!(lost > 0, "no round has lost a call");
}

/// Every line is whole and has the next number, or is the torn last one.
fn check_numbers(log: &Log) {
    for segment in log.segments().unwrap() {
        assert!(!segment.is_live());
        let (mut lines, mut next, mut is_torn) = (segment.lines().unwrap(), 0, false);
        while let Some(line) = lines.next_line().unwrap() {
            assert!(!is_torn);
            is_torn = !line.is_whole;
            if line.is_whole {
                let value: serde_json::Value = serde_json::from_slice(line.bytes).unwrap();
                assert_eq!(value["n"], next, "{}", segment.name());
                next += 1;
            }
        }
    }
}

#[test]
fn several_processes_share_a_directory() {
    let place = Place::new();
    let mut children: Vec<_> = (0..4).map(|_| spawn(&place, 1000)).collect();
    children.iter_mut().for_each(wait_until_ready);
    let log = Log::open(place.path()).unwrap();
    while children.iter_mut().any(|child| child.try_wait().unwrap().is_none()) {
        let found = log.query(&CallFilter::default()).unwrap();
        assert!(found.damage.torn.is_empty() && found.damage.unreadable.is_empty());
        assert!(found.calls.iter().all(|call| call.outcome != "lost"));
    }
    let found = log.query(&CallFilter::default()).unwrap();
    let ids: HashSet<_> = found.calls.iter().map(|call| &call.id).collect();
    assert_eq!((found.calls.len(), ids.len()), (4000, 4000));
    assert!(log.segments().unwrap().iter().all(|segment| segment.is_closed()));
    assert_complete(&log, &CallFilter::default());
    let report = cofferdam_record::verify(&place.path(), &[], None).unwrap();
    assert!(report.is_intact(), "{report:?}");
}
