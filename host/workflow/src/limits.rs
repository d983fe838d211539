//! Limits of a run.

/// Default maximum number of supersteps of one run (`WF-6`).
pub const MAX_ITERATIONS: u64 = 100;

/// Limits of a run. Exceeding one ends the run with an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkflowLimits {
    /// Maximum number of supersteps (`WF-6`). The count starts again when the user answers a
    /// request, because runs with requests can be long.
    pub max_iterations: u64,
    /// Maximum number of messages between two supersteps, including those that fan-ins hold and
    /// open requests. The default allows an executor to send one message for each line of a file
    /// with a thousand lines.
    pub messages_max: usize,
    /// Maximum bytes of the state of a run between two supersteps, which is held in memory and in
    /// each checkpoint.
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
