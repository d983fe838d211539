//! Edits of a part of a file (`FILE-40`, `FILE-41`).

use std::collections::BTreeMap;
use std::sync::Arc;

use super::operations::{OperationRefusal, utf8};
use super::requests::LineEdit;
use crate::path::quoted;
use crate::{Budget, FileError, FileStore, Overlay, QuotaExceeded, StorePath, WriteMode};

/// Maximum length of a file that can be edited, before and after the edit, in bytes.
const FILE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Maximum number of attempts of an edit. An edit is repeated if a plugin or another process has
/// written the file in between. Edits within this process wait for each other (`turns.rs`).
pub(super) const TRIES_MAX: usize = 64;

/// Outcome of an edit.
pub(super) struct EditResult {
    /// Number of replacements.
    pub(super) count: usize,
    /// New length in bytes.
    pub(super) bytes: usize,
}

/// New content of a file and the number of replacements in it.
type EditOutcome = Result<(String, usize), OperationRefusal>;

/// Reads `path`, changes its content and writes it back. If the file has been written in between,
/// repeats the change on the new content, so that concurrent edits are never lost. The caller holds
/// the file's permit.
pub(super) async fn edit(
    store: &Arc<dyn FileStore>,
    path: &StorePath,
    change: impl Fn(&str) -> EditOutcome,
) -> Result<EditResult, OperationRefusal> {
    let mut lost = None;
    for _ in 0..TRIES_MAX {
        let overlay = Overlay::new(Arc::clone(store), &Budget::new(u64::MAX));
        let content = utf8(overlay.read(path, FILE_BYTES_MAX).await?, path)?;
        let (content, count) = change(&content)?;
        let bytes = content.len();
        overlay
            .write(path, content.into_bytes(), WriteMode::Replace)
            .await
            .map_err(OperationRefusal::reason)?;
        match overlay.commit_changes().await {
            Ok(_) => return Ok(EditResult { count, bytes }),
            Err(error @ FileError::Conflict { .. }) => lost = Some(error),
            Err(error) => return Err(OperationRefusal::reason(error)),
        }
        // A store in memory never yields by itself.
        tokio::task::yield_now().await;
    }
    Err(lost.map_or(OperationRefusal::NotFound, OperationRefusal::reason))
}

/// Returns `content` with `old` replaced by `new`.
pub(super) fn replaced(content: &str, old: &str, new: &str, replaces_all: bool) -> EditOutcome {
    let count = content.matches(old).count();
    if count == 0 {
        return Err(OperationRefusal::Reason(format!("old_string not found: '{}'.", quoted(old))));
    }
    if count > 1 && !replaces_all {
        return Err(OperationRefusal::Reason(format!(
            "old_string occurs {count} times; pass replace_all=true to replace all, or provide a \
             more specific old_string."
        )));
    }
    let rest = content.len().saturating_sub(old.len().saturating_mul(count));
    check_bytes(rest.saturating_add(new.len().saturating_mul(count)))?;
    Ok((content.replace(old, new), count))
}

/// Returns `content` with `text` appended.
pub(super) fn appended(content: &str, text: &str) -> EditOutcome {
    check_bytes(content.len().saturating_add(text.len()))?;
    Ok((format!("{content}{text}"), 1))
}

/// Returns `content` with all of `edits` applied, or an error if one of them is invalid.
pub(super) fn lines_replaced(content: &str, edits: &[LineEdit]) -> EditOutcome {
    // Content that ends in a line feed has one more, empty line (`FILE-30`), and so has empty
    // content.
    let last = if content.is_empty() || content.ends_with('\n') { Some("") } else { None };
    let lines: Vec<&str> = content.split_inclusive('\n').chain(last).collect();
    let mut replacements = BTreeMap::new();
    for edit in edits {
        let number = &edit.line_number;
        let index = edit.line_number.positive().and_then(|number| usize::try_from(number - 1).ok());
        if index.is_some_and(|index| replacements.contains_key(&index)) {
            return Err(OperationRefusal::Reason(format!(
                "Duplicate line_number {number} in edits."
            )));
        }
        let found = index.and_then(|index| Some((index, lines.get(index)?)));
        let Some((index, line)) = found else {
            let count = lines.len();
            return Err(OperationRefusal::Reason(format!(
                "line_number {number} is out of range (file has {count} lines)."
            )));
        };
        if edit
            .expected_line
            .as_ref()
            .is_some_and(|expected| without_line_end(expected) != without_line_end(line))
        {
            return Err(OperationRefusal::Reason(format!(
                "line_number {number} does not match the expected text. Re-read the file to get \
                 current line numbers."
            )));
        }
        replacements.insert(index, edit.new_line.as_str());
    }
    let added: usize = replacements.values().map(|line| line.len()).sum();
    check_bytes(content.len().saturating_add(added))?;
    let new =
        lines.iter().enumerate().map(|(index, line)| replacements.get(&index).unwrap_or(line));
    Ok((new.copied().collect(), replacements.len()))
}

/// Returns `line` without its terminator.
fn without_line_end(line: &str) -> &str {
    match line.strip_suffix('\n') {
        Some(line) => line.strip_suffix('\r').unwrap_or(line),
        None => line,
    }
}

/// Returns an error if a file of `bytes` is too large to edit. Called before anything is allocated.
fn check_bytes(bytes: usize) -> Result<(), OperationRefusal> {
    if u64::try_from(bytes).is_ok_and(|bytes| bytes <= FILE_BYTES_MAX) {
        return Ok(());
    }
    Err(OperationRefusal::reason(FileError::Quota(QuotaExceeded::FileBytes {
        limit: FILE_BYTES_MAX,
    })))
}
