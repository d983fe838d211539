//! The call log of a directory, which may not exist yet.

use std::path::PathBuf;
use std::sync::OnceLock;

use cofferdam_record::{Log, RecordError};

/// Directory of a call log.
#[derive(Debug)]
pub(crate) struct LogSource {
    directory: PathBuf,
    log: OnceLock<Log>,
}

impl LogSource {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory, log: OnceLock::new() }
    }

    /// Opens the log, or returns it if it is open. Returns `None` if nothing was ever recorded.
    pub(crate) fn log(&self) -> Result<Option<&Log>, RecordError> {
        if let Some(log) = self.log.get() {
            return Ok(Some(log));
        }
        if !self.directory.exists() {
            return Ok(None);
        }
        let log = Log::open(&self.directory)?;
        Ok(Some(self.log.get_or_init(|| log)))
    }
}
