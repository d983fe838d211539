//! Finds the commit that each line of a file comes from.

use std::collections::HashMap;
use std::rc::Rc;

use cofferdam_sdk::{ToolFailure, tool};
use schemars::JsonSchema;
use serde::Serialize;

use crate::changes;
use crate::commit::Commit;
use crate::error::Error;
use crate::glob;
use crate::history::{COMMITS_MAX, Queue};
use crate::id::Id;
use crate::line_diff;
use crate::repository::Repository;
use crate::tree::{self, EntryKind};

/// Maximum number of lines that a call returns, whatever it asks for.
const LINES_MAX: usize = 2000;

/// Maximum number of bytes of deleted files that a call compares with renamed ones.
const RENAME_BYTES_MAX: usize = 64 << 20;

/// Lines of a file, with their origins.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Blame {
    /// Number of lines of the file.
    lines: usize,
    hunks: Vec<Origin>,
    /// True if lines after the last returned one were dropped.
    truncated: bool,
    /// True if origins may be older: history is shallow or longer than a call follows, or has more
    /// deleted files than a call compares to find renames.
    incomplete: bool,
}

/// Neighboring lines that the same commit wrote.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Origin {
    /// Abbreviated name of the commit.
    commit: String,
    author: String,
    date: String,
    /// First line of the message.
    subject: String,
    /// Path of the file in that commit, if it was another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    /// Number of the first line, from 1.
    line: usize,
    text: String,
}

/// Finds the commit that each line of a file comes from, like `git blame`. Renames are followed.
#[tool(title = "Git blame", read_only, idempotent, open_world = false, output_schema)]
pub fn git_blame(
    /// Directory of the repository, for example `/project`.
    repository: String,
    /// Path of the file in the repository, for example `src/main.rs`.
    path: String,
    /// Branch, tag or commit.
    #[tool(default = "HEAD")]
    revision: String,
    /// Number of the first line, from 1.
    #[tool(default = 1)]
    first_line: usize,
    /// Number of the last line; the last one of the file if absent.
    last_line: Option<usize>,
    /// Maximum number of lines to return, up to 2000.
    #[tool(default = 200)]
    count: usize,
) -> Result<Blame, ToolFailure> {
    let repository = Repository::open(&repository)?;
    let start = repository.resolve(&revision)?;
    let path = glob::clean(&path)?;
    let id = repository.file(&start, &path)?;
    let Some(data) = changes::text(&repository.objects, &id)? else {
        let message = format!("`{path}` is binary or larger than 2 MiB");
        return Err(ToolFailure::new(message)
            .suggestion("pass the path of a text file")
            .permanent());
    };
    let lines = line_diff::lines(&data);
    let first = first_line.max(1) - 1;
    let end = last_line.unwrap_or(usize::MAX).min(lines.len());
    if first >= end {
        let message = format!("there are no lines {first_line} to {end}");
        let suggestion = format!("`{path}` has {} lines", lines.len());
        return Err(ToolFailure::new(message).suggestion(suggestion).permanent());
    }
    let wanted = end - first;
    let end = end.min(first + count.clamp(1, LINES_MAX));
    let mut search = Search::new(&repository, first..end);
    search.suspect(start.id, path.clone(), (first..end).map(|line| (line, line)).collect())?;
    let is_complete = search.run()?;
    Ok(Blame {
        lines: lines.len(),
        hunks: search.origins(&path, &lines)?,
        truncated: end - first < wanted,
        incomplete: !is_complete || search.rename_bytes_left == 0 || repository.is_shallow(),
    })
}

/// Lines as pairs: the number in the file of the call, and the number in the file of a commit.
type Lines = Vec<(usize, usize)>;

/// Files whose lines a commit has written, unless a parent has them.
type Suspects = HashMap<Id, HashMap<String, Lines>>;

struct Search<'r> {
    repository: &'r Repository,
    queue: Queue<'r>,
    suspects: Suspects,
    /// Commit and path for each line.
    found: HashMap<usize, (Id, Rc<str>)>,
    range: std::ops::Range<usize>,
    rename_bytes_left: usize,
}

impl<'r> Search<'r> {
    fn new(repository: &'r Repository, range: std::ops::Range<usize>) -> Self {
        let queue = Queue::new(repository);
        Self {
            repository,
            queue,
            suspects: HashMap::new(),
            found: HashMap::new(),
            range,
            rename_bytes_left: RENAME_BYTES_MAX,
        }
    }

    fn suspect(&mut self, commit: Id, path: String, lines: Lines) -> Result<(), Error> {
        if !lines.is_empty() {
            self.suspects.entry(commit).or_default().entry(path).or_default().extend(lines);
            self.queue.push_again(commit)?;
        }
        Ok(())
    }

