//! Writes a file as a stream.

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_files::OverlayFile;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::read::failed;

/// Maximum number of bytes that a guest may submit before they are written.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// Output stream of a file, from a position on or at its end.
pub(super) struct WriteStream {
    file: OverlayFile,
    /// Position of the next write; `None` appends.
    position: Option<u64>,
    state: WriteState,
}

enum WriteState {
    Ready,
    /// Bytes that were submitted and not yet written.
    Waiting(Bytes),
    Failed(StreamError),
}

impl WriteStream {
    pub(super) fn at(file: OverlayFile, position: u64) -> Self {
        Self { file, position: Some(position), state: WriteState::Ready }
    }

    pub(super) fn append(file: OverlayFile) -> Self {
        Self { file, position: None, state: WriteState::Ready }
    }

    /// Writes the pending bytes.
    async fn settle(&mut self) {
        let WriteState::Waiting(bytes) = &self.state else { return };
        let written = match self.position {
            Some(position) => self.file.write_at(position, bytes).await,
            None => self.file.append(bytes).await,
        };
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.position = self.position.map(|position| position.saturating_add(length));
        self.state = match written {
            Ok(()) => WriteState::Ready,
            Err(error) => WriteState::Failed(failed(&error)),
        };
    }

    /// Reports an error once; after that the stream is closed.
    fn tell(&mut self) -> StreamResult<()> {
        if matches!(self.state, WriteState::Failed(_)) {
            let failed =
                std::mem::replace(&mut self.state, WriteState::Failed(StreamError::Closed));
            if let WriteState::Failed(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }
}

#[async_trait]
impl OutputStream for WriteStream {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.tell()?;
        if matches!(self.state, WriteState::Waiting(_)) || bytes.len() > WRITE_BYTES_MAX {
            return Err(StreamError::trap("write without a permit"));
        }
        self.state = WriteState::Waiting(bytes);
        Ok(())
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.settle().await;
        self.tell()?;
        self.state = WriteState::Waiting(bytes);
        self.settle().await;
        self.tell()
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.tell()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.tell()?;
        Ok(if matches!(self.state, WriteState::Waiting(_)) { 0 } else { WRITE_BYTES_MAX })
    }

    /// Called when the guest drops the stream; writes the pending bytes.
    async fn cancel(&mut self) {
        self.settle().await;
    }
}

#[async_trait]
impl Pollable for WriteStream {
    async fn ready(&mut self) {
        self.settle().await;
    }
}
