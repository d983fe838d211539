//! Skills in a directory of a file store (`SKILL-8` to `SKILL-10`).

use std::fmt;
use std::sync::Arc;

use cofferdam_files::{EntryKind, FileError, FileStore, ReadOnly, Scope, StorePath, Subtree};

use super::discover::SkipReason;
use super::{FrontMatter, InvalidSkill, SKILL_FILE, ScriptFile, SkillLimits};

/// Extensions of resources (`SKILL-8`).
const RESOURCE_EXTENSIONS: [&str; 7] = ["md", "json", "yaml", "yml", "csv", "xml", "txt"];
/// Extensions of script files, with or without a runner (`SKILL-9`).
const SCRIPT_EXTENSIONS: [&str; 11] =
    ["wasm", "py", "js", "ts", "sh", "ps1", "bat", "cmd", "rb", "pl", "exe"];

/// Skill in a directory of a file store. The lists of its files are those at the time of discovery;
/// the files themselves are read at each use.
pub struct FileSkill {
    /// Index of the root.
    root: usize,
    folder: Folder,
    front: FrontMatter,
    /// Resources. All three lists are sorted bytewise by name.
    resources: Vec<NamedFile>,
    scripts: Vec<NamedFile>,
    without_runner: Vec<NamedFile>,
    skill_bytes_max: u64,
    resource_bytes_max: u64,
}

/// File and the name by which a model refers to it.
struct NamedFile {
    name: String,
    path: StorePath,
}

/// Directory of a skill, read-only.
pub(super) struct Folder {
    store: Arc<dyn FileStore>,
    /// Path of the directory in its store.
    directory: StorePath,
    /// Name of the directory.
    name: String,
}

/// Content of a `SKILL.md`.
pub(super) struct SkillFile {
    pub(super) front: FrontMatter,
    pub(super) text: String,
}

/// Reason why a `SKILL.md` could not be read.
pub(super) enum SkillFileError {
    Invalid(InvalidSkill),
    Failed(FileError),
}

impl Folder {
    pub(super) fn new(store: &Arc<dyn FileStore>, directory: &StorePath, name: String) -> Self {
        let below: Arc<dyn FileStore> = if directory.is_root() {
            Arc::clone(store)
        } else {
            Arc::new(Subtree::new(Arc::clone(store), directory.clone()))
        };
        Self { store: Arc::new(ReadOnly::new(below)), directory: directory.clone(), name }
    }

    /// Reads the current `SKILL.md`.
    pub(super) async fn front_matter(
        &self,
        limits: &SkillLimits,
    ) -> Result<SkillFile, SkillFileError> {
        self.skill_file(limits.skill_bytes_max).await
    }

    async fn skill_file(&self, bytes_max: u64) -> Result<SkillFile, SkillFileError> {
        let path = StorePath::ROOT
            .child(SKILL_FILE)
            .map_err(|error| SkillFileError::Failed(error.into()))?;
        let bytes = self.store.read(&path, bytes_max).await.map_err(SkillFileError::Failed)?;
        let text =
            String::from_utf8(bytes).map_err(|_| SkillFileError::Invalid(InvalidSkill::NotText))?;
        let front = FrontMatter::parse(&text, &self.name).map_err(SkillFileError::Invalid)?;
        Ok(SkillFile { front, text })
    }
}

/// Files of a skill by kind, and reasons for those that were skipped.
#[derive(Default)]
struct FilesByKind {
    resources: Vec<NamedFile>,
    scripts: Vec<NamedFile>,
    without_runner: Vec<NamedFile>,
    partly: Vec<SkipReason>,
}

impl FilesByKind {
    fn add(&mut self, path: StorePath, extensions: &[String], limits: &SkillLimits) {
        if path.name() == SKILL_FILE {
            return;
        }
        // A name whose only dot is its first character has no extension.
        let Some((stem, extension)) = path.name().rsplit_once('.') else { return };
        if stem.is_empty() {
            return;
        }
        let extension = extension.to_ascii_lowercase();
        let scripts = self.scripts.len().saturating_add(self.without_runner.len());
        let resources = self.resources.len();
        let (list, count, count_max, what) = if extensions.contains(&extension) {
            (&mut self.scripts, scripts, limits.scripts_max, "scripts")
        } else if SCRIPT_EXTENSIONS.contains(&extension.as_str()) {
            (&mut self.without_runner, scripts, limits.scripts_max, "scripts")
        } else if RESOURCE_EXTENSIONS.contains(&extension.as_str()) {
            (&mut self.resources, resources, limits.resources_max, "resources")
        } else {
            return;
        };
        if count < count_max {
            list.push(NamedFile { name: path.to_string(), path });
        } else {
            self.too_many(what, count_max);
        }
    }

