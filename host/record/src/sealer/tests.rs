//! Keys, checkpoints and marks of several segments in one directory.

use std::path::Path;
use std::time::{Duration, SystemTime};

use super::testing::TestLog;
use super::*;
use crate::heads::parse_heads;
use crate::note::VerifierKey;

fn marks(log: &TestLog) -> Vec<(String, u64)> {
    let marks = HeadMark::list(&log.directory).unwrap();
    marks.into_iter().map(|mark| (mark.segment, mark.size)).collect()
}

fn open(log: &TestLog, segment: &str) -> LogCheckpoint {
    let note = read_checkpoint(&log.directory, segment).unwrap().unwrap();
    LogCheckpoint::open(&note, log.key.verifier()).unwrap()
}

#[test]
fn the_first_process_makes_the_key_and_others_read_it() {
    let log = TestLog::new();
    let again = SigningKey::load_or_create(&log.directory).unwrap();
    assert_eq!(again.verifier(), log.key.verifier());
    let mode = std::fs::metadata(log.path().join("signing-key")).unwrap().permissions();
    assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
    let printed = log.key.verifier().to_string();
    assert!(printed.starts_with("cofferdam-records/"), "{printed}");
    assert_eq!(&VerifierKey::parse(&printed).unwrap(), log.key.verifier());
}

#[test]
fn concurrent_processes_agree_on_one_key() {
    let root = tempfile::tempdir().unwrap();
    let directory = LogDirectory::create(&root.path().join("log")).unwrap();
    let make = || SigningKey::load_or_create(&directory).unwrap().verifier().to_string();
    let keys: std::collections::BTreeSet<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(make)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(keys.len(), 1);
}

#[test]
fn a_checkpoint_is_a_signed_note_about_the_lines() {
    let log = TestLog::new();
    let segment = log.closed(0, 1, 5, 2);
    let note = read_checkpoint(&log.directory, &segment).unwrap().unwrap();
    let origin = format!("{}/{segment}", log.key.verifier().name());
    assert_eq!(note.lines().next(), Some(&*origin));
    let bytes = std::fs::read(log.file(&segment)).unwrap();
    let mut tree = TreeAccumulator::default();
    bytes.split_inclusive(|b| *b == b'\n').for_each(|l| tree.append(&l[..l.len() - 1]));
    let state = open(&log, &segment);
    assert_eq!((state.size, state.root), (tree.size(), tree.root()));
    assert_eq!(LogCheckpoint::parse_unsigned(&note).unwrap(), state);
}

#[test]
fn a_segment_covers_the_checkpoints_before_it_once() {
    let log = TestLog::new();
    let first = log.closed(0, 1, 3, 10);
    let size = open(&log, &first).size;
    assert_eq!(marks(&log), [(first.clone(), size)]);
    let mut second = log.start(1, 2);
    assert_eq!(marks(&log), [(second.name.clone(), 2)], "the first is covered");
    let text = std::fs::read(log.file(&second.name)).unwrap();
    let line = text.split(|b| *b == b'\n').nth(1).unwrap();
    assert_eq!(parse_heads(line).unwrap(), [open(&log, &first)]);
    second.call(0);
    assert!(parse_heads(&second.sealer.heads_line(3)).unwrap().is_empty());
}

#[test]
fn two_running_segments_cover_each_other_and_do_not_keep_each_other_awake() {
    let log = TestLog::new();
    let (mut one, mut two) = (log.start(0, 1), log.start(1, 2));
    assert!(!one.sealer.is_due() && !two.sealer.is_due());
    one.call(0);
    assert!(one.sealer.is_due() && !two.sealer.is_due());
    one.seal();
    assert!(!one.sealer.is_due() && !two.sealer.is_due());
    assert_eq!(marks(&log), [(one.name.clone(), 4)], "the second is covered by the first");
    two.call(0);
    two.seal();
    assert_eq!(marks(&log), [(two.name.clone(), 4)]);
}

#[test]
fn a_line_that_was_not_written_covers_nothing() {
    let log = TestLog::new();
    let first = log.closed(0, 1, 3, 10);
    let mut second = Sealer::new(&log.directory, "second-00000002", log.key.clone());
    second.append(b"x");
    second.heads_line(1);
    second.checkpoint().unwrap();
    assert_eq!(marks(&log).len(), 2, "the mark of {first} stays");
    let line = second.heads_line(1);
    second.append(&line);
    second.checkpoint().unwrap();
    assert_eq!(marks(&log), [("second-00000002".to_owned(), 2)]);
    second.discard();
    assert!(marks(&log).is_empty() && !log.checkpoint_file("second-00000002").exists());
}

