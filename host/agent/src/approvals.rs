//! Approval of calls by the user (`LOOP-35` to `LOOP-47`).

mod batch;
mod standing;

use std::collections::BTreeMap;

use cofferdam_tool::{ToolDefinition, Toolset};
use serde::{Deserialize, Serialize};

pub(crate) use batch::{BatchOutcome, CallDecision, DecidableCall, GatedCall, OpenBatch, settle};
pub(crate) use standing::is_allowed;
pub use standing::{Scope, allow_always, forbid_again, standing_rules};

use crate::{FunctionCall, Session};

/// Rules for which calls of a model the user has to approve.
///
/// The strictest rule wins: a call needs approval if its source requires it
/// ([`ToolSource::needs_approval`]), as the file-access tools do for deletions, or if the mode of
/// its tool does. A call that the user has always allowed in the session needs no further approval,
/// unless the mode of the tool itself is [`ApprovalMode::Always`].
///
/// [`ToolSource::needs_approval`]: cofferdam_tool::ToolSource::needs_approval
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Approvals {
    default: ApprovalMode,
    tools: BTreeMap<String, ApprovalMode>,
}

/// Condition under which a call needs approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ApprovalMode {
    /// Every call.
    Always,
    /// Only if the tool's source requires it.
    #[default]
    Never,
    /// Unless the tool's author declares it read-only. A false declaration bypasses this, so use it
    /// only for tools of trusted authors.
    ByAnnotation,
}

impl Approvals {
    /// Sets the mode of all tools that have none of their own.
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

    /// Returns whether this call has to be approved.
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

    /// Returns whether any call of this tool may have to be approved.
    pub(crate) fn may_be_needed(&self, tool: &ToolDefinition, toolset: &Toolset) -> bool {
        self.is_by_mode(tool) || toolset.needs_approval(tool.name.as_str())
    }

    /// Returns whether the mode requires approval for every call of this tool, whatever its source
    /// says.
    fn is_by_mode(&self, tool: &ToolDefinition) -> bool {
        let mode = self.tools.get(tool.name.as_str()).copied().unwrap_or(self.default);
        match mode {
            ApprovalMode::Always => true,
            ApprovalMode::Never => false,
            ApprovalMode::ByAnnotation => tool.annotations.read_only != Some(true),
        }
    }
}
