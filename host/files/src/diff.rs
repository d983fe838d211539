//! Unified diffs, which show the user the changes of a call.

use std::time::Duration;

use similar::TextDiff;

use crate::{ChangeKind, ChangedFile, EntryKind, FileStore, Overlay};

/// Maximum length of content that is compared, in bytes.
const CONTENT_BYTES_MAX: u64 = 1024 * 1024;
/// Maximum length of the diff of one file, in bytes.
const DIFF_BYTES_MAX: usize = 256 * 1024;
/// Time after which the comparison gets coarser. From then on it is linear.
const PRECISE: Duration = Duration::from_millis(200);

/// Returns the unified diff of a change in `overlay`, whose paths are shown below `name`. Returns a
/// remark if there is no text to show, and `None` for a directory.
///
/// Failures are not errors: the diff is only for display, and the change is made with or
/// without it.
pub async fn unified_diff(overlay: &Overlay, name: &str, change: &ChangedFile) -> Option<String> {
    if change.kind == EntryKind::Directory {
        return None;
    }
    let path = format!("{name}/{}", change.path);
    let before = match change.what {
        ChangeKind::Created => Some(Vec::new()),
        _ => overlay.base().read(&change.path, CONTENT_BYTES_MAX).await.ok(),
    };
    let after = match change.what {
        ChangeKind::Deleted => Some(Vec::new()),
        _ => overlay.read(&change.path, CONTENT_BYTES_MAX).await.ok(),
    };
    let (Some(before), Some(after)) = (before, after) else {
        return Some(format!("{path}: too large to be compared\n"));
    };
    let (Ok(before), Ok(after)) = (String::from_utf8(before), String::from_utf8(after)) else {
        return Some(format!("{path}: not text\n"));
    };
    let (from, to) = match change.what {
        ChangeKind::Created => ("/dev/null", path.as_str()),
        ChangeKind::Deleted => (path.as_str(), "/dev/null"),
        ChangeKind::Changed => (path.as_str(), path.as_str()),
    };
    let mut text = TextDiff::configure()
        .timeout(PRECISE)
        .diff_lines(&before, &after)
        .unified_diff()
        .header(from, to)
        .to_string();
    if text.len() > DIFF_BYTES_MAX {
        text.truncate(text.floor_char_boundary(DIFF_BYTES_MAX));
        text.push_str("\n… the rest is left out\n");
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{Budget, MemoryStore, Quota, StorePath, WriteMode};

    #[tokio::test]
    async fn every_kind_of_change_is_shown() {
        let store = Arc::new(MemoryStore::new(Quota::default()));
        let path = |text: &str| StorePath::file(text).unwrap();
        for (name, content) in
            [("changed", "a\nb\n"), ("gone", "x\n"), ("binary", "\0"), ("moved", "m\n")]
        {
            store.write(&path(name), content.into(), WriteMode::Create).await.unwrap();
        }
        let overlay = Overlay::new(store, &Budget::new(u64::MAX));
        overlay.write(&path("changed"), b"a\nc\n".to_vec(), WriteMode::Replace).await.unwrap();
        overlay.write(&path("d/new"), b"n".to_vec(), WriteMode::Create).await.unwrap();
        overlay.write(&path("binary"), vec![0xff], WriteMode::Replace).await.unwrap();
        overlay.delete(&path("gone")).await.unwrap();
        overlay.rename(&path("moved"), &path("d/moved")).await.unwrap();
        let mut shown = String::new();
        for change in overlay.changed_files().await {
            shown.push_str(&unified_diff(&overlay, "data", &change).await.unwrap_or_default());
        }
        let expected = "\
data/binary: not text
--- data/changed
+++ data/changed
@@ -1,2 +1,2 @@
 a
-b
+c
--- /dev/null
+++ data/d/moved
@@ -0,0 +1 @@
+m
--- /dev/null
+++ data/d/new
@@ -0,0 +1 @@
+n
\\ No newline at end of file
--- data/gone
+++ /dev/null
@@ -1 +0,0 @@
-x
--- data/moved
+++ /dev/null
@@ -1 +0,0 @@
-m
";
        assert_eq!(shown, expected);
        // Showing the diff has changed nothing.
        assert_eq!(overlay.commit_changes().await.unwrap().len(), 7);
    }
}
