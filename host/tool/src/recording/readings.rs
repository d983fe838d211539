//! Readings of a clock.

use serde::{Deserialize, Serialize};

/// Maximum number of different readings that are recorded.
const READINGS_MAX: usize = 65_536;

/// Readings of a clock in order: each value, and how many times in a row it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Readings(Vec<(u64, u64)>);

impl Readings {
    /// Returns whether the clock was never read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a reading. Returns false if there are too many.
    pub fn add(&mut self, value: u64) -> bool {
        let has_room = self.0.len() < READINGS_MAX;
        match self.0.last_mut() {
            Some((last, times)) if *last == value => *times = times.saturating_add(1),
            _ if has_room => self.0.push((value, 1)),
            _ => return false,
        }
        true
    }

    /// Returns the runs of equal readings: value and number.
    #[must_use]
    pub fn runs(&self) -> &[(u64, u64)] {
        &self.0
    }
}
