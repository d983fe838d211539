//! Writes a file in one step: first under a temporary name, then under its own.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use cap_std::fs::{Dir, File, Metadata, OpenOptions};

use super::anonymous;
use super::tree::{TreeNode, lookup};
use crate::content::FileContent;
use crate::path::RESERVED_PREFIX;
use crate::{DirectoryOptions, WriteMode};

/// Maximum number of temporary names to try. The first is free unless an attacker has taken it.
const NAMES_MAX: usize = 16;

/// Permissions of a new file.
#[derive(Clone, Copy)]
pub(super) enum FilePermissions<'m> {
    /// Those that this process gives to new files.
    Default,
    /// Only the owner may read and write it.
    Private,
    /// Those of another file, and its owner and group if the process may set them: a script stays
    /// executable, a private file private, and a file of a group stays open to it.
    Like(&'m Metadata),
}

impl<'m> FilePermissions<'m> {
    /// Returns those of `model`, or else those of new files in a store with these options.
    pub(super) fn new(model: Option<&'m Metadata>, options: &DirectoryOptions) -> Self {
        match model {
            Some(model) => Self::Like(model),
            None if options.is_private => Self::Private,
            None => Self::Default,
        }
    }
}

/// Gives `name` in `directory` the content `content`. On failure nothing has changed.
pub(super) fn publish(
    directory: &Dir,
    name: &str,
    content: &FileContent,
    mode: WriteMode,
    permissions: FilePermissions<'_>,
    is_durable: bool,
) -> io::Result<()> {
    let (mut temporary, begun) = Temporary::create(directory, content, permissions)?;
    let file = begun.complete(content, permissions)?;
    if is_durable {
        file.sync_all()?;
    }
    drop(file);
    match mode {
        WriteMode::Replace => directory.rename(&temporary.name, directory, name)?,
        WriteMode::Create => publish_exclusive(directory, &temporary.name, name)?,
    }
    temporary.is_published = true;
    Ok(())
}

/// A file that has its name.
pub(super) struct PublishedFile {
    file: File,
    /// True if it also has its content.
    is_complete: bool,
}

impl PublishedFile {
    /// Creates `name` in `directory`, where it must not exist.
    pub(super) fn create(
        directory: &Dir,
        name: &str,
        content: &FileContent,
        permissions: FilePermissions<'_>,
    ) -> io::Result<Self> {
        if let Some(anonymous_file) = content.anonymous_file() {
            let file = File::from_std(anonymous_file.try_clone()?);
            set_permissions(&file, permissions)?;
            match anonymous::give_name(anonymous_file, directory, name) {
                Ok(()) => return Ok(Self { file, is_complete: true }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(error),
                // The content can still be copied.
                Err(_) => {}
            }
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        restrict(&mut options, permissions);
        Ok(Self { file: directory.open_with(name, &options)?, is_complete: false })
    }

    /// Returns the file with all of `content` and its permissions.
    pub(super) fn complete(
        self,
        content: &FileContent,
        permissions: FilePermissions<'_>,
    ) -> io::Result<File> {
        if self.is_complete {
            return Ok(self.file);
        }
        let mut file = self.file.into_std();
        content.write_to(&mut file)?;
        let file = File::from_std(file);
        set_permissions(&file, permissions)?;
        Ok(file)
    }
}

/// Makes the changed names in `directory` durable.
///
/// Failures are not reported: the change is visible and cannot be undone, and some file
/// systems cannot flush a directory.
pub(super) fn flush_names(directory: &Dir) {
    #[cfg(unix)]
    {
        use rustix::fs::{Mode, OFlags, openat};
        // The existing handle was opened for traversal only, which is not enough to flush.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // The standard library asks macOS to flush the drive as well, which `fsync` does not.
        let _flushed = openat(directory, ".", flags, Mode::empty())
            .map_err(io::Error::from)
            .and_then(|opened| std::fs::File::from(opened).sync_all());
    }
    #[cfg(not(unix))]
    let _ = directory;
}

/// Makes everything durable that has been written to the file system of `directory`. For many files
/// this is much faster than flushing one after another.
///
/// # Errors
/// If the system has no such operation, or it failed.
pub(super) fn flush_all(directory: &Dir) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags, openat, syncfs};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let readable = openat(directory, ".", flags, Mode::empty())?;
        Ok(syncfs(readable)?)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = directory;
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A file under a temporary name, removed on drop unless it was published.
struct Temporary<'d> {
    directory: &'d Dir,
    name: String,
    is_published: bool,
}

