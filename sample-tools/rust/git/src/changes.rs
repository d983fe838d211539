//! Files that differ between two trees.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::Error;
use crate::glob::Paths;
use crate::id::Id;
use crate::line_diff::{self, Counts, DIFF_BYTES_MAX};
use crate::objects::{Kind, Objects};
use crate::output;
use crate::tree::{Entries, Entry, EntryKind, join};

/// Maximum number of changed files in a result.
const FILES_MAX: usize = 1000;

/// Maximum number of changed files that are counted. More trees are not read.
const COUNTED_MAX: usize = 100_000;

/// Bytes of a list of files that is returned whole, whatever the call asks for.
const LIST_BYTES_MIN: usize = 32 << 10;

/// Bytes of a list of files that leave the text of the differences as long as the call asks for.
const LIST_BYTES_FREE: usize = 4 << 10;

/// Approximate number of bytes of a file in a list, without its path.
const FILE_BYTES: usize = 64;

/// Maximum number of bytes that a call reads to compare files.
const COMPARED_BYTES_MAX: usize = 64 << 20;

/// Maximum number of added files, and of deleted files, among which renames with changes are looked
/// for.
const RENAMES_MAX: usize = 40;

/// Percentage of common lines from which a deleted and an added file are one that was renamed.
const RENAME_SIMILARITY_MIN: usize = 50;

/// Kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The file is new.
    Added,
    /// The file is gone.
    Deleted,
    /// The content, the type or the permission differs.
    Modified,
    /// The file has another path, and perhaps another content.
    Renamed,
}

/// File that differs.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FileChange {
    path: String,
    /// Path before a rename.
    #[serde(skip_serializing_if = "Option::is_none")]
    old_path: Option<String>,
    status: Status,
    /// Number of added lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    added: Option<usize>,
    /// Number of removed lines.
    #[serde(skip_serializing_if = "Option::is_none")]
    removed: Option<usize>,
    /// Reason for which lines are not compared, or a change of the type or permission.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// Files that differ, with the differences as text.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Differences {
    files: Vec<FileChange>,
    /// Number of files that were left out, at least.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_files: Option<usize>,
    /// Differences of the lines in the unified format.
    diff: String,
    /// Reason for which a renamed file may be listed as a deleted and an added one.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// True if files or a part of the text were dropped because of a limit.
    truncated: bool,
}

const RENAMES_SKIPPED: &str =
    "renames with changes were not looked for: more than 40 files were added or deleted";

/// Change of one file.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) path: String,
    pub(crate) old_path: Option<String>,
    pub(crate) before: Option<Entry>,
    pub(crate) after: Option<Entry>,
}

/// Files that differ between two trees.
pub(crate) struct Changes {
    /// Sorted by path.
    files: Vec<Change>,
    /// Number of other files, at least.
    more: usize,
    /// False if there were too many files to look for renames with changes.
    has_renames: bool,
}

/// Returns the files that differ, with renames.
pub(crate) fn between(
    objects: &Objects,
    before: Option<Id>,
    after: Option<Id>,
    paths: &Paths,
) -> Result<Changes, Error> {
    let mut files = Vec::new();
    let mut more = 0;
    visit(objects, (before, after), paths, &mut |path, before, after| {
        match files.len() < FILES_MAX {
            true => files.push(Change { path, old_path: None, before, after }),
            false => more += 1,
        }
        more < COUNTED_MAX
    })?;
    let has_renames = find_renames(objects, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Changes { files, more, has_renames })
}

