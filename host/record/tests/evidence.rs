//! Evidence of logs that the recorder itself writes: checked, kept, proven and pruned.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use cofferdam_record::{
    CallFilter, Log, LogEvent, ProofTarget, RecordOptions, Recorder, VerifyReport, check_proof,
    log_key, prove, verify,
};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("log")
    }
}

fn record(path: &Path, grants: u32) -> Recorder {
    let recorder = Recorder::open(RecordOptions::new(path)).unwrap();
    for grant in 0..grants {
        recorder.event(LogEvent::Grant {
            plugin: "adder".to_owned(),
            permission: format!("file:{grant}"),
            is_added: true,
        });
    }
    recorder.flush();
    recorder
}

fn intact(path: &Path, kept: &[String]) -> VerifyReport {
    let report = verify(path, kept, None).unwrap();
    assert!(report.is_intact(), "{report:?}");
    report
}

#[test]
fn a_log_is_intact_at_any_time_and_one_checkpoint_covers_it() {
    let place = Place::new();
    let path = place.path();
    let running = record(&path, 3);
    let report = intact(&path, &[]);
    assert_eq!((report.segments, report.segments_unclosed, report.lines_unsealed), (1, 1, 3));
    let kept = report.frontier;
    assert_eq!(kept.len(), 1, "the start of the segment");
    record(&path, 2).close();
    intact(&path, &kept);
    running.close();
    record(&path, 1).close();
    let report = intact(&path, &kept);
    assert_eq!((report.segments, report.segments_unclosed, report.lines_unsealed), (3, 0, 0));
    assert_eq!(report.kept_checkpoints, 1);
    assert_eq!(report.frontier.len(), 1, "the last segment covers the others");
    let name = |one: &cofferdam_record::segments::SegmentFile| one.name();
    let names: Vec<_> = Log::open(&path).unwrap().segments().unwrap().iter().map(name).collect();
    assert!(names.iter().all(|name| name.ends_with(".jsonl.gz")), "{names:?}");
    std::fs::remove_file(path.join(&names[1])).unwrap();
    assert!(!verify(&path, &report.frontier, None).unwrap().is_intact());
}

#[test]
fn a_line_is_proven_without_the_log() {
    let place = Place::new();
    record(&place.path(), 9).close();
    let key = log_key(&place.path()).unwrap();
    let log = Log::open(place.path()).unwrap();
    let stem = log.segments().unwrap()[0].stem().to_owned();
    let target = ProofTarget::Line { segment: &stem, line: 4 };
    let json = serde_json::to_vec(&prove(&place.path(), target).unwrap()).unwrap();
    drop(place);
    let proven = check_proof(&json, &key).unwrap();
    assert_eq!((proven.number, &*proven.checkpoint.segment), (4, &*stem));
    assert!(proven.line.contains(r#""permission":"file:1""#), "{}", proven.line);
}

#[test]
fn retention_leaves_an_intact_log() {
    let place = Place::new();
    let path = place.path();
    record(&path, 5).close();
    record(&path, 5).close();
    let kept = intact(&path, &[]).frontier;
    let log = Log::open(&path).unwrap();
    let report = log.prune(0, Duration::ZERO).unwrap();
    assert_eq!(report.segments, 2);
    let report = intact(&path, &kept);
    assert_eq!((report.segments, report.pruned.len()), (0, 2), "{report:?}");
    record(&path, 1).close();
    intact(&path, &kept);
    assert!(log.query(&CallFilter::default()).unwrap().calls.is_empty());
}

#[test]
fn a_segment_that_cannot_be_sealed_is_not_left() {
    let place = Place::new();
    let path = place.path();
    record(&path, 1).close();
    // A file instead of the folder of marks.
    std::fs::remove_dir_all(path.join("heads")).unwrap();
    std::fs::write(path.join("heads"), "").unwrap();
    assert!(Recorder::open(RecordOptions::new(&path)).is_err());
    let report = intact(&path, &[]);
    assert_eq!(report.segments, 1);
}
