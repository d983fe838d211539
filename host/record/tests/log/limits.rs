//! A log at its limits: many calls in few bytes, and a disk that is full.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use cofferdam_record::{CallFilter, FullQueue, Log, PayloadMode, RecordOptions, Recorder};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Place, call, toolset};

/// Variable with the number of calls that have to fit.
const CALLS: &str = "COFFERDAM_RECORD_CALLS";
/// Variable with the maximum bytes of the log.
const BYTES: &str = "COFFERDAM_RECORD_BYTES";
/// Variable by which the test program knows that it is a child with a full disk.
const CHILD: &str = "COFFERDAM_RECORD_FULL";
/// Bytes that a full disk still takes: a part of any line.
const BYTES_LEFT: u64 = 50;

/// Returns the bytes that count: those of all files but the list of removed segments, which has 270
/// bytes for each, 3 MB for a million calls with a limit of 1 MiB.
fn bytes(place: &Place) -> u64 {
    let files = std::fs::read_dir(place.path()).unwrap().filter_map(Result::ok);
    let counted = files.filter(|file| file.file_name() != "pruned");
    // Files can be pruned meanwhile.
    counted.filter_map(|file| file.metadata().ok()).map(|facts| facts.len()).sum()
}

#[tokio::test]
async fn the_list_of_removed_segments_displaces_nothing() {
    let place = Place::new();
    let recorder = place.recorder();
    call(&toolset(&recorder), "echo", "{}", "s").await;
    recorder.close();
    std::fs::write(place.path().join("pruned"), "\n".repeat(2 << 20)).unwrap();
    let log = Log::open(place.path()).unwrap();
    let report = log.prune(1 << 20, std::time::Duration::from_hours(1)).unwrap();
    assert_eq!(report.segments, 0, "{report:?}");
    assert_eq!(log.query(&CallFilter::default()).unwrap().calls.len(), 1);
}

#[tokio::test]
async fn many_calls_stay_under_the_configured_bytes() {
    let calls = std::env::var(CALLS).ok().map_or(20_000, |calls| calls.parse().unwrap());
    let bytes_max = std::env::var(BYTES).ok().map_or(1 << 20, |bytes| bytes.parse().unwrap());
    let place = Place::new();
    let options = RecordOptions { bytes_max, ..place.options(PayloadMode::Digests) };
    let recorder = Arc::new(Recorder::open(options).unwrap());
    let (tools, started) = (toolset(&recorder), Instant::now());
    let (mut most, mut written) = (0, 0);
    for index in 0_u64..calls {
        // Sessions that compress badly.
        let session =
            format!("{:032x}", u128::from(index).wrapping_mul(0x9e37_79b9_7f4a_7c15 << 60));
        call(&tools, "echo", r#"{"a":1}"#, &session).await;
        written += 1;
        if index % 1000 == 0 {
            most = most.max(bytes(&place));
        }
    }
    recorder.close();
    most = most.max(bytes(&place));
    println!("{written} calls in {:?}, at most {most} bytes of {bytes_max}", started.elapsed());
    assert!(most <= bytes_max, "{most} bytes");
    let health = recorder.health();
    assert!(!health.is_failing && health.dropped == 0, "{health:?}");
    let log = Log::open(place.path()).unwrap();
    let found = log.query(&CallFilter::default()).unwrap().calls;
    // The newest are there, and some were removed.
    assert_eq!(found[0].id.rsplit_once('-').unwrap().1, calls.to_string());
    assert!(found.len() > 500 && (found.len() as u64) < calls, "{}", found.len());
    let report = cofferdam_record::verify(&place.path(), &[], None).unwrap();
    assert!(report.is_intact(), "{report:?}");
}

/// Records while its files may not grow, and after. Does nothing as a test.
#[tokio::test]
async fn full_disk_child() {
    let Ok(task) = std::env::var(CHILD) else { return };
    let (on_full, directory) = task.split_once(' ').unwrap();
    let on_full = if on_full == "drop" { FullQueue::Drop } else { FullQueue::Wait };
    let options = RecordOptions { on_full, ..RecordOptions::new(directory) };
    let recorder = Arc::new(Recorder::open(options).unwrap());
    let tools = toolset(&recorder);
    let calls = async |number: u64, session: &str| {
        for _ in 0..number {
            call(&tools, "echo", r#"{"a":1}"#, session).await;
        }
        recorder.flush();
        recorder.health()
    };
    assert!(!calls(50, "before").await.is_failing);

    let limit = getrlimit(Resource::Fsize);
    let files = std::fs::read_dir(directory).unwrap().map(|file| file.unwrap());
    let largest = files.map(|file| file.metadata().unwrap().len()).max().unwrap();
    let full = Rlimit { current: Some(largest + BYTES_LEFT), ..limit };
    setrlimit(Resource::Fsize, full).unwrap();
    for _ in 0..3 {
        // Each write ends in the middle of its first line.
        let health = calls(200, "full").await;
        assert!(health.is_failing && health.error.is_some(), "{health:?}");
    }
    let dropped = recorder.health().dropped;
    assert_eq!(dropped, 600);

    setrlimit(Resource::Fsize, limit).unwrap();
    let health = calls(50, "after").await;
    assert!(!health.is_failing && health.dropped == dropped, "{health:?}");
    recorder.close();
}

#[test]
fn a_full_disk_stops_no_call_and_the_log_counts_what_is_lost() {
    for on_full in ["wait", "drop"] {
        let place = Place::new();
        // The limit of a file's size stands for a full disk: a write is cut in the same way. Its
        // signal is ignored, so that the write fails instead.
        let child = Command::new("/bin/sh")
            .args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", "limits::full_disk_child", "--nocapture"])
            .env(CHILD, format!("{on_full} {}", place.path().display()))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .unwrap();
        assert!(child.status.success(), "{}", String::from_utf8_lossy(&child.stderr));

        let log = Log::open(place.path()).unwrap();
        let found = log.query(&CallFilter::default()).unwrap();
        assert!(found.damage.torn.is_empty() && found.damage.unreadable.is_empty());
        let of = |session: &str| {
            found.calls.iter().filter(|call| call.session.as_deref() == Some(session)).count()
        };
        assert_eq!((of("before"), of("full"), of("after")), (50, 0, 50));
        let mut dropped = 0;
        for segment in log.segments().unwrap() {
            let mut lines = segment.lines().unwrap();
            while let Some(line) = lines.next_line().unwrap() {
                let line: serde_json::Value = serde_json::from_slice(line.bytes).unwrap();
                if line["kind"] == "drops" {
                    dropped += line["count"].as_u64().unwrap();
                }
            }
        }
        assert_eq!(dropped, 600);
        let report = cofferdam_record::verify(&place.path(), &[], None).unwrap();
        assert!(report.is_intact(), "{report:?}");
    }
}