    /// Assigns all lines. Returns false if it gave up at the limit of commits.
    fn run(&mut self) -> Result<bool, Error> {
        let mut examined = 0;
        while let Some(commit) = self.queue.pop() {
            examined += 1;
            let files = self.suspects.remove(&commit.id).unwrap_or_default();
            for (path, lines) in files {
                let rest = if examined > COMMITS_MAX {
                    lines
                } else {
                    self.pass_to_parents(&commit, &path, lines)?
                };
                let path: Rc<str> = path.into();
                for (line, _) in rest {
                    self.found.insert(line, (commit.id, Rc::clone(&path)));
                }
            }
        }
        Ok(examined <= COMMITS_MAX)
    }

    /// Passes lines to the parents that have them, and returns the others.
    fn pass_to_parents(
        &mut self,
        commit: &Commit,
        path: &str,
        mut lines: Lines,
    ) -> Result<Lines, Error> {
        let objects = &self.repository.objects;
        let Some(here) = tree::find(objects, commit.tree, path)? else { return Ok(lines) };
        let mut parents = Vec::new();
        for parent in &commit.parents {
            let tree = self.repository.commit(parent)?.tree;
            let entry = tree::find(objects, tree, path)?.filter(|it| it.kind == EntryKind::File);
            if entry.is_some_and(|entry| entry.id == here.id) {
                self.suspect(*parent, path.to_owned(), lines)?;
                return Ok(Vec::new());
            }
            parents.push((*parent, tree, entry));
        }
        for (parent, tree, entry) in parents {
            let (old_path, old_id) = match entry {
                Some(entry) => (path.to_owned(), entry.id),
                None => {
                    let (trees, file) = ((tree, commit.tree), (path, here.id));
                    let left = &mut self.rename_bytes_left;
                    match changes::rename_source(objects, trees, file, left)? {
                        Some(found) => (found.path, found.id),
                        None => continue,
                    }
                }
            };
            let (Some(before), Some(after)) =
                (changes::text(objects, &old_id)?, changes::text(objects, &here.id)?)
            else {
                continue;
            };
            let (before, after) = (line_diff::lines(&before), line_diff::lines(&after));
            let hunks = line_diff::hunks(&before, &after);
            let (kept, rest) = split(lines, &hunks);
            lines = rest;
            self.suspect(parent, old_path, kept)?;
        }
        Ok(lines)
    }

    /// Joins neighboring lines with the same origin.
    fn origins(&self, path: &str, lines: &[&[u8]]) -> Result<Vec<Origin>, Error> {
        let mut origins: Vec<Origin> = Vec::new();
        let mut last = None;
        for line in self.range.clone() {
            let Some((id, old_path)) = self.found.get(&line) else { continue };
            let text = String::from_utf8_lossy(lines.get(line).copied().unwrap_or_default());
            if let Some(origin) = origins.last_mut().filter(|_| last == Some((id, old_path))) {
                origin.text.push_str(&text);
                continue;
            }
            last = Some((id, old_path));
            let commit = self.repository.commit(id)?;
            origins.push(Origin {
                commit: id.short(),
                author: commit.author.name.clone(),
                date: commit.author.time.date(),
                subject: commit.subject().to_owned(),
                path: Some(old_path.to_string()).filter(|old_path| old_path != path),
                line: line + 1,
                text: text.into_owned(),
            });
        }
        Ok(origins)
    }
}

/// Separates lines that are the same in both versions, with their numbers in the older one, from
/// lines that the newer one adds.
fn split(lines: Lines, hunks: &[line_diff::Hunk]) -> (Lines, Lines) {
    let (mut kept, mut rest) = (Vec::new(), Vec::new());
    for (line, here) in lines {
        // The last hunk that begins at or before the line.
        let index = hunks.partition_point(|hunk| hunk.after.start <= here);
        match index.checked_sub(1).and_then(|index| hunks.get(index)) {
            Some(hunk) if hunk.after.contains(&here) => rest.push((line, here)),
            Some(hunk) => kept.push((line, here - hunk.after.end + hunk.before.end)),
            None => kept.push((line, here)),
        }
    }
    (kept, rest)
}

#[cfg(test)]
mod tests {
    use super::split;
    use crate::line_diff::Hunk;

    #[test]
    fn lines_keep_their_origin_across_changes() {
        // Line 1 was replaced by two lines, and line 3 was deleted.
        let hunks = [Hunk { before: 1..2, after: 1..3 }, Hunk { before: 3..4, after: 4..4 }];
        let lines = (0..6).map(|line| (line, line)).collect();
        let (kept, rest) = split(lines, &hunks);
        assert_eq!(kept, [(0, 0), (3, 2), (4, 4), (5, 5)]);
        assert_eq!(rest, [(1, 1), (2, 2)]);
    }
}
