//! Rows of calls, for pages and for live updates.

use cofferdam_record::CallEntry;
use serde::Serialize;

use crate::format;
use crate::text::plain_line;

/// Maximum number of refusals that a row names.
const REFUSALS_MAX: usize = 2;

/// A call as the cells of a row. Text of untrusted parties has its hostile characters as escapes,
/// so that a script may set it as text.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct CallRow {
    pub(crate) id: String,
    /// Start as RFC 3339.
    pub(crate) at: String,
    /// Start as a UTC date and time of day.
    pub(crate) time: String,
    pub(crate) tool: String,
    pub(crate) owner: String,
    pub(crate) outcome: String,
    pub(crate) took: String,
    pub(crate) notes: String,
}

impl CallRow {
    pub(crate) fn new(call: &CallEntry) -> Self {
        let owner = call.plugin.as_ref().or(call.source.as_ref());
        Self {
            id: plain_line(&call.id),
            at: call.at.to_string(),
            time: format::date_time(call.at),
            tool: plain_line(&call.tool),
            owner: owner.map(|owner| plain_line(owner)).unwrap_or_default(),
            outcome: plain_line(&call.outcome),
            took: format::time(call.us),
            notes: notes(call),
        }
    }
}

fn notes(call: &CallEntry) -> String {
    let mut notes: Vec<String> = call.error.iter().map(|error| plain_line(error)).collect();
    let refused = call.refused.iter().take(REFUSALS_MAX);
    notes.extend(refused.map(|refusal| format!("refused {}", plain_line(&refusal.capability))));
    let more = call.refused.len().saturating_sub(REFUSALS_MAX);
    if more > 0 {
        notes.push(format!("{more} more refused"));
    }
    let files = u64::try_from(call.files.len()).unwrap_or(u64::MAX);
    let files = files.saturating_add(call.files_left_out);
    if files > 0 {
        notes.push(format!("{} changed", format::counted(files, "file")));
    }
    if call.is_dry_run {
        notes.push("dry run".to_owned());
    }
    notes.join(", ")
}
