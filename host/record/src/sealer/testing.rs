//! A writer of segments for tests: a log with a chosen number of lines, without threads.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::directory::LogDirectory;
use crate::note::SigningKey;
use crate::sealer::Sealer;

/// A log in a temporary directory.
pub(crate) struct TestLog {
    root: tempfile::TempDir,
    pub(crate) directory: LogDirectory,
    pub(crate) key: Arc<SigningKey>,
}

/// A segment that is being written.
pub(crate) struct TestSegment {
    path: PathBuf,
    pub(crate) name: String,
    pub(crate) sealer: Sealer,
    number: u64,
}

impl TestLog {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let directory = LogDirectory::create(&root.path().join("log")).unwrap();
        let key = Arc::new(SigningKey::load_or_create(&directory).unwrap());
        Self { root, directory, key }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.root.path().join("log")
    }

    /// Returns the name of segment `index` of process `process`.
    pub(crate) fn name(index: u32, process: u32) -> String {
        format!("20261124T0500{index:02}.000Z-{process}-{process:08x}")
    }

    /// Starts a segment as the writer does: two lines and a checkpoint.
    pub(crate) fn start(&self, index: u32, process: u32) -> TestSegment {
        let name = Self::name(index, process);
        let sealer = Sealer::new(&self.directory, &name, self.key.clone());
        let path = self.path().join(format!("{name}.jsonl"));
        let mut segment = TestSegment { path, name, sealer, number: 0 };
        segment.line("open", "");
        segment.seal();
        segment
    }

    /// Writes a closed segment with a checkpoint after every `step` calls.
    pub(crate) fn closed(&self, index: u32, process: u32, calls: u32, step: u32) -> String {
        let mut segment = self.start(index, process);
        for call in 0..calls {
            segment.call(call);
            if call % step == step - 1 {
                segment.seal();
            }
        }
        segment.close()
    }

    /// Compresses a segment as the writer does.
    pub(crate) fn compress(&self, segment: &str) {
        let (plain, packed) = (self.file(segment), self.path().join(format!("{segment}.jsonl.gz")));
        let temporary = packed.with_extension("tmp");
        let mut encoder = flate2::write::GzEncoder::new(
            std::fs::File::create(&temporary).unwrap(),
            flate2::Compression::fast(),
        );
        encoder.write_all(&std::fs::read(&plain).unwrap()).unwrap();
        encoder.finish().unwrap();
        std::fs::rename(temporary, packed).unwrap();
        std::fs::remove_file(plain).unwrap();
    }

    pub(crate) fn file(&self, segment: &str) -> PathBuf {
        self.path().join(format!("{segment}.jsonl"))
    }

    pub(crate) fn checkpoint_file(&self, segment: &str) -> PathBuf {
        self.path().join(format!("{segment}.checkpoint"))
    }

    /// Replaces the bytes of a segment.
    pub(crate) fn change(&self, segment: &str, change: impl FnOnce(&mut Vec<u8>)) {
        change_file(&self.file(segment), change);
    }

    /// Signs the segment as it is, like an attacker who has the key.
    pub(crate) fn seal_again(&self, segment: &str) {
        let mut sealer = Sealer::new(&self.directory, segment, self.key.clone());
        let bytes = std::fs::read(self.file(segment)).unwrap();
        bytes.split_inclusive(|b| *b == b'\n').for_each(|l| sealer.append(&l[..l.len() - 1]));
        sealer.checkpoint().unwrap();
    }
}

pub(crate) fn change_file(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = std::fs::read(path).unwrap();
    change(&mut bytes);
    std::fs::write(path, bytes).unwrap();
}

impl TestSegment {
    fn write(&mut self, line: &[u8]) {
        let mut file = OpenOptions::new().create(true).append(true).open(&self.path).unwrap();
        file.write_all(&[line, b"\n"].concat()).unwrap();
        self.number += 1;
    }

    pub(crate) fn line(&mut self, kind: &str, rest: &str) {
        let line = format!(r#"{{"v":1,"kind":"{kind}","n":{}{rest}}}"#, self.number);
        self.sealer.append(line.as_bytes());
        self.write(line.as_bytes());
    }

    /// Writes a call, whose id starts with the digits of the process.
    pub(crate) fn call(&mut self, call: u32) {
        let process = self.name.rsplit_once('-').unwrap().1.to_owned();
        self.line("end", &format!(r#","id":"{process}-{call}","tool":"add""#));
    }

    fn heads(&mut self) {
        let line = self.sealer.heads_line(self.number);
        self.sealer.append(&line);
        self.write(&line);
    }

    /// Writes a `heads` line and a checkpoint.
    pub(crate) fn seal(&mut self) -> String {
        self.heads();
        self.sealer.checkpoint().unwrap()
    }

    pub(crate) fn close(mut self) -> String {
        self.heads();
        self.line("close", "");
        self.sealer.checkpoint().unwrap();
        self.name
    }
}
