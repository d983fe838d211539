//! Shows the file changes of a call at the terminal.

use cofferdam_tool::CallRecord;
use cofferdam_tool::record::{FileChange, FileChangeKind};

use crate::print;

/// Prints the file changes of a call, or those that a dry run would have made.
pub(crate) fn show(record: &CallRecord) {
    let title = match (record.files.is_empty(), record.is_dry_run) {
        (true, _) => "no file was changed",
        (false, true) => "dry run: these changes were not made",
        (false, false) => "changed:",
    };
    print::note(title);
    for FileChange { mount, path, what, bytes, .. } in &record.files {
        let what = match what {
            FileChangeKind::Created => "created",
            FileChangeKind::Changed => "changed",
            FileChangeKind::Deleted => "deleted",
            _ => "touched",
        };
        let size = if path.ends_with('/') || what == "deleted" {
            String::new()
        } else {
            format!(" ({})", print::bytes(*bytes))
        };
        print::note(&format!("  {what} {mount}/{path}{size}"));
    }
    if record.files_left_out > 0 {
        print::note(&format!("  and {} more", record.files_left_out));
    }
    for diff in record.files.iter().filter_map(|change| change.diff.as_deref()) {
        print::difference(diff.trim_end_matches('\n'));
    }
}