/// Calls `visit` with each path whose file differs, until it returns false.
fn visit(
    objects: &Objects,
    (before, after): (Option<Id>, Option<Id>),
    paths: &Paths,
    visit: &mut impl FnMut(String, Option<Entry>, Option<Entry>) -> bool,
) -> Result<(), Error> {
    let mut open = VecDeque::from([(String::new(), before, after)]);
    while let Some((directory, before, after)) = open.pop_front() {
        let (mut old, new) = (entries(objects, before)?, entries(objects, after)?);
        let mut pairs: Vec<_> =
            new.into_iter().map(|(name, entry)| (old.remove(&name), Some(entry), name)).collect();
        pairs.extend(old.into_iter().map(|(name, entry)| (Some(entry), None, name)));
        for (before, after, name) in pairs {
            if before == after {
                continue;
            }
            let path = join(&directory, &name);
            let is_directory = |entry: &Entry| entry.kind == EntryKind::Directory;
            let old_tree = before.filter(is_directory).map(|entry| entry.id);
            let new_tree = after.filter(is_directory).map(|entry| entry.id);
            if (old_tree.is_some() || new_tree.is_some()) && paths.enters(&path) {
                open.push_back((path.clone(), old_tree, new_tree));
            }
            let before = before.filter(|entry| !is_directory(entry));
            let after = after.filter(|entry| !is_directory(entry));
            if (before.is_some() || after.is_some())
                && paths.contains(&path)
                && !visit(path, before, after)
            {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// File that one was renamed from.
pub(crate) struct RenameSource {
    pub(crate) path: String,
    pub(crate) id: Id,
}

/// Returns the deleted file that an added file was renamed from: one with the same content, or the
/// most similar one. Reduces `bytes_left` by the size of the compared files, and stops at 0.
pub(crate) fn rename_source(
    objects: &Objects,
    (before, after): (Id, Id),
    (path, id): (&str, Id),
    bytes_left: &mut usize,
) -> Result<Option<RenameSource>, Error> {
    let name = |path: &str| path.rsplit('/').next().map(str::to_owned);
    let mut deleted = Vec::new();
    visit(objects, (Some(before), Some(after)), &Paths::all(), &mut |path, before, after| {
        if let (Some(before), None) = (before.filter(|it| it.kind == EntryKind::File), after) {
            deleted.push(RenameSource { path, id: before.id });
        }
        deleted.len() < COUNTED_MAX
    })?;
    // Of files that are equally similar, one with the same name is the source.
    deleted.sort_by_key(|it| name(&it.path) != name(path));
    if let Some(same) = deleted.iter().position(|it| it.id == id) {
        return Ok(Some(deleted.swap_remove(same)));
    }
    let Some(new) = text(objects, &id)? else { return Ok(None) };
    let mut best = None;
    let mut best_similarity = RENAME_SIMILARITY_MIN - 1;
    for source in deleted {
        if *bytes_left == 0 {
            break;
        }
        let Some(old) = text(objects, &source.id)? else { continue };
        *bytes_left = bytes_left.saturating_sub(old.len());
        if could_be_similar(old.len(), new.len()) {
            let similarity = line_diff::similarity(&old, &new);
            if similarity > best_similarity {
                (best, best_similarity) = (Some(source), similarity);
            }
        }
    }
    Ok(best)
}

fn entries(objects: &Objects, tree: Option<Id>) -> Result<BTreeMap<Vec<u8>, Entry>, Error> {
    let Some(tree) = tree else { return Ok(BTreeMap::new()) };
    let data = objects.read_as(&tree, Kind::Tree)?;
    Entries::new(&data).map(|entry| entry.map(|(name, entry)| (name.to_vec(), entry))).collect()
}

/// Joins deleted and added files with the same or a similar content. Returns false if there were
/// too many files to look for similar contents.
fn find_renames(objects: &Objects, changes: &mut Vec<Change>) -> Result<bool, Error> {
    let is_file = |entry: &Option<Entry>| entry.is_some_and(|it| it.kind == EntryKind::File);
    let mut deleted: Vec<usize> = Vec::new();
    let mut added: Vec<usize> = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        match (&change.before, &change.after) {
            (before, None) if is_file(before) => deleted.push(index),
            (None, after) if is_file(after) => added.push(index),
            _ => {}
        }
    }
    let mut pairs = Vec::new();
    let id = |index: usize, changes: &[Change]| {
        changes.get(index).and_then(|it| it.before.or(it.after)).map(|entry| entry.id)
    };
    added.retain(|new| {
        let same = deleted.iter().position(|old| id(*old, changes) == id(*new, changes));
        same.map(|position| pairs.push((deleted.swap_remove(position), *new))).is_none()
    });
    let is_feasible = deleted.len() <= RENAMES_MAX && added.len() <= RENAMES_MAX
        || deleted.is_empty()
        || added.is_empty();
    if is_feasible && !added.is_empty() {
        let content = |index: &usize| match id(*index, changes) {
            Some(id) => text(objects, &id),
            None => Ok(None),
        };
        let mut olds = Vec::new();
        for old in &deleted {
            olds.extend(content(old)?.map(|data| (*old, data)));
        }
        for new in &added {
            let Some(data) = content(new)? else { continue };
            let best = olds
                .iter()
                .enumerate()
                .filter(|(_, (_, old))| could_be_similar(old.len(), data.len()))
                .map(|(at, (_, old))| (line_diff::similarity(old, &data), at))
                .max();
            if let Some((_, at)) = best.filter(|(it, _)| *it >= RENAME_SIMILARITY_MIN) {
                pairs.push((olds.swap_remove(at).0, *new));
            }
        }
    }
    for (old, new) in &pairs {
        let Some((path, before)) = changes.get(*old).map(|it| (it.path.clone(), it.before)) else {
            continue;
        };
        if let Some(change) = changes.get_mut(*new) {
            change.old_path = Some(path);
            change.before = before;
        }
    }
    let mut index = 0;
    changes.retain(|_| {
        index += 1;
        !pairs.iter().any(|(old, _)| old + 1 == index)
    });
    Ok(is_feasible)
}

fn could_be_similar(a: usize, b: usize) -> bool {
    a.min(b) * 4 >= a.max(b) && a > 0
}

/// Returns the content of a file if it is a text that can be compared.
pub(crate) fn text(objects: &Objects, id: &Id) -> Result<Option<Rc<[u8]>>, Error> {
    match objects.read_as(id, Kind::Blob) {
        Ok(data) => {
            Ok(Some(data).filter(|data| data.len() <= DIFF_BYTES_MAX && line_diff::is_text(data)))
        }
        Err(Error::TooLarge { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Compares the lines of changed files.
pub(crate) fn compare(
    objects: &Objects,
    changes: Changes,
    context: usize,
    bytes_max: usize,
) -> Result<Differences, Error> {
    let Changes { files: mut changes, more, has_renames } = changes;
    let (listed, list_bytes) = fitting(&changes, bytes_max.max(LIST_BYTES_MIN));
    let more = more + changes.len() - listed;
    changes.truncate(listed);
    let bytes_max = bytes_max.saturating_sub(list_bytes.saturating_sub(LIST_BYTES_FREE));
    let mut compared = 0;
    let mut diff = String::new();
    let mut files = Vec::new();
    for change in changes {
        let mut file = describe(&change);
        if file.note != Some(SUBMODULE) {
            if compared > COMPARED_BYTES_MAX {
                file.note = Some("not compared: the limit of a call is reached");
            } else {
                compared += lines(objects, &change, &mut file, &mut diff, context, bytes_max)?;
            }
        }
        files.push(file);
    }
    let is_cut = output::cut(&mut diff, bytes_max);
    let more_files = Some(more).filter(|more| *more > 0);
    let note = Some(RENAMES_SKIPPED).filter(|_| !has_renames);
    Ok(Differences { files, diff, note, truncated: more_files.is_some() || is_cut, more_files })
}

/// Returns how many of the first changes fit in a list of at most `bytes_max` bytes, and its bytes.
fn fitting(changes: &[Change], bytes_max: usize) -> (usize, usize) {
    let mut bytes = 0;
    for (index, change) in changes.iter().enumerate() {
        let old_path = change.old_path.as_ref().map_or(0, String::len);
        let longer = bytes + FILE_BYTES + change.path.len() + old_path;
        if longer > bytes_max {
            return (index, bytes);
        }
        bytes = longer;
    }
    (changes.len(), bytes)
}

const SUBMODULE: &str = "a submodule: its commit differs";

fn describe(change: &Change) -> FileChange {
    let status = match (&change.old_path, &change.before, &change.after) {
        (Some(_), ..) => Status::Renamed,
        (_, None, _) => Status::Added,
        (_, _, None) => Status::Deleted,
        _ => Status::Modified,
    };
    let entries = [change.before, change.after];
    let is_submodule = entries.iter().flatten().any(|entry| entry.kind == EntryKind::Submodule);
    let note = match (change.before, change.after) {
        _ if is_submodule => Some(SUBMODULE),
        (Some(before), Some(after)) if before.kind != after.kind => {
            Some("a link became a file, or a file a link")
        }
        (Some(before), Some(after)) if before.is_executable != after.is_executable => {
            Some(if after.is_executable { "became executable" } else { "is no longer executable" })
        }
        _ => None,
    };
    FileChange {
        path: change.path.clone(),
        old_path: change.old_path.clone(),
        status,
        added: None,
        removed: None,
        note,
    }
}

/// Compares one file, and returns the number of bytes that it read.
fn lines(
    objects: &Objects,
    change: &Change,
    file: &mut FileChange,
    diff: &mut String,
    context: usize,
    bytes_max: usize,
) -> Result<usize, Error> {
    let content = |entry: Option<Entry>| match entry {
        Some(entry) => text(objects, &entry.id),
        None => Ok(Some(Rc::from([]))),
    };
    let (Some(before), Some(after)) = (content(change.before)?, content(change.after)?) else {
        file.note = Some("binary or larger than 2 MiB");
        return Ok(DIFF_BYTES_MAX);
    };
    let (old, new) = (line_diff::lines(&before), line_diff::lines(&after));
    let hunks = line_diff::hunks(&old, &new);
    let Counts { added, removed } = line_diff::count(&hunks);
    (file.added, file.removed) = (Some(added), Some(removed));
    if diff.len() <= bytes_max {
        write_header(diff, change, file);
        line_diff::unified(diff, (&old, &new), &hunks, context, bytes_max);
    }
    Ok(before.len() + after.len())
}

fn write_header(diff: &mut String, change: &Change, file: &FileChange) {
    let old = change.old_path.as_ref().unwrap_or(&change.path);
    let new = &change.path;
    diff.push_str(&match file.status {
        Status::Added => format!("--- /dev/null\n+++ b/{new}\n"),
        Status::Deleted => format!("--- a/{old}\n+++ /dev/null\n"),
        Status::Modified | Status::Renamed => format!("--- a/{old}\n+++ b/{new}\n"),
    });
}
