use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::Duration;

use cofferdam_record::{
    CallFilter, EvidenceError, Log, PayloadKind, PayloadMode, RecordError, RecordOptions, Recorder,
};

use super::{Place, call, toolset};

fn mode(path: &std::path::Path) -> u32 {
    std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn files_are_for_the_user_only() {
    let place = Place::new();
    Recorder::open(place.options(PayloadMode::Local)).unwrap().close();
    assert_eq!(mode(&place.path()), 0o700);
    for entry in std::fs::read_dir(place.path()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), if path.is_dir() { 0o700 } else { 0o600 }, "{}", path.display());
    }
}

#[test]
fn a_wide_directory_and_a_link_are_refused() {
    let place = Place::new();
    std::fs::create_dir(place.path()).unwrap();
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o755)).unwrap();
    let error = Recorder::open(place.options(PayloadMode::None)).unwrap_err();
    let path = place.path();
    let path = path.display();
    assert_eq!(
        error.to_string(),
        format!(
            "the log directory `{path}` has mode 755, so other users can access it; run `chmod \
             700 {path}`"
        )
    );
    std::fs::set_permissions(place.path(), Permissions::from_mode(0o700)).unwrap();
    let link = place.0.path().join("link");
    symlink(place.path(), &link).unwrap();
    let error = Recorder::open(RecordOptions::new(&link)).unwrap_err();
    assert!(matches!(error, EvidenceError::Record(RecordError::Directory { .. })), "{error}");
    assert!(Log::open(place.0.path().join("missing")).unwrap_err().is_not_found());
    let small = RecordOptions { bytes_max: 5, ..RecordOptions::new(place.path()) };
    let error = Recorder::open(small).unwrap_err();
    assert_eq!(error.to_string(), "`bytes_max` is 5, but must be at least 1048576");
}

#[tokio::test]
async fn retention_keeps_the_log_under_its_limit() {
    let place = Place::new();
    let mut options = place.options(PayloadMode::Local);
    options.bytes_max = 1024 * 1024;
    let recorder = std::sync::Arc::new(Recorder::open(options).unwrap());
    let tools = toolset(&recorder);
    let log = Log::open(place.path()).unwrap();
    for round in 0..8_u64 {
        for index in 0..300_u64 {
            // Random enough that it does not shrink.
            let noise = (0..24_u64).map(|part| {
                (round * 1_000_003 + index * 7919 + part + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            });
            let noise: String = noise.map(|number| format!("{number:016x}")).collect();
            call(&tools, "echo", &format!(r#"{{"a":"{noise}"}}"#), "s").await;
        }
        recorder.flush();
        assert!(used(&place.path()) <= 1024 * 1024, "{}", used(&place.path()));
    }
    assert_eq!(recorder.health().error, None);
    recorder.close();
    let found = log.query(&CallFilter::default()).unwrap();
    let has_payload = |call| log.payload(call, PayloadKind::Result).unwrap().is_some();
    let kept = found.calls.iter().filter(|call| has_payload(call)).count();
    assert!((100..found.calls.len()).contains(&kept), "{kept} of {}", found.calls.len());
    let report = log.prune(0, Duration::from_secs(3600)).unwrap();
    assert!(report.segments > 0 && report.bytes_freed > 0, "{report:?}");
    assert_eq!(log.query(&CallFilter::default()).unwrap().calls.len(), 0);
    let report = cofferdam_record::verify(&place.path(), &[], None).unwrap();
    assert!(report.is_intact(), "{report:?}");
}

fn used(path: &std::path::Path) -> u64 {
    let mut sum = 0;
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let path = entry.path();
        sum += match path.symlink_metadata() {
            Ok(facts) if facts.is_dir() => used(&path),
            facts => facts.map_or(0, |facts| facts.len()),
        };
    }
    sum
}

#[tokio::test]
async fn recording_goes_on_after_the_segment_was_removed_and_ends_at_close() {
    let place = Place::new();
    let recorder = place.recorder();
    let tools = toolset(&recorder);
    let log = Log::open(place.path()).unwrap();
    let count = || log.query(&CallFilter::default()).unwrap().calls.len();
    call(&tools, "echo", "", "s").await;
    recorder.flush();
    assert_eq!(count(), 1);
    let name = log.segments().unwrap()[0].name();
    std::fs::remove_file(place.path().join(name)).unwrap();
    recorder.flush();
    call(&tools, "echo", "", "s").await;
    call(&tools, "echo", "", "s").await;
    recorder.flush();
    assert_eq!(count(), 2);
    assert!(!recorder.health().is_failing);
    recorder.close();
    call(&tools, "echo", "", "s").await;
    assert_eq!(count(), 2);
}

#[test]
fn a_segment_of_a_live_process_is_not_pruned() {
    let place = Place::new();
    let recorder = place.recorder();
    let log = Log::open(place.path()).unwrap();
    assert!(log.segments().unwrap()[0].is_live());
    let report = log.prune(0, Duration::ZERO).unwrap();
    assert_eq!(report.segments, 0);
    assert!(log.segments().unwrap()[0].is_live());
    drop(recorder);
    assert!(log.segments().unwrap()[0].is_closed());
}
