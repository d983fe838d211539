//! Writing a file as a stream.

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_files::OpenFile;
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamError, StreamResult};

use super::read::failed;

/// Most bytes that a guest may hand over before they are written.
const WRITE_BYTES_MAX: usize = 64 * 1024;

/// A file from a position on, or its end.
pub(super) struct WriteStream {
    file: OpenFile,
    /// `None` appends.
    position: Option<u64>,
    state: State,
}

enum State {
    Ready,
    /// Handed over and not yet written.
    Waiting(Bytes),
    Failed(StreamError),
}

impl WriteStream {
    pub(super) fn at(file: OpenFile, position: u64) -> Self {
        Self { file, position: Some(position), state: State::Ready }
    }

    pub(super) fn append(file: OpenFile) -> Self {
        Self { file, position: None, state: State::Ready }
    }

    /// Writes what waits.
    async fn settle(&mut self) {
        let State::Waiting(bytes) = &self.state else { return };
        let written = match self.position {
            Some(position) => self.file.write_at(position, bytes).await,
            None => self.file.append(bytes).await,
        };
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.position = self.position.map(|position| position.saturating_add(length));
        self.state = match written {
            Ok(()) => State::Ready,
            Err(error) => State::Failed(failed(&error)),
        };
    }

    /// An error is told once; after that the stream is closed.
    fn tell(&mut self) -> StreamResult<()> {
        if matches!(self.state, State::Failed(_)) {
            let told = std::mem::replace(&mut self.state, State::Failed(StreamError::Closed));
            if let State::Failed(error) = told {
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
        if matches!(self.state, State::Waiting(_)) || bytes.len() > WRITE_BYTES_MAX {
            return Err(StreamError::trap("write without a permit"));
        }
        self.state = State::Waiting(bytes);
        Ok(())
    }

    async fn blocking_write_and_flush(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.settle().await;
        self.tell()?;
        self.state = State::Waiting(bytes);
        self.settle().await;
        self.tell()
    }

    fn flush(&mut self) -> StreamResult<()> {
        self.tell()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.tell()?;
        Ok(if matches!(self.state, State::Waiting(_)) { 0 } else { WRITE_BYTES_MAX })
    }

    /// Called when the guest drops the stream: what it has handed over is written.
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
