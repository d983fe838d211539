//! Amount of measuring.

/// A full measurement, or a short test that everything works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) is_quick: bool,
}

impl Effort {
    /// Returns the number of counted rounds.
    pub(crate) fn rounds(self, full: usize) -> usize {
        if self.is_quick { 1 } else { full }
    }

    /// Returns the number of rounds that warm caches and are not counted.
    pub(crate) fn warming(self) -> usize {
        if self.is_quick { 0 } else { 2 }
    }

    /// Returns the number of operations in one round of one side.
    pub(crate) fn times(self, full: u32) -> u32 {
        if self.is_quick { full.min(2) } else { full }
    }
}
