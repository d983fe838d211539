//! Tools that pages can call.

use cofferdam_tool::{ToolDefinition, Toolset};

/// Tools of a running host that pages can call, with the grants that they have.
pub trait Workbench: Send + Sync {
    /// Returns the tools that can be called now. The toolset records its calls.
    fn tools(&self) -> Toolset;

    /// Returns whether a rule of the operator forbids a call. A rule that asks for approval does
    /// not: the user of the page makes the call.
    fn forbids(&self, _tool: &ToolDefinition, _arguments: &str) -> bool {
        false
    }

    /// Returns the command that makes a call without a page, if there is one.
    fn command(&self, _tool: &ToolDefinition, _arguments: &str) -> Option<String> {
        None
    }

    /// Returns the calls and the memory that are in use now, if they are known.
    fn load(&self) -> Option<HostLoad> {
        None
    }

    /// Returns the id in the log of the call with a number ([`CallRecord::number`]).
    ///
    /// [`CallRecord::number`]: cofferdam_tool::CallRecord::number
    fn log_id(&self, _number: u64) -> Option<String> {
        None
    }
}

/// Calls and memory of a running host at one moment, with their limits.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostLoad {
    /// Number of running calls, each with a permit.
    pub calls: u64,
    /// Number of permits.
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
