//! Where a commit can be interrupted, for tests. Outside of the tests of this crate there is
//! nothing here.

/// What a commit is about to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Step {
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
        reason = "in tests it fails when it was told to"
    )]
    pub(super) fn point(&self, _: Step) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
pub(super) use in_tests::{Faults, Killed, Plan};

#[cfg(test)]
mod in_tests {
    use std::io;
    use std::sync::{Mutex, MutexGuard, PoisonError};

    use super::Step;

    /// Thrown where a host would have been killed.
    pub(in crate::directory) struct Killed;

    pub(in crate::directory) struct Faults(Mutex<State>);

    #[derive(Default)]
    struct State {
        plan: Plan,
        passed: Vec<Step>,
    }

    /// What happens at the steps of these numbers.
    #[derive(Default)]
    pub(in crate::directory) struct Plan {
        pub(in crate::directory) fails_at: Option<usize>,
        pub(in crate::directory) is_killed_at: Option<usize>,
        pub(in crate::directory) meanwhile: Option<(usize, Box<dyn FnOnce() + Send>)>,
    }

    impl Faults {
        pub(in crate::directory) fn new() -> Self {
            Self(Mutex::default())
        }

        fn state(&self) -> MutexGuard<'_, State> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner)
        }

        /// Starts to count anew.
        pub(in crate::directory) fn set(&self, plan: Plan) {
            *self.state() = State { plan, passed: Vec::new() };
        }

        /// The steps since then.
        pub(in crate::directory) fn passed(&self) -> Vec<Step> {
            self.state().passed.clone()
        }

        pub(in crate::directory) fn point(&self, step: Step) -> io::Result<()> {
            let mut state = self.state();
            let number = state.passed.len();
            state.passed.push(step);
            if let Some((_, act)) = state.plan.meanwhile.take_if(|(at, _)| *at == number) {
                act();
            }
            let (is_killed, fails) =
                (state.plan.is_killed_at == Some(number), state.plan.fails_at == Some(number));
            drop(state);
            if is_killed {
                std::panic::resume_unwind(Box::new(Killed));
            }
            if fails { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
        }
    }
}
