//! Tools of a server for the pages of an inspector.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_engine::Engine;
use cofferdam_inspector::{HostLoad, Workbench};
use cofferdam_mcp::{RuleDecision, Server};
use cofferdam_tool::{ToolDefinition, Toolset};

use crate::inspector;
use crate::records::CallLog;

/// The tools that clients of a server see, with their grants.
pub(super) struct ServedTools {
    pub(super) server: Server,
    pub(super) call_log: Option<Arc<CallLog>>,
    pub(super) config: Option<PathBuf>,
    pub(super) engine: Engine,
}

impl Workbench for ServedTools {
    fn tools(&self) -> Toolset {
        self.server.listed_tools()
    }

    fn forbids(&self, tool: &ToolDefinition, arguments: &str) -> bool {
        let decision = self.server.rule_decision(tool, arguments);
        decision.is_some_and(|decision| decision == RuleDecision::Deny)
    }

    fn command(&self, tool: &ToolDefinition, arguments: &str) -> Option<String> {
        let config = self.config.as_deref()?;
        Some(inspector::call_command(tool.name.as_str(), arguments, Some(config)))
    }

    fn load(&self) -> Option<HostLoad> {
        let usage = self.engine.usage();
        Some(HostLoad {
            calls: usage.calls,
            calls_max: usage.calls_max,
            waiting: usage.waiting,
            waiting_max: usage.waiting_max,
            memory_bytes: usage.memory_bytes,
            memory_bytes_max: usage.memory_bytes_max,
        })
    }

    fn log_id(&self, number: u64) -> Option<String> {
        self.call_log.as_ref().map(|log| log.recorder().call_id(number))
    }
}
