//! Files that control what plugins may do, and that no plugin may write.
//!
//! A plugin that can write a configuration, a lock file or a manifest could grant itself anything.
//! So a writable store must contain none of these files, and no directory on the way to one: those
//! that are named, and those in which a symbolic link on the way is or leads to. The same holds for
//! a file that does not exist yet, because a plugin could create it.

use std::collections::{BTreeSet, HashMap};
use std::path::{Component, Path, PathBuf};

use cofferdam_engine::Mount;
use cofferdam_files::FileStore;
use cofferdam_tool::FileAccess;

/// Maximum number of symbolic links to follow from a name to its file.
const LINKS_MAX: usize = 40;
/// Extensions of files that take effect together with a policy file: the lock file of a
/// configuration, the manifest of a component.
const BESIDE: [&str; 2] = ["lock", "toml"];

/// A file that controls grants: its name, and the directories that lead to it.
#[derive(Debug, Clone)]
pub struct PolicyFile {
    named: PathBuf,
    /// Canonical paths. With the file or directory itself, if it exists.
    leads: Vec<PathBuf>,
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

/// Locates `files`, which need not exist.
#[must_use]
pub fn locate(files: &[PathBuf]) -> Vec<PolicyFile> {
    // Many files share few directories.
    let mut canonical = HashMap::new();
    let located = |named: &PathBuf| {
        let beside = BESIDE.iter().map(|ending| named.with_extension(ending));
        let leads = std::iter::once(named.clone()).chain(beside).flat_map(|path| leads_to(&path));
        let leads: BTreeSet<_> = leads.collect();
        let leads = leads.into_iter().filter_map(|path| {
            let known = canonical.entry(path);
            known.or_insert_with_key(|path: &PathBuf| path.canonicalize().ok()).clone()
        });
        PolicyFile { named: named.clone(), leads: leads.collect() }
    };
    files.iter().map(located).collect()
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
pub(crate) fn check_store(
    name: &str,
    store: &dyn FileStore,
    access: FileAccess,
    files: &[PolicyFile],
) -> Result<(), PolicyFileWritable> {
    if access == FileAccess::ReadOnly {
        return Ok(());
    }
    let Some(Ok(root)) = store.root_ambient().map(Path::canonicalize) else { return Ok(()) };
    match files.iter().find(|file| file.leads.iter().any(|path| path.starts_with(&root))) {
        None => Ok(()),
        Some(file) => Err(PolicyFileWritable { store: name.to_owned(), file: file.named.clone() }),
    }
}

/// Returns the directories in which a name on the way to a file is looked up, and the file itself,
/// with all links resolved. Some may not exist.
fn leads_to(named: &Path) -> Vec<PathBuf> {
    let Ok(named) = std::path::absolute(named) else { return Vec::new() };
    let owned = |path: &Path| path.components().rev().map(component_path).collect::<Vec<_>>();
    let (mut leads, mut at, mut links) = (Vec::new(), PathBuf::new(), 0);
    let mut pending = owned(&named);
    while let Some(part) = pending.pop() {
        match Path::new(&part).components().next() {
            Some(Component::ParentDir) => {
                at.pop();
            }
            Some(Component::Normal(name)) => {
                leads.push(at.clone());
                let path = at.join(name);
                match path.read_link() {
                    Ok(target) if links < LINKS_MAX => {
                        links += 1;
                        pending.extend(owned(&target));
                    }
                    _ => at = path,
                }
            }
            // A root replaces the path.
            _ => at.push(&part),
        }
    }
    leads.push(at);
    leads
}

fn component_path(component: Component<'_>) -> PathBuf {
    component.as_os_str().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn every_directory_on_the_way_is_found() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        for directory in ["a/b", "c", "d"] {
            std::fs::create_dir_all(root.join(directory)).unwrap();
        }
        // A name in `a/b` leads to a name in `c`, which leads to `d`.
        symlink("../../c/second", root.join("a/b/first")).unwrap();
        symlink(root.join("d"), root.join("c/second")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let leads = |path: &str| {
            let inside = |path: PathBuf| Some(path.strip_prefix(&root).ok()?.to_owned());
            let found = leads_to(&root.join(path)).into_iter();
            let found = found.filter_map(|path| path.canonicalize().ok()).filter_map(inside);
            found.map(|path| path.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(leads("c/missing/x.wasm"), ["", "c"]);
        assert_eq!(leads("a/b/first/x.wasm"), ["", "a", "a/b", "", "c", "", "d"]);
        assert_eq!(leads("a/../c/x.wasm"), ["", "", "c"]);
        assert_eq!(leads("d"), ["", "d"]);
        assert!(leads("loop/x.wasm").iter().all(String::is_empty));
    }
}
