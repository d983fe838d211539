//! What one requester may use.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::meter::Meter;

/// What one requester, such as a call, may use in all of its requests together. Clones share it.
#[derive(Debug, Clone)]
pub struct Allowance {
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) meter: Arc<Meter>,
}

impl Allowance {
    /// At most `requests_max` requests under way at one time, one more waits; and at most so many
    /// bytes in each direction, heads and bodies together, as they are on the connection inside of
    /// TLS.
    #[must_use]
    pub fn new(requests_max: u32, sent_bytes_max: u64, received_bytes_max: u64) -> Self {
        let places = usize::try_from(requests_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            requests: Arc::new(Semaphore::new(places.min(Semaphore::MAX_PERMITS))),
            meter: Arc::new(Meter::new(sent_bytes_max, received_bytes_max)),
        }
    }

    /// Bytes sent so far.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.meter.sent_bytes()
    }

    /// Bytes received so far.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.meter.received_bytes()
    }
}
