//! Tests that a recording answers like the store that it was made of.

use std::sync::Mutex;

use proptest::prelude::*;

use super::*;
use crate::{FileStore as _, MemoryStore, Scope, StorePath, WriteMode};
use std::sync::Arc;

/// A lookup in a store.
#[derive(Debug, Clone)]
enum Look {
    Probe(&'static str),
    Read(&'static str, u64),
    Range(&'static str, u64, u64),
    List(&'static str, bool),
    Room,
}

const PATHS: [&str; 5] = ["a", "b/c", "b", "missing", "a/below"];

fn look() -> impl Strategy<Value = Look> {
    let path = || prop::sample::select(&PATHS);
    prop_oneof![
        path().prop_map(Look::Probe),
        (path(), 0..60_u64).prop_map(|(path, max)| Look::Read(path, max)),
        (path(), 0..50_u64, 0..50_u64).prop_map(|(path, at, length)| Look::Range(path, at, length)),
        (prop::sample::select(&["b", "", "missing"]), any::<bool>())
            .prop_map(|(path, is_recursive)| Look::List(path, is_recursive)),
        Just(Look::Room),
    ]
}

async fn see(store: &dyn crate::FileStore, look: &Look) -> String {
    let path = |text: &str| StorePath::directory(text).unwrap();
    match look {
        Look::Probe(at) => format!("{:?}", store.probe(&path(at)).await.map_err(shown)),
        Look::Read(at, max) => format!("{:?}", store.read(&path(at), *max).await.map_err(shown)),
        Look::Range(at, offset, length) => {
            format!("{:?}", store.read_range(&path(at), *offset, *length).await.map_err(shown))
        }
        Look::List(at, is_recursive) => {
            let scope = if *is_recursive { Scope::Recursive } else { Scope::Children };
            format!("{:?}", store.list(&path(at), scope).await.map_err(shown))
        }
        Look::Room => {
            let room = store.room().await.unwrap();
            format!("{room:?}")
        }
    }
}

fn shown(error: FileError) -> String {
    error.to_string()
}

async fn filled() -> Arc<dyn crate::FileStore> {
    let store = MemoryStore::new(Quota::growth());
    for (name, content) in
        [("a", &b"0123456789012345678901234567890123456789"[..]), ("b/c", b"\xff")]
    {
        let path = StorePath::file(name).unwrap();
        store.write(&path, content.to_vec(), WriteMode::Create).await.unwrap();
    }
    Arc::new(store)
}

fn played(recordings: &StoreRecordings) -> (PlaybackStore, Arc<Mutex<Vec<String>>>) {
    let (mut stores, gap) = recordings.take();
    assert_eq!(gap, None);
    let reports = Arc::new(Mutex::new(Vec::new()));
    let report = Arc::clone(&reports);
    let store = PlaybackStore::new(
        "data",
        stores.remove("data").unwrap_or_default(),
        Arc::new(move |text| report.lock().unwrap().push(text)),
    );
    (store, reports)
}

proptest! {
    #[test]
    fn a_recording_answers_like_its_store(looks in prop::collection::vec(look(), 0..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let recordings = Arc::new(StoreRecordings::default());
            let recorder = StoreRecorder::new("data", filled().await, Arc::clone(&recordings));
            let mut seen = Vec::new();
            for look in &looks {
                seen.push(see(&recorder, look).await);
            }
            let (playback, reports) = played(&recordings);
            for (look, seen) in looks.iter().zip(&seen) {
                // A read that was refused says how long the file is, and nothing else does.
                let is_too_long = seen.contains("one read returns at most");
                if !is_too_long {
                    prop_assert_eq!(&see(&playback, look).await, seen, "{:?}", look);
                }
            }
            let is_complete = reports.lock().unwrap().is_empty();
            prop_assert!(is_complete || seen.iter().any(|text| text.contains("at most")));
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn a_read_of_two_adjacent_pieces_loses_none() {
    let recordings = Arc::new(StoreRecordings::default());
    let recorder = StoreRecorder::new("data", filled().await, Arc::clone(&recordings));
    let path = StorePath::file("a").unwrap();
    recorder.read_range(&path, 13, 1).await.unwrap();
    let whole = recorder.read(&path, 40).await.unwrap();
    recorder.read_range(&path, 0, 14).await.unwrap();
    let (playback, _) = played(&recordings);
    assert_eq!(playback.read(&path, 40).await.unwrap(), whole);
}

#[tokio::test]
async fn what_was_not_recorded_is_reported() {
    let recordings = Arc::new(StoreRecordings::default());
    let recorder = StoreRecorder::new("data", filled().await, Arc::clone(&recordings));
    let path = StorePath::file("a").unwrap();
    recorder.read_range(&path, 0, 10).await.unwrap();
    let (playback, reports) = played(&recordings);
    assert_eq!(playback.read_range(&path, 5, 10).await.unwrap(), b"56789");
    assert!(playback.read(&StorePath::file("z").unwrap(), 9).await.is_err());
    let reports = reports.lock().unwrap().clone();
    assert_eq!(reports, ["read `/data/a` from byte 10 on", "read `/data/z`"]);
}

#[tokio::test]
async fn long_files_are_a_gap() {
    let quota = Quota { file_bytes_max: 16 << 20, ..Quota::default() };
    let store = Arc::new(MemoryStore::new(quota));
    let path = StorePath::file("long").unwrap();
    store.write(&path, vec![b'x'; 9 << 20], WriteMode::Create).await.unwrap();
    let recordings = Arc::new(StoreRecordings::default());
    let recorder = StoreRecorder::new("data", store, Arc::clone(&recordings));
    recorder.read(&path, 10 << 20).await.unwrap();
    let (_, gap) = recordings.take();
    assert_eq!(gap.unwrap(), "the call read more than 8388608 bytes of one file");
}
