//! Each way of tampering is found, and nothing is found in what honest processes leave.

mod tampering;

use std::collections::BTreeSet;

use super::*;
use crate::sealer::record_pruned;
use crate::sealer::testing::{TestLog, change_file};

fn check(log: &TestLog, kept: &[String]) -> VerifyReport {
    verify(&log.path(), kept, None).unwrap()
}

fn messages(report: &VerifyReport) -> Vec<String> {
    report.findings.iter().map(ToString::to_string).collect()
}

/// Three processes: two segments of the first, a long one, and one that covers them.
fn sample() -> (TestLog, [String; 4]) {
    let log = TestLog::new();
    let mut long = log.start(0, 1);
    let first = log.closed(1, 2, 6, 4);
    long.call(0);
    long.seal();
    let second = log.closed(2, 2, 3, 4);
    long.call(1);
    let long = long.close();
    let last = log.closed(3, 3, 4, 2);
    (log, [long, first, second, last])
}

fn lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect()
}

#[test]
fn an_honest_log_is_intact() {
    let (log, names) = sample();
    let report = check(&log, &[]);
    assert_eq!(messages(&report), Vec::<String>::new());
    assert!(report.is_intact());
    assert_eq!((report.segments, report.segments_unclosed, report.torn_tails), (4, 0, 0));
    assert_eq!(report.lines_unsealed, 0);
    assert_eq!(report.frontier.len(), 1, "the last segment covers all others");
    assert!(report.frontier[0].contains(&names[3]));
    names.iter().for_each(|name| log.compress(name));
    let kept = report.frontier;
    let report = check(&log, &kept);
    assert_eq!(messages(&report), Vec::<String>::new());
    assert_eq!(report.kept_checkpoints, 1);
    // An editor may save what was kept with a byte order mark and carriage returns.
    let edited = format!("\u{feff}{}", kept[0].replace('\n', "\r\n"));
    let report = check(&log, &[edited]);
    assert_eq!(messages(&report), Vec::<String>::new());
    assert_eq!(report.kept_checkpoints, 1);
    for empty in ["", "\n \n"] {
        let error = verify(&log.path(), &[kept[0].clone(), empty.to_owned()], None).unwrap_err();
        assert!(error.to_string().ends_with("found an empty text"), "{error}");
    }
}

#[test]
fn a_log_that_retention_has_emptied_names_its_segments() {
    let (log, names) = sample();
    for name in &names {
        record_pruned(&log.directory, name, &log.key).unwrap();
        for file in [log.file(name), log.checkpoint_file(name)] {
            let _ = std::fs::remove_file(file);
        }
    }
    let report = check(&log, &[]);
    assert!(report.is_intact(), "{:?}", messages(&report));
    assert_eq!((report.segments, report.pruned), (0, BTreeSet::from(names)));
}

#[test]
fn an_empty_directory_has_no_key() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("log");
    LogDirectory::create(&path).unwrap();
    assert!(matches!(verify(&path, &[], None), Err(EvidenceError::NoKey)));
}

#[test]
fn a_running_or_killed_process_leaves_an_intact_log() {
    let log = TestLog::new();
    let mut segment = log.start(0, 1);
    (0..5).for_each(|call| segment.call(call));
    let report = check(&log, &[]);
    assert!(report.is_intact(), "{:?}", messages(&report));
    assert_eq!((report.lines_unsealed, report.segments_unclosed), (5, 1));
    log.change(&segment.name, |bytes| bytes.truncate(bytes.len() - 10));
    let report = check(&log, &[]);
    assert!(report.is_intact(), "{:?}", messages(&report));
    assert_eq!((report.lines_unsealed, report.torn_tails), (4, 1));
}

#[test]
fn truncation_with_the_key_is_found_by_a_kept_checkpoint_and_by_heads() {
    let (log, [_, first, _, last]) = sample();
    let kept = check(&log, &[]).frontier;
    let shorten = |bytes: &mut Vec<u8>| {
        let end = lines(bytes).iter().rev().take(2).map(Vec::len).sum::<usize>();
        bytes.truncate(bytes.len() - end);
    };
    log.change(&last, shorten);
    log.seal_again(&last);
    assert!(check(&log, &[]).is_intact(), "nothing on this machine contradicts the key's owner");
    let found = messages(&check(&log, &kept));
    assert_eq!(
        found,
        [format!("{last}: a kept checkpoint states 10 lines, found 8: lines were removed")]
    );
    log.change(&first, shorten);
    log.seal_again(&first);
    let found = messages(&check(&log, &[]));
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with(&format!("{first}: line ")), "{found:?}");
    assert!(found[0].ends_with("states 11 lines, found 9: lines were removed"), "{found:?}");
}

