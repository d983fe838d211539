//! Searches one file, holding at most a part and the line at its end in memory.

use memchr::{memchr, memrchr};

use super::SearchCaps;
use super::lines::{LineSearch, Matches};
use super::pattern::SearchPattern;
use crate::{FileStore, StorePath};

/// Number of bytes to read at a time. Most files are shorter, and so read at once.
const PART_BYTES: u64 = 256 * 1024;
/// Maximum length of a line of a searched file: a line has to be in memory as a whole to be
/// matched, and nothing interrupts that. The limit is lower for slow patterns. Lines in real text
/// are far shorter.
pub(super) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A file is not searched because a line of it is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LongLine {
    /// Maximum length of a line for the pattern, in bytes.
    pub(super) bytes_max: usize,
}

/// Searches the file at `path`. Returns `None` if it cannot be read, is not UTF-8, has a line that
/// takes too long to search, or is no longer wanted.
///
/// # Errors
/// [`LongLine`] if a line is longer than [`LINE_BYTES_MAX`], or than the pattern allows.
pub(super) async fn search(
    store: &dyn FileStore,
    path: &StorePath,
    pattern: &SearchPattern,
    caps: SearchCaps,
    is_wanted: impl Fn() -> bool,
) -> Result<Option<Matches>, LongLine> {
    let mut search = LineSearch::new(pattern, caps);
    let bytes_max = pattern.bytes_at_a_time().min(LINE_BYTES_MAX);
    // Text that was read but not searched yet: the start of a line.
    let mut text = Vec::new();
    let mut offset = 0_u64;
    let reader = store.reader(path);
    while is_wanted() {
        let read = match &reader {
            Some(reader) => reader.read_at(offset, PART_BYTES).await,
            None => store.read_range(path, offset, PART_BYTES).await,
        };
        let Ok(part) = read else { return Ok(None) };
        let part_bytes = u64::try_from(part.len()).unwrap_or(u64::MAX);
        offset = offset.saturating_add(part_bytes);
        let first_line = memchr(b'\n', &part).unwrap_or(part.len()).saturating_add(text.len());
        if first_line > bytes_max {
            let start = if text.is_empty() { &part } else { &text };
            return long_line(start, bytes_max);
        }
        let is_last = part_bytes < PART_BYTES;
        let last_feed = memrchr(b'\n', &part).map(|feed| text.len().saturating_add(feed));
        joined(&mut text, part);
        let end =
            if is_last { Some(text.len()) } else { last_feed.map(|feed| feed.saturating_add(1)) };
        let Some(end) = end else { continue };
        let mut lines = text.get(..end).unwrap_or_default();
        loop {
            let Some((block, behind)) = split(lines, bytes_max) else {
                return long_line(lines, bytes_max);
            };
            if search.search(block, is_last && behind.is_empty()).is_err() {
                return Ok(None);
            }
            lines = behind;
            if lines.is_empty() {
                break;
            }
            if !is_wanted() {
                return Ok(None);
            }
        }
        if is_last {
            return Ok(Some(search.finish()));
        }
        text.drain(..end);
    }
    Ok(None)
}

/// Returns what to do with a file that has a long line, which begins with `start`: one that is not
/// UTF-8 is skipped like others of its kind.
fn long_line(start: &[u8], bytes_max: usize) -> Result<Option<Matches>, LongLine> {
    match std::str::from_utf8(start) {
        Err(error) if error.error_len().is_some() => Ok(None),
        _ => Err(LongLine { bytes_max }),
    }
}

/// Splits off as many of `lines` as are searched at a time, and returns them with the rest. Returns
/// `None` if the first line is longer than `bytes_max`.
fn split(lines: &[u8], bytes_max: usize) -> Option<(&[u8], &[u8])> {
    if lines.len() <= bytes_max {
        return Some((lines, &[]));
    }
    let feed = memrchr(b'\n', lines.get(..=bytes_max)?)?;
    lines.split_at_checked(feed.saturating_add(1))
}

/// Adds `part` to `text`, without a copy if that is empty.
fn joined(text: &mut Vec<u8>, part: Vec<u8>) {
    if text.is_empty() {
        *text = part;
    } else {
        text.extend_from_slice(&part);
    }
}
