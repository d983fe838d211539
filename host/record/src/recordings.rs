//! Recordings of calls that can run again: redacted and stored, and read back.
//!
//! Contents of files and bodies are stored separately, so that equal ones take space once. What
//! redaction has changed is a gap of the recording: the guest saw something else.

use std::sync::{Arc, OnceLock};

use cofferdam_tool::recording::{CallRecording, RecordedBytes};
use cofferdam_tool::redact::Redactor;

use crate::cleaner::Cleaner;
use crate::directory::LogDirectory;
use crate::entry::PayloadDigest;
use crate::payloads::{PayloadStore, read_blob};
use crate::{CallEntry, RecordError};

/// Longest content that stands in the recording itself.
pub(crate) const INLINE_BYTES_MAX: usize = 1024;
/// Gap of a recording in which something was redacted.
const REDACTED: &str = "secrets were removed from the recording";
/// Gap of a recording whose contents were removed by retention.
const PRUNED: &str = "contents of the recording were pruned";

impl PayloadStore {
    /// Redacts a recording and stores it, whatever the mode.
    pub(crate) fn add_recording(
        &mut self,
        recording: Arc<CallRecording>,
        cleaner: &Cleaner,
    ) -> Result<PayloadDigest, RecordError> {
        let mut recording = Arc::unwrap_or_clone(recording);
        self.add_component(&mut recording)?;
        let mut is_redacted = false;
        for content in recording.contents_mut() {
            is_redacted |= cleaner.content(content);
            if content.stored_length() > INLINE_BYTES_MAX
                && let Some(bytes) = content.bytes()
            {
                let PayloadDigest { hash, bytes, .. } = self.keep(&bytes)?;
                *content = RecordedBytes::Stored { hash, bytes };
            }
        }
        let failure =
            |error: serde_json::Error| RecordError::file("recording", std::io::Error::from(error));
        let mut value = serde_json::to_value(&recording).map_err(failure)?;
        if cleaner.recording(&mut value) || is_redacted {
            // Redaction replaces strings and members that may have any value, so it stays readable.
            recording = serde_json::from_value(value).map_err(failure)?;
            recording.add_gap(REDACTED);
            value = serde_json::to_value(&recording).map_err(failure)?;
        }
        self.keep(value.to_string().as_bytes())
    }
}

/// Returns a recording as a log would store it, except for secrets that were granted: tokens of
/// known shapes and values under names of secrets are redacted. For comparing a replay with a
/// recording from a log.
#[must_use]
pub fn redacted(recording: &CallRecording) -> CallRecording {
    let mut recording = recording.clone();
    if let Some(cleaner) = common_cleaner() {
        for content in recording.contents_mut() {
            cleaner.content(content);
        }
        if let Ok(mut value) = serde_json::to_value(&recording)
            && cleaner.recording(&mut value)
            && let Ok(clean) = serde_json::from_value(value)
        {
            recording = clean;
        }
    }
    recording
}

/// Returns text as a log would store it, except for secrets that were granted. For comparing what a
/// model gets with a conversation from a log.
#[must_use]
pub fn redacted_text(text: &str) -> String {
    common_cleaner().map_or_else(|| text.to_owned(), |cleaner| cleaner.text(text).into_owned())
}

/// Returns a cleaner that knows no granted secrets.
fn common_cleaner() -> Option<&'static Cleaner> {
    static CLEANER: OnceLock<Option<Cleaner>> = OnceLock::new();
    // The patterns are constants, so they are valid.
    CLEANER.get_or_init(|| Cleaner::new(Redactor::default()).ok()).as_ref()
}

/// Reads the recording of a call with its contents.
pub(crate) fn read_recording(
    directory: &LogDirectory,
    entry: &CallEntry,
) -> Result<Option<CallRecording>, RecordError> {
    let Some(digest) = &entry.recording else { return Ok(None) };
    let Some(json) = read_blob(directory, &digest.hash)? else { return Ok(None) };
    let mut recording = CallRecording::from_json(&json)?;
    let mut is_pruned = false;
    for content in recording.contents_mut() {
        if let RecordedBytes::Stored { hash, .. } = content {
            match read_blob(directory, hash)? {
                Some(bytes) => *content = RecordedBytes::new(bytes),
                None => is_pruned = true,
            }
        }
    }
    if is_pruned {
        recording.add_gap(PRUNED);
    }
    Ok(Some(recording))
}
