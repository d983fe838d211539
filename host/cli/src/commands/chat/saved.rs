//! Sessions that are kept: a file of messages (`SES-6`), beside it what else is remembered, and a
//! lock.
//!
//! The directory is the user's alone. It holds what was said in plain text, and what was allowed
//! for always: no tool may write there.

use cofferdam_files::session_stem;
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use cofferdam_agent::Session;
use cofferdam_agent::history::{FileHistory, FileHistoryOptions, History};
use etcetera::BaseStrategy as _;

use crate::exit::{Exit, UsageError};
use crate::print;

/// Largest file with what a session remembers, in bytes. Rules and requests are all that is in it.
const STATE_BYTES_MAX: u64 = 16 * 1024 * 1024;
const ENDING: &str = ".session.json";

/// A session that is kept, for this process alone.
pub(super) struct SavedSession {
    name: String,
    directory: PathBuf,
    files: FileHistory,
    /// Held until the process ends.
    _lock: File,
}

impl SavedSession {
    /// Opens the session `name`, or begins it.
    pub(super) fn open(directory: Option<&Path>, name: &str) -> anyhow::Result<Self> {
        if name.is_empty() {
            bail!(UsageError("a session needs a name".to_owned()));
        }
        let (directory, files) = open_directory(directory)?;
        let lock = lock(&directory, name)?;
        Ok(Self { name: name.to_owned(), directory, files, _lock: lock })
    }

    /// Returns the directory that no tool may write to.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Loads and stores the messages.
    pub(super) fn history(&self) -> History {
        History::in_files(self.files.clone())
    }

    /// Restores the state of the session, messages aside.
    pub(super) fn session(&self) -> anyhow::Result<Session> {
        let path = self.state_path();
        let Some(text) = read_state(&path)? else { return Ok(Session::with_id(&self.name)) };
        let session: Session = serde_json::from_str(&text)
            .map_err(|error| UsageError(format!("{} is no session: {error}", path.display())))?;
        if session.id() != self.name {
            bail!(UsageError(format!("{} is of the session `{}`", path.display(), session.id())));
        }
        Ok(session)
    }

    /// Writes what the session remembers, all of it or nothing.
    pub(super) fn save(&self, session: &Session) -> anyhow::Result<()> {
        let saved = || -> anyhow::Result<()> {
            let mut file = tempfile::NamedTempFile::new_in(&self.directory)?;
            file.write_all(&serde_json::to_vec(session)?)?;
            file.persist(self.state_path())?;
            Ok(())
        };
        saved().with_context(|| format!("the session `{}` cannot be kept", self.name))
    }

    fn state_path(&self) -> PathBuf {
        self.directory.join(format!("{}{ENDING}", session_stem(Some(&self.name))))
    }
}

/// Shows the sessions that there are.
pub(super) async fn list(directory: Option<&Path>) -> anyhow::Result<Exit> {
    let (directory, files) = open_directory(directory)?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).context("the sessions cannot be listed")? {
        let path = entry.context("the sessions cannot be listed")?.path();
        if !path.to_string_lossy().ends_with(ENDING) {
            continue;
        }
        match read_state(&path)?.map(|text| serde_json::from_str::<Session>(&text)) {
            Some(Ok(session)) => names.push(session.id().to_owned()),
            _ => print::note(&format!("warning: {} is no session", path.display())),
        }
    }
    names.sort();
    for name in names {
        let messages = match files.read(&name).await {
            Ok(messages) => print::counted(messages.len(), "message"),
            Err(error) => error.to_string(),
        };
        print::result(&format!("{name}  {messages}"))?;
    }
    Ok(Exit::Ok)
}

fn open_directory(directory: Option<&Path>) -> anyhow::Result<(PathBuf, FileHistory)> {
    let directory = match directory {
        Some(directory) => directory.to_owned(),
        None => {
            let base = etcetera::choose_base_strategy()
                .context("the home directory is not known; pass --session-dir DIR")
                .map_err(|error| UsageError(format!("{error:#}")))?;
            base.data_dir().join("cofferdam").join("sessions")
        }
    };
    // This process is the only one that has the session: what a process that was killed has left
    // can be mended.
    let options = FileHistoryOptions { repair_torn_end: true, ..FileHistoryOptions::default() };
    let files = FileHistory::open_ambient(&directory, options).map_err(|error| {
        UsageError(format!("sessions cannot be kept in {}: {error}", directory.display()))
    })?;
    Ok((directory, files))
}

fn lock(directory: &Path, name: &str) -> anyhow::Result<File> {
    let path = directory.join(format!("{}.lock", session_stem(Some(name))));
    let mut options = File::options();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file =
        options.open(&path).with_context(|| format!("the session `{name}` cannot be locked"))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(UsageError(format!("the session `{name}` is in use by another process")).into())
        }
        Err(TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("the session `{name}` cannot be locked"))
        }
    }
}

fn read_state(path: &Path) -> anyhow::Result<Option<String>> {
    match cofferdam_files::read_named_text_ambient(path, STATE_BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(UsageError(format!("{} cannot be read: {error}", path.display())).into()),
    }
}
