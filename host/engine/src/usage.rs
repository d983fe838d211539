//! Use of an engine: running and waiting calls, and their memory.

/// Calls and memory of an engine at one moment, with their limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineUsage {
    /// Number of running calls.
    pub calls: u64,
    /// Maximum number of running calls.
    pub calls_max: u64,
    /// Number of calls that wait for a permit.
    pub waiting: u64,
    /// Maximum number of calls that wait.
    pub waiting_max: u64,
    /// Bytes of memory that running calls have reserved.
    pub memory_bytes: u64,
    /// Maximum bytes of memory of all running calls.
    pub memory_bytes_max: u64,
}