#[test]
fn a_change_with_the_key_names_the_lines_between_two_heads() {
    let (log, [long, ..]) = sample();
    log.change(&long, |bytes| {
        let at = memchr::memmem::find(bytes, br#""n":4"#).unwrap();
        bytes[at..].iter_mut().find(|b| **b == b'd').unwrap().clone_from(&b'D');
    });
    log.seal_again(&long);
    let found = messages(&check(&log, &[]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("a line among 5 to 7 was changed"), "{found:?}");
}

#[test]
fn a_rewritten_log_with_a_new_key_is_found_by_what_was_kept() {
    let (log, names) = sample();
    let (kept, key) = (check(&log, &[]).frontier, log_key(&log.path()).unwrap());
    std::fs::remove_file(log.path().join("signing-key")).unwrap();
    let (other, _) = sample();
    std::fs::copy(other.path().join("signing-key"), log.path().join("signing-key")).unwrap();
    for name in &names {
        std::fs::copy(other.file(name), log.file(name)).unwrap();
        std::fs::copy(other.checkpoint_file(name), log.checkpoint_file(name)).unwrap();
    }
    assert!(check(&log, &[]).is_intact());
    assert!(!check(&log, &kept).is_intact());
    assert!(!verify(&log.path(), &[], Some(&key)).unwrap().is_intact());
}

#[test]
fn a_deleted_segment_is_found_and_a_pruned_one_is_not() {
    let (log, [long, first, ..]) = sample();
    std::fs::remove_file(log.file(&first)).unwrap();
    assert!(messages(&check(&log, &[]))[0].contains("does not exist"));
    std::fs::remove_file(log.checkpoint_file(&first)).unwrap();
    let found = messages(&check(&log, &[]));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains(&first) && found[0].contains("does not exist"), "{found:?}");

    let (log, [_, first, ..]) = sample();
    record_pruned(&log.directory, &first, &log.key).unwrap();
    assert!(check(&log, &[]).is_intact(), "a crash before the segment is removed");
    record_pruned(&log.directory, &first, &log.key).unwrap();
    std::fs::remove_file(log.file(&first)).unwrap();
    let report = check(&log, &[]);
    assert!(report.is_intact(), "{:?}", messages(&report));
    assert_eq!(report.pruned, BTreeSet::from([first.clone()]));
    change_file(&log.path().join("pruned"), |bytes| {
        let at = memchr::memmem::find(bytes, first.as_bytes()).unwrap();
        bytes[at] = b'3';
    });
    let found = messages(&check(&log, &[]));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("pruned:2: expected a tombstone"), "{found:?}");
    assert!(long < first);
}

#[test]
fn a_kept_checkpoint_covers_segments_that_the_key_s_owner_deletes_with_all_their_traces() {
    let (log, names) = sample();
    let kept = check(&log, &[]).frontier;
    std::fs::remove_file(log.file(&names[1])).unwrap();
    std::fs::remove_file(log.checkpoint_file(&names[1])).unwrap();
    for name in [&names[0], &names[2], &names[3]] {
        log.change(name, |bytes| {
            let strip = |line: Vec<u8>| match memchr::memmem::find(&line, br#""heads":["#) {
                Some(at) => [&line[..at], b"\"heads\":[]}\n".as_slice()].concat(),
                None => line,
            };
            *bytes = lines(bytes).into_iter().flat_map(strip).collect();
        });
        log.seal_again(name);
    }
    assert!(check(&log, &[]).is_intact(), "nothing on this machine contradicts the key's owner");
    let found = messages(&check(&log, &kept));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains(&names[3]) && found[0].contains("a kept checkpoint"), "{found:?}");
}

