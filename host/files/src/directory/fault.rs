//! Points at which tests can interrupt a commit. Empty outside of the tests of this crate.

/// Step that a commit is about to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum CommitStep {
    Stage,
    Flush,
    WriteRecord,
    NameRecord,
    Vacate,
    LookAtVacated,
    EnterPhase,
    Fill,
    Unfill,
    Unvacate,
    RemoveRecord,
    Clean,
    RemoveDirectory,
}

#[cfg(not(test))]
#[derive(Debug)]
pub(super) struct Faults;

#[cfg(not(test))]
impl Faults {
    pub(super) fn new() -> Self {
        Self
    }

    #[expect(
        clippy::unused_self,
        clippy::unnecessary_wraps,
        reason = "in tests it returns injected faults"
    )]
    pub(super) fn point(&self, _: CommitStep) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) use in_tests::{FaultPlan, Faults, SimulatedKill};

#[cfg(test)]
mod in_tests {
    use std::io;

    use parking_lot::Mutex;

    use super::CommitStep;

    /// Panic payload that simulates the kill of a host.
    pub(in crate::directory) struct SimulatedKill;

    pub(in crate::directory) struct Faults(Mutex<FaultState>);

    #[derive(Default)]
    struct FaultState {
        plan: FaultPlan,
        passed: Vec<CommitStep>,
    }

    /// Faults to inject, each at the step with the given number.
    #[derive(Default)]
    pub(in crate::directory) struct FaultPlan {
        pub(in crate::directory) fails_at: Option<usize>,
        pub(in crate::directory) is_killed_at: Option<usize>,
        pub(in crate::directory) meanwhile: Option<(usize, Box<dyn FnOnce() + Send>)>,
    }

    impl Faults {
        pub(in crate::directory) fn new() -> Self {
            Self(Mutex::default())
        }

        /// Sets the faults and restarts the count of steps.
        pub(in crate::directory) fn set(&self, plan: FaultPlan) {
            *self.0.lock() = FaultState { plan, passed: Vec::new() };
        }

        /// Returns the steps since [`set`](Self::set).
        pub(in crate::directory) fn passed(&self) -> Vec<CommitStep> {
            self.0.lock().passed.clone()
        }

        pub(in crate::directory) fn point(&self, step: CommitStep) -> io::Result<()> {
            let mut state = self.0.lock();
            let number = state.passed.len();
            state.passed.push(step);
            if let Some((_, act)) = state.plan.meanwhile.take_if(|(at, _)| *at == number) {
                act();
            }
            let (is_killed, fails) =
                (state.plan.is_killed_at == Some(number), state.plan.fails_at == Some(number));
            drop(state);
            if is_killed {
                std::panic::resume_unwind(Box::new(SimulatedKill));
            }
            if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }
}
