//! A call as a command that makes it again, and as a case of an evaluation.

use cofferdam_record::{CallEntry, PayloadKind};
use cofferdam_tool::ToolName;
use cofferdam_tool::recording::CallRecording;
use maud::{Markup, html};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{StoredPayload, layout};
use crate::inspector::InspectorState;
use crate::text;

/// Replacement of secrets in stored payloads.
const REDACTED: &str = "[redacted]";
/// Prompt of a case, to be replaced.
const PROMPT: &str = "Replace this with a message that should lead to the call.";

/// Returns the sections about a command and a case. There are none for a name that no tool can
/// have, and for arguments that are not stored whole.
pub(super) fn section(
    state: &InspectorState,
    call: &CallEntry,
    recording: Option<&CallRecording>,
    payloads: &[StoredPayload<'_>],
) -> Markup {
    // A name that begins like a flag would be one.
    if call.tool.starts_with('-') || ToolName::new(call.tool.as_str()).is_err() {
        return html! {};
    }
    let Some(arguments) = arguments(recording, payloads) else { return html! {} };
    if arguments.len() > text::PAYLOAD_BYTES_MAX {
        return html! {
            h2 { "As command" }
            p { "The arguments are too long for a command line; download them." }
        };
    }
    let command = (state.options.call_command)(&call.tool, &arguments);
    html! {
        @if let Some(command) = &command {
            h2 { @if command.starts_with("curl ") { "As curl" } @else { "As command" } }
            (layout::copyable("as-command", "Command", command))
            @if arguments.contains(REDACTED) {
                p { "Secrets were replaced by " code { (REDACTED) } " when the call was recorded." }
            }
        }
        h2 { "As case" }
        p { "A line for a file of " code { "cofferdam eval" } ". Write its prompt, and remove arguments that a model would leave out: the host recorded their defaults." }
        (layout::copyable("as-case", "Case", &case(call, &arguments)))
    }
}

/// Returns the arguments as a JSON object without hidden characters.
fn arguments(recording: Option<&CallRecording>, payloads: &[StoredPayload<'_>]) -> Option<String> {
    let is_whole = |(payload, digest, _): &&StoredPayload<'_>| {
        payload.kind == PayloadKind::Arguments && !digest.is_cut
    };
    let stored = payloads.iter().find(is_whole).and_then(|(_, _, bytes)| bytes.as_deref());
    let stored = stored.and_then(|bytes| serde_json::from_slice::<&RawValue>(bytes).ok());
    let json = match (stored, recording) {
        // A case is one line.
        (Some(stored), _) if stored.get().contains('\n') => {
            serde_json::from_str::<Value>(stored.get()).ok()?.to_string()
        }
        (Some(stored), _) => stored.get().to_owned(),
        (None, Some(recording)) => serde_json::to_string(&recording.arguments).ok()?,
        (None, None) => return None,
    };
    json.starts_with('{').then(|| text::visible_json(&json))
}

/// Returns the line of a case that expects the call.
fn case(call: &CallEntry, arguments: &str) -> String {
    let name = Value::from(format!("{} {}", call.tool, call.id));
    let (prompt, tool) = (Value::from(PROMPT), Value::from(call.tool.as_str()));
    text::visible_json(&format!(
        r#"{{"name":{name},"prompt":{prompt},"calls":[{{"tool":{tool},"arguments":{arguments}}}]}}"#
    ))
}
