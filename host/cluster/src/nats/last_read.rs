//! Values of files that are read again for each connection.

use std::sync::Arc;

use parking_lot::Mutex;

use super::NatsError;

/// Value of the last connection, which is used again while its files cannot be read.
#[derive(Debug)]
pub(super) struct LastRead<T>(Mutex<Arc<T>>);

impl<T> LastRead<T> {
    pub(super) fn new(value: T) -> Self {
        Self(Mutex::new(Arc::new(value)))
    }

    /// Returns the value for a new connection, whose files were `read` again.
    pub(super) fn update(&self, read: Result<T, NatsError>) -> Arc<T> {
        let mut last = self.0.lock();
        match read {
            Ok(current) => *last = Arc::new(current),
            Err(error) => tracing::warn!(%error, "the last connection's files are used again"),
        }
        Arc::clone(&last)
    }
}
