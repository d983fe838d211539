//! Tools of a server for the pages of an inspector.

use std::path::PathBuf;
use std::sync::Arc;

use cofferdam_inspector::Workbench;
use cofferdam_mcp::{RuleDecision, Server};
use cofferdam_tool::{ToolDefinition, Toolset};

use crate::flags;
use crate::records::CallLog;

/// The tools that clients of a server see, with their grants.
pub(super) struct ServedTools {
    pub(super) server: Server,
    pub(super) call_log: Option<Arc<CallLog>>,
    pub(super) config: Option<PathBuf>,
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
        let config = self.config.as_ref()?.display().to_string();
        let (arguments, config) = (flags::word(arguments), flags::word(&config));
        Some(format!("cofferdam call {} {arguments} --config {config}", tool.name))
    }

    fn log_id(&self, number: u64) -> Option<String> {
        self.call_log.as_ref().map(|log| log.recorder().call_id(number))
    }
}
