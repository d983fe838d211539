//! Components of recorded calls: kept in the log once, so that a call can run again when the
//! plugin's file has changed or is gone.
//!
//! A component is read when the first recording of it is stored, on the writer's thread, and kept
//! only if its digest is that of the recording. Retention removes it like any other stored content.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use cofferdam_tool::recording::{CallRecording, RecordedComponent};
use data_encoding::HEXLOWER;
use parking_lot::Mutex;

use crate::RecordError;
use crate::directory::LogDirectory;
use crate::payloads::{BLOB_BYTES_MAX, PayloadStore, read_blob};

/// Maximum bytes of a manifest, as the engine reads it.
const MANIFEST_BYTES_MAX: u64 = 256 * 1024;
/// Part of the log's limit that one component may take.
const LOG_SHARE: u64 = 8;

/// Component that a log keeps, with the manifest that was next to its file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoredComponent {
    /// Bytes of the component.
    pub bytes: Vec<u8>,
    /// Text of the manifest, if it had one.
    pub manifest: Option<String>,
}

/// Files of the components that a host has loaded, by digest.
#[derive(Debug, Clone, Default)]
pub(crate) struct ComponentFiles {
    by_digest: Arc<Mutex<HashMap<String, ComponentState>>>,
}

#[derive(Debug, Clone)]
enum ComponentState {
    File(PathBuf),
    Kept(RecordedComponent),
    /// The file is gone, changed or too large.
    Missing,
}

impl ComponentFiles {
    /// Adds a component that was loaded from a file.
    pub(crate) fn add(&self, digest: &str, file: &Path) {
        let mut by_digest = self.by_digest.lock();
        let state = by_digest.entry(digest.to_owned()).or_insert(ComponentState::Missing);
        if !matches!(state, ComponentState::Kept(_)) {
            *state = ComponentState::File(file.to_owned());
        }
    }

    fn state(&self, digest: &str) -> Option<ComponentState> {
        self.by_digest.lock().get(digest).cloned()
    }

    fn set(&self, digest: &str, state: ComponentState) {
        let mut by_digest = self.by_digest.lock();
        by_digest.insert(digest.to_owned(), state);
    }
}

impl PayloadStore {
    /// Keeps the component of a recording, and names it there.
    pub(crate) fn add_component(
        &mut self,
        recording: &mut CallRecording,
    ) -> Result<(), RecordError> {
        let plugin = &mut recording.plugin;
        let kept = match self.components.state(&plugin.digest) {
            None | Some(ComponentState::Missing) => None,
            Some(ComponentState::Kept(kept)) => {
                let is_there = self.keep_again(&kept.hash)
                    && kept.manifest.as_ref().is_none_or(|hash| self.keep_again(hash));
                is_there.then_some(kept)
            }
            Some(ComponentState::File(file)) => {
                let kept = self.keep_component(&file, &plugin.digest)?;
                let state = kept.clone().map_or(ComponentState::Missing, ComponentState::Kept);
                self.components.set(&plugin.digest, state);
                kept
            }
        };
        plugin.component = kept;
        Ok(())
    }

    fn keep_component(
        &mut self,
        file: &Path,
        expected: &str,
    ) -> Result<Option<RecordedComponent>, RecordError> {
        let bytes_max = BLOB_BYTES_MAX.min(self.log_bytes_max / LOG_SHARE);
        let Some(bytes) = read_file(file, bytes_max) else { return Ok(None) };
        if format!("sha256:{}", HEXLOWER.encode(digest(&SHA256, &bytes).as_ref())) != expected {
            return Ok(None);
        }
        let manifest = read_file(&file.with_extension("toml"), MANIFEST_BYTES_MAX);
        let manifest = manifest.map(|text| self.keep(&text)).transpose()?;
        let hash = self.keep(&bytes)?.hash;
        Ok(Some(RecordedComponent { hash, manifest: manifest.map(|digest| digest.hash) }))
    }
}

/// Reads the component of a recording. Returns `None` if it was not kept or was pruned.
pub(crate) fn read_component(
    directory: &LogDirectory,
    recording: &CallRecording,
) -> Result<Option<StoredComponent>, RecordError> {
    let Some(RecordedComponent { hash, manifest }) = &recording.plugin.component else {
        return Ok(None);
    };
    let Some(bytes) = read_blob(directory, hash)? else { return Ok(None) };
    let manifest = match manifest {
        None => None,
        Some(hash) => match read_blob(directory, hash)? {
            None => return Ok(None),
            Some(text) => Some(String::from_utf8_lossy(&text).into_owned()),
        },
    };
    Ok(Some(StoredComponent { bytes, manifest }))
}

/// Reads a file of the host. Returns `None` if it cannot be read or is longer than the limit.
fn read_file(path: &Path, bytes_max: u64) -> Option<Vec<u8>> {
    let file = File::open(path).ok()?;
    file.metadata().ok().filter(|facts| facts.is_file() && facts.len() <= bytes_max)?;
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}
