//! Reads a file as a stream.

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_files::{FileError, OverlayFile};
use wasmtime_wasi::p2::{InputStream, Pollable, StreamError, StreamResult};

use super::error::code;

/// Maximum number of bytes that one read returns, however many were requested.
pub(super) const READ_BYTES_MAX: u64 = 1024 * 1024;
/// Minimum number of bytes to read from the store at once: each small read would open the file.
const AHEAD_BYTES: u64 = 64 * 1024;

/// Input stream of a file, from a position on.
pub(super) struct ReadStream {
    file: OverlayFile,
    position: u64,
    /// Bytes that were read from the store and not yet returned, or the error of reading.
    ahead: StreamResult<Bytes>,
}

impl ReadStream {
    pub(super) fn new(file: OverlayFile, position: u64) -> Self {
        Self { file, position, ahead: Ok(Bytes::new()) }
    }

    /// Reads further data from the store, unless there is data to return already.
    async fn fill(&mut self, bytes: u64) {
        if self.file.is_in_memory() || !matches!(&self.ahead, Ok(ahead) if ahead.is_empty()) {
            return;
        }
        let wanted = bytes.clamp(AHEAD_BYTES, READ_BYTES_MAX);
        self.ahead = match self.file.read_at(self.position, wanted).await {
            Ok(content) if content.is_empty() => Err(StreamError::Closed),
            Ok(content) => Ok(content.into()),
            Err(error) => Err(failed(&error)),
        };
    }

    fn step(&mut self, given: Bytes) -> Bytes {
        self.position =
            self.position.saturating_add(u64::try_from(given.len()).unwrap_or(u64::MAX));
        given
    }
}

/// Converts an error of a store to an error of a stream, which contains only the code.
pub(super) fn failed(error: &FileError) -> StreamError {
    StreamError::LastOperationFailed(wasmtime::Error::new(code(error)))
}

#[async_trait]
impl InputStream for ReadStream {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        // A file that the guest has changed is in memory, and data that was read ahead before the
        // change is outdated.
        let wanted = u64::try_from(size).unwrap_or(u64::MAX).min(READ_BYTES_MAX);
        if let Some(content) = self.file.read_in_memory(self.position, wanted) {
            return if content.is_empty() && size > 0 {
                Err(StreamError::Closed)
            } else {
                Ok(self.step(content.into()))
            };
        }
        match &mut self.ahead {
            Ok(ahead) => {
                let given = ahead.split_to(size.min(ahead.len()));
                Ok(self.step(given))
            }
            Err(_) => std::mem::replace(&mut self.ahead, Err(StreamError::Closed)),
        }
    }

    async fn blocking_read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size > 0 {
            self.fill(u64::try_from(size).unwrap_or(u64::MAX)).await;
        }
        self.read(size)
    }
}

#[async_trait]
impl Pollable for ReadStream {
    async fn ready(&mut self) {
        self.fill(AHEAD_BYTES).await;
    }
}
