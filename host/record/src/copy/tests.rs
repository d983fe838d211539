use std::sync::Arc;

use cofferdam_tool::declaration::Declaration;
use cofferdam_tool::sink::CallSink;
use cofferdam_tool::{CallContext, Functions, Toolset};
use serde_json::json;

use super::*;
use crate::{
    CallFilter, EvidenceError, Log, RecordOptions, Recorder, VerifierKey, VerifyReport, verify,
};

/// Log of a host, and a collection on another machine.
struct Machines {
    folder: tempfile::TempDir,
}

impl Machines {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn recorder(&self, log: &str) -> Arc<Recorder> {
        Arc::new(Recorder::open(RecordOptions::new(self.path(log))).unwrap())
    }

    fn files(&self, log: &str) -> LogFiles {
        LogFiles::open(self.path(log)).unwrap()
    }

    fn collection(&self) -> LogCollection {
        LogCollection::create(self.path("collection")).unwrap()
    }

    /// Returns ids and outcomes of the collected calls, the oldest first.
    fn calls(&self) -> Vec<(String, String)> {
        let found = Log::open(self.path("collection")).unwrap().query(&CallFilter::default());
        let calls = found.unwrap().calls;
        calls.into_iter().rev().map(|call| (call.id, call.outcome)).collect()
    }

    fn verify_copy(&self, key: &VerifierKey) -> VerifyReport {
        let copy = self.path("collection").join(COPIES).join(key.digest());
        verify(&copy, &[], None).unwrap()
    }
}

/// Copies everything that a log has, in parts of `bytes_max` bytes.
fn copy_all(files: &LogFiles, copy: &mut LogCopy, bytes_max: usize) -> Result<(), CopyError> {
    for file in files.changes(None, usize::MAX).unwrap() {
        while let Some(offset) = copy.copied(&file.name) {
            let Some(part) = files.read(&file.name, offset, bytes_max).unwrap() else { break };
            copy.append(&file.name, offset, &part)?;
            if part.is_last {
                break;
            }
        }
    }
    Ok(())
}

