//! Approval of calls by the user (`LOOP-35` to `LOOP-47`).

mod batch;
mod path;
mod program;
mod rules;
mod standing;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use cofferdam_tool::invoke::{ApprovalNeed, InnerCall};
use cofferdam_tool::origin::ToolOrigin;
use cofferdam_tool::{ToolDefinition, Toolset};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use batch::open_requests;
pub(crate) use batch::{
    BatchOutcome, CallDecision, DecidableCall, GatedCall, OpenBatch, forget, settle,
};
pub(crate) use program::SuspendedCall;
pub use rules::{ApprovalEffect, ApprovalRule, ArgumentPattern, InvalidApprovalRule};
pub(crate) use standing::is_allowed;
pub use standing::{Scope, allow_always, forbid_again, standing_rules};

use crate::{ApprovalRequest, FunctionCall, Session};

/// Rules for which calls of a model the user has to approve.
///
/// The strictest rule wins: a call needs approval if its source requires it
/// ([`ToolSource::needs_approval`]), as the file-access tools do for deletions, or if the mode of
/// its tool does. A call that the user has always allowed in the session needs no further approval,
/// unless the mode of the tool itself is [`ApprovalMode::Always`].
///
/// [Rules](ApprovalRule) about arguments come before all of this: a call that one denies does not
/// run, the user is asked about a call that one asks about, and a call that one allows needs no
/// approval (`LOOP-51`).
///
/// [`ToolSource::needs_approval`]: cofferdam_tool::ToolSource::needs_approval
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Approvals {
    default: ApprovalMode,
    tools: BTreeMap<String, ApprovalMode>,
    rules: Vec<ApprovalRule>,
    runs_others: bool,
    suspends_programs: bool,
    callback: Option<ApprovalCallback>,
}

/// Function of the program that decides about calls.
#[derive(Clone)]
struct ApprovalCallback(Arc<DecideCall>);

type DecideCall = dyn Fn(&FunctionCall, &ToolDefinition) -> Option<ApprovalEffect> + Send + Sync;

