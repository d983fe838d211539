//! Finds and opens the repository that a call names.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use cofferdam_sdk::ToolFailure;

use crate::commit::Commit;
use crate::error::Error;
use crate::id::Id;
use crate::objects::{Kind, Objects};
use crate::tree::{self, EntryKind};

/// Opened repository.
pub(crate) struct Repository {
    pub(crate) folder: PathBuf,
    pub(crate) objects: Objects,
    /// Commits whose parents a shallow clone lacks.
    shallow: HashSet<Id>,
}

impl Repository {
    /// Opens the repository at `path`, or around it.
    pub(crate) fn open(path: &str) -> Result<Self, ToolFailure> {
        let folder = locate(Path::new(path))?;
        check_format(&folder)?;
        let objects = Objects::open(&folder.join("objects"))?;
        let shallow = fs::read_to_string(folder.join("shallow")).unwrap_or_default();
        let shallow = shallow.lines().filter_map(|line| Id::from_hex(line.as_bytes())).collect();
        Ok(Self { folder, objects, shallow })
    }

    /// Reads a commit. The parents that a shallow clone lacks are left out.
    pub(crate) fn commit(&self, id: &Id) -> Result<Commit, Error> {
        let mut commit = Commit::parse(*id, &self.objects.read_as(id, Kind::Commit)?)?;
        if self.shallow.contains(id) {
            commit.parents.clear();
        }
        Ok(commit)
    }

    pub(crate) fn is_shallow(&self) -> bool {
        !self.shallow.is_empty()
    }

    /// Returns the file at a path of a commit.
    pub(crate) fn file(&self, commit: &Commit, path: &str) -> Result<Id, ToolFailure> {
        match tree::find(&self.objects, commit.tree, path)? {
            Some(entry) if entry.kind == EntryKind::File => Ok(entry.id),
            Some(entry) => {
                let kind = match entry.kind {
                    EntryKind::Link => "a symbolic link",
                    EntryKind::Submodule => "a submodule, that is, another repository",
                    _ => "a directory",
                };
                let failure = ToolFailure::new(format!("`{path}` is {kind}, expected a file"));
                let suggestion = if entry.kind == EntryKind::Directory {
                    self.listing(commit, path)?
                } else {
                    "pass the path of a file".to_owned()
                };
                Err(failure.suggestion(suggestion).permanent())
            }
            None => Err(self.no_path(commit, path)?),
        }
    }

    /// Returns the failure for a path that a commit does not have.
    pub(crate) fn no_path(&self, commit: &Commit, path: &str) -> Result<ToolFailure, Error> {
        let message = format!("there is no `{path}` in {}", commit.id.short());
        Ok(ToolFailure::new(message).suggestion(self.listing(commit, path)?).permanent())
    }

    /// Lists the deepest directory on the way to `path`.
    fn listing(&self, commit: &Commit, path: &str) -> Result<String, Error> {
        const NAMES_MAX: usize = 20;
        let mut directory = path;
        let tree = loop {
            match tree::find(&self.objects, commit.tree, directory)? {
                Some(entry) if entry.kind == EntryKind::Directory => break entry.id,
                _ => directory = directory.rsplit_once('/').map_or("", |(parent, _)| parent),
            }
        };
        let mut names = tree::names(&self.objects, &tree)?;
        let more = if names.len() > NAMES_MAX { " and more" } else { "" };
        names.truncate(NAMES_MAX);
        let folder =
            if directory.is_empty() { "the root".to_owned() } else { format!("`{directory}`") };
        Ok(format!("{folder} contains `{}`{more}", names.join("`, `")))
    }
}

/// Returns the folder with the objects: `.git` in `path` or above it, or `path` itself.
fn locate(path: &Path) -> Result<PathBuf, ToolFailure> {
    if !path.has_root() {
        return Err(ToolFailure::new(format!("`{}` is a relative path", path.display()))
            .suggestion("pass a path that begins with the name of a mount, such as `/data`")
            .permanent());
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(ToolFailure::new(format!("there is no `{}`", path.display()))
                .suggestion(
                    "pass a path that begins with the name of a mount, such as `/data/project`",
                )
                .permanent());
        }
        Err(error) => {
            return Err(ToolFailure::new(format!(
                "`{}` cannot be opened: {error}",
                path.display()
            )));
        }
        Ok(_) => {}
    }
    for folder in path.ancestors() {
        let dot_git = folder.join(".git");
        match fs::metadata(&dot_git) {
            Ok(metadata) if metadata.is_dir() => return Ok(dot_git),
            Ok(_) => return Err(linked(&dot_git)),
            Err(_) if is_repository(folder) => return Ok(folder.to_owned()),
            Err(_) => {}
        }
    }
    let found = repositories(path);
    let suggestion = if found.is_empty() {
        "mount the directory that contains `.git`, or a bare repository".to_owned()
    } else {
        format!("pass one of these repositories: `{}`", found.join("`, `"))
    };
    Err(ToolFailure::new(format!("`{}` is not in a git repository", path.display()))
        .suggestion(suggestion)
        .permanent())
}

fn is_repository(folder: &Path) -> bool {
    folder.join("HEAD").is_file()
        && (folder.join("objects").is_dir() || folder.join("commondir").is_file())
}

/// Returns repositories directly in a directory.
fn repositories(path: &Path) -> Vec<String> {
    const FOUND_MAX: usize = 10;
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut found: Vec<_> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.join(".git").is_dir() || is_repository(path))
        .map(|path| path.display().to_string())
        .take(FOUND_MAX)
        .collect();
    found.sort();
    found
}

/// Returns the failure for a `.git` that is a file: the repository itself is elsewhere.
fn linked(file: &Path) -> ToolFailure {
    let content = fs::read_to_string(file).unwrap_or_default();
    let target = content.trim().strip_prefix("gitdir:").map(str::trim).unwrap_or("elsewhere");
    let message = format!(
        "`{}` is a linked worktree or a submodule, whose repository is at `{target}`",
        file.parent().unwrap_or(file).display()
    );
    let main = target.split("/worktrees/").next().unwrap_or(target);
    ToolFailure::new(message)
        .suggestion(format!("ask for `{main}` to be mounted, and pass its mount as `repository`"))
        .permanent()
}

/// Refuses formats that this plugin does not read.
fn check_format(folder: &Path) -> Result<(), ToolFailure> {
    if let Ok(common) = fs::read_to_string(folder.join("commondir")) {
        return Err(ToolFailure::new(format!(
            "`{}` is the administrative directory of a linked worktree",
            folder.display()
        ))
        .suggestion(format!("pass the repository itself: `{}` from there", common.trim()))
        .permanent());
    }
    let config = fs::read_to_string(folder.join("config")).unwrap_or_default();
    for line in config.lines() {
        let Some((key, value)) = line.split_once('=') else { continue };
        let (key, value) = (key.trim().to_ascii_lowercase(), value.trim().to_ascii_lowercase());
        let found = match key.as_str() {
            "objectformat" if value != "sha1" => "object names of another kind than SHA-1",
            "refstorage" if value != "files" => "references in another form than files",
            _ => continue,
        };
        return Err(ToolFailure::new(format!("the repository has {found} (`{value}`)"))
            .suggestion("clone it into a repository of the default format")
            .permanent());
    }
    Ok(())
}
