//! Limits on the calls and failures of a tool (`RES-23`).

use std::num::NonZeroU32;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// Limits on the use of one tool. By default there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "budgets by name")]
pub struct UsageLimits {
    /// Maximum number of calls.
    pub max_invocations: Option<NonZeroU32>,
    /// Maximum number of calls that end in a reported failure or an error. Cancellation is neither.
    pub max_invocation_failures: Option<NonZeroU32>,
}

/// Limits of one tool and their current use.
///
/// The counts live as long as this value, so code that builds a new toolset must pass the old value
/// on.
#[derive(Debug, Default)]
pub struct Usage {
    limits: UsageLimits,
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    invocations: u32,
    failures: u32,
}

/// Limit that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsedUp {
    Invocations,
    Failures,
}

impl Usage {
    /// Returns a counter with nothing used.
    #[must_use]
    pub fn new(limits: UsageLimits) -> Self {
        Self { limits, counts: Mutex::default() }
    }

    /// Counts a call that is about to start.
    pub(crate) fn start(&self) -> Result<(), UsedUp> {
        let mut counts = self.counts.lock();
        let reached =
            |limit: Option<NonZeroU32>, count| limit.is_some_and(|limit| count >= limit.get());
        if reached(self.limits.max_invocations, counts.invocations) {
            return Err(UsedUp::Invocations);
        }
        if reached(self.limits.max_invocation_failures, counts.failures) {
            return Err(UsedUp::Failures);
        }
        counts.invocations = counts.invocations.saturating_add(1);
        Ok(())
    }

    /// Counts a call that has failed.
    pub(crate) fn failed(&self) {
        let mut counts = self.counts.lock();
        counts.failures = counts.failures.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_limit_is_the_number_of_calls_that_still_start() {
        let two = NonZeroU32::new(2);
        let calls = Usage::new(UsageLimits { max_invocations: two, ..UsageLimits::default() });
        assert_eq!(
            [calls.start(), calls.start(), calls.start()],
            [Ok(()), Ok(()), Err(UsedUp::Invocations)]
        );

        let failures =
            Usage::new(UsageLimits { max_invocation_failures: two, ..UsageLimits::default() });
        for _ in 0..2 {
            assert_eq!(failures.start(), Ok(()));
            failures.failed();
        }
        assert_eq!(failures.start(), Err(UsedUp::Failures));
    }

    #[test]
    fn zero_is_no_limit_that_can_be_written() {
        let read = |json: &str| serde_json::from_str::<UsageLimits>(json);
        assert!(read(r#"{"max-invocations":0}"#).is_err());
        assert!(read(r#"{"max-invocations":1}"#).is_ok());
    }
}
