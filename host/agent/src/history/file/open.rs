//! Opening a history file, and keeping others from writing meanwhile (`SES-13`, `SES-14`).

use std::fs::{File, TryLockError};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cap_fs_ext::{
    FollowSymlinks, MetadataExt as _, OpenOptionsFollowExt as _, OpenOptionsSyncExt as _,
};
use cap_std::fs::{Dir, OpenOptions};

use crate::history::HistoryError;

/// How long a file is waited for that another process has locked. Whoever has it holds it for one
/// write.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// Pause between two tries. Short, because nobody keeps a place in a queue.
const PAUSE: Duration = Duration::from_millis(1);

/// Locks of this process; the file's device and number say which one is a file's. Two files may
/// have the same one.
static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

/// What a file is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Read,
    /// Creates the file if it is not there.
    Append,
    /// Shortens it.
    Cut,
}

/// The file `name` of `directory`; `None` if there is none and none is made.
pub(super) fn open(
    directory: &Dir,
    name: &str,
    purpose: Purpose,
) -> Result<Option<File>, HistoryError> {
    let failed = |error| HistoryError::Io { file: name.to_owned(), error };
    // Before it is opened: opening a device can do things.
    require_regular(directory, name)?;
    match directory.open_with(name, &options(purpose)) {
        Ok(file) => {
            // Once more: it may have been swapped meanwhile.
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

/// The file is locked for as long as this and the file exist. Readers share.
pub(super) struct Turn {
    _here: MutexGuard<'static, ()>,
}

/// Waits until nobody writes, at most [`WAIT_MAX`] for another process. The system's lock goes with
/// the file.
pub(super) fn take_turn(file: &File, name: &str, purpose: Purpose) -> Result<Turn, HistoryError> {
    let metadata = cap_std::fs::Metadata::from_file(file);
    let metadata = metadata.map_err(|error| HistoryError::Io { file: name.to_owned(), error })?;
    let number = (metadata.dev() ^ metadata.ino()) as usize % TURNS.len();
    let [first, ..] = &TURNS;
    // The mutex guards nothing that a panicking thread could leave half done.
    let here = TURNS.get(number).unwrap_or(first).lock().unwrap_or_else(PoisonError::into_inner);
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
            // Not on this file system.
            Err(TryLockError::Error(_)) => break,
        }
    }
    Ok(Turn { _here: here })
}
