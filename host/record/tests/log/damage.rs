use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use cofferdam_record::{CallFilter, Log};
use proptest::prelude::*;

use super::Place;

const STEM: &str = "20261122T053606.123456Z-1-0123abcd";
const CALL: &str = r#"{"v":1,"kind":"call","tool":"t","outcome":"ok","n":1,"at":"2026-11-22T05:36:06.123456Z","id":"0123abcd-1","us":5}"#;
const BEGIN: &str = r#"{"v":1,"kind":"begin","tool":"t","n":2,"at":"2026-11-22T05:36:06.123456Z","id":"0123abcd-2"}"#;

/// Writes a segment, and opens the log.
pub(super) fn write(place: &Place, name: &str, bytes: &[u8]) -> Log {
    let _ = std::fs::create_dir(place.path());
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
    std::fs::write(place.path().join(name), bytes).unwrap();
    Log::open(place.path()).unwrap()
}

#[test]
fn a_torn_line_is_reported_and_no_error() {
    let place = Place::new();
    let torn = format!("{CALL}\n{BEGIN}\nno line\n{}", CALL.get(..40).unwrap());
    let log = write(&place, &format!("{STEM}.jsonl"), torn.as_bytes());
    let found = log.query(&CallFilter::default()).unwrap();
    let seen: Vec<_> = found.calls.iter().map(|c| format!("{} {}", c.id, c.outcome)).collect();
    assert_eq!(seen, ["0123abcd-2 lost", "0123abcd-1 ok"]);
    assert_eq!(found.damage.torn, [format!("{STEM}.jsonl")]);
    assert_eq!(found.damage.losses(), ["1 line of the log is invalid and left out"]);
    assert_eq!(log.find("0123abcd-2").unwrap().outcome, "lost");
}

#[test]
fn a_damaged_start_hides_no_whole_one() {
    let place = Place::new();
    let log = write(&place, &format!("{STEM}.jsonl"), format!("{BEGIN}\0\n{BEGIN}\n").as_bytes());
    let found = log.query(&CallFilter::default()).unwrap();
    assert_eq!(found.calls.len(), 1, "{found:?}");
    super::stream::assert_complete(&log, &CallFilter::default());
}

#[test]
fn a_damaged_compressed_segment_is_read_as_far_as_it_goes() {
    let place = Place::new();
    let log = write(&place, &format!("{STEM}.jsonl.gz"), b"\x1f\x8b\x08nothing");
    let found = log.query(&CallFilter::default()).unwrap();
    assert!(found.calls.is_empty());
    assert_eq!(found.damage.unreadable.len(), 1);
}

#[test]
fn every_query_tells_apart_what_is_absent_and_what_cannot_be_read() {
    let place = Place::new();
    write(&place, &format!("{STEM}.jsonl.gz"), b"\x1f\x8b\x08nothing");
    let other = STEM.replace("0123abcd", "4567abcd");
    let call = CALL.replace("0123abcd", "4567abcd");
    let log = write(&place, &format!("{other}.jsonl"), format!("{call}\nno line\n").as_bytes());
    let all = CallFilter::default();
    let expected = log.query(&all).unwrap().damage.losses();
    assert!(expected[0].starts_with("not all of the log can be read: "), "{expected:?}");
    assert_eq!(expected[1], "1 line of the log is invalid and left out");
    // Twice: the second time with the kept summaries.
    for _ in 0..2 {
        let (stats, damage) = log.stats(&all).unwrap();
        assert_eq!((stats["t"].calls, damage.losses()), (1, expected.clone()));
        assert_eq!(log.uses(&all).unwrap().1.losses(), expected);
    }
    assert_eq!(log.events(None).unwrap().damage.losses(), expected);
    assert_eq!(log.find("4567").unwrap().id, "4567abcd-1");
    let lost = log.find("0123abcd-1").unwrap_err().to_string();
    assert_eq!(
        lost,
        format!(
            "no call in the log has the id `0123abcd-1`; {}; `cofferdam log` lists ids",
            expected[0]
        )
    );
    let unknown = log.find("4567abcd-9").unwrap_err().to_string();
    assert!(unknown.contains("1 line of the log is invalid"), "{unknown}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn arbitrary_bytes_are_no_panic(
        parts in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..40),
                (0..CALL.len()).prop_map(|at| CALL.as_bytes()[..at].to_vec()),
                (0..BEGIN.len()).prop_map(|at| BEGIN.as_bytes()[at..].to_vec()),
                Just(format!("{CALL}\n").into_bytes()),
                Just(format!("\n{BEGIN}\n").into_bytes()),
            ],
            0..8,
        ),
        is_compressed: bool,
    ) {
        let place = Place::new();
        let name = format!("{STEM}.jsonl{}", if is_compressed { ".gz" } else { "" });
        let log = write(&place, &name, &[]);
        let mut follower = log.follow().unwrap();
        let log = write(&place, &name, &parts.concat());
        let filters = [
            CallFilter::default(),
            CallFilter { outcome: Some("lost".to_owned()), ..CallFilter::default() },
            CallFilter { slower_than: Some(Duration::from_micros(1)), ..CallFilter::default() },
            CallFilter { text: Some("t".to_owned()), limit: Some(1), ..CallFilter::default() },
        ];
        for filter in &filters {
            log.query(filter).unwrap();
            log.stats(filter).unwrap();
            super::stream::assert_complete(&log, &CallFilter { limit: None, ..filter.clone() });
        }
        let _ = log.find("0123");
        log.events(None).unwrap();
        let _ = follower.poll();
        let _ = cofferdam_record::verify(&place.path(), &[], None);
    }
}
