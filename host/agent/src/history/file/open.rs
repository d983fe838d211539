//! Opening and locking of history files (`SES-13`, `SES-14`).

use std::fs::{File, TryLockError};
use std::io;
use std::time::{Duration, Instant};

use cap_fs_ext::{
    FollowSymlinks, MetadataExt as _, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _,
};
use cap_std::fs::{Dir, OpenOptions};
use parking_lot::{Mutex, MutexGuard};

use crate::history::HistoryError;

/// Maximum time to wait for a file that another process has locked. Locks are held for one write.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between attempts to lock. Short, because attempts are not queued.
const PAUSE: Duration = Duration::from_millis(1);

/// Locks within this process, indexed by the file's device and inode. Two files may share one.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// Purpose of opening a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Read,
    /// Creates the file if it does not exist.
    Append,
    /// Shortens the file.
    Cut,
}

/// Opens a file of the directory; `None` if it does not exist and is not to be created.
pub(super) fn open(
    directory: &Dir,
    name: &str,
    purpose: Purpose,
) -> Result<Option<File>, HistoryError> {
    let failed = |error| HistoryError::Io { file: name.to_owned(), error };
    // Checked before opening, because opening a device can have side effects.
    require_regular(directory, name)?;
    match directory.open_with(name, &options(purpose)) {
        Ok(file) => {
            // Checked again, because the file may have been replaced in between.
            if file.metadata().map_err(failed)?.is_file() {
                return Ok(Some(file.into_std()));
            }
            Err(HistoryError::NotRegular { file: name.to_owned() })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound && purpose != Purpose::Append => {
            Ok(None)
        }
        Err(error) => Err(require_regular(directory, name).err().unwrap_or_else(|| failed(error))),
    }
}

fn options(purpose: Purpose) -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).follow(FollowSymlinks::No).nonblock(true);
    match purpose {
        Purpose::Read => {}
        Purpose::Append => {
            options.append(true).create(true);
        }
        Purpose::Cut => {
            options.write(true);
        }
    }
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn require_regular(directory: &Dir, name: &str) -> Result<(), HistoryError> {
    let file = || name.to_owned();
    match directory.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(_) => Err(HistoryError::NotRegular { file: file() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(HistoryError::Io { file: file(), error }),
    }
}

/// Lock on a file, held for as long as this and the file exist. Readers share it.
pub(super) struct FileLock {
    _here: MutexGuard<'static, ()>,
}

/// Waits for the lock, for another process at most [`WAIT_MAX`]. The system's lock is released with
/// the file.
pub(super) fn take_turn(
    file: &File,
    name: &str,
    purpose: Purpose,
) -> Result<FileLock, HistoryError> {
    let metadata = cap_std::fs::Metadata::from_file(file);
    let metadata = metadata.map_err(|error| HistoryError::Io { file: name.to_owned(), error })?;
    let number = (metadata.dev() ^ metadata.ino()) as usize % TURNS.len();
    let [first, ..] = &TURNS;
    let here = TURNS.get(number).unwrap_or(first).lock();
    let started = Instant::now();
    loop {
        let locked = match purpose {
            Purpose::Read => file.try_lock_shared(),
            Purpose::Append | Purpose::Cut => file.try_lock(),
        };
        match locked {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if started.elapsed() > WAIT_MAX => {
                return Err(HistoryError::Busy { file: name.to_owned() });
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {}
            // The file system does not support locks.
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => break,
            Err(TryLockError::Error(error)) => {
                return Err(HistoryError::Io { file: name.to_owned(), error });
            }
        }
    }
    Ok(FileLock { _here: here })
}
