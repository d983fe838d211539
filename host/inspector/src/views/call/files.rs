//! Changes of files. Their content is a payload of the call.

use cofferdam_record::CallEntry;
use cofferdam_tool::record::FileChangeKind;
use maud::{Markup, html};

use super::layout;
use crate::{format, text};

/// Maximum number of files that are listed.
const FILES_MAX: usize = 200;

/// Returns the section about the changed files.
pub(super) fn section(call: &CallEntry) -> Markup {
    if call.files.is_empty() {
        return html! {};
    }
    let more = call.files.len().saturating_sub(FILES_MAX);
    let more = u64::try_from(more).unwrap_or(u64::MAX).saturating_add(call.files_left_out);
    let rows = html! {
        @for change in call.files.iter().take(FILES_MAX) {
            tr {
                td { (word(change.what)) }
                td { (text::line(&format!("{}/{}", change.mount, change.path))) }
                td.number { (format::bytes(change.bytes)) }
            }
        }
    };
    html! {
        h2 { @if call.is_dry_run { "Files that it would have changed" } @else { "Changed files" } }
        (layout::table("Changed files", &["Change", "File", "Size"], rows))
        @if more > 0 { p { (more) " more" } }
    }
}

fn word(kind: FileChangeKind) -> &'static str {
    match kind {
        FileChangeKind::Created => "created",
        FileChangeKind::Deleted => "deleted",
        _ => "changed",
    }
}
