//! Directories that the host writes to: cache, state and call log.
//!
//! A directory that does not exist is created when it is first used, so the nearest existing
//! directory above it is checked instead. A file without a name, which the system removes with its
//! handle, shows whether a directory can be written: permission bits do not say so for
//! administrators and read-only file systems.

use std::fs::File;
use std::path::{Path, PathBuf};

use cofferdam_engine::cache::{CacheError, check_ambient};
use cofferdam_engine::sys::{permissions, resources};
use cofferdam_record::{Log, RecordError};

use super::{CheckArea, MachineCheck};
use crate::config::ConfigFile;
use crate::{CacheDirectory, Result, directories, records, text};

/// Free space below which a note is made: the size of a cache after `cofferdam cache prune`.
const FREE_BYTES_MIN: u64 = 1 << 30;

/// Advice about a log directory that is a symbolic link.
const LINKED: &str = "calls are not recorded in it, because the log follows no symbolic link: name \
                      its target with `directory` in [records]";

/// Checks all directories. The call log can be in one that the configuration names.
pub(super) fn check(cache: &CacheDirectory, config: Option<&ConfigFile>) -> [MachineCheck; 3] {
    [
        check_cache(cache),
        check_private(
            "state",
            directories::state(),
            "remembered grants, tokens and trusted configurations are not stored without it: make \
             it writable, or set XDG_STATE_HOME",
        ),
        check_log(records::directory_ambient(config)),
    ]
}

/// Checks the directory of the call log. The log refuses some directories that others may be, such
/// as a symbolic link.
fn check_log(path: Result<PathBuf>) -> MachineCheck {
    let remedy = "calls are not recorded without it: make it writable, or name another one with \
                  `directory` in [records]";
    let existing = path.as_deref().ok().filter(|path| path.symlink_metadata().is_ok());
    match existing.and_then(|path| Log::open(path).err()) {
        // Checked like other directories, with a note about the same remedy.
        None | Some(RecordError::OpenToOthers { .. }) => check_private("call log", path, remedy),
        Some(refused) => {
            let is_link = existing.is_some_and(Path::is_symlink);
            let remedy = if is_link { LINKED } else { remedy };
            MachineCheck::note(CheckArea::Directories, "call log", refused.to_string(), remedy)
        }
    }
}

fn check_cache(cache: &CacheDirectory) -> MachineCheck {
    let (area, name) = (CheckArea::Directories, "cache");
    let other = "pass `--cache-dir DIR` for another cache, or `--no-cache` for none";
    let path = match cache.path() {
        Ok(Some(path)) => path,
        Ok(None) => {
            let found = "off; every process compiles its plugins";
            return MachineCheck::note(area, name, found, "leave out `--no-cache` to use it");
        }
        Err(error) => return MachineCheck::problem(area, name, format!("{error:#}"), other),
    };
    let is_there = path.symlink_metadata().is_ok();
    let refused = is_there.then(|| check_ambient(&path).err()).flatten();
    if let Some(CacheError::Refused { part, path, reason, remedy }) = refused {
        let found = format!("the {part} {} is {reason}", path.display());
        return MachineCheck::problem(area, name, found, format!("{remedy}; or {other}"));
    }
    match Space::of(&path) {
        Ok(space) => space.check(name),
        Err(found) => MachineCheck::problem(area, name, found, other),
    }
}

/// Checks a directory that only its user may access. `remedy` is the advice if it cannot be
/// written.
fn check_private(name: &str, path: Result<PathBuf>, remedy: &str) -> MachineCheck {
    let area = CheckArea::Directories;
    let path = match path {
        Ok(path) => path,
        Err(error) => return MachineCheck::note(area, name, format!("{error:#}"), remedy),
    };
    let shown = path.display();
    // On Windows, directories cannot be opened like this, and the access list is not checked.
    let is_exposed = File::open(&path)
        .is_ok_and(|file| permissions::is_private(&file).is_ok_and(|is_private| !is_private));
    match Space::of(&path) {
        Ok(_) if is_exposed => MachineCheck::note(
            area,
            name,
            format!("{shown} is open to other users"),
            format!("run `chmod 700 '{shown}'`"),
        ),
        Ok(space) => space.check(name),
        Err(found) => MachineCheck::note(area, name, found, remedy),
    }
}

