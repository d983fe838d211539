//! Limits for one requester.

use std::sync::Arc;

use tokio::sync::Semaphore;

use crate::meter::Meter;

/// Limits for all requests of one requester, such as a plugin call, taken together. Clones share
/// the limits and the counts.
#[derive(Debug, Clone)]
pub struct Allowance {
    pub(crate) requests: Arc<Semaphore>,
    pub(crate) meter: Arc<Meter>,
}

impl Allowance {
    /// Returns an allowance of `requests_max` concurrent requests, beyond which requests wait, and
    /// of that many bytes in each direction. The bytes cover heads and bodies, counted inside TLS.
    #[must_use]
    pub fn new(requests_max: u32, sent_bytes_max: u64, received_bytes_max: u64) -> Self {
        let permits = usize::try_from(requests_max).unwrap_or(Semaphore::MAX_PERMITS);
        Self {
            requests: Arc::new(Semaphore::new(permits.min(Semaphore::MAX_PERMITS))),
            meter: Arc::new(Meter::new(sent_bytes_max, received_bytes_max)),
        }
    }

    /// Counts bytes that are sent without a connection, such as to a recorded response. Returns
    /// whether the limit allows them; if not, none are counted.
    #[must_use]
    pub fn count_sent(&self, bytes: usize) -> bool {
        self.meter.count_sent(bytes)
    }

    /// Returns the number of bytes sent so far.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.meter.sent_bytes()
    }

    /// Returns the number of bytes received so far.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.meter.received_bytes()
    }
}
