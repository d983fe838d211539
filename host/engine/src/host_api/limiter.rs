//! Limits the memory, tables and instances of a call, summed over all its instances.
//!
//! wasmtime's own limits apply per memory and do not count tables, so a component with many
//! memories would have many times the limit. This limiter keeps one sum.

use std::sync::Arc;

use cofferdam_tool::record::MemoryRefusal;
use wasmtime::ResourceLimiter;

use crate::scheduler::admission::CallPermit;

/// Bytes that one table element takes in the host.
const TABLE_ELEMENT_BYTES: usize = 8;

/// Maximum bytes of a call that are not reserved from the process, such as those of small tables.
/// Each reservation takes a lock that all calls share.
const UNRESERVED_BYTES_MAX: u64 = 64 * 1024;

/// Running sums of one call.
pub(crate) struct Limiter {
    /// Permit through which memory of the process is reserved.
    permit: Arc<CallPermit>,
    bytes: u64,
    /// Part of `bytes` that is reserved from the process.
    bytes_reserved: u64,
    bytes_peak: u64,
    bytes_max: u64,
    instances_max: usize,
    refused: Option<MemoryRefusal>,
}

impl Limiter {
    /// Creates a limiter that also reserves what it grants from the process, through `permit`,
    /// except for [`UNRESERVED_BYTES_MAX`].
    pub(crate) fn new(bytes_max: u64, instances_max: u32, permit: Arc<CallPermit>) -> Self {
        let instances_max = usize::try_from(instances_max).unwrap_or(usize::MAX);
        Self {
            permit,
            bytes: 0,
            bytes_reserved: 0,
            bytes_peak: 0,
            bytes_max,
            instances_max,
            refused: None,
        }
    }

    /// Returns the cause of the last refused growth, if any. A guest may continue after it
    /// (`RES-11`); one that aborts afterwards has hit the limit.
    pub(crate) fn refused(&self) -> Option<MemoryRefusal> {
        self.refused
    }

    /// Returns the largest sum so far, in bytes.
    pub(crate) fn bytes_peak(&self) -> u64 {
        self.bytes_peak
    }

    fn grow(&mut self, current_bytes: usize, desired_bytes: usize) -> bool {
        let added = u64::try_from(desired_bytes.saturating_sub(current_bytes)).unwrap_or(u64::MAX);
        let sum = self.bytes.saturating_add(added);
        if sum > self.bytes_max {
            self.refused = Some(MemoryRefusal::Limit);
            return false;
        }
        let unreserved = sum.saturating_sub(self.bytes_reserved);
        if unreserved > UNRESERVED_BYTES_MAX {
            if !self.permit.reserve(unreserved) {
                self.refused = Some(MemoryRefusal::Process);
                return false;
            }
            self.bytes_reserved = sum;
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
        Ok(self.grow(
            current.saturating_mul(TABLE_ELEMENT_BYTES),
            desired.saturating_mul(TABLE_ELEMENT_BYTES),
        ))
    }

    fn instances(&self) -> usize {
        self.instances_max
    }
}

#[cfg(test)]
mod tests {
    use cofferdam_tool::PluginName;

    use super::*;
    use crate::ProcessBudget;
    use crate::scheduler::admission::{Admission, AdmissionOutcome};

    fn permit(admission: &Admission) -> Arc<CallPermit> {
        match admission.admit(&PluginName::new("plugin").unwrap()) {
            Ok(AdmissionOutcome::Now(permit)) => Arc::new(permit),
            _ => panic!("no permit is free"),
        }
    }

    fn limiter(bytes_max: u64) -> Limiter {
        let budget = ProcessBudget { memory_bytes_max: u64::MAX, ..ProcessBudget::default() };
        Limiter::new(bytes_max, 4, permit(&Admission::new(8, budget)))
    }

    #[test]
    fn memories_and_tables_share_one_sum() {
        let mut limiter = limiter(1000);
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.memory_growing(0, 400, None).unwrap());
        assert!(limiter.table_growing(0, 25, None).unwrap());
        assert_eq!(limiter.refused(), None);
        assert!(!limiter.memory_growing(400, 401, None).unwrap());
        assert_eq!(limiter.refused(), Some(MemoryRefusal::Limit));
        assert_eq!(limiter.bytes_peak(), 1000);
    }

    #[test]
    fn a_growth_that_overflows_is_refused() {
        let mut limiter = limiter(u64::MAX - 1);
        assert!(limiter.memory_growing(0, 10, None).unwrap());
        assert!(!limiter.memory_growing(0, usize::MAX, None).unwrap());
    }

    #[test]
    fn a_growth_beyond_the_process_is_refused_until_others_are_done() {
        let budget = ProcessBudget { memory_bytes_max: 800 << 10, ..ProcessBudget::default() };
        let admission = Admission::new(8, budget);
        let mut first = Limiter::new(1000 << 10, 4, permit(&admission));
        let mut second = Limiter::new(1000 << 10, 4, permit(&admission));
        assert!(first.memory_growing(0, 600 << 10, None).unwrap());
        assert!(!second.memory_growing(0, 101 << 10, None).unwrap());
        assert_eq!(second.refused(), Some(MemoryRefusal::Process));
        drop(first);
        assert!(second.memory_growing(0, 101 << 10, None).unwrap());
    }

    #[test]
    fn small_growths_are_reserved_together() {
        let admission = Admission::new(8, ProcessBudget::default());
        let mut limiter = Limiter::new(1000 << 10, 4, permit(&admission));
        let reserved = || admission.usage().memory_bytes;
        assert!(limiter.memory_growing(0, 40 << 10, None).unwrap());
        assert_eq!(reserved(), 0);
        assert!(limiter.memory_growing(0, 30 << 10, None).unwrap());
        assert_eq!(reserved(), 70 << 10);
        assert!(limiter.table_growing(0, 8, None).unwrap());
        assert_eq!(reserved(), 70 << 10);
        drop(limiter);
        assert_eq!(reserved(), 0);
    }
}