impl<'d> Temporary<'d> {
    fn create(
        directory: &'d Dir,
        content: &FileContent,
        permissions: FilePermissions<'_>,
    ) -> io::Result<(Self, PublishedFile)> {
        let mut failure = io::Error::from(io::ErrorKind::AlreadyExists);
        for _ in 0..NAMES_MAX {
            let name = temporary_name();
            match PublishedFile::create(directory, &name, content, permissions) {
                Ok(begun) => return Ok((Self { directory, name, is_published: false }, begun)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => failure = error,
                Err(error) => return Err(error),
            }
        }
        Err(failure)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.is_published {
            // If it cannot be removed, it is invisible, and a later count removes it.
            let _removed = self.directory.remove_file(&self.name);
        }
    }
}

/// Returns a name that no other write uses: the number makes it unique in this process, the rest
/// makes it almost certainly unique among processes.
pub(super) fn temporary_name() -> String {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let moment =
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    format!("{RESERVED_PREFIX}-{}-{moment}-{number}", std::process::id())
}

/// Renames a file unless the new name is taken. If the system cannot do that in one step, creates a
/// hard link instead, which also fails if the name is taken, and removes the first name.
fn publish_exclusive(directory: &Dir, from: &str, to: &str) -> io::Result<()> {
    match rename_unless_taken(directory, from, directory, to) {
        Some(result) => result,
        None => link_exclusive(directory, from, to),
    }
}

fn link_exclusive(directory: &Dir, from: &str, to: &str) -> io::Result<()> {
    directory.hard_link(from, directory, to)?;
    // The file has its name. If the temporary one stays, it is invisible and a later count removes
    // it.
    let _removed = directory.remove_file(from);
    Ok(())
}

/// Renames anything unless the new name is taken. If the system cannot do that in one step, checks
/// the new name before it renames.
pub(super) fn rename_exclusive(source: &Dir, from: &str, target: &Dir, to: &str) -> io::Result<()> {
    match rename_unless_taken(source, from, target, to) {
        Some(result) => result,
        None => check_and_rename(source, from, target, to),
    }
}

fn check_and_rename(source: &Dir, from: &str, target: &Dir, to: &str) -> io::Result<()> {
    match lookup(target, to)? {
        TreeNode::Missing => source.rename(from, target, to),
        _ => Err(io::ErrorKind::AlreadyExists.into()),
    }
}

/// Returns `None` if the system has no such operation.
fn rename_unless_taken(source: &Dir, from: &str, target: &Dir, to: &str) -> Option<io::Result<()>> {
    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    {
        use rustix::fs::{RenameFlags, renameat_with};
        use rustix::io::Errno;
        match renameat_with(source, from, target, to, RenameFlags::NOREPLACE) {
            Err(Errno::INVAL | Errno::NOSYS | Errno::NOTSUP) => None,
            result => Some(result.map_err(io::Error::from)),
        }
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    {
        let (_, _, _, _) = (source, from, target, to);
        None
    }
}

/// Permission bits that content written by others may keep. They exclude the set-user-ID bit and
/// the other bits that grant the owner's rights.
#[cfg(unix)]
const PERMISSIONS_PRESERVED: u32 = 0o777;

/// Permission bits of the owner.
#[cfg(unix)]
const OWNER_PERMISSIONS: u32 = 0o700;

/// Permission bits of a file that only its owner may read and write.
#[cfg(unix)]
const PRIVATE_PERMISSIONS: u32 = 0o600;

/// Creates the file with the permissions of its owner only, so that private content is private from
/// its first byte, also while the file does not have its group yet.
#[cfg(unix)]
fn restrict(options: &mut OpenOptions, permissions: FilePermissions<'_>) {
    use cap_std::fs::{OpenOptionsExt as _, PermissionsExt as _};
    match permissions {
        FilePermissions::Default => {}
        FilePermissions::Private => {
            options.mode(PRIVATE_PERMISSIONS);
        }
        FilePermissions::Like(model) => {
            options.mode(model.permissions().mode() & OWNER_PERMISSIONS);
        }
    }
}

#[cfg(unix)]
fn set_permissions(file: &File, permissions: FilePermissions<'_>) -> io::Result<()> {
    use cap_std::fs::{Permissions, PermissionsExt as _};
    let wanted = match permissions {
        FilePermissions::Default => return Ok(()),
        FilePermissions::Private => PRIVATE_PERMISSIONS,
        FilePermissions::Like(model) => {
            keep_owner(file, model)?;
            model.permissions().mode() & PERMISSIONS_PRESERVED
        }
    };
    // Some file systems have fixed permissions and refuse to set even those.
    if file.metadata()?.permissions().mode() & PERMISSIONS_PRESERVED == wanted {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(wanted))
}

/// Gives the file the owner and group of another one, or its group only, if the system permits it.
/// A member of the group may set the group, and only root the owner.
#[cfg(unix)]
fn keep_owner(file: &File, replaced: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::fchown;

    use cap_std::fs::MetadataExt as _;
    let own = file.metadata()?;
    let (owner, group) = (replaced.uid(), replaced.gid());
    let is_kept =
        (own.uid(), own.gid()) == (owner, group) || fchown(file, Some(owner), Some(group)).is_ok();
    if !is_kept && own.gid() != group {
        let _not_permitted = fchown(file, None, Some(group));
    }
    Ok(())
}

#[cfg(not(unix))]
fn restrict(_: &mut OpenOptions, _: FilePermissions<'_>) {}

#[cfg(not(unix))]
fn set_permissions(_: &File, _: FilePermissions<'_>) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use cap_std::ambient_authority;

    use super::*;
    use crate::content::SpilledContent;

    #[test]
    fn all_ways_of_an_exclusive_rename_fail_when_the_name_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let directory = Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        type Way = fn(&Dir, &str, &str) -> io::Result<()>;
        let ways: [Way; 4] = [
            publish_exclusive,
            link_exclusive,
            |directory, from, to| rename_exclusive(directory, from, directory, to),
            |directory, from, to| check_and_rename(directory, from, directory, to),
        ];
        for rename in ways {
            directory.write("taken", "old").unwrap();
            directory.write("from", "new").unwrap();
            let error = rename(&directory, "from", "taken").unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
            rename(&directory, "from", "free").unwrap();
            assert!(!directory.exists("from"));
            assert_eq!(directory.read("free").unwrap(), b"new");
            assert_eq!(directory.read("taken").unwrap(), b"old");
            directory.remove_file("free").unwrap();
        }
    }

    /// Returns the same content once for each way in which content can be stored.
    fn contents(directory: &Dir) -> Vec<FileContent> {
        let charge = || crate::Budget::new(u64::MAX).take(0).unwrap();
        let filled = |mut spilled: SpilledContent| {
            spilled.write(0, b"new").unwrap();
            FileContent::Spilled(spilled)
        };
        let elsewhere = SpilledContent::new(tempfile::tempfile().unwrap(), charge());
        let mut contents = vec![FileContent::Bytes(b"new".to_vec()), filled(elsewhere)];
        let of_store = anonymous::create(directory)
            .map(|file| filled(SpilledContent::of_store(file, charge())));
        assert!(of_store.is_some() || cfg!(not(target_os = "linux")));
        contents.extend(of_store);
        // A file system other than the destination's.
        let foreign = Dir::open_ambient_dir("/dev/shm", ambient_authority()).ok();
        let foreign = foreign.and_then(|foreign| anonymous::create(&foreign));
        contents.extend(foreign.map(|file| filled(SpilledContent::of_store(file, charge()))));
        contents
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_the_same_wherever_its_content_has_waited() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let directory = Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        let mode = |name: &str| {
            std::fs::metadata(root.path().join(name)).unwrap().permissions().mode()
                & PERMISSIONS_PRESERVED
        };
        directory.write("ordinary", "").unwrap();
        directory.write("private", "old").unwrap();
        let private = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(root.path().join("private"), private).unwrap();
        for content in contents(&directory) {
            publish(
                &directory,
                "created",
                &content,
                WriteMode::Create,
                FilePermissions::Default,
                true,
            )
            .unwrap();
            assert_eq!(
                (directory.read("created").unwrap(), mode("created")),
                (b"new".to_vec(), mode("ordinary"))
            );
            directory.remove_file("created").unwrap();
        }
        for content in contents(&directory) {
            let replaced = directory.metadata("private").unwrap();
            publish(
                &directory,
                "private",
                &content,
                WriteMode::Replace,
                FilePermissions::Like(&replaced),
                true,
            )
            .unwrap();
            assert_eq!(
                (directory.read("private").unwrap(), mode("private")),
                (b"new".to_vec(), 0o640)
            );
        }
        for content in contents(&directory) {
            publish(
                &directory,
                "private",
                &content,
                WriteMode::Create,
                FilePermissions::Default,
                true,
            )
            .unwrap_err();
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn a_replaced_file_keeps_owner_and_group_if_the_system_permits_it() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
        let root = tempfile::tempdir().unwrap();
        let directory = Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        let path = root.path().join("shared");
        std::fs::write(&path, "old").unwrap();
        // Without root, it stays a file of this user.
        let _not_root = chown(&path, Some(12_345), Some(23_456));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o660)).unwrap();
        let facts = || {
            let metadata = std::fs::metadata(&path).unwrap();
            (metadata.uid(), metadata.gid(), metadata.mode() & PERMISSIONS_PRESERVED)
        };
        let before = facts();
        assert_eq!(before.2, 0o660);
        for content in contents(&directory) {
            let replaced = directory.metadata("shared").unwrap();
            publish(
                &directory,
                "shared",
                &content,
                WriteMode::Replace,
                FilePermissions::Like(&replaced),
                false,
            )
            .unwrap();
            assert_eq!((directory.read("shared").unwrap(), facts()), (b"new".to_vec(), before));
        }
    }

    #[test]
    fn a_failed_publication_leaves_nothing() {
        let root = tempfile::tempdir().unwrap();
        let directory = Dir::open_ambient_dir(root.path(), ambient_authority()).unwrap();
        directory.create_dir("d").unwrap();
        for mode in [WriteMode::Create, WriteMode::Replace] {
            publish(
                &directory,
                "d",
                &FileContent::Bytes(b"x".to_vec()),
                mode,
                FilePermissions::Default,
                false,
            )
            .unwrap_err();
        }
        assert_eq!(std::fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
