//! Rules of `[[agent.approvals]]` for the calls of MCP clients.

use std::sync::Arc;

use cofferdam_agent::{ApprovalEffect, Approvals, FunctionCall};
use cofferdam_mcp::{CallRules, RuleDecision};
use cofferdam_tool::{ToolDefinition, Toolset};

use crate::config::ConfigFile;
use crate::{Error, Operator, Result};

/// Rules of a configuration.
struct ConfiguredRules(Approvals);

/// Returns the rules of a configuration, if it has any. `toolset` has all tools, or is `None` if
/// some are not known yet.
///
/// # Errors
/// Returns an error for a rule that can match nothing, or that names an argument that its tool does
/// not have.
pub(super) fn of_config(
    config: Option<&ConfigFile>,
    toolset: Option<&Toolset>,
    operator: &Operator,
) -> Result<Option<Arc<dyn CallRules>>> {
    let Some(config) = config else { return Ok(None) };
    let approvals = config.approvals(Approvals::default())?;
    if let Some(toolset) = toolset {
        approvals.check(toolset).map_err(|error| Error::invalid(error.to_string()))?;
        operator.warn_all(approvals.misspelled(toolset));
    }
    Ok(of_approvals(&approvals))
}

/// Returns the rules, if there are any.
pub(crate) fn of_approvals(approvals: &Approvals) -> Option<Arc<dyn CallRules>> {
    let has_rules = *approvals != Approvals::default();
    has_rules.then(|| Arc::new(ConfiguredRules(approvals.clone())) as Arc<dyn CallRules>)
}

impl CallRules for ConfiguredRules {
    fn decide(&self, tool: &ToolDefinition, arguments: &str, toolset: &Toolset) -> RuleDecision {
        let call = FunctionCall {
            name: tool.name.to_string(),
            arguments: arguments.to_owned(),
            ..FunctionCall::default()
        };
        match self.0.judge(&call, tool, toolset) {
            ApprovalEffect::Allow => RuleDecision::Run,
            ApprovalEffect::Ask => RuleDecision::Ask,
            ApprovalEffect::Deny => RuleDecision::Deny,
        }
    }
}
