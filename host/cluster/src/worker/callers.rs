//! Permits of a worker by caller, so that one caller does not take all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;

/// Number of calls of each caller that run. Gateways name the callers.
pub(super) struct Callers {
    calls_max: usize,
    calls: Mutex<BTreeMap<String, usize>>,
}

/// Permit for one call of a caller. Dropping it releases the permit.
pub(super) struct CallerPermit {
    callers: Arc<Callers>,
    caller: String,
}

impl Callers {
    pub(super) fn new(calls_max: usize) -> Arc<Self> {
        Arc::new(Self { calls_max, calls: Mutex::default() })
    }

    /// Takes a permit for a caller. Returns `None` if it has as many as one caller may have.
    pub(super) fn take(self: &Arc<Self>, caller: &str) -> Option<CallerPermit> {
        let mut calls = self.calls.lock();
        let count = calls.get(caller).copied().unwrap_or_default();
        if count >= self.calls_max {
            return None;
        }
        calls.insert(caller.to_owned(), count + 1);
        Some(CallerPermit { callers: Arc::clone(self), caller: caller.to_owned() })
    }
}

impl Drop for CallerPermit {
    fn drop(&mut self) {
        let mut calls = self.callers.calls.lock();
        match calls.get_mut(&self.caller) {
            Some(count) if *count > 1 => *count -= 1,
            // Callers without calls are not remembered.
            _ => drop(calls.remove(&self.caller)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_has_a_limited_number_of_permits() {
        let callers = Callers::new(2);
        let permits = [callers.take("a"), callers.take("a")];
        assert!(permits.iter().all(Option::is_some) && callers.take("a").is_none());
        assert!(callers.take("b").is_some());
        drop(permits);
        assert!(callers.calls.lock().is_empty());
        assert!(callers.take("a").is_some());
    }
}
