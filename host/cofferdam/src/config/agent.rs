//! `[agent]`: settings of the agents of `chat` and of workflows.

use std::num::NonZeroU64;

use cofferdam_agent::{
    ApprovalEffect, ApprovalRule, Approvals, BudgetLimits, LoopSettings, TokenBudget, ToolSearch,
};
use cofferdam_tool::invoke::HostValues;
use cofferdam_tool::pattern::ToolPattern;
use serde::Deserialize;
use serde_json::{Map, Value};
use toml::Spanned;

use super::agent_calls::AgentCallsTable;
use super::{ConfigError, ConfigFile};

/// Table of the settings.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case", expecting = "a table")]
pub struct AgentTable {
    /// Rules that allow, ask about or deny calls.
    approvals: Vec<Spanned<ApprovalRule>>,
    /// Settings of the loop, by the names of `LOOP-9` with `-` for `_`.
    #[serde(rename = "loop")]
    loop_settings: Option<Spanned<Map<String, Value>>>,
    /// Number of tools above which the model searches for tools; 0 for never.
    tool_search: Option<usize>,
    /// Patterns for the names of tools that the model sees without a search.
    always_load: Vec<ToolPattern>,
    /// Maximum tokens of a conversation of `chat`, or of a run of a workflow.
    budget_tokens: Option<NonZeroU64>,
    /// Values for tools of remote servers in addition to the model's arguments.
    host_values: Map<String, Value>,
    /// Store of `[stores]` for memory files.
    pub(crate) memory_files: Option<Spanned<String>>,
    /// True if agents have a todo list.
    pub(crate) todos: bool,
    /// True if conversations begin in the plan mode.
    pub(crate) plan_mode: bool,
    /// Middleware around calls.
    pub(super) calls: AgentCallsTable,
}

impl AgentTable {
    /// Returns the rules that let calls run without approval.
    pub(crate) fn allowing_rules(&self) -> impl Iterator<Item = &ApprovalRule> {
        let rules = self.approvals.iter().map(Spanned::get_ref);
        rules.filter(|rule| rule.effect == ApprovalEffect::Allow)
    }
}

impl ConfigFile {
    /// Adds the rules of `[[agent.approvals]]` to `approvals`.
    ///
    /// # Errors
    /// Returns an error for a rule that can match nothing, and for too many rules.
    pub fn approvals(&self, mut approvals: Approvals) -> Result<Approvals, ConfigError> {
        for rule in &self.config.agent.approvals {
            approvals = approvals
                .rules([rule.get_ref().clone()])
                .map_err(|error| self.error(rule.span(), error.to_string()))?;
        }
        Ok(approvals)
    }

    /// Returns a budget of `tokens`, or of `budget-tokens` of the configuration.
    #[must_use]
    pub fn budget(tokens: Option<NonZeroU64>, file: Option<&Self>) -> Option<TokenBudget> {
        let configured = || file.and_then(|file| file.config.agent.budget_tokens);
        let total = tokens.or_else(configured)?.get();
        Some(TokenBudget::new(BudgetLimits { total: Some(total), ..BudgetLimits::default() }))
    }

    /// Returns the values of `[agent.host-values]`, for tools of remote servers (`MCP-2`).
    #[must_use]
    pub fn host_values(&self) -> HostValues {
        HostValues { arguments: self.config.agent.host_values.clone(), ..HostValues::default() }
    }

    /// Returns when models search for tools; `None` for never.
    #[must_use]
    pub fn tool_search(&self) -> Option<ToolSearch> {
        let AgentTable { tool_search, always_load, .. } = &self.config.agent;
        let search = match tool_search {
            Some(0) => return None,
            Some(tools_max) => ToolSearch::above(*tools_max),
            None => ToolSearch::default(),
        };
        Some(search.always_load(always_load.iter().cloned()))
    }

    /// Returns the settings of `[agent.loop]`; settings that are left out have their defaults.
    ///
    /// # Errors
    /// Returns an error for a setting that is unknown or out of range.
    pub fn loop_settings(&self) -> Result<LoopSettings, ConfigError> {
        let Some(written) = &self.config.agent.loop_settings else {
            return Ok(LoopSettings::default());
        };
        LoopSettings::from_json(&loop_names(written.get_ref()))
            .map_err(|error| self.error(written.span(), error.to_string()))
    }
}

/// Returns settings of the loop by the names of `LOOP-9`, from names with `-`.
pub(crate) fn loop_names(settings: &Map<String, Value>) -> Map<String, Value> {
    settings.iter().map(|(name, value)| (name.replace('-', "_"), value.clone())).collect()
}
