//! Replays: recorded calls that run again with their recorded inputs.

use std::pin::Pin;
use std::sync::Arc;

use cofferdam_record::{CallEntry, CallFilter, Log};
use cofferdam_tool::recording::CallRecording;
use serde::{Deserialize, Serialize};

use crate::error::PageError;
use crate::format;
use crate::text::{PAYLOAD_BYTES_MAX, plain};

/// Maximum number of differences and notes of an answer.
const LISTED_MAX: usize = 100;
/// Number of calls, the newest of a plugin, that are searched for other versions of it.
const SEARCHED_CALLS: usize = 500;
/// Maximum number of other versions of a plugin that are offered.
const VERSIONS_MAX: usize = 5;
/// Choice of the component that the call ran in.
pub(crate) const RECORDED: &str = "recorded";
/// Choice of the component that the configuration names now.
pub(crate) const CONFIGURED: &str = "configured";

/// Future of a replay. The error is a message for the operator.
pub type ReplayFuture = Pin<Box<dyn Future<Output = Result<ReplayedCall, String>> + Send>>;

/// Runs recorded calls again, without any effect outside.
pub trait CallReplayer: Send + Sync {
    /// Starts a replay.
    fn replay(&self, recording: Arc<CallRecording>, component: ReplayComponent) -> ReplayFuture;

    /// Returns whether a configuration names components.
    fn has_configuration(&self) -> bool;
}

/// Component that a recorded call runs in again.
#[derive(Debug, Clone)]
pub enum ReplayComponent {
    /// The one that the log keeps for a recording: that of the call itself, or another version.
    Recorded(Arc<CallRecording>),
    /// The one that the configuration names now.
    Configured,
}

/// Result of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayedCall {
    /// Differences to the recorded call. None if the replay is identical.
    pub differences: Vec<String>,
    /// Reasons why the replay may end differently although it gets the same inputs.
    pub gaps: Vec<String>,
    /// True if the component is the recorded one.
    pub is_same_component: bool,
    /// CPU time of the recorded call in microseconds.
    pub recorded_cpu_us: u64,
    /// CPU time of the replay in microseconds.
    pub cpu_us: u64,
}

/// Replay that a page asks for.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayOrder {
    /// Id of the call.
    call: String,
    /// [`RECORDED`], [`CONFIGURED`], or the id of a call of another version.
    component: String,
}

/// Result of a replay as plain text with hostile characters as escapes.
#[derive(Debug, Default, Serialize)]
pub(crate) struct ReplayAnswer {
    outcome: &'static str,
    differences: Vec<String>,
    notes: Vec<String>,
}

impl ReplayOrder {
    /// Reads what is to run again. Blocks.
    pub(crate) fn read(
        &self,
        log: &Log,
    ) -> Result<(Arc<CallRecording>, ReplayComponent), PageError> {
        let recording = recording(log, &self.call)?;
        let component = match self.component.as_str() {
            RECORDED => ReplayComponent::Recorded(Arc::clone(&recording)),
            CONFIGURED => ReplayComponent::Configured,
            other => ReplayComponent::Recorded(recording_of_version(log, other, &recording)?),
        };
        Ok((recording, component))
    }
}

fn recording(log: &Log, id: &str) -> Result<Arc<CallRecording>, PageError> {
    let call = log.find(id).map_err(PageError::Call)?;
    log.recording(&call)?.map(Arc::new).ok_or(PageError::NotFound)
}

/// Returns the recording of a call of the same plugin.
fn recording_of_version(
    log: &Log,
    id: &str,
    recorded: &CallRecording,
) -> Result<Arc<CallRecording>, PageError> {
    let other = recording(log, id)?;
    if other.plugin.name == recorded.plugin.name { Ok(other) } else { Err(PageError::NotFound) }
}

/// Returns calls of other versions of the plugin of a call, one for each digest.
pub(crate) fn other_versions(log: &Log, call: &CallEntry) -> Result<Vec<CallEntry>, PageError> {
    let filter = CallFilter {
        plugin: call.plugin.clone(),
        limit: Some(SEARCHED_CALLS),
        ..CallFilter::default()
    };
    let mut others: Vec<CallEntry> = Vec::new();
    for other in log.query(&filter)?.calls {
        let is_new = other.recording.is_some()
            && other.digest != call.digest
            && !others.iter().any(|known| known.digest == other.digest);
        if is_new && others.len() < VERSIONS_MAX {
            others.push(other);
        }
    }
    Ok(others)
}

impl ReplayAnswer {
    pub(crate) fn new(result: Result<ReplayedCall, String>) -> Self {
        let replayed = match result {
            Ok(replayed) => replayed,
            Err(message) => {
                let notes = vec![plain(&message, PAYLOAD_BYTES_MAX)];
                return Self { outcome: "cannot be replayed", notes, ..Self::default() };
            }
        };
        let is_identical = replayed.differences.is_empty();
        let [before, now] = [replayed.recorded_cpu_us, replayed.cpu_us].map(format::time);
        let mut notes = vec![format!("{before} of CPU time when it was recorded, now {now}")];
        if !replayed.is_same_component {
            notes.push("The component is not the recorded one.".to_owned());
        }
        notes.extend(replayed.gaps.iter().map(|gap| format!("The replay is approximate: {gap}")));
        Self {
            outcome: if is_identical { "identical" } else { "differs" },
            differences: shown(replayed.differences),
            notes: shown(notes),
        }
    }
}

fn shown(lines: Vec<String>) -> Vec<String> {
    lines.iter().take(LISTED_MAX).map(|line| plain(line, PAYLOAD_BYTES_MAX)).collect()
}
