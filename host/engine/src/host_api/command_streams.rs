//! Command line and standard streams of a command.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;

use super::output::OutputSink;

/// Command line and streams of one run.
pub(crate) struct CommandStreams {
    /// Command line, beginning with the name of the program.
    pub(crate) arguments: Vec<String>,
    pub(crate) stdin: Bytes,
    pub(crate) output: CapturedOutput,
}

/// Error that ends a command which writes more than a result may have.
#[derive(Debug, thiserror::Error)]
#[error("the command has written more than {bytes_max} bytes")]
pub(crate) struct OutputExceeded {
    bytes_max: usize,
}

/// Keeps all that a command writes to standard output, up to a limit.
#[derive(Clone)]
pub(crate) struct CapturedOutput {
    bytes: Arc<Mutex<Vec<u8>>>,
    bytes_max: usize,
}

impl CapturedOutput {
    pub(crate) fn new(bytes_max: u64) -> Self {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        Self { bytes: Arc::default(), bytes_max }
    }

    /// Takes what was written.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.bytes.lock())
    }
}

impl OutputSink for CapturedOutput {
    type Error = OutputExceeded;

    fn push(&self, more: &[u8]) -> Result<(), OutputExceeded> {
        let mut bytes = self.bytes.lock();
        if bytes.len().saturating_add(more.len()) > self.bytes_max {
            return Err(OutputExceeded { bytes_max: self.bytes_max });
        }
        bytes.extend_from_slice(more);
        Ok(())
    }
}