#[test]
fn a_mark_without_a_valid_checkpoint_is_passed_over_and_stays() {
    let log = TestLog::new();
    let first = log.closed(0, 1, 3, 10);
    super::testing::change_file(&log.checkpoint_file(&first), |bytes| bytes[0] ^= 1);
    let second = log.start(1, 2);
    assert_eq!(marks(&log).len(), 2);
    assert!(second.name > first);
    for name in ["x", "@1", "../x@1", ".@1", "a@-1", "a@b"] {
        std::fs::write(log.path().join("heads").join(name.replace('/', "_")), "").unwrap();
    }
    assert_eq!(marks(&log).len(), 2, "names that are no marks are passed over");
}

#[test]
fn a_line_has_at_most_256_heads_and_the_next_one_the_rest() {
    let log = TestLog::new();
    let note = |segment: &str| {
        let (segment, root) = (segment.to_owned(), TreeHash::empty());
        LogCheckpoint { segment, size: 1, root }.sign(CheckpointPurpose::State, &log.key).unwrap()
    };
    for index in 0..260 {
        let segment = format!("segment-{index:03}");
        log.directory.write(&format!("{segment}.checkpoint"), note(&segment).as_bytes()).unwrap();
        HeadMark { segment, size: 1 }.create(&log.directory).unwrap();
    }
    let mut segment = log.start(0, 1);
    assert_eq!(marks(&log).len(), 260 - 256 + 1);
    segment.call(0);
    segment.seal();
    assert_eq!(marks(&log).len(), 1);
}

#[test]
fn pruning_leaves_a_tombstone_and_no_other_file() {
    let log = TestLog::new();
    let segment = log.closed(0, 1, 3, 10);
    let state = open(&log, &segment);
    record_pruned(&log.directory, &segment, &log.key).unwrap();
    assert!(!log.checkpoint_file(&segment).exists() && marks(&log).is_empty());
    let key = log.key.verifier();
    let read = crate::checkpoint::read_tombstones(&log.directory, key).unwrap();
    assert_eq!(read, [Ok(state)]);
}

#[test]
fn a_killed_process_is_sealed_by_another_one_once() {
    let log = TestLog::new();
    let mut killed = log.start(0, 1);
    (0..3).for_each(|call| killed.call(call));
    let name = killed.name;
    log.change(&name, |bytes| bytes.extend_from_slice(b"torn"));
    assert_eq!(open(&log, &name).size, 2);
    seal_orphans(&log.directory, &log.key).unwrap();
    assert_eq!(open(&log, &name).size, 5);
    assert_eq!(marks(&log), [(name.clone(), 5)]);
    let report = crate::verify(&log.path(), &[], None).unwrap();
    assert!(report.is_intact(), "{report:?}");
    assert_eq!((report.lines_unsealed, report.torn_tails), (0, 1));
    log.change(&name, |bytes| bytes[250] ^= 1);
    seal_orphans(&log.directory, &log.key).unwrap();
    assert!(!crate::verify(&log.path(), &[], None).unwrap().is_intact(), "nothing is signed over");
}

/// Many clients kill their servers, and each of these leaves a segment.
#[test]
fn a_killed_process_without_unsealed_lines_is_read_once() {
    let log = TestLog::new();
    let mut killed = log.start(0, 1);
    let name = killed.name.clone();
    let set_modified = |file: &Path, time| {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        file.set_modified(time).unwrap();
    };
    let hour = Duration::from_secs(3600);
    set_modified(&log.file(&name), SystemTime::now() - hour);
    set_modified(&log.checkpoint_file(&name), SystemTime::now() - hour);
    let segments = SegmentFile::list(&log.directory).unwrap();
    let [segment] = segments.as_slice() else { panic!("{segments:?}") };
    assert!(may_be_unsealed(&log.directory, segment), "both files have the same time");
    seal_orphans(&log.directory, &log.key).unwrap();
    assert!(!may_be_unsealed(&log.directory, segment));
    assert_eq!(open(&log, &name).size, 2);

    // Lines that follow are sealed all the same.
    killed.call(0);
    set_modified(&log.file(&name), SystemTime::now() + hour);
    seal_orphans(&log.directory, &log.key).unwrap();
    assert_eq!(open(&log, &name).size, 3);
}

#[test]
fn a_live_process_is_not_sealed_by_another_one() {
    let log = TestLog::new();
    let mut live = log.start(0, 1);
    let file = std::fs::File::open(log.file(&live.name)).unwrap();
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).unwrap();
    live.call(0);
    seal_orphans(&log.directory, &log.key).unwrap();
    assert_eq!(open(&log, &live.name).size, 2);
}
