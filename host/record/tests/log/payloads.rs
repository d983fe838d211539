//! Stored payloads while other processes remove some, and while they cannot be written.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use cofferdam_record::{CallFilter, Log, PayloadKind, PayloadMode, Recorder};

use super::{Place, call, toolset};

const TEXT: &str = r#"{"a":1}"#;

fn recorder(place: &Place) -> Arc<Recorder> {
    Arc::new(Recorder::open(place.options(PayloadMode::Local)).unwrap())
}

fn blobs(place: &Place) -> Vec<PathBuf> {
    let folders = fs::read_dir(place.path().join("blobs")).unwrap();
    let files = folders.flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap());
    files.map(|file| file.unwrap().path()).collect()
}

/// Sets the time of the last use to an hour ago.
fn age(file: &PathBuf) {
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    File::options().write(true).open(file).unwrap().set_modified(hour_ago).unwrap();
}

#[tokio::test]
async fn a_payload_is_stored_again_after_another_process_has_removed_it() {
    let place = Place::new();
    let recorder = recorder(&place);
    let tools = toolset(&recorder);
    call(&tools, "echo", TEXT, "s").await;
    recorder.flush();
    let log = Log::open(place.path()).unwrap();
    let report = log.prune(1 << 20, Duration::ZERO).unwrap();
    assert_eq!((report.blobs, blobs(&place).len()), (1, 0));

    call(&tools, "echo", TEXT, "s").await;
    recorder.flush();
    let newest = &log.query(&CallFilter::default()).unwrap().calls[0];
    let arguments = log.payload(newest, PayloadKind::Arguments).unwrap().unwrap();
    assert_eq!(arguments, TEXT.as_bytes());
}

#[tokio::test]
async fn each_use_of_a_payload_keeps_it_longer() {
    let place = Place::new();
    let recorder = recorder(&place);
    let tools = toolset(&recorder);
    for text in [TEXT, r#"{"b":1}"#] {
        call(&tools, "echo", text, "s").await;
    }
    recorder.flush();
    blobs(&place).iter().for_each(age);
    call(&tools, "echo", TEXT, "s").await;
    recorder.flush();
    let log = Log::open(place.path()).unwrap();
    assert_eq!(log.prune(1 << 20, Duration::from_secs(60)).unwrap().blobs, 1);
    let newest = &log.query(&CallFilter::default()).unwrap().calls[0];
    assert!(log.payload(newest, PayloadKind::Arguments).unwrap().is_some());
}

#[tokio::test]
async fn a_log_that_cannot_store_payloads_is_failing_until_it_can() {
    let place = Place::new();
    let recorder = recorder(&place);
    let tools = toolset(&recorder);
    let folder = place.path().join("blobs");
    let is_failing = async || {
        call(&tools, "echo", TEXT, "s").await;
        recorder.flush();
        recorder.health().is_failing
    };
    assert!(!is_failing().await);
    // A file where the folder was.
    fs::remove_dir_all(&folder).unwrap();
    fs::write(&folder, "").unwrap();
    // The lines of the same batches are written.
    assert!(is_failing().await && is_failing().await);
    fs::remove_file(&folder).unwrap();
    assert!(!is_failing().await);
}
