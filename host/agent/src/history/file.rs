//! One JSON Lines file per session (`SES-6` to `SES-15`).
//!
//! Files are opened inside one directory, without following links and without blocking on pipes;
//! anything but a regular file is rejected. Only the user can read them (mode 600), and they
//! contain plain text. An append is one write, under an advisory lock against other processes and a
//! lock of this process; on file systems without locks, no other process may write. Records never
//! change, and nothing is ever deleted: see [`FileHistoryOptions::repair_torn_end`] for the one
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

/// Stores the messages of each session in a separate file, `<stem>.jsonl` (see [`session_stem`]).
#[derive(Clone)]
pub struct FileHistory {
    disk: Arc<Disk>,
}

/// Options of a [`FileHistory`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileHistoryOptions {
    /// True if every append is flushed to disk before the run continues (`SES-15`). Default: false.
    pub sync: bool,
    /// True if torn last lines are moved aside. A torn line is not JSON and has no line feed, as
    /// when a host was killed or the disk was full during a write.
    ///
    /// By default a torn line is an error when the file is read (`SES-9`), and an append follows it
    /// as it would any other line (`SES-8`). If this is true, the line is moved to the end of
    /// `<stem>.jsonl.torn` before the file is read or appended to, and a warning is logged.
    /// Messages before it are not touched. Nothing else is ever repaired.
    pub repair_torn_end: bool,
    /// Maximum size in bytes of a file that is read or appended to. Default: 64 MiB, some 10,000
    /// long messages. Each run reads the whole file into memory.
    pub file_bytes_max: u64,
    /// Maximum length of a line in bytes. Default: 16 MiB, enough for images in base64.
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
    /// Opens a directory of the host, creating it with access only for the user if it does not
    /// exist.
    ///
    /// # Errors
    /// If the directory cannot be created or opened.
    pub fn open_ambient(directory: &Path, options: FileHistoryOptions) -> io::Result<Self> {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
        let directory = Dir::open_ambient_dir(directory, ambient_authority())?;
        Ok(Self { disk: Arc::new(Disk { directory, options }) })
    }

    /// Returns the messages of a session in the order in which they were appended (`SES-7`).
    ///
    /// # Errors
    /// [`HistoryError`]; the file is unchanged.
    pub async fn read(&self, session_id: &str) -> Result<Vec<Message>, HistoryError> {
        self.blocking(session_id, |disk, file| disk.read(file)).await
    }

    /// Appends messages, all of them or none. Does nothing without messages (`SES-7`).
    ///
    /// # Errors
    /// [`HistoryError`]; the file is unchanged.
    pub async fn append(
        &self,
        session_id: &str,
        messages: &[Arc<Message>],
    ) -> Result<(), HistoryError> {
        let messages = messages.to_vec();
        self.blocking(session_id, move |disk, file| disk.append(file, &messages)).await
    }

    /// Moves a torn last line aside, whatever [`FileHistoryOptions::repair_torn_end`] says. Returns
    /// the number of bytes moved, 0 if the last line is not torn.
    ///
    /// # Errors
    /// [`HistoryError`]. If any other line cannot be read, the file is unchanged.
    pub async fn repair(&self, session_id: &str) -> Result<u64, HistoryError> {
        self.blocking(session_id, Disk::repair).await
    }

    /// Runs file operations on the blocking thread pool.
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
