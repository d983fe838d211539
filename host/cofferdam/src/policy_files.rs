//! Files that control what plugins may do, and that no plugin may write.
//!
//! A plugin that can write a configuration, a lock file or a manifest could grant itself anything.
//! So a writable store must contain none of these files, and no path that leads to one: the
//! directory in which it is named, the directories of symbolic links on the way, and the directory
//! in which it is.

use std::path::{Path, PathBuf};

use cofferdam_engine::Mount;
use cofferdam_files::FileStore;
use cofferdam_tool::FileAccess;

/// Maximum number of symbolic links to follow from a name to its file.
const LINKS_MAX: usize = 40;
/// Extensions of files that take effect together with a policy file: the lock file of a
/// configuration, the manifest of a component.
const BESIDE: [&str; 2] = ["lock", "toml"];

/// A file that controls grants: its name, and every path that leads to it.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    named: PathBuf,
    paths: Vec<PathBuf>,
}

/// Files of a server that a store of a served agent must not contain.
#[derive(Debug, Clone, Default)]
pub(crate) struct ServedFiles {
    /// Files that control grants.
    pub(crate) policy_files: Vec<PathBuf>,
    /// Directories that tools or clients can read.
    pub(crate) readable: Vec<PathBuf>,
}

impl ServedFiles {
    /// Returns whether tools or clients can read something in a store.
    pub(crate) fn can_read(&self, store: &dyn FileStore) -> bool {
        let Some(Ok(root)) = store.root_ambient().map(Path::canonicalize) else { return false };
        let mut readable = self.readable.iter().filter_map(|path| path.canonicalize().ok());
        readable.any(|path| root.starts_with(&path) || path.starts_with(&root))
    }
}

/// Error returned for a writable store that contains a file that controls grants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{store} holds {}, which decides what a plugin may do; use another directory, or this one for \
     reading only",
    .file.display()
)]
pub struct PolicyFileWritable {
    /// Description of the store, for the operator.
    pub store: String,
    /// Path of the file.
    pub file: PathBuf,
}

/// Locates `files`. A file that does not exist is ignored, except `created_later`, which may be
/// created at any time.
#[must_use]
pub fn locate(files: &[PathBuf], created_later: Option<&Path>) -> Vec<PolicyFile> {
    let located = |named: &PathBuf| {
        let mut paths = paths_to(named);
        if created_later == Some(named) {
            paths.extend(future_paths(named));
        }
        if paths.is_empty() {
            return None;
        }
        paths.extend(BESIDE.iter().flat_map(|ending| paths_to(&named.with_extension(ending))));
        Some(PolicyFile { named: named.clone(), paths })
    };
    files.iter().filter_map(located).collect()
}

/// Checks that no writable mount contains one of `files`.
///
/// # Errors
/// Returns [`PolicyFileWritable`] for the first mount that does.
pub fn check_mounts(mounts: &[Mount], files: &[PolicyFile]) -> Result<(), PolicyFileWritable> {
    mounts.iter().try_for_each(|mount| {
        check_store(&format!("the mount `{}`", mount.name), &*mount.store, mount.access, files)
    })
}

/// Checks that a store is read-only or contains none of `files`. `name` describes the store to the
/// operator.
///
/// # Errors
/// Returns [`PolicyFileWritable`] if it is writable and contains one.
pub fn check_store(
    name: &str,
    store: &dyn FileStore,
    access: FileAccess,
    files: &[PolicyFile],
) -> Result<(), PolicyFileWritable> {
    if access == FileAccess::ReadOnly {
        return Ok(());
    }
    let Some(Ok(root)) = store.root_ambient().map(Path::canonicalize) else { return Ok(()) };
    match files.iter().find(|file| file.paths.iter().any(|path| path.starts_with(&root))) {
        None => Ok(()),
        Some(file) => Err(PolicyFileWritable { store: name.to_owned(), file: file.named.clone() }),
    }
}

/// Returns the paths that lead to one file, each with its directory canonicalized.
fn paths_to(named: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = named.canonicalize().ok().into_iter().collect();
    let mut next = named.to_owned();
    for _ in 0..LINKS_MAX {
        let (Some(parent), Some(name)) = (next.parent(), next.file_name()) else { break };
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        let Ok(parent) = parent.canonicalize() else { break };
        let path = parent.join(name);
        if path.symlink_metadata().is_err() {
            break;
        }
        let target = std::fs::read_link(&path);
        paths.push(path);
        let Ok(target) = target else { break };
        next = parent.join(target);
    }
    paths
}

/// Returns the paths at which a file may be created: its name, and the same path below its
/// canonicalized nearest existing ancestor.
fn future_paths(named: &Path) -> impl Iterator<Item = PathBuf> {
    let real = named.ancestors().skip(1).find_map(|above| {
        let below = named.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(below))
    });
    [Some(named.to_owned()), real].into_iter().flatten()
}