impl PartialEq for ApprovalCallback {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl std::fmt::Debug for ApprovalCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApprovalCallback").finish_non_exhaustive()
    }
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
        Self { default: mode, ..Self::default() }
    }

    /// Sets the mode of one tool.
    #[must_use]
    pub fn with(mut self, tool: impl Into<String>, mode: ApprovalMode) -> Self {
        self.tools.insert(tool.into(), mode);
        self
    }

    /// Adds rules about arguments.
    ///
    /// # Errors
    /// If a rule can match nothing, or there are too many. [`AgentBuilder::build`] checks that the
    /// tools have the arguments.
    ///
    /// [`AgentBuilder::build`]: crate::AgentBuilder::build
    pub fn rules(
        mut self,
        rules: impl IntoIterator<Item = ApprovalRule>,
    ) -> Result<Self, InvalidApprovalRule> {
        self.rules.extend(rules);
        rules::check(&self.rules)?;
        Ok(self)
    }

    /// Returns a warning for each rule and each mode that matches no tool and is probably a
    /// mistake, because a rule that denies calls of a misspelled tool denies nothing. It names a
    /// tool that does not exist although one has a similar name, an origin that no tool has, or,
    /// for all tools, arguments that no tool has. [`AgentBuilder::build`] logs these warnings.
    ///
    /// [`AgentBuilder::build`]: crate::AgentBuilder::build
    #[must_use]
    pub fn misspelled(&self, toolset: &Toolset) -> Vec<String> {
        let toolset = toolset.unrestricted();
        let is_unknown = |name: &&String| toolset.definition(name).is_err();
        let modes = self.tools.keys().filter(is_unknown);
        let modes = modes.filter_map(|name| rules::misspelled(name, "a mode of", toolset));
        modes.chain(self.rules.iter().filter_map(|rule| rule.objection(toolset))).collect()
    }

    /// Sets a function that decides about calls like a rule. `None` leaves the decision to the
    /// rules and modes. It must not block.
    #[must_use]
    pub fn decide(
        mut self,
        decide: impl Fn(&FunctionCall, &ToolDefinition) -> Option<ApprovalEffect>
        + Send
        + Sync
        + 'static,
    ) -> Self {
        self.callback = Some(ApprovalCallback(Arc::new(decide)));
        self
    }

    /// Sets whether the calls of a reply that need no approval run at once, while the user is asked
    /// about the others (`LOOP-55`). By default none of the reply's calls run until then
    /// (`LOOP-35`).
    #[must_use]
    pub fn run_others_at_once(mut self, runs_others: bool) -> Self {
        self.runs_others = runs_others;
        self
    }

    /// Sets whether a program of the model waits in the session if it makes a call that needs
    /// approval and no user can be asked (`LOOP-71`). By default such a call fails.
    #[must_use]
    pub fn suspend_programs(mut self, suspends_programs: bool) -> Self {
        self.suspends_programs = suspends_programs;
        self
    }

    /// Returns whether programs can wait in the session.
    pub(crate) fn suspends_programs(&self) -> bool {
        self.suspends_programs
    }

    /// Returns whether calls that need no approval run while the user is asked about others.
    pub(crate) fn runs_others(&self) -> bool {
        self.runs_others
    }

    /// Decides about a call that no agent makes, such as a call by a client of a server. Only a
    /// call that is allowed runs without approval.
    #[must_use]
    pub fn judge(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
    ) -> ApprovalEffect {
        if self.deny(call, tool, toolset) {
            ApprovalEffect::Deny
        } else if self.are_needed(call, tool, toolset, None) {
            ApprovalEffect::Ask
        } else {
            ApprovalEffect::Allow
        }
    }

    /// Checks that rules name only arguments that the tools have.
    ///
    /// # Errors
    /// The first rule that names another argument.
    pub fn check(&self, toolset: &Toolset) -> Result<(), InvalidApprovalRule> {
        let known = |rule: &ApprovalRule| match toolset.definition(&rule.tool) {
            Ok(tool) => rule.check_tool(tool),
            // A context provider or middleware may add the tool later.
            Err(_) => Ok(()),
        };
        self.rules.iter().try_for_each(known)
    }

    fn effect(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
    ) -> Option<ApprovalEffect> {
        self.effect_of(call, tool, toolset.origin(&call.name).as_ref())
    }

    fn effect_of(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        origin: Option<&ToolOrigin>,
    ) -> Option<ApprovalEffect> {
        let by_rule = rules::effect(&self.rules, call, tool, origin);
        let by_callback = self.callback.as_ref().and_then(|callback| callback.0(call, tool));
        by_rule.max(by_callback)
    }

    /// Returns whether a rule denies this call.
    pub(crate) fn deny(&self, call: &FunctionCall, tool: &ToolDefinition, set: &Toolset) -> bool {
        self.effect(call, tool, set) == Some(ApprovalEffect::Deny)
    }

    /// Returns whether this call has to be approved.
    pub(crate) fn are_needed(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
        session: Option<&Session>,
    ) -> bool {
        let arguments = (!call.arguments.is_empty()).then_some(call.arguments.as_bytes());
        let origin = toolset.origin(&call.name);
        let by_source = || toolset.needs_approval_for(tool.name.as_str(), arguments);
        let need = self.need(call, tool, origin.as_ref(), by_source, session);
        need == ApprovalNeed::Needed
    }

    /// Returns whether the session allows a requested call now, because the user has always allowed
    /// calls like it with the answer to another request. Only for a request without
    /// [violations](ApprovalRequest::violations), and only if the tool still has the origin that
    /// the user was asked about.
    #[must_use]
    pub fn is_allowed_since(
        &self,
        request: &ApprovalRequest,
        toolset: &Toolset,
        session: &Session,
    ) -> bool {
        let (call, toolset) = (&request.function_call, toolset.unrestricted());
        let Ok(tool) = toolset.definition(&call.name) else { return false };
        let is_needed = |session| self.are_needed(call, tool, toolset, session);
        request.violations().next().is_none()
            && request.origin == toolset.origin(&call.name)
            && is_needed(None)
            && !is_needed(Some(session))
    }

    /// Returns whether a call that a program of the model makes has to be approved, by the same
    /// rules.
    #[must_use]
    pub fn of_inner_call(
        &self,
        call: &InnerCall<'_>,
        arguments: &Map<String, Value>,
        session: Option<&Session>,
    ) -> ApprovalNeed {
        let (tool, source) = (call.tool, call.source);
        let request = FunctionCall {
            call_id: call.call_id.to_owned(),
            name: tool.name.to_string(),
            arguments: Value::Object(arguments.clone()).to_string(),
            ..FunctionCall::default()
        };
        let origin = source.origin(&tool.name);
        let by_source = || source.needs_approval_for(&tool.name, arguments);
        self.need(&request, tool, Some(&origin), by_source, session)
    }

    fn need(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        origin: Option<&ToolOrigin>,
        by_source: impl FnOnce() -> bool,
        session: Option<&Session>,
    ) -> ApprovalNeed {
        match self.effect_of(call, tool, origin) {
            // The call does not run, so there is nothing to approve.
            Some(ApprovalEffect::Deny) => return ApprovalNeed::Denied,
            Some(ApprovalEffect::Ask) => return ApprovalNeed::Needed,
            _ if self.tools.get(&call.name) == Some(&ApprovalMode::Always) => {
                return ApprovalNeed::Needed;
            }
            Some(ApprovalEffect::Allow) => return ApprovalNeed::NotNeeded,
            None => {}
        }
        let is_needed = self.is_by_mode(tool) || by_source();
        let is_allowed = || {
            session.zip(origin).is_some_and(|(session, origin)| is_allowed(session, call, origin))
        };
        if is_needed && !is_allowed() { ApprovalNeed::Needed } else { ApprovalNeed::NotNeeded }
    }

    /// Returns whether any call of this tool may have to be approved.
    pub(crate) fn may_be_needed(&self, tool: &ToolDefinition, toolset: &Toolset) -> bool {
        let name = tool.name.as_str();
        let may_ask = |rule: &ApprovalRule| {
            rule.effect == ApprovalEffect::Ask && (rule.tool == "*" || rule.tool == name)
        };
        self.is_by_mode(tool)
            || self.callback.is_some()
            || self.rules.iter().any(may_ask)
            || toolset.needs_approval(name)
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
