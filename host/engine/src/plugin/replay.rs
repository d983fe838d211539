//! Runs recorded calls again.

use std::sync::Arc;

use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::recording::CallRecording;
use cofferdam_tool::{CallContext, DecodeOptions, InvalidArguments, ToolCall};
use serde_json::Value;

use super::{Plugin, PluginOptions};
use crate::LoadError;
use crate::recording::{CallRecorder, Playback, Replay};

/// Error of a call that cannot be replayed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The component has no tool of this name.
    #[error("the component has no tool `{tool}`")]
    NoTool {
        /// Name of the tool.
        tool: String,
    },
    /// The recorded arguments do not fit the tool's schema.
    #[error("the tool does not accept the recorded arguments: {0}")]
    Arguments(#[from] InvalidArguments),
    /// The component cannot be loaded with the recorded grants.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Plugin {
    /// Runs a recorded call again with the inputs of the recording and its grants, in this
    /// component, which may be another version. It sends no request, opens no socket, calls no
    /// other tool, asks no questions and changes no file.
    ///
    /// # Errors
    /// If the component has no such tool, does not accept the arguments, or cannot be loaded with
    /// the recorded grants.
    pub async fn replay(&self, recording: &Arc<CallRecording>) -> Result<Replay, ReplayError> {
        let playback = Playback::new(Arc::clone(recording));
        let missing = Arc::clone(playback.missing());
        // Loaded here, so that the next replay finds it. A failure is the outcome of the call.
        let _ = self.loaded_code().await;
        let options = PluginOptions {
            shows_errors: recording.plugin.shows_errors,
            ..PluginOptions::new(self.options.name.clone(), playback.grants(), playback.limits())
        };
        let plugin = self.with_options(options)?;
        let tool = self.definitions.iter().find(|tool| tool.name.as_str() == recording.tool);
        let tool = tool.ok_or_else(|| ReplayError::NoTool { tool: recording.tool.clone() })?;
        let value = Value::Object(recording.arguments.clone());
        let options = DecodeOptions::default();
        let arguments = tool.input.decode_value(tool.name.as_str(), &value, &options)?;
        let context = CallContext {
            call_id: recording.call_id.clone(),
            session: recording.session.clone(),
            file_effects: FileEffects { is_dry_run: true, shows_diffs: false },
            ..CallContext::default()
        };
        let call = ToolCall { tool, arguments, toolset: None };
        let recorder = Arc::new(CallRecorder::replaying(playback));
        let completion = plugin.attempt(call, &context, Some(&recorder)).await;
        Ok(Replay { completion, missing: missing.take() })
    }
}
