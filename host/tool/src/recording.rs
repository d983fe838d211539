//! Recordings of calls: everything that a guest received from outside, so that its call can run
//! again with the same inputs.
//!
//! A call has a fresh instance and reaches the world only through the host, so the inputs in a
//! recording are complete, apart from its [`gaps`](CallRecording::gaps). A recording contains what
//! the tool has seen: store it with the same care as the data itself.

mod bytes;
mod inner;
mod network;
mod outcome;
mod readings;
mod stores;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::bytes::RecordedBytes;
pub use self::inner::{
    RecordedAnswers, RecordedCallError, RecordedInnerAnswer, RecordedInnerCall, RecordedTool,
};
pub use self::network::{RecordedRequest, RecordedResponse};
pub use self::outcome::{RecordedContent, RecordedOutcome};
pub use self::readings::Readings;
pub use self::stores::{
    RecordedListing, RecordedLookup, RecordedPiece, RecordedRoom, RecordedStat, RecordedStore,
};
use crate::Limits;
use crate::record::{FileChange, Refusal};

/// Version of the format of recordings.
pub const RECORDING_VERSION: u32 = 1;
/// Maximum number of gaps that a recording lists.
const GAPS_MAX: usize = 32;

/// Selection of the calls that are recorded so that they can run again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordingLevel {
    /// None.
    #[default]
    Off,
    /// Calls that do not succeed.
    Failures,
    /// One call in a hundred, and calls that do not succeed.
    Sampled,
    /// All.
    All,
}

/// Recording of one call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallRecording {
    /// Version of the format: [`RECORDING_VERSION`].
    pub version: u32,
    /// Plugin and its grants.
    pub plugin: RecordedPlugin,
    /// Name of the tool.
    pub tool: String,
    /// Decoded arguments.
    pub arguments: Map<String, Value>,
    /// Identifier of the call in its context.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub call_id: String,
    /// Session of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Seed of the random numbers, in hexadecimal digits; `None` if the guest had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<String>,
    /// Readings of the clock for date and time, in nanoseconds since 1970.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub wall_clock: Readings,
    /// Readings of the monotonic clock, in nanoseconds.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub monotonic_clock: Readings,
    /// Answers to `time-left-ms`.
    #[serde(default, skip_serializing_if = "Readings::is_empty")]
    pub time_left_ms: Readings,
    /// Parts of the file stores that the call read, by the name of the mount.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stores: BTreeMap<String, RecordedStore>,
    /// HTTP requests and their responses, in the order in which they were sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub requests: Vec<RecordedRequest>,
    /// Tools that the guest saw, if it asked for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<RecordedTool>>,
    /// Calls of other tools, in the order of their starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inner_calls: Vec<RecordedInnerCall>,
    /// Numbers of the calls whose ends the guest received, for each time that it waited for calls
    /// that it had started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Vec<u32>>,
    /// Kinds of questions that the caller could be asked.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub can_ask: BTreeMap<String, bool>,
    /// Questions to the caller and their answers, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<RecordedAnswers>,
    /// Reasons why the call may end differently although it gets the same inputs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub gaps: BTreeSet<String>,
    /// Result of the call.
    pub outcome: RecordedOutcome,
    /// Changes of files that the call made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<FileChange>,
    /// Digests of the files that the call has written, by mount and path, as in `/notes/a.txt`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub written: BTreeMap<String, String>,
    /// Capabilities that the guest requested and was refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Refusal>,
    /// CPU time of the call in microseconds.
    #[serde(default)]
    pub cpu_us: u64,
}

/// Plugin of a recorded call, with its grants.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecordedPlugin {
    /// Configured name.
    pub name: String,
    /// Digest of the component: `sha256:` and 64 hexadecimal digits.
    pub digest: String,
    /// Component in the log that holds the recording, if the log keeps it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<RecordedComponent>,
    /// Granted permissions in their written form, except mounts and limits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// True if the guest could call every tool.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub all_tools: bool,
    /// Ranges of addresses that requests could reach although they are not public.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<String>,
    /// Granted mounts, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<RecordedMount>,
    /// Environment variables, without the values of secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Configuration values, without the values of secrets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Lengths in bytes of the secrets that the guest could read. The values are not recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secret_lengths: BTreeMap<String, usize>,
    /// Limits of the call.
    pub limits: Limits,
    /// True if the model saw the text of unexpected errors.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shows_errors: bool,
}

/// Component of a recorded call, as a log keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedComponent {
    /// Digest under which the component is stored.
    pub hash: String,
    /// Digest under which the manifest next to the component's file is stored, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}

/// Mount of a recorded call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordedMount {
    /// Name of the mount.
    pub name: String,
    /// Name of the first mount of the same store.
    pub store: String,
    /// Access: `read-only`, `create-only` or `read-write`.
    pub access: String,
    /// True if each session has its own directory.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_per_session: bool,
}

/// Error returned for bytes that are not a recording of this version.
#[derive(Debug, thiserror::Error)]
pub enum InvalidRecording {
    /// The recording has another version of the format.
    #[error("has version {found} of the format; this build reads version {RECORDING_VERSION}")]
    Version {
        /// Version of the recording.
        found: u32,
    },
    /// The bytes are not JSON of a recording.
    #[error("is not a recording: {0}")]
    Json(#[from] serde_json::Error),
}

impl CallRecording {
    /// Reads a recording from JSON.
    ///
    /// # Errors
    /// [`InvalidRecording`].
    pub fn from_json(json: &[u8]) -> Result<Self, InvalidRecording> {
        /// Part that decides how the rest is read.
        #[derive(Deserialize)]
        struct RecordingVersion {
            version: u32,
        }

        let RecordingVersion { version: found } = serde_json::from_slice(json)?;
        if found != RECORDING_VERSION {
            return Err(InvalidRecording::Version { found });
        }
        Ok(serde_json::from_slice(json)?)
    }

    /// Adds a reason why the call may end differently. There are at most 32.
    pub fn add_gap(&mut self, gap: impl Into<String>) {
        if self.gaps.len() < GAPS_MAX {
            self.gaps.insert(gap.into());
        }
    }

    /// Returns the approximate size in memory, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        let contents = self.stores.values().flat_map(RecordedStore::contents);
        let bodies = self.requests.iter().flat_map(RecordedRequest::contents);
        contents.chain(bodies).map(|content| content.stored_length().saturating_add(128)).sum()
    }

    /// Returns the contents of files and bodies of requests, which may be long.
    pub fn contents_mut(&mut self) -> impl Iterator<Item = &mut RecordedBytes> {
        let stores = self.stores.values_mut().flat_map(RecordedStore::contents_mut);
        let requests = self.requests.iter_mut().flat_map(RecordedRequest::contents_mut);
        stores.chain(requests)
    }
}