/// Directory that can be written or created, with the free space for it.
struct Space {
    path: PathBuf,
    exists: bool,
    free_bytes: Option<u64>,
}

impl Space {
    /// Returns a message if the directory cannot be written or created.
    fn of(path: &Path) -> Result<Self, String> {
        let shown = path.display();
        let unknown = |error: std::io::Error| format!("{shown} cannot be located: {error}");
        let absolute = std::path::absolute(path).map_err(unknown)?;
        let is_there = |path: &&Path| path.symlink_metadata().is_ok();
        let nearest = absolute.ancestors().find(is_there).unwrap_or(&absolute);
        let exists = nearest == absolute;
        tempfile::tempfile_in(nearest).map_err(|error| match exists {
            true => format!("{shown} cannot be written: {}", error.kind()),
            false => {
                let nearest = nearest.display();
                format!("{shown} cannot be created in {nearest}: {}", error.kind())
            }
        })?;
        let free_bytes = resources::free_bytes_ambient(nearest);
        Ok(Self { path: path.to_owned(), exists, free_bytes })
    }

    fn check(&self, name: &str) -> MachineCheck {
        let mut found = self.path.display().to_string();
        if !self.exists {
            found.push_str(", created when it is needed");
        }
        if let Some(bytes) = self.free_bytes {
            found = format!("{found}, {} free", text::bytes(bytes));
        }
        match self.free_bytes {
            Some(bytes) if bytes < FREE_BYTES_MIN => MachineCheck::note(
                CheckArea::Directories,
                name,
                found,
                "free space on this file system; `cofferdam cache prune` and `cofferdam log \
                 prune` remove old files",
            ),
            _ => MachineCheck::ok(CheckArea::Directories, name, found),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::CheckState;
    use super::*;

    #[test]
    fn a_directory_that_is_missing_is_not_created() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let check = check_cache(&CacheDirectory::At(path.clone()));
        assert!(check.found.starts_with(&format!("{}, created when", path.display())), "{check:?}");
        assert_ne!(check.state, CheckState::Problem);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_cache_that_cannot_be_written_is_a_problem_and_a_log_is_a_note() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "").unwrap();
        for path in [file.join("below"), PathBuf::from("/proc/none")] {
            let check = check_cache(&CacheDirectory::At(path.clone()));
            assert_eq!(check.state, CheckState::Problem, "{check:?}");
            assert!(check.found.contains(" cannot be created in "), "{check:?}");
            let check = check_private("call log", Ok(path), "remedy");
            assert_eq!((check.state, check.advice.as_deref()), (CheckState::Note, Some("remedy")));
        }
    }

    #[test]
    fn a_log_directory_that_the_log_refuses_is_reported_in_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        let check = check_log(Ok(link.clone()));
        assert_eq!((check.state, check.advice.as_deref()), (CheckState::Note, Some(LINKED)));
        assert_eq!(check.found, Log::open(&link).unwrap_err().to_string());
        directories::make_private(&folder.path().join("log")).unwrap();
        assert_eq!(check_log(Ok(folder.path().join("log"))).state, CheckState::Ok);
    }

    #[test]
    fn a_directory_that_others_can_read_is_reported_with_the_command_that_closes_it() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let open = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).unwrap();
        let cache = check_cache(&CacheDirectory::At(folder.path().to_owned()));
        assert_eq!(cache.state, CheckState::Problem, "{cache:?}");
        assert!(cache.found.ends_with("is open to others (mode 755)"), "{cache:?}");
        let state = check_private("state", Ok(folder.path().to_owned()), "remedy");
        assert_eq!(state.state, CheckState::Note, "{state:?}");
        for check in [cache, state] {
            let advice = check.advice.unwrap();
            assert!(advice.starts_with("run `chmod 700 '/"), "{advice}");
        }
    }
}
