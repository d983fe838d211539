//! Witnesses of a log: a server that checks what it signs as a witness does, and one that does not.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_record::merkle::{TreeHash, extends};
use cofferdam_record::{
    FindingKind, LogEvent, RecordOptions, Recorder, VerifierKey, VerifyOptions, VerifyReport,
    WitnessClient, WitnessError, WitnessKey, WitnessOptions, WitnessTask, log_key, verify_with,
};

/// Time of every signature, in seconds.
const TIME: u64 = 1_795_000_000;

/// A witness that keeps the last state of each log.
#[derive(Clone)]
struct Witness {
    address: SocketAddr,
    pair: Arc<Ed25519KeyPair>,
    key: WitnessKey,
    logs: Arc<Mutex<HashMap<String, VerifierKey>>>,
    states: Arc<Mutex<HashMap<String, (u64, TreeHash)>>>,
    bodies: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    fn new(name: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let witness = Self {
            address: listener.local_addr().unwrap(),
            key: WitnessKey::parse(&key_text(name, pair.public_key().as_ref())).unwrap(),
            pair: Arc::new(pair),
            logs: Arc::default(),
            states: Arc::default(),
            bodies: Arc::default(),
        };
        let serving = witness.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serving.serve(stream);
            }
        });
        witness
    }

    fn trust(&self, log: &VerifierKey) {
        self.logs.lock().unwrap().insert(log.name().to_owned(), log.clone());
    }

    fn client(&self) -> WitnessClient {
        let url = format!("http://{}/prefix/", self.address);
        WitnessClient::new(WitnessOptions::new(url, self.key.clone())).unwrap()
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).unwrap();
        assert_eq!(line, "POST /prefix/add-checkpoint HTTP/1.1\r\n");
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
            if let Some(value) = line.to_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().unwrap();
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        let body = String::from_utf8(body).unwrap();
        let (status, kind, answer) = self.add_checkpoint(&body);
        self.bodies.lock().unwrap().push(body);
        let length = answer.len();
        let _ = write!(
            reader.get_mut(),
            "HTTP/1.1 {status} x\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{answer}"
        );
    }

    /// Checks a request as the specification of witnesses demands.
    fn add_checkpoint(&self, body: &str) -> (u16, &'static str, String) {
        let plain = |status, text: &str| (status, "text/plain", text.to_owned());
        let Some((head, note)) = body.split_once("\n\n") else { return plain(400, "no note") };
        let mut head = head.lines();
        let old: u64 = head.next().unwrap().strip_prefix("old ").unwrap().parse().unwrap();
        let hash = |text: &str| TreeHash::new(STANDARD.decode(text).unwrap().try_into().unwrap());
        let proof: Vec<_> = head.map(hash).collect();
        assert!(proof.len() <= 63);
        let mut lines = note.lines();
        let origin = lines.next().unwrap();
        let Some(log) = self.logs.lock().unwrap().get(origin).cloned() else {
            return plain(404, "unknown log");
        };
        let Ok(text) = log.open(note) else { return plain(403, "not signed") };
        let size: u64 = lines.next().unwrap().parse().unwrap();
        let root = hash(lines.next().unwrap());
        if old > size {
            return plain(400, "old size above size");
        }
        let mut states = self.states.lock().unwrap();
        let empty = (0, TreeHash::empty());
        let last = states.get(origin).copied().unwrap_or(empty);
        if last.0 != old {
            return (409, "text/x.tlog.size", format!("{}\n", last.0));
        }
        if old == size && last.1 != root {
            return plain(409, "another root");
        }
        if !extends((old, &last.1), (size, &root), &proof) {
            return plain(422, "the proof does not hold");
        }
        states.insert(origin.to_owned(), (size, root));
        (200, "text/plain", self.signature(text))
    }

    fn signature(&self, text: &str) -> String {
        let signature = self.pair.sign(format!("cosignature/v1\ntime {TIME}\n{text}").as_bytes());
        let key = self.key.to_string();
        let id = key.split('+').nth(1).unwrap();
        let id = u32::from_str_radix(id, 16).unwrap().to_be_bytes();
        let bytes = [&id[..], &TIME.to_be_bytes(), signature.as_ref()].concat();
        format!("— other.example/x AAAAAAA=\n— {} {}\n", self.key.name(), STANDARD.encode(bytes))
    }
}

