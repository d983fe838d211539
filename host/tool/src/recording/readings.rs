//! Readings of a clock.

use serde::{Deserialize, Serialize};

/// Maximum number of different readings that are recorded.
const READINGS_MAX: usize = 65_536;

/// Readings of a clock in order: each value, and how many times in a row it was read. The value of
/// a clock that was never read has the number zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Readings(Vec<(u64, u64)>);

impl Readings {
    /// Returns whether no value is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the value of a clock that was not read yet.
    pub fn start(&mut self, value: u64) {
        if self.0.is_empty() {
            self.0.push((value, 0));
        }
    }

    /// Adds a reading. Returns false if there are too many.
    pub fn add(&mut self, value: u64) -> bool {
        let has_room = self.0.len() < READINGS_MAX;
        match self.0.last_mut() {
            Some(start) if start.1 == 0 => *start = (value, 1),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_replaced_by_the_first_reading() {
        let mut readings = Readings::default();
        readings.start(5);
        readings.start(6);
        assert_eq!(readings.runs(), [(5, 0)]);
        for value in [7, 7, 9] {
            assert!(readings.add(value));
        }
        readings.start(1);
        assert_eq!(readings.runs(), [(7, 2), (9, 1)]);
    }
}
