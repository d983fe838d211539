//! Runs recorded calls again, and compares them with their recordings.
//!
//! A replay gives the guest the inputs of the recording: arguments, configuration, clocks, random
//! numbers, files, HTTP responses, results of other tools and answers of the caller. It sends no
//! request, opens no socket, changes no file and uses no secret. The component may be another
//! version: then a replay shows what the new version does differently.
//!
//! ```standalone_crate
//! use cofferdam::tool::recording::RecordingLevel;
//! use cofferdam::{Host, replay};
//! use serde_json::json;
//!
//! # #[tokio::main]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! cofferdam::init();
//! # let component = "../../target/plugins/text.wasm";
//! # /*
//! let component = "text.wasm";
//! # */
//! let host = Host::builder()
//!     .plugin(component)
//!     .recording(RecordingLevel::All)
//!     # .no_cache()
//!     .build()
//!     .await?;
//! let output = host.call("word_count", json!({"text": "to be or not to be"})).await?;
//! let recording = output.record.recording.as_ref().expect("all calls are recorded");
//!
//! let report = replay::run(&host.plugins()[0], recording).await?;
//! assert!(report.is_identical());
//! # Ok(())
//! # }
//! ```

mod compare;
#[cfg(feature = "agent")]
mod conversation;
mod plugins;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use cofferdam_engine::{Plugin, ReplayError};
use cofferdam_tool::Completion;
use cofferdam_tool::recording::{CallRecording, InvalidRecording};
use serde::Serialize;

pub use self::compare::{DifferenceKind, ReplayDifference};
#[cfg(feature = "agent")]
pub use self::conversation::{ConversationDifference, ConversationReport, RecordedConversation};
pub use self::plugins::ReplayPlugins;
use crate::{Error, Result};

/// Maximum bytes of a file with a recording.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Result of one replay.
#[derive(Debug, Clone, Serialize)]
#[non_exhaustive]
pub struct ReplayReport {
    /// Differences to the recorded call. None if the replay is identical.
    pub differences: Vec<ReplayDifference>,
    /// Reasons why the replay may end differently although it gets the same inputs.
    pub gaps: Vec<String>,
    /// True if the component is the recorded one.
    pub is_same_component: bool,
    /// CPU time of the recorded call in microseconds.
    pub recorded_cpu_us: u64,
    /// CPU time of the replay in microseconds.
    pub cpu_us: u64,
}

/// Summary of several replays.
#[derive(Debug, Clone, Default, Serialize)]
#[non_exhaustive]
pub struct ReplaySummary {
    /// Number of replays that are identical.
    pub identical: usize,
    /// Number of replays that differ.
    pub different: usize,
    /// Ids of the calls that differ, by their first difference.
    pub groups: BTreeMap<String, Vec<String>>,
    /// Calls that could not be replayed: id and reason.
    pub failed: Vec<(String, String)>,
}

impl ReplayReport {
    /// Returns whether the call has ended as recorded and used the same inputs.
    #[must_use]
    pub fn is_identical(&self) -> bool {
        self.differences.is_empty()
    }
}

impl ReplaySummary {
    /// Adds the replay of the call `id`.
    pub fn add(&mut self, id: &str, report: &std::result::Result<ReplayReport, ReplayError>) {
        match report {
            Ok(report) => match report.differences.first() {
                None => self.identical += 1,
                Some(first) => {
                    self.different += 1;
                    self.groups.entry(first.summary()).or_default().push(id.to_owned());
                }
            },
            Err(error) => self.failed.push((id.to_owned(), error.to_string())),
        }
    }

    /// Returns the number of calls.
    #[must_use]
    pub fn total(&self) -> usize {
        self.identical + self.different + self.failed.len()
    }
}

/// Runs a recorded call again in `plugin` and compares the two.
///
/// # Errors
/// If the component has no such tool, does not accept the arguments, or cannot be loaded with the
/// recorded grants.
pub async fn run(
    plugin: &Plugin,
    recording: &Arc<CallRecording>,
) -> std::result::Result<ReplayReport, ReplayError> {
    run_to_end(plugin, recording).await.map(|(report, _)| report)
}

/// Runs a recorded call again, and returns its completion as well.
async fn run_to_end(
    plugin: &Plugin,
    recording: &Arc<CallRecording>,
) -> std::result::Result<(ReplayReport, Completion), ReplayError> {
    let replay = plugin.replay(recording).await?;
    let replayed = replay.completion.record.recording.as_ref();
    // What was redacted in the recording is redacted in the replay.
    let redacted = |recording: &Arc<CallRecording>| cofferdam_record::redacted(recording);
    let replayed = replayed.map(redacted);
    let differences = match &replayed {
        Some(replayed) => compare::differences(&redacted(recording), replayed, &replay.missing),
        None => Vec::new(),
    };
    let report = ReplayReport {
        differences,
        gaps: recording.gaps.iter().cloned().collect(),
        is_same_component: plugin.identity().digest.as_ref() == recording.plugin.digest,
        recorded_cpu_us: recording.cpu_us,
        cpu_us: replayed.map_or(0, |replayed| replayed.cpu_us),
    };
    Ok((report, replay.completion))
}

/// Reads a recording from a file.
///
/// # Errors
/// If the file cannot be read, is not a recording, or has another version of the format.
pub fn read_ambient(path: &Path) -> Result<CallRecording> {
    let shown = path.display();
    let text = cofferdam_files::read_named_text_ambient(path, FILE_BYTES_MAX).map_err(|error| {
        Error::invalid(format!("the recording {shown} cannot be read: {error}"))
    })?;
    CallRecording::from_json(text.as_bytes()).map_err(|error| {
        Error::invalid(match error {
            InvalidRecording::Version { .. } => format!("the recording {shown} {error}"),
            InvalidRecording::Json(_) => {
                format!("{shown} {error}; `cofferdam log show ID --recording` writes one")
            }
        })
    })
}