/// Returns a key in its written form, without the parser that is tested.
fn key_text(name: &str, public: &[u8]) -> String {
    let key = [&[4], public].concat();
    let digest = digest(&SHA256, &[name.as_bytes(), b"\n", &key].concat());
    let id: String = digest.as_ref().iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    format!("{name}+{id}+{}", STANDARD.encode(key))
}

struct LogFolder(tempfile::TempDir);

impl LogFolder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("log")
    }
}

fn record(path: &Path) {
    let recorder = Recorder::open(RecordOptions::new(path)).unwrap();
    recorder.event(LogEvent::Grant {
        plugin: "adder".to_owned(),
        permission: "file:x".to_owned(),
        is_added: true,
    });
    recorder.close();
}

fn verified(path: &Path, witness: &Witness) -> VerifyReport {
    let witnesses = [witness.key.clone()];
    verify_with(path, VerifyOptions { witnesses: &witnesses, ..VerifyOptions::default() }).unwrap()
}

fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").args([from, to]).status().unwrap();
    assert!(copied.success());
}

#[tokio::test]
async fn a_witness_signs_what_extends_the_last_state() {
    let (folder, witness) = (LogFolder::new(), Witness::new("witness.example/w1"));
    let (path, client) = (folder.path(), witness.client());
    record(&path);
    let unknown = client.submit(&path).await.unwrap_err().to_string();
    assert!(
        unknown.contains("HTTP 404: unknown log; the witness does not know the log"),
        "{unknown}"
    );
    let status = &verified(&path, &witness).witnesses[0];
    assert_eq!((status.checkpoints, status.at), (0, None));

    witness.trust(&log_key(&path).unwrap());
    for count in 1..=9 {
        record(&path);
        // The first line is that of the log that was not known yet.
        assert_eq!(client.submit(&path).await.unwrap(), count + 1);
    }
    let sent = witness.bodies.lock().unwrap().len();
    assert_eq!(client.submit(&path).await.unwrap(), 10, "nothing is new");
    assert_eq!(witness.bodies.lock().unwrap().len(), sent);
    let report = verified(&path, &witness);
    assert!(report.is_intact(), "{report:?}");
    let status = &report.witnesses[0];
    assert_eq!((&*status.name, status.checkpoints), ("witness.example/w1", 10));
    assert_eq!(status.at.unwrap().micros(), i64::try_from(TIME).unwrap() * 1_000_000);

    // A host that has lost the note learns the size from the witness.
    let note = std::fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path());
    let note =
        note.filter(|path| path.extension().is_some_and(|end| end == "note")).last().unwrap();
    std::fs::remove_file(&note).unwrap();
    record(&path);
    assert_eq!(client.submit(&path).await.unwrap(), 11);
    assert!(witness.bodies.lock().unwrap().last().unwrap().starts_with("old 10\n"));
    assert!(note.exists());
}

