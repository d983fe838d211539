//! How much is measured.

/// A full measurement, or a look at whether everything still works.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Effort {
    pub(crate) is_quick: bool,
}

impl Effort {
    /// Rounds that are counted.
    pub(crate) fn rounds(self, full: usize) -> usize {
        if self.is_quick { 1 } else { full }
    }

    /// Rounds that warm what there is to warm and are not counted.
    pub(crate) fn warming(self) -> usize {
        if self.is_quick { 0 } else { 2 }
    }

    /// Operations in one round of one side.
    pub(crate) fn times(self, full: u32) -> u32 {
        if self.is_quick { full.min(2) } else { full }
    }
}
