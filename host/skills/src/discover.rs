//! Discovery of skills under roots (`SKILL-6`, `SKILL-7`).

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use cofferdam_files::{EntryKind, FileError, FileStore, Scope, StorePath};

use super::file::{FileSkill, Folder, Read};
use super::{InvalidSkill, SKILL_FILE, SkillLimits};

/// Maximum depth of a skill under its root.
const DEPTH_MAX: u32 = 2;

/// Root of skills: a directory of a file store.
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
    /// The skills, in the order of the roots and then bytewise by path.
    pub skills: Vec<Arc<FileSkill>>,
    /// Candidates that are no skills, or that could not be read.
    pub skipped: Vec<SkippedEntry>,
}

/// Something that was passed over.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SkippedEntry {
    /// Index of the root.
    pub root: usize,
    /// Directory in its store.
    pub directory: StorePath,
    /// Reason.
    pub reason: SkipReason,
    /// True if the directory is a skill all the same, or holds some: only a part of it was passed
    /// over.
    pub is_partial: bool,
}

/// Reason why a candidate was skipped.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum SkipReason {
    /// It breaks a rule.
    #[error(transparent)]
    Invalid(#[from] InvalidSkill),
    /// There is a skill of that name before it.
    #[error("there is a skill `{name}` before it, in `{kept}`")]
    Duplicate {
        /// The name.
        name: String,
        /// Location of the one that is used.
        kept: String,
    },
    /// The store does not give the file or the directory out. The text holds nothing of the host.
    #[error("it cannot be read: {0}")]
    Unreadable(Arc<FileError>),
    /// Some of it was not looked at.
    #[error("there are more than {count_max} {what}; the rest is left out")]
    TooMany {
        /// Kind of the excess.
        what: &'static str,
        /// The limit.
        count_max: usize,
    },
}

impl SkillRoot {
    /// The root of `store`. Its own name is not known: it is not a skill itself unless it is
    /// [`named`](Self::named).
    pub fn new(store: Arc<dyn FileStore>) -> Self {
        Self { store, directory: StorePath::ROOT, name: None }
    }

    /// A directory of `store`.
    pub fn in_directory(store: Arc<dyn FileStore>, directory: StorePath) -> Self {
        let name = (!directory.is_root()).then(|| directory.name().to_owned());
        Self { store, directory, name }
    }

    /// Says what the directory is called, which is what a skill in the root itself has to be called
    /// (`SKILL-2`).
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }
}

/// Looks for the skills under `roots`, of which scripts with one of `extensions` can be run.
/// Nothing that is found or not found is an error (`SKILL-6`).
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
    /// The names that are taken, in lower case, and where.
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

    /// The directories with a `SKILL.md`, none of them inside of another one.
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
            // The last one is looked at first: what is left out is at the end.
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
            Err(Read::Invalid(invalid)) => return Err(invalid.into()),
            Err(Read::Failed(error)) => return Err(SkipReason::Unreadable(Arc::new(error))),
        };
        let key = front.name.to_lowercase();
        if let Some(kept) = self.known.get(&key) {
            return Err(SkipReason::Duplicate { name: front.name, kept: kept.clone() });
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