#[test]
fn numbers_closing_and_checkpoints_are_checked() {
    let log = TestLog::new();
    let segment = log.closed(0, 1, 4, 10);
    let original = std::fs::read(log.file(&segment)).unwrap();
    let all = lines(&original);
    let expect = |lines: Vec<Vec<u8>>, expected: &str| {
        std::fs::write(log.file(&segment), lines.concat()).unwrap();
        log.seal_again(&segment);
        let found = messages(&check(&log, &[]));
        assert!(found.iter().any(|f| f.contains(expected)), "{found:?} lacks {expected}");
    };
    let mut changed = all.clone();
    changed.remove(3);
    expect(changed, ":4: expected line number 3, found 4: lines are missing");
    let mut changed = all.clone();
    changed.insert(3, all[3].clone());
    expect(changed, ":5: expected line number 4, found 3: a line was repeated or moved");
    let mut changed = all.clone();
    changed.push(br#"{"v":1,"kind":"end","n":8}"#.to_vec());
    changed.push(b"\n".to_vec());
    expect(changed, ":9: a line was added behind the end of the segment");
    let mut changed = all.clone();
    changed[3] = b"x\n".to_vec();
    expect(changed, ":4: expected a line of the log");
    std::fs::write(log.file(&segment), &original).unwrap();
    log.seal_again(&segment);
    log.change(&segment, |bytes| bytes.push(b'x'));
    let found = messages(&check(&log, &[]));
    assert_eq!(found.len(), 1);
    assert!(found[0].contains("its last line is incomplete"), "{found:?}");

    std::fs::write(log.checkpoint_file(&segment), "x").unwrap();
    let has = |text| messages(&check(&log, &[])).iter().any(|found| found.contains(text));
    assert!(has("its checkpoint file is invalid"));
    std::fs::remove_file(log.checkpoint_file(&segment)).unwrap();
    assert!(has("has calls but no checkpoint file"));
}

#[test]
fn segments_that_change_places_are_found() {
    let (log, [_, first, second, _]) = sample();
    for file in [TestLog::file, TestLog::checkpoint_file] {
        let (a, b) = (file(&log, &first), file(&log, &second));
        let bytes = std::fs::read(&a).unwrap();
        std::fs::copy(&b, &a).unwrap();
        std::fs::write(&b, bytes).unwrap();
    }
    let found = messages(&check(&log, &[]));
    assert!(found.iter().any(|f| f.contains(&format!("it is that of `{second}`"))), "{found:?}");
}

#[test]
fn kept_texts_that_are_no_checkpoints_are_errors() {
    let (log, _) = sample();
    let error = verify(&log.path(), &["x".to_owned()], None).unwrap_err();
    assert!(error.to_string().starts_with("expected a checkpoint"), "{error}");
}

#[test]
fn a_log_is_intact_while_processes_write_close_compress_and_prune_it() {
    let log = TestLog::new();
    let done = std::sync::atomic::AtomicUsize::new(0);
    let write = |process: u32| {
        for index in 0..6 {
            let mut segment = log.start(index, process);
            for call in 0..8 {
                segment.call(call);
                segment.seal();
            }
            let name = segment.close();
            if index % 2 == 0 {
                log.compress(&name);
            }
            if index == 3 {
                record_pruned(&log.directory, &name, &log.key).unwrap();
                std::fs::remove_file(log.file(&name)).unwrap();
            }
        }
        done.fetch_add(1, Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        (1..=3).for_each(|process| drop(scope.spawn(move || write(process))));
        let (mut kept, mut rounds) = (Vec::new(), 0);
        while done.load(Ordering::Relaxed) < 3 {
            let report = check(&log, &kept);
            assert_eq!(messages(&report), Vec::<String>::new());
            kept = report.frontier;
            rounds += 1;
        }
        assert!(rounds > 3, "{rounds}");
    });
    let report = check(&log, &[]);
    assert_eq!(report.segments, 15, "{report:?}");
    // Those that another segment had covered before.
    assert!(report.pruned.len() <= 3, "{report:?}");
}

#[test]
fn a_changed_byte_of_a_compressed_segment_is_found_if_it_changes_a_line() {
    let log = TestLog::new();
    let segment = log.closed(0, 1, 4, 2);
    let plain = std::fs::read(log.file(&segment)).unwrap();
    log.compress(&segment);
    let path = log.path().join(format!("{segment}.jsonl.gz"));
    let packed = std::fs::read(&path).unwrap();
    let mut unseen = Vec::new();
    for at in 0..packed.len() {
        let mut changed = packed.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        if check(&log, &[]).is_intact() {
            let mut unpacked = Vec::new();
            let mut decoder = flate2::read::MultiGzDecoder::new(&*changed);
            std::io::Read::read_to_end(&mut decoder, &mut unpacked).unwrap();
            assert_eq!(unpacked, plain);
            unseen.push(at);
        }
    }
    assert!(unseen.iter().all(|at| (3..10).contains(at)), "only the header of gzip: {unseen:?}");
}
