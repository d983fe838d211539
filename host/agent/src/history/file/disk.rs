//! Operations on one history file. Everything here blocks the thread.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::sync::Arc;

use cap_std::fs::Dir;

use super::FileHistoryOptions;
use super::open::{Purpose, open, take_turn};
use crate::Message;
use crate::history::HistoryError;
use crate::history::record::{self, RecordLines};

/// Directory of the history files.
pub(super) struct Disk {
    pub(super) directory: Dir,
    pub(super) options: FileHistoryOptions,
}

impl Disk {
    /// Returns the messages of a file, or none if it does not exist (`SES-7`).
    pub(super) fn read(&self, name: &str) -> Result<Vec<Message>, HistoryError> {
        let may_be_torn = self.options.repair_torn_end;
        let Some(file) = open(&self.directory, name, Purpose::Read)? else { return Ok(Vec::new()) };
        let lines = {
            let _turn = take_turn(&file, name, Purpose::Read)?;
            self.lines(&file, name, may_be_torn)?
        };
        // Releases the lock before the file is locked for writing.
        drop(file);
        if lines.torn_from.is_some() {
            self.repair(name)?;
        }
        Ok(lines.messages)
    }

    /// Appends messages in one write (`SES-8`, `SES-14`).
    pub(super) fn append(&self, name: &str, messages: &[Arc<Message>]) -> Result<(), HistoryError> {
        if messages.is_empty() {
            return Ok(());
        }
        let records = record::write(messages, name, self.options.record_bytes_max)?;
        if self.options.repair_torn_end {
            self.repair(name)?;
        }
        let failed = |error| HistoryError::Io { file: name.to_owned(), error };
        let is_new = self.options.sync && !self.directory.exists(name);
        let opened = open(&self.directory, name, Purpose::Append)?;
        let mut file = opened.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        let _turn = take_turn(&file, name, Purpose::Append)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut bytes = Vec::with_capacity(records.len() + 1);
        if !ends_with_line_feed(&mut file, length).map_err(failed)? {
            bytes.push(b'\n');
        }
        bytes.extend(records);
        self.check_size(length.saturating_add(bytes.len() as u64), name)?;
        if let Err(error) = self.write(&mut file, &bytes) {
            // All or nothing, unless shortening the file fails too.
            let _shortened = file.set_len(length);
            return Err(failed(error));
        }
        if is_new { self.sync_directory().map_err(failed) } else { Ok(()) }
    }

    /// Moves a torn last line to the end of `<name>.torn`. Returns the number of bytes moved.
    pub(super) fn repair(&self, name: &str) -> Result<u64, HistoryError> {
        let failed = |error| HistoryError::Io { file: name.to_owned(), error };
        let Some(mut file) = open(&self.directory, name, Purpose::Read)? else { return Ok(0) };
        let length = file.metadata().map_err(failed)?.len();
        if ends_with_line_feed(&mut file, length).map_err(failed)? {
            // The usual case needs neither write permission nor the whole file.
            return Ok(0);
        }
        let Some(file) = open(&self.directory, name, Purpose::Cut)? else { return Ok(0) };
        let _turn = take_turn(&file, name, Purpose::Cut)?;
        let bytes = self.bytes(&file, name)?;
        let Some(start) =
            record::read(&bytes, name, self.options.record_bytes_max, true)?.torn_from
        else {
            return Ok(0);
        };
        let torn = bytes.get(start..).unwrap_or_default();
        self.set_torn_aside(&format!("{name}.torn"), torn)?;
        file.set_len(start as u64).map_err(failed)?;
        if self.options.sync {
            file.sync_all().map_err(failed)?;
        }
        tracing::warn!(
            file = name,
            bytes = torn.len(),
            "moved a torn last line of a history aside"
        );
        Ok(torn.len() as u64)
    }

    /// Appends a torn line and a line feed to the file next to the history.
    fn set_torn_aside(&self, name: &str, torn: &[u8]) -> Result<(), HistoryError> {
        let failed = |error| HistoryError::Io { file: name.to_owned(), error };
        let opened = open(&self.directory, name, Purpose::Append)?;
        let mut file = opened.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
        self.write(&mut file, &[torn, b"\n"].concat()).map_err(failed)
    }

    fn lines(
        &self,
        file: &File,
        name: &str,
        may_be_torn: bool,
    ) -> Result<RecordLines, HistoryError> {
        record::read(&self.bytes(file, name)?, name, self.options.record_bytes_max, may_be_torn)
    }

    fn bytes(&self, file: &File, name: &str) -> Result<Vec<u8>, HistoryError> {
        let failed = |error| HistoryError::Io { file: name.to_owned(), error };
        self.check_size(file.metadata().map_err(failed)?.len(), name)?;
        let mut bytes = Vec::new();
        // One byte more, to detect growth by a writer that ignores the lock.
        let mut reader = file.take(self.options.file_bytes_max.saturating_add(1));
        reader.read_to_end(&mut bytes).map_err(failed)?;
        self.check_size(bytes.len() as u64, name)?;
        Ok(bytes)
    }

    fn check_size(&self, bytes: u64, name: &str) -> Result<(), HistoryError> {
        let bytes_max = self.options.file_bytes_max;
        if bytes <= bytes_max {
            return Ok(());
        }
        Err(HistoryError::FileTooLarge { file: name.to_owned(), bytes_max })
    }

    fn write(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        file.write_all(bytes)?;
        if self.options.sync { file.sync_all() } else { Ok(()) }
    }

    /// Makes the directory entry of a file as durable as its content.
    #[cfg(unix)]
    fn sync_directory(&self) -> io::Result<()> {
        // Opens a separate handle, because the existing one may be usable only for opening files.
        self.directory.open(".")?.sync_all()
    }

    #[cfg(not(unix))]
    fn sync_directory(&self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns whether a file of this length is empty or ends with a line feed.
fn ends_with_line_feed(file: &mut File, length: u64) -> io::Result<bool> {
    let Some(last) = length.checked_sub(1) else { return Ok(true) };
    let mut byte = [0];
    file.seek(SeekFrom::Start(last))?;
    file.read_exact(&mut byte)?;
    Ok(byte == [b'\n'])
}