#[tokio::test]
async fn a_log_that_was_replaced_contradicts_the_witness() {
    let (folder, witness) = (LogFolder::new(), Witness::new("w"));
    let (path, client) = (folder.path(), witness.client());
    record(&path);
    witness.trust(&log_key(&path).unwrap());
    client.submit(&path).await.unwrap();
    let old = folder.0.path().join("old");
    copy(&path, &old);
    for _ in 0..3 {
        record(&path);
        client.submit(&path).await.unwrap();
    }
    // An older state of the whole directory, with its key and its notes, is intact by itself.
    std::fs::remove_dir_all(&path).unwrap();
    copy(&old, &path);
    assert!(verified(&path, &witness).is_intact());
    record(&path);
    let error = client.submit(&path).await.unwrap_err();
    assert!(matches!(error, WitnessError::Ahead { signed: 4, found: 2, .. }), "{error}");
    let report = verified(&path, &witness);
    let ahead = FindingKind::WitnessAhead { name: "w".to_owned(), signed: 4, found: 2 };
    assert_eq!(report.findings[0].kind, ahead, "{report:?}");
    // Other lines of the same number.
    record(&path);
    record(&path);
    let error = client.submit(&path).await.unwrap_err().to_string();
    assert!(
        error.contains("HTTP 409: another root; the witness has signed another state"),
        "{error}"
    );
    record(&path);
    let error = client.submit(&path).await.unwrap_err().to_string();
    assert!(error.contains("HTTP 422"), "{error}");
}

#[tokio::test]
async fn changed_lines_and_segments_are_found() {
    let (folder, witness) = (LogFolder::new(), Witness::new("w"));
    let (path, client) = (folder.path(), witness.client());
    record(&path);
    record(&path);
    witness.trust(&log_key(&path).unwrap());
    assert_eq!(client.submit(&path).await.unwrap(), 2);
    let original = std::fs::read_to_string(path.join("witnessed")).unwrap();
    let kinds = || -> Vec<_> {
        verified(&path, &witness).findings.into_iter().map(|finding| finding.kind).collect()
    };
    let lines: Vec<_> = original.lines().collect();
    for (changed, expected) in [
        (format!("{}\n{}\n", lines[1], lines[0]), "has signed 2 checkpoints, and not the first 2"),
        (format!("{}\n", lines[0]), "has signed 2 checkpoints, found 1"),
    ] {
        std::fs::write(path.join("witnessed"), changed).unwrap();
        let found = kinds();
        assert!(found.iter().any(|kind| kind.to_string().contains(expected)), "{found:?}");
    }
    // A torn line, which a killed process leaves, is no damage.
    std::fs::write(path.join("witnessed"), format!("{original}2026")).unwrap();
    assert_eq!(kinds(), []);
    record(&path);
    assert_eq!(client.submit(&path).await.unwrap(), 4, "the torn line counts");
    assert_eq!(kinds(), []);
    // A segment that disappears with everything that names it.
    let segment = lines[0].split(' ').next().unwrap();
    for entry in std::fs::read_dir(&path).unwrap().flatten() {
        if entry.file_name().to_string_lossy().starts_with(segment) {
            std::fs::remove_file(entry.path()).unwrap();
        }
    }
    let found = kinds();
    let missing = "does not exist, although the witness `w` states";
    assert!(found.iter().any(|kind| kind.to_string().contains(missing)), "{found:?}");
}

#[tokio::test]
async fn lines_that_say_nothing_more_are_removed() {
    let (folder, witness) = (LogFolder::new(), Witness::new("w"));
    let (path, client) = (folder.path(), witness.client());
    record(&path);
    witness.trust(&log_key(&path).unwrap());
    assert_eq!(client.submit(&path).await.unwrap(), 1);
    let file = path.join("witnessed");
    let line = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, line.repeat(25_000)).unwrap();
    assert_eq!(client.submit(&path).await.unwrap(), 25_000, "the witness checks the proof");
    let lines = || std::fs::read_to_string(&file).unwrap().lines().count();
    assert!((10_000..10_050).contains(&lines()), "{}", lines());
    for count in 25_001..25_004 {
        record(&path);
        assert_eq!(client.submit(&path).await.unwrap(), count);
        let report = verified(&path, &witness);
        assert!(report.is_intact(), "{report:?}");
        assert_eq!(report.witnesses[0].checkpoints, count);
    }
    // A digest that stands for other lines is found, and one that is not where it can be.
    let original = std::fs::read_to_string(&file).unwrap();
    let (start, rest) = original.split_once("- 0 ").unwrap();
    let (root, end) = rest.split_once('\n').unwrap();
    let other = STANDARD.encode([7; 32]);
    for changed in [format!("{start}- 0 {other}\n{end}"), format!("{start}- 1 {root}\n{end}")] {
        std::fs::write(&file, changed).unwrap();
        assert!(!verified(&path, &witness).is_intact());
    }
    std::fs::write(&file, &original).unwrap();
    // A witness whose last state is among what was removed.
    let note = std::fs::read_dir(&path).unwrap().flatten().map(|entry| entry.path());
    let note = note.filter(|path| path.extension().is_some_and(|end| end == "note")).last();
    std::fs::remove_file(note.unwrap()).unwrap();
    witness.states.lock().unwrap().values_mut().for_each(|state| state.0 = 5_001);
    let error = client.submit(&path).await.unwrap_err();
    assert!(matches!(error, WitnessError::Removed { signed: 5_001, .. }), "{error}");
}