    fn too_many(&mut self, what: &'static str, count_max: usize) {
        let is_reported = |reason: &SkipReason| matches!(reason, SkipReason::TooMany { what: known, .. } if *known == what);
        if !self.partly.iter().any(is_reported) {
            self.partly.push(SkipReason::TooMany { what, count_max });
        }
    }

    fn sort(&mut self) {
        for list in [&mut self.resources, &mut self.scripts, &mut self.without_runner] {
            list.sort_unstable_by(|left, right| left.name.cmp(&right.name));
        }
    }
}

impl FileSkill {
    /// Creates the skill in `folder` from its current files. Also returns the reasons for files
    /// that were skipped.
    pub(super) async fn find(
        root: usize,
        folder: Folder,
        front: FrontMatter,
        extensions: &[String],
        limits: &SkillLimits,
    ) -> (Self, Vec<SkipReason>) {
        let mut files = FilesByKind::default();
        let mut directories = vec![StorePath::ROOT];
        let mut is_top = true;
        while let Some(directory) = directories.pop() {
            match folder.store.list(&directory, Scope::Children).await {
                Ok(listing) => {
                    if listing.is_truncated {
                        files.too_many("files", limits.resources_max);
                    }
                    for entry in listing.entries {
                        let Ok(path) = directory.child(&entry.name) else { continue };
                        match entry.kind {
                            EntryKind::File => files.add(path, extensions, limits),
                            EntryKind::Directory if is_top => directories.push(path),
                            EntryKind::Directory => {}
                        }
                    }
                }
                Err(error) => files.partly.push(SkipReason::Unreadable(Arc::new(error))),
            }
            if is_top {
                is_top = false;
                // Directories are taken from the end, so this is the order of names. A limit leaves
                // out the last names.
                directories.sort_unstable_by(|left, right| right.cmp(left));
                if directories.len() > limits.directories_max {
                    files.too_many("directories", limits.directories_max);
                    directories.drain(..directories.len() - limits.directories_max);
                }
            }
        }
        files.sort();
        let FilesByKind { resources, scripts, without_runner, partly } = files;
        let SkillLimits { skill_bytes_max, resource_bytes_max, .. } = *limits;
        let skill = Self {
            root,
            folder,
            front,
            resources,
            scripts,
            without_runner,
            skill_bytes_max,
            resource_bytes_max,
        };
        (skill, partly)
    }

    /// Returns the front matter.
    #[must_use]
    pub fn front_matter(&self) -> &FrontMatter {
        &self.front
    }

    /// Returns the index of the root.
    #[must_use]
    pub fn root(&self) -> usize {
        self.root
    }

    /// Returns the directory in its store.
    #[must_use]
    pub fn directory(&self) -> &StorePath {
        &self.folder.directory
    }

    /// Returns the names of the resources (`SKILL-8`).
    pub fn resources(&self) -> impl ExactSizeIterator<Item = &str> {
        self.resources.iter().map(|named| named.name.as_str())
    }

    /// Returns the names of the scripts that can be run (`SKILL-9`).
    pub fn scripts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.scripts.iter().map(|named| named.name.as_str())
    }

    /// Returns the names of the script files without a runner (`SKILL-19`).
    pub fn scripts_without_runner(&self) -> impl ExactSizeIterator<Item = &str> {
        self.without_runner.iter().map(|named| named.name.as_str())
    }

    /// Reads the current `SKILL.md`. Returns `None` if it is unreadable, invalid or has another
    /// name.
    pub(super) async fn text(&self) -> Option<String> {
        let file = self.folder.skill_file(self.skill_bytes_max).await.ok()?;
        (file.front.name == self.front.name).then_some(file.text)
    }

    /// Reads a resource by its exact name.
    ///
    /// # Errors
    /// [`FileError::NotFound`] if there is no such resource, [`FileError::NotText`], and errors of
    /// the store, which opens no links (`SKILL-10`).
    pub async fn read_resource(&self, name: &str) -> Result<String, FileError> {
        match self.resources.iter().find(|named| named.name == name) {
            Some(resource) => self.read(resource).await,
            None => Err(FileError::NotFound),
        }
    }

    async fn read(&self, resource: &NamedFile) -> Result<String, FileError> {
        let bytes = self.folder.store.read(&resource.path, self.resource_bytes_max).await?;
        String::from_utf8(bytes).map_err(|_| FileError::not_text(&resource.path))
    }

    /// Returns a script for its runner.
    #[must_use]
    pub fn script(&self, name: &str) -> Option<ScriptFile> {
        let named = self.scripts.iter().find(|named| named.name == name)?;
        Some(ScriptFile {
            skill: self.front.name.clone(),
            name: named.name.clone(),
            path: named.path.clone(),
            folder: Arc::clone(&self.folder.store),
        })
    }
}

impl fmt::Debug for FileSkill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileSkill")
            .field("front", &self.front)
            .field("directory", &self.folder.directory)
            .finish_non_exhaustive()
    }
}
