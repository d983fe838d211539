//! State of a worker, for monitoring.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Worker, WorkerState};
use crate::bus::BusState;

/// State of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerStatus {
    /// Number of calls that run or are about to. Each has a permit.
    pub calls: usize,
    /// Number of permits.
    pub calls_max: usize,
    /// True if the worker is about to end, so that gateways leave it.
    pub is_draining: bool,
    /// State of the connection to the bus.
    pub bus: BusState,
}

/// View of a worker. It can outlive the worker, and clones are of the same worker.
#[derive(Clone)]
pub struct WorkerMonitor {
    state: Arc<WorkerState>,
}

impl Worker {
    /// Returns a view of this worker.
    #[must_use]
    pub fn monitor(&self) -> WorkerMonitor {
        WorkerMonitor { state: Arc::clone(&self.state) }
    }
}

impl WorkerMonitor {
    /// Returns the current state of the worker.
    #[must_use]
    pub fn status(&self) -> WorkerStatus {
        let state = &self.state;
        // Earlier workers have the same permits.
        let calls_max = state.options.calls_max;
        WorkerStatus {
            calls: calls_max.saturating_sub(state.permits.calls.available_permits()),
            calls_max,
            is_draining: state.is_unlisted.load(Ordering::Relaxed),
            bus: state.bus.state(),
        }
    }
}
