//! Discovery of skills under roots (`SKILL-6`, `SKILL-7`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cofferdam_files::{EntryKind, FileError, FileStore, Scope, StorePath};

use super::file::{FileSkill, Folder, SkillFileError};
use super::{InvalidSkill, SKILL_FILE, SkillLimits};

/// Maximum depth of a skill under its root.
const DEPTH_MAX: u32 = 2;

/// Directory of a file store in which skills are searched for.
#[derive(Clone)]
pub struct SkillRoot {
    store: Arc<dyn FileStore>,
    directory: StorePath,
    /// Name of the directory, if it is known.
    name: Option<String>,
}

/// Skills that were discovered.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Discovery {
    /// Skills, in the order of the roots and then bytewise by path.
    pub skills: Vec<Arc<FileSkill>>,
    /// Candidates that are invalid or could not be read.
    pub skipped: Vec<SkippedEntry>,
}

/// Directory that was skipped, as a whole or in part.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SkippedEntry {
    /// Index of the root.
    pub root: usize,
    /// Path of the directory in its store.
    pub directory: StorePath,
    /// Reason for skipping it.
    pub reason: SkipReason,
    /// True if only a part of the directory was skipped: it is a skill, or contains skills.
    pub is_partial: bool,
}

/// Reason for skipping a directory.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// The skill is invalid.
    #[error(transparent)]
    Invalid(#[from] InvalidSkill),
    /// An earlier skill has the same name.
    #[error("there is a skill `{name}` before it, in `{earlier}`")]
    Duplicate {
        /// Name of both skills.
        name: String,
        /// Directory of the earlier skill.
        earlier: String,
    },
    /// The store cannot read the file or directory. The message contains no paths of the host.
    #[error("it cannot be read: {0}")]
    Unreadable(Arc<FileError>),
    /// A limit was exceeded, so a part was not searched.
    #[error("there are more than {count_max} {what}; the rest is left out")]
    TooMany {
        /// Things that there are too many of, such as `skills`.
        what: &'static str,
        /// Limit that was exceeded.
        count_max: usize,
    },
}

impl SkillRoot {
    /// Creates a root at the root of `store`, which has no name. Without a name
    /// ([`named`](Self::named)) it cannot be a skill itself.
    pub fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store, directory: StorePath::ROOT, name: None }
    }

    /// Creates a root at a directory of `store`.
    pub fn in_directory(store: Arc<dyn FileStore>, directory: StorePath) -> Self {
        let name = (!directory.is_root()).then(|| directory.name().to_owned());
        Self { store, directory, name }
    }

    /// Sets the name of the directory. A skill in the root itself must have this name (`SKILL-2`).
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Searches for skills under `roots`. Scripts with one of `extensions` can be run. Nothing that the
/// search meets is an error (`SKILL-6`).
pub async fn discover(
    roots: &[SkillRoot],
    extensions: &[String],
    limits: &SkillLimits,
) -> Discovery {
    let mut search =
        Search { extensions, limits, found: Discovery::default(), known: HashMap::new() };
    for (number, root) in roots.iter().enumerate() {
        search.root(number, root).await;
    }
    search.found
}

struct Search<'a> {
    extensions: &'a [String],
    limits: &'a SkillLimits,
    found: Discovery,
    /// Directory of each skill that was found, by its name in lower case.
    known: HashMap<String, String>,
}

impl Search<'_> {
    async fn root(&mut self, number: usize, root: &SkillRoot) {
        let mut candidates = self.candidates(number, root).await;
        candidates.sort_unstable();
        for directory in candidates {
            if self.found.skills.len() >= self.limits.skills_max {
                let reason =
                    SkipReason::TooMany { what: "skills", count_max: self.limits.skills_max };
                self.skip(number, directory, reason, true);
                return;
            }
            if let Err(reason) = self.skill(number, root, &directory).await {
                self.skip(number, directory, reason, false);
            }
        }
    }

    /// Returns the directories with a `SKILL.md`. Directories in a skill are not searched.
    async fn candidates(&mut self, number: usize, root: &SkillRoot) -> Vec<StorePath> {
        let (mut candidates, mut looked_at) = (Vec::new(), 0_usize);
        let mut waiting = vec![(root.directory.clone(), 0)];
        while let Some((directory, depth)) = waiting.pop() {
            looked_at = looked_at.saturating_add(1);
            let listing = match root.store.list(&directory, Scope::Children).await {
                Ok(listing) => listing,
                Err(error) => {
                    self.skip(number, directory, SkipReason::Unreadable(Arc::new(error)), false);
                    continue;
                }
            };
            let is_skill = listing
                .entries
                .iter()
                .any(|entry| entry.kind == EntryKind::File && entry.name == SKILL_FILE);
            if is_skill {
                candidates.push(directory);
                continue;
            }
            if depth == DEPTH_MAX {
                continue;
            }
            let room =
                self.limits.directories_max.saturating_sub(looked_at.saturating_add(waiting.len()));
            let directories =
                listing.entries.iter().filter(|entry| entry.kind == EntryKind::Directory);
            let children: Vec<_> = directories
                .filter_map(|entry| directory.child(&entry.name).ok())
                .take(room + 1)
                .collect();
            if listing.is_truncated || children.len() > room {
                let count_max = self.limits.directories_max;
                let reason = SkipReason::TooMany { what: "directories", count_max };
                self.skip(number, directory, reason, true);
            }
            // The last one is searched first, so reverse the order: a limit leaves out the last
            // names.
            waiting.extend(children.into_iter().take(room).map(|child| (child, depth + 1)).rev());
        }
        candidates
    }

    async fn skill(
        &mut self,
        number: usize,
        root: &SkillRoot,
        directory: &StorePath,
    ) -> Result<(), SkipReason> {
        let name = if *directory == root.directory {
            root.name.clone().unwrap_or_default()
        } else {
            directory.name().to_owned()
        };
        let folder = Folder::new(&root.store, directory, name);
        let front = match folder.front_matter(self.limits).await {
            Ok(read) => read.front,
            Err(SkillFileError::Invalid(invalid)) => return Err(invalid.into()),
            Err(SkillFileError::Failed(error)) => {
                return Err(SkipReason::Unreadable(Arc::new(error)));
            }
        };
        let key = front.name.to_lowercase();
        if let Some(earlier) = self.known.get(&key) {
            return Err(SkipReason::Duplicate { name: front.name, earlier: earlier.clone() });
        }
        let (skill, partly) =
            FileSkill::find(number, folder, front, self.extensions, self.limits).await;
        self.known.insert(key, directory.to_string());
        for reason in partly {
            self.skip(number, directory.clone(), reason, true);
        }
        self.found.skills.push(Arc::new(skill));
        Ok(())
    }

    fn skip(&mut self, root: usize, directory: StorePath, reason: SkipReason, is_partial: bool) {
        tracing::warn!(root, directory = directory.as_str(), %reason, is_partial, "a skill was passed over");
        self.found.skipped.push(SkippedEntry { root, directory, reason, is_partial });
    }
}

impl fmt::Debug for SkillRoot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SkillRoot")
            .field("directory", &self.directory)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
