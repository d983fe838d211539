//! Which calls a person has to approve, and what was approved (`LOOP-35` to `LOOP-47`).

mod batch;
mod standing;

use std::collections::BTreeMap;

use cofferdam_tool::{ToolDefinition, Toolset};
use serde::{Deserialize, Serialize};

pub(crate) use batch::{Answered, Decided, Decision, Gated, OpenBatch, settle};
pub(crate) use standing::is_allowed;
pub use standing::{Scope, allow_always, forbid_again, standing_rules};

use crate::{FunctionCall, Session};

/// Which calls of a model a person has to approve.
///
/// The strictest wins: a call is asked for if its source says so ([`ToolSource::needs_approval`]),
/// as the file-access tools do of deleting, or if the mode for its tool does. What was allowed for
/// always in a session is not asked for again, except where the mode of the tool itself is
/// [`ApprovalMode::Always`].
///
/// [`ToolSource::needs_approval`]: cofferdam_tool::ToolSource::needs_approval
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    default: ApprovalMode,
    tools: BTreeMap<String, ApprovalMode>,
}

/// When a call is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Each time.
    Always,
    /// Only if the tool's source says so.
    #[default]
    Never,
    /// Unless the tool's author says that it changes nothing. An author who lies gets past this: it
    /// is for tools of people one trusts.
    ByAnnotation,
}

impl Approvals {
    /// The mode of all tools that have none of their own.
    #[must_use]
    pub fn by_default(mode: ApprovalMode) -> Self {
        Self { default: mode, tools: BTreeMap::new() }
    }

    /// Sets the mode of one tool.
    #[must_use]
    pub fn with(mut self, tool: impl Into<String>, mode: ApprovalMode) -> Self {
        self.tools.insert(tool.into(), mode);
        self
    }

    /// Whether this call has to be approved.
    pub(crate) fn are_needed(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
        session: Option<&Session>,
    ) -> bool {
        if self.tools.get(&call.name) == Some(&ApprovalMode::Always) {
            return true;
        }
        let arguments = (!call.arguments.is_empty()).then_some(call.arguments.as_bytes());
        let is_needed =
            self.is_by_mode(tool) || toolset.needs_approval_for(tool.name.as_str(), arguments);
        let is_allowed = || {
            let origin = toolset.origin(&call.name);
            session.zip(origin).is_some_and(|(session, origin)| is_allowed(session, call, &origin))
        };
        is_needed && !is_allowed()
    }

    /// Whether some call of this tool may have to be approved.
    pub(crate) fn may_be_needed(&self, tool: &ToolDefinition, toolset: &Toolset) -> bool {
        self.is_by_mode(tool) || toolset.needs_approval(tool.name.as_str())
    }

    /// Returns whether every call of this tool has to be approved, whatever its source says.
    fn is_by_mode(&self, tool: &ToolDefinition) -> bool {
        let mode = self.tools.get(tool.name.as_str()).copied().unwrap_or(self.default);
        match mode {
            ApprovalMode::Always => true,
            ApprovalMode::Never => false,
            ApprovalMode::ByAnnotation => tool.annotations.read_only != Some(true),
        }
    }
}
