//! A button that runs a recorded call again, and shows what differs.

use cofferdam_record::{CallEntry, Log};
use cofferdam_tool::recording::CallRecording;
use maud::{Markup, html};

use crate::error::PageError;
use crate::inspector::InspectorState;
use crate::replay::{self, CONFIGURED, RECORDED};
use crate::text;

/// Returns the section about a replay. `token` proves that an order comes from the page.
pub(super) fn section(
    state: &InspectorState,
    log: &Log,
    call: &CallEntry,
    recording: &CallRecording,
    token: &str,
) -> Result<Markup, PageError> {
    let Some(replayer) = &state.options.replayer else { return Ok(html! {}) };
    let others = replay::other_versions(log, call)?;
    let is_kept = recording.plugin.component.is_some();
    let has_configuration = replayer.has_configuration();
    if !is_kept && !has_configuration && others.is_empty() {
        return Ok(html! {
            h2 { "Replay" }
            p {
                "The log does not keep the component. Name a configuration with "
                code { "--config" } ", or use " code { "cofferdam replay --with" } "."
            }
        });
    }
    Ok(html! {
        h2 { "Replay" }
        p.aside {
            "The call gets its recorded inputs. It sends no request, changes no file and asks no question."
        }
        form #replay data-call=(call.id) data-token=(token) {
            label {
                "Component " select #replay-component {
                    @if is_kept { option value=(RECORDED) { "recorded: " (short(&recording.plugin.digest)) } }
                    @if has_configuration { option value=(CONFIGURED) { "of the configuration" } }
                    @for other in &others {
                        option value=(other.id) { "another version: " (short(other.digest.as_deref().unwrap_or_default())) }
                    }
                }
            }
            " " button type="submit" { "Run again" }
        }
        section #replay-result aria-label="Result of the replay" aria-live="polite" hidden {
            p { "The replay " strong #replay-outcome {} "." }
            ul #replay-differences {}
            ul.aside #replay-notes {}
        }
    })
}

/// Returns the start of a digest.
fn short(digest: &str) -> String {
    let end = digest.floor_char_boundary(23);
    text::plain_line(digest.get(..end).unwrap_or_default())
}
