//! Searching one file, of which never more is in memory than a part and the line at its end.

use memchr::{memchr, memrchr};

use super::SearchCaps;
use super::lines::{LineSearch, Matches};
use super::pattern::Pattern;
use crate::{FileStore, StorePath};

/// How much is read at a time. Most files are shorter, and so read at once.
const PART_BYTES: u64 = 256 * 1024;
/// Longest line of a file that is searched: a line has to be in memory as a whole to be matched. No line that a person
/// wrote comes near it.
pub(super) const LINE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// What is found in the file at `path`: nothing when it cannot be read, is not UTF-8, has a line of more than
/// [`LINE_BYTES_MAX`], or is no longer wanted.
pub(super) async fn search(
    store: &dyn FileStore,
    path: &StorePath,
    pattern: &Pattern,
    caps: SearchCaps,
    is_wanted: impl Fn() -> bool,
) -> Option<Matches> {
    let mut search = LineSearch::new(pattern, caps);
    // What was read and is not searched yet: the beginning of a line.
    let mut text = Vec::new();
    let mut offset = 0_u64;
    let reader = store.reader(path);
    while is_wanted() {
        let part = match &reader {
            Some(reader) => reader.read_at(offset, PART_BYTES).await.ok()?,
            None => store.read_range(path, offset, PART_BYTES).await.ok()?,
        };
        let part_bytes = u64::try_from(part.len()).ok()?;
        offset = offset.saturating_add(part_bytes);
        let first_line = memchr(b'\n', &part).unwrap_or(part.len()).saturating_add(text.len());
        if first_line > LINE_BYTES_MAX {
            return None;
        }
        if part_bytes < PART_BYTES {
            search.search(joined(&mut text, part), true).ok()?;
            return Some(search.finish());
        }
        let last_feed = memrchr(b'\n', &part).map(|feed| text.len().saturating_add(feed));
        joined(&mut text, part);
        if let Some(feed) = last_feed {
            let end = feed.saturating_add(1);
            search.search(text.get(..end)?, false).ok()?;
            text.drain(..end);
        }
    }
    None
}

/// Adds `part` to `text`, without a copy if that is empty.
fn joined(text: &mut Vec<u8>, part: Vec<u8>) -> &[u8] {
    if text.is_empty() {
        *text = part;
    } else {
        text.extend_from_slice(&part);
    }
    text
}
