//! Saved sessions: for each session a file of messages (`SES-6`), a file with the rest of its
//! state, and a lock.
//!
//! Only the user has access to the directory. It contains conversations in plain text and standing
//! approvals, so no tool may write there.

use cofferdam_files::session_stem;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use cofferdam_agent::Session;
use cofferdam_agent::compaction::is_compaction_record;
use cofferdam_agent::history::{FileHistory, FileHistoryOptions, History, HistoryError};
use etcetera::BaseStrategy as _;
use serde_json::json;

use crate::commands::lock;
use crate::exit::{Exit, UsageError};
use crate::print;

/// Maximum size of a session's state file in bytes. The file contains only rules and requests.
const STATE_BYTES_MAX: u64 = 16 * 1024 * 1024;
const ENDING: &str = ".session.json";

/// A saved session, locked by this process.
pub(super) struct SavedSession {
    name: String,
    directory: PathBuf,
    files: FileHistory,
    /// Lock, held until the process ends.
    _lock: Option<File>,
}

impl SavedSession {
    /// Opens the session `name`, or creates it.
    pub(super) fn open(directory: Option<&Path>, name: &str) -> anyhow::Result<Self> {
        if name.is_empty() {
            bail!(UsageError("a session needs a name".to_owned()));
        }
        let (directory, files) = open_directory(directory)?;
        let path = directory.join(format!("{}.lock", session_stem(Some(name))));
        let lock = lock::lock(&path, &format!("the session `{name}`"))?;
        Ok(Self { name: name.to_owned(), directory, files, _lock: lock })
    }

    /// Moves an incomplete last line of the messages aside, and says so.
    pub(super) async fn repair(&self) -> anyhow::Result<()> {
        let moved =
            self.files.repair(&self.name).await.map_err(|error| match is_unreadable(&error) {
                true => UsageError(error.to_string()).into(),
                false => anyhow::Error::from(error),
            })?;
        if moved > 0 {
            let file = format!("{}.jsonl", session_stem(Some(&self.name)));
            print::note(&format!(
                "warning: the last line of {file} was incomplete, as when a process is killed while \
                 it writes; it is now in {file}.torn"
            ));
        }
        Ok(())
    }

    /// Returns the directory that no tool may write to.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the provider that loads and stores the messages.
    pub(super) fn history(&self) -> History {
        History::in_files(self.files.clone())
    }

    /// Restores the state of the session, except its messages.
    pub(super) fn session(&self) -> anyhow::Result<Session> {
        let path = self.state_path();
        let Some(text) = read_state(&path)? else { return Ok(Session::with_id(&self.name)) };
        let session: Session = serde_json::from_str(&text)
            .map_err(|error| UsageError(format!("{} is not a session: {error}", path.display())))?;
        if session.id() != self.name {
            bail!(UsageError(format!("{} is of the session `{}`", path.display(), session.id())));
        }
        Ok(session)
    }

    /// Returns whether the session has messages, or a file of them that cannot be read.
    pub(super) async fn has_messages(&self) -> bool {
        self.files.read(&self.name).await.map_or(true, |messages| !messages.is_empty())
    }

    /// Writes the state of the session atomically.
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

/// Returns whether the file of a session has to be repaired or replaced by hand.
pub(super) fn is_unreadable(error: &HistoryError) -> bool {
    matches!(
        error,
        HistoryError::Line { .. }
            | HistoryError::NotMapping { .. }
            | HistoryError::NotUtf8 { .. }
            | HistoryError::NotRegular { .. }
            | HistoryError::FileTooLarge { .. }
            | HistoryError::RecordTooLarge { .. }
    )
}

/// Prints the names of all sessions, without creating the directory.
pub(super) async fn list(named: Option<&Path>, as_json: bool) -> anyhow::Result<Exit> {
    let directory = session_directory(named)?;
    if !directory.is_dir() {
        return match named {
            Some(_) => {
                Err(UsageError(format!("there is no directory {}", directory.display())).into())
            }
            None => Ok(Exit::Ok),
        };
    }
    let files = open_files(&directory)?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&directory).context("the sessions cannot be listed")? {
        let path = entry.context("the sessions cannot be listed")?.path();
        if !path.to_string_lossy().ends_with(ENDING) {
            continue;
        }
        match read_state(&path)?.map(|text| serde_json::from_str::<Session>(&text)) {
            Some(Ok(session)) => names.push(session.id().to_owned()),
            _ => print::note(&format!("warning: {} is not a session", path.display())),
        }
    }
    names.sort();
    for name in names {
        let messages = files.read(&name).await.map(|messages| {
            messages.iter().filter(|message| !is_compaction_record(message)).count()
        });
        print::result(&match messages {
            Ok(messages) if as_json => json!({"name": name, "messages": messages}).to_string(),
            Err(error) if as_json => json!({"name": name, "error": error.to_string()}).to_string(),
            Ok(messages) => format!("{name}  {}", print::counted(messages, "message")),
            Err(error) => format!("{name}  {error}"),
        })?;
    }
    Ok(Exit::Ok)
}

/// Returns the directory of sessions: `directory`, or that of the user.
fn session_directory(directory: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(directory) = directory {
        return Ok(directory.to_owned());
    }
    let base = etcetera::choose_base_strategy()
        .context("the home directory is not known; pass --session-dir DIR")
        .map_err(|error| UsageError(format!("{error:#}")))?;
    Ok(base.data_dir().join("cofferdam").join("sessions"))
}

fn open_directory(directory: Option<&Path>) -> anyhow::Result<(PathBuf, FileHistory)> {
    let directory = session_directory(directory)?;
    let files = open_files(&directory)?;
    Ok((directory, files))
}

/// Opens the messages of sessions, and creates the directory if it is missing.
fn open_files(directory: &Path) -> anyhow::Result<FileHistory> {
    // The lock makes this process the only user of the session, so it can repair a file that a
    // killed process left incomplete.
    let options = FileHistoryOptions { repair_torn_end: true, ..FileHistoryOptions::default() };
    FileHistory::open_ambient(directory, options).map_err(|error| {
        UsageError(format!("sessions cannot be kept in {}: {error}", directory.display())).into()
    })
}

fn read_state(path: &Path) -> anyhow::Result<Option<String>> {
    match cofferdam_files::read_named_text_ambient(path, STATE_BYTES_MAX) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(UsageError(format!("{} cannot be read: {error}", path.display())).into()),
    }
}
