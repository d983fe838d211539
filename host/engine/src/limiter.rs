//! Bounds what a call's instances may hold, summed over all of them.
//!
//! wasmtime's own limits are per memory and count no tables, so a component with many memories would have many times
//! the limit. This limiter keeps one sum.

use wasmtime::ResourceLimiter;

/// Bytes that one table element takes in the host.
const TABLE_ELEMENT_BYTES: usize = 8;

/// The running sum of one call.
#[derive(Debug)]
pub(crate) struct Limiter {
    bytes: u64,
    bytes_peak: u64,
    bytes_max: u64,
    instances_max: usize,
    refused: bool,
}

impl Limiter {
    pub(crate) fn new(bytes_max: u64, instances_max: u32) -> Self {
        let instances_max = usize::try_from(instances_max).unwrap_or(usize::MAX);
        Self { bytes: 0, bytes_peak: 0, bytes_max, instances_max, refused: false }
    }

    /// Whether a growth was refused. A guest may live with that (`RES-11`); one that aborts afterwards has run into
    /// the limit.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused
    }

    /// The largest sum so far, in bytes.
    pub(crate) fn bytes_peak(&self) -> u64 {
        self.bytes_peak
    }

    fn grow(&mut self, current_bytes: usize, desired_bytes: usize) -> bool {
        let added = u64::try_from(desired_bytes.saturating_sub(current_bytes)).unwrap_or(u64::MAX);
        let sum = self.bytes.saturating_add(added);
        if sum > self.bytes_max {
            self.refused = true;
            return false;
        }
        self.bytes = sum;
        self.bytes_peak = self.bytes_peak.max(sum);
        true
    }
}

impl ResourceLimiter for Limiter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self.grow(current, desired))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        _maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        Ok(self
            .grow(current.saturating_mul(TABLE_ELEMENT_BYTES), desired.saturating_mul(TABLE_ELEMENT_BYTES)))
    }

    fn instances(&self) -> usize {
        self.instances_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_and_tables_share_one_sum() {
        let mut limiter = Limiter::new(1000, 4);
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.table_growing(0, 25, None).unwrap());
        assert!(!limiter.has_refused());
        assert!(!limiter.memory_growing(400, 401, None).unwrap());
        assert!(limiter.has_refused());
        assert_eq!(limiter.bytes_peak(), 1000);
    }

    #[test]
    fn a_growth_that_overflows_is_refused() {
        let mut limiter = Limiter::new(u64::MAX - 1, 4);
        assert!(limiter.memory_growing(0, 10, None).unwrap());
        assert!(!limiter.memory_growing(0, usize::MAX, None).unwrap());
    }
}