async fn call(recorder: &Arc<Recorder>, count: usize) {
    let echo = Declaration::new("echo", "A tool.", r#"{"type":"object"}"#);
    let functions = Functions::new("samples").with(echo, async |_, _| Ok(json!(1))).unwrap();
    let mut toolset = Toolset::new();
    toolset.set_sink(Arc::clone(recorder) as Arc<dyn CallSink>);
    toolset.add(Arc::new(functions)).unwrap();
    for _ in 0..count {
        toolset.call("echo", Some(b"{}"), &CallContext::default()).await.unwrap();
    }
    recorder.flush();
}

#[tokio::test]
async fn a_copy_has_what_its_log_has_and_can_be_verified() {
    let machines = Machines::new();
    let (one, other) = (machines.recorder("one"), machines.recorder("other"));
    call(&one, 3).await;
    call(&other, 2).await;
    let collection = machines.collection();
    let mut logs = ["one", "other"].map(|log| {
        let files = machines.files(log);
        let copy = collection.copy(files.key()).unwrap();
        (files, copy)
    });
    for (files, copy) in &mut logs {
        copy_all(files, copy, 100).unwrap();
    }
    assert_eq!(machines.calls().len(), 5);
    call(&one, 4).await;
    for (files, copy) in &mut logs {
        copy_all(files, copy, 64 * 1024).unwrap();
    }
    assert_eq!(machines.calls().len(), 9);
    one.close();
    other.close();
    for (files, copy) in &mut logs {
        copy_all(files, copy, 777).unwrap();
        copy_all(files, copy, 777).unwrap();
        let report = machines.verify_copy(files.key());
        assert!(report.is_intact(), "{:?}", report.findings);
        assert_eq!((report.lines_unsealed, report.segments_unclosed), (0, 0));
    }
    let mut own: Vec<_> = ["one", "other"]
        .iter()
        .flat_map(|log| Log::open(machines.path(log)).unwrap().query(&CallFilter::default()))
        .flat_map(|found| found.calls)
        .map(|call| (call.id, call.outcome))
        .collect();
    let mut copied = machines.calls();
    own.sort();
    copied.sort();
    assert_eq!(own, copied);
    // The index of a copy is made anew, and is that of the log.
    for ((files, _), log) in logs.iter().zip(["one", "other"]) {
        let copy = machines.path("collection").join(COPIES).join(files.key().digest());
        for file in files.changes(None, usize::MAX).unwrap() {
            let name = format!("{}{}", file.name, crate::segments::ZONE_SUFFIX);
            let read = |of: &std::path::Path| std::fs::read(of.join(&name)).unwrap();
            assert_eq!(read(&machines.path(log)), read(&copy));
        }
    }
}

#[tokio::test]
async fn a_log_that_is_rewritten_differs_from_its_copy() {
    let machines = Machines::new();
    let recorder = machines.recorder("one");
    call(&recorder, 3).await;
    let (files, collection) = (machines.files("one"), machines.collection());
    let mut copy = collection.copy(files.key()).unwrap();
    copy_all(&files, &mut copy, 1000).unwrap();
    let segment = files.changes(None, 1).unwrap().remove(0).name;
    let copied = copy.copied(&segment).unwrap();
    for offset in [0, copied - 1, copied + 1] {
        let part = FilePart {
            bytes: b"{}\n".to_vec(),
            is_last: true,
            state: FileState::Closed,
            checkpoint: None,
        };
        let error = copy.append(&segment, offset, &part).unwrap_err();
        assert!(matches!(error, CopyError::Offset { .. }), "{error}");
    }
    // A checkpoint of another log, and one of another segment.
    let other = machines.recorder("other");
    call(&other, 1).await;
    let others = machines.files("other");
    let foreign = others.changes(None, 1).unwrap().remove(0).name;
    let note = others.read(&foreign, 0, 1 << 20).unwrap().unwrap().checkpoint;
    assert!(note.is_some());
    let part =
        FilePart { bytes: Vec::new(), is_last: true, state: FileState::Live, checkpoint: note };
    let error = copy.append(&segment, copied, &part).unwrap_err();
    assert!(matches!(error, CopyError::Checkpoint { .. }), "{error}");
    // A segment whose ids are those of another log.
    let mut taken = collection.copy(others.key()).unwrap();
    let part = FilePart { checkpoint: None, ..part };
    let error = taken.append(&segment, 0, &part).unwrap_err();
    assert!(matches!(error, CopyError::Collision(_)), "{error}");
    recorder.close();
    copy_all(&files, &mut copy, 1000).unwrap();
    assert!(machines.verify_copy(files.key()).is_intact());
}

#[tokio::test]
async fn only_names_of_segments_are_read_and_written() {
    let machines = Machines::new();
    let recorder = machines.recorder("one");
    call(&recorder, 1).await;
    let files = machines.files("one");
    let mut copy = machines.collection().copy(files.key()).unwrap();
    let part =
        FilePart { bytes: vec![1], is_last: true, state: FileState::Closed, checkpoint: None };
    for name in [
        "",
        ".",
        "..",
        "key",
        "signing-key",
        "public-key",
        "blobs",
        "../one/signing-key",
        "/etc/passwd",
        "../x-3f2a91c0",
        ".-3f2a91c0",
        "a/b-3f2a91c0",
        "x-3f2a91cg",
        &format!("{}-3f2a91c0", "x".repeat(4000)),
    ] {
        assert_eq!(files.read(name, 0, 100).unwrap(), None, "{name}");
        assert!(matches!(copy.append(name, 0, &part), Err(CopyError::Name(_))), "{name}");
    }
}

#[tokio::test]
async fn a_collection_has_one_collector() {
    let machines = Machines::new();
    let collection = machines.collection();
    let second = LogCollection::create(machines.path("collection"));
    assert!(matches!(second, Err(CopyError::InUse)), "{second:?}");
    drop(collection);
    machines.collection();
}

#[tokio::test]
async fn calls_of_a_killed_host_are_lost_and_those_of_a_running_one_run() {
    let machines = Machines::new();
    let recorder = machines.recorder("one");
    call(&recorder, 1).await;
    let files = machines.files("one");
    let segment = files.changes(None, 1).unwrap().remove(0).name;
    let begin = format!(
        "{{\"v\":1,\"kind\":\"begin\",\"n\":9,\"at\":\"2026-11-24T06:24:52.000000Z\",\
         \"id\":\"{}-99\",\"tool\":\"echo\"}}\n",
        crate::segments::process_of(&segment).unwrap()
    );
    let mut copy = machines.collection().copy(files.key()).unwrap();
    copy_all(&files, &mut copy, 1000).unwrap();
    let mut part = FilePart {
        bytes: begin.into_bytes(),
        is_last: true,
        state: FileState::Live,
        checkpoint: None,
    };
    copy.append(&segment, copy.copied(&segment).unwrap(), &part).unwrap();
    let outcome = || machines.calls().into_iter().map(|(_, outcome)| outcome).min().unwrap();
    assert_eq!(outcome(), "ok");
    assert!(machines.calls().iter().any(|(_, outcome)| outcome == crate::RUNNING));
    part = FilePart { bytes: Vec::new(), state: FileState::Orphaned, ..part };
    copy.append(&segment, copy.copied(&segment).unwrap(), &part).unwrap();
    assert!(machines.calls().iter().any(|(_, outcome)| outcome == crate::LOST));
}

#[tokio::test]
async fn a_log_that_claims_many_live_segments_keeps_few_files_open() {
    let machines = Machines::new();
    let recorder = machines.recorder("one");
    call(&recorder, 1).await;
    let mut copy = machines.collection().copy(machines.files("one").key()).unwrap();
    let part =
        FilePart { bytes: vec![b'\n'], is_last: true, state: FileState::Live, checkpoint: None };
    for number in 0..1000 {
        copy.append(&format!("x-{number:08x}"), 0, &part).unwrap();
    }
    assert_eq!(copy.open_files(), 256);
    // What was not kept open is appended to as before.
    copy.append("x-000003e7", 1, &part).unwrap();
    assert_eq!(copy.copied("x-000003e7"), Some(2));
}

#[test]
fn a_directory_without_a_log_has_no_files() {
    let machines = Machines::new();
    std::fs::create_dir(machines.path("empty")).unwrap();
    use std::os::unix::fs::PermissionsExt as _;
    let private = std::fs::Permissions::from_mode(0o700);
    std::fs::set_permissions(machines.path("empty"), private).unwrap();
    assert!(matches!(LogFiles::open(machines.path("empty")), Err(EvidenceError::NoKey)));
}
