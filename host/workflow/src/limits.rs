//! Limits of a run.

/// Default number of supersteps of one run (`WF-6`).
pub const MAX_ITERATIONS: u64 = 100;

/// Limits of a run. What is over a limit ends the run with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkflowLimits {
    /// Supersteps (`WF-6`), counted anew when a user has answered: a run that waits for users takes
    /// long.
    pub max_iterations: u64,
    /// Messages that wait for the next step, those of fan-ins and open requests included. A step
    /// that sends each of a thousand lines of a file is fine.
    pub messages_max: usize,
    /// Bytes of everything that a run knows between two steps. A checkpoint holds it, and so does
    /// memory.
    pub bytes_max: usize,
}

impl Default for WorkflowLimits {
    fn default() -> Self {
        Self { max_iterations: MAX_ITERATIONS, messages_max: 10_000, bytes_max: 64 << 20 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_what_is_documented() {
        let limits = WorkflowLimits::default();
        assert_eq!(
            (limits.max_iterations, limits.messages_max, limits.bytes_max),
            (100, 10_000, 67_108_864)
        );
    }
}
