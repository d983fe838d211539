//! Limits on the work and the depth of one decoding.

/// Maximum steps of one decoding. A step is about one schema applied to one value, or one value
/// copied. A one-megabyte array of integers, the most that ordinary input can cost, takes two
/// million.
const STEPS_MAX: u64 = 10_000_000;
/// Maximum number of nested schemas being applied. Values have at most 128 levels, and a level
/// takes a property and rarely more than one alternative. Each costs 4 KiB of stack in a debug
/// build, and a thread may have only 2 MiB.
const DEPTH_MAX: u32 = 320;

/// Counts down the remaining steps. Once exhausted it stays so, and nothing decoded with it is
/// used.
#[derive(Debug)]
pub(super) struct Meter {
    steps_left: u64,
    depth: u32,
    exhausted: bool,
}

impl Meter {
    pub(super) fn new() -> Self {
        Self::with_steps(STEPS_MAX)
    }

    pub(super) fn with_steps(steps_left: u64) -> Self {
        Self { steps_left, depth: 0, exhausted: false }
    }

    /// Takes `steps`. Returns false if fewer are left.
    pub(super) fn spend(&mut self, steps: u64) -> bool {
        match self.steps_left.checked_sub(steps) {
            Some(left) if !self.exhausted => self.steps_left = left,
            _ => self.exhausted = true,
        }
        !self.exhausted
    }

    /// Takes one step and goes one level down. If it returns true, the caller must call
    /// [`Meter::leave`].
    pub(super) fn enter(&mut self) -> bool {
        if self.depth >= DEPTH_MAX {
            self.exhausted = true;
        }
        if !self.spend(1) {
            return false;
        }
        self.depth += 1;
        true
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    pub(super) fn steps_left(&self) -> u64 {
        self.steps_left
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.exhausted
    }
}