#[tokio::test]
async fn signatures_of_others_are_not_stored() {
    let (folder, witness) = (LogFolder::new(), Witness::new("w"));
    let path = folder.path();
    record(&path);
    witness.trust(&log_key(&path).unwrap());
    let other = Ed25519KeyPair::from_seed_unchecked(&[8; 32]).unwrap();
    let key = WitnessKey::parse(&key_text("w", other.public_key().as_ref())).unwrap();
    let url = format!("http://{}/prefix", witness.address);
    let client = WitnessClient::new(WitnessOptions::new(url, key)).unwrap();
    let error = client.submit(&path).await.unwrap_err();
    assert!(matches!(error, WitnessError::Signature { .. }), "{error}");
    assert_eq!(verified(&path, &witness).witnesses[0].checkpoints, 0);
    for url in ["ftp://a", "https://user:password@a", "a"] {
        let error = WitnessClient::new(WitnessOptions::new(url, witness.key.clone())).unwrap_err();
        assert!(matches!(error, WitnessError::Url(_)), "{url}: {error}");
        assert!(!error.to_string().contains("password@"), "{error}");
    }
    for text in [
        "a",
        "w+00000000+BAAA",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ] {
        assert!(WitnessKey::parse(text).is_err(), "{text}");
    }
}

#[tokio::test]
async fn a_witness_that_does_not_answer_delays_nothing() {
    let folder = LogFolder::new();
    let path = folder.path();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let key = Witness::new("w").key;
    let url = format!("http://{}", listener.local_addr().unwrap());
    let client = WitnessClient::new(WitnessOptions::new(url, key)).unwrap();
    let task = WitnessTask::start(path.clone(), vec![client]);
    let started = Instant::now();
    record(&path);
    assert!(started.elapsed() < Duration::from_secs(1), "{:?}", started.elapsed());
    task.shutdown().await;
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
}

#[tokio::test]
async fn several_processes_offer_one_log() {
    let (folder, witness) = (LogFolder::new(), Witness::new("w"));
    let path = folder.path();
    record(&path);
    witness.trust(&log_key(&path).unwrap());
    let offers = (0..4).map(|_| {
        let (path, client) = (path.clone(), witness.client());
        tokio::spawn(async move {
            for _ in 0..5 {
                let written = path.clone();
                tokio::task::spawn_blocking(move || record(&written)).await.unwrap();
                // One that is overtaken twice gives up until the next checkpoint.
                let _ = client.submit(&path).await;
            }
        })
    });
    for offer in offers.collect::<Vec<_>>() {
        offer.await.unwrap();
    }
    let last = witness.client().submit(&path).await.unwrap();
    // One of each segment, and of some while they were written.
    assert!(last >= 21, "{last} checkpoints");
    let report = verified(&path, &witness);
    assert!(report.is_intact(), "{report:?}");
    assert_eq!(report.witnesses[0].checkpoints, last);
}
