//! One JSON Lines file per session (`SES-6` to `SES-15`).
//!
//! Files are opened inside one directory, without following links and without waiting for the other
//! end of a pipe; what is no regular file is refused. They belong to the user alone (mode 600) and
//! hold plain text. An append is one write, under an advisory lock for other processes and a lock
//! of this one; where the file system has no locks, this process alone may write. A record is never
//! changed, and nothing is ever deleted: see [`FileHistoryOptions::repair_torn_end`] for the one
//! case in which bytes are moved.

mod disk;
mod open;

use cofferdam_files::session_stem;
use std::io;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use serde_json::Value;

use self::disk::Disk;
use super::{HistoryError, HistoryStore};
use crate::{BoxError, Message, Session};

/// Keeps the messages of each session in a file of its own, `<stem>.jsonl` (see [`session_stem`]).
#[derive(Clone)]
pub struct FileHistory {
    disk: Arc<Disk>,
}

/// What may be chosen of a [`FileHistory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHistoryOptions {
    /// Whether every append is flushed to the medium before the run goes on (`SES-15`). Default:
    /// no.
    pub sync: bool,
    /// What becomes of a last line without a line feed that is no JSON: what a host leaves that was
    /// killed, or had no room left, while it wrote.
    ///
    /// By default it is an error when the file is read (`SES-9`), and an append goes after it as
    /// after any other line (`SES-8`). If this is set, it is moved to the end of
    /// `<stem>.jsonl.torn`, before the file is read or appended to, and a warning is logged.
    /// Messages before it are not touched. Nothing else is ever repaired.
    pub repair_torn_end: bool,
    /// Largest file that is read or appended to, in bytes. Default: 64 MiB, some 10 000 long
    /// messages; all of it goes to memory for each run.
    pub file_bytes_max: u64,
    /// Longest line, in bytes. Default: 16 MiB, enough for images in base64.
    pub record_bytes_max: usize,
}

impl Default for FileHistoryOptions {
    fn default() -> Self {
        Self {
            sync: false,
            repair_torn_end: false,
            file_bytes_max: 64 << 20,
            record_bytes_max: 16 << 20,
        }
    }
}

impl FileHistory {
    /// Files in a directory of the host, which is created for the user alone if it is not there.
    ///
    /// # Errors
    /// The directory cannot be created or opened.
    pub fn open_ambient(directory: &Path, options: FileHistoryOptions) -> io::Result<Self> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
        let directory = Dir::open_ambient_dir(directory, ambient_authority())?;
        Ok(Self { disk: Arc::new(Disk { directory, options }) })
    }

    /// The messages of a session in the order in which they were appended (`SES-7`).
    ///
    /// # Errors
    /// [`HistoryError`]; the file stays as it is.
    pub async fn read(&self, session_id: &str) -> Result<Vec<Message>, HistoryError> {
        self.blocking(session_id, |disk, file| disk.read(file)).await
    }

    /// Appends messages, all of them or none. Without messages nothing happens (`SES-7`).
    ///
    /// # Errors
    /// [`HistoryError`]; the file is then as it was.
    pub async fn append(
        &self,
        session_id: &str,
        messages: &[Arc<Message>],
    ) -> Result<(), HistoryError> {
        let messages = messages.to_vec();
        self.blocking(session_id, move |disk, file| disk.append(file, &messages)).await
    }

    /// Moves a torn last line aside, whatever [`FileHistoryOptions::repair_torn_end`] says. Gives
    /// the number of bytes moved; 0 if there was none.
    ///
    /// # Errors
    /// [`HistoryError`]. A file with another line that cannot be read stays as it is.
    pub async fn repair(&self, session_id: &str) -> Result<u64, HistoryError> {
        self.blocking(session_id, Disk::repair).await
    }

    /// Runs file work where waiting hurts nobody.
    async fn blocking<T: Send + 'static>(
        &self,
        session_id: &str,
        work: impl FnOnce(&Disk, &str) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, HistoryError> {
        let (disk, file) =
            (Arc::clone(&self.disk), format!("{}.jsonl", session_stem(Some(session_id))));
        let name = file.clone();
        match tokio::task::spawn_blocking(move || work(&disk, &file)).await {
            Ok(done) => done,
            // The runtime is shutting down.
            Err(error) => Err(HistoryError::Io { file: name, error: io::Error::other(error) }),
        }
    }
}

#[async_trait]
impl HistoryStore for FileHistory {
    async fn load(&self, session: &Session, _: &Value) -> Result<Vec<Message>, BoxError> {
        Ok(self.read(session.id()).await?)
    }

    async fn append(
        &self,
        session: &Session,
        _: &mut Value,
        messages: &[Arc<Message>],
    ) -> Result<(), BoxError> {
        Ok(Self::append(self, session.id(), messages).await?)
    }
}

impl std::fmt::Debug for FileHistory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileHistory").field("options", &self.disk.options).finish_non_exhaustive()
    }
}
