//! Ends a call: commits its changes, or only reports them.

use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::record::{FILE_CHANGES_MAX, FileChange, FileChangeKind};

use crate::{ChangeKind, ChangedFile, EntryKind, FileError, Overlay, unified_diff};

/// Maximum length of all diffs of one call together, in bytes. Changes beyond it are listed without
/// a diff.
const DIFFS_BYTES_MAX: usize = 1024 * 1024;

/// Commits the changes in `overlay`, unless it is a dry run, and returns them. The records call the
/// store `name`.
///
/// # Errors
/// As for [`Overlay::commit_changes`]. The changes are lost in that case.
pub async fn finish(
    overlay: &Overlay,
    name: &str,
    effects: FileEffects,
) -> Result<Vec<FileChange>, FileError> {
    if effects == FileEffects::default() {
        let changed = overlay.commit_changes().await?;
        return Ok(changed.iter().map(|change| file_change(name, change)).collect());
    }
    let changed = overlay.changed_files().await;
    let mut reported: Vec<_> = changed.iter().map(|change| file_change(name, change)).collect();
    if effects.shows_diffs {
        let mut bytes_left = DIFFS_BYTES_MAX;
        for (reported, change) in reported.iter_mut().zip(&changed).take(FILE_CHANGES_MAX) {
            let diff =
                unified_diff(overlay, name, change).await.filter(|diff| diff.len() <= bytes_left);
            bytes_left = bytes_left.saturating_sub(diff.as_ref().map_or(0, String::len));
            reported.diff = diff;
        }
    }
    if !effects.is_dry_run {
        overlay.commit_changes().await?;
    }
    Ok(reported)
}

fn file_change(name: &str, change: &ChangedFile) -> FileChange {
    let end = if change.kind == EntryKind::Directory { "/" } else { "" };
    FileChange {
        mount: name.to_owned(),
        path: format!("{}{end}", change.path),
        what: match change.what {
            ChangeKind::Created => FileChangeKind::Created,
            ChangeKind::Changed => FileChangeKind::Changed,
            ChangeKind::Deleted => FileChangeKind::Deleted,
        },
        bytes: change.bytes,
        diff: None,
    }
}
