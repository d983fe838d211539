//! Configuration of labels by the program or the operator.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use cofferdam_agent::guard::{Guard, GuardedRun, RunGuard};
use cofferdam_agent::{ChatClient, Session};
use cofferdam_tool::declaration::DeclarationError;
use cofferdam_tool::label::{StatedLabels, ToolLabels};
use cofferdam_tool::{ToolDefinition, ToolName, ToolSource};

use super::flow::Flow;
use super::{LabelAudit, context_of, taint, tools};

/// Rules that the calls of an agent are checked against. Clones share the audits and the
/// quarantined model.
///
/// By default, untrusted results are hidden (`LBL-7`), no tool may be called in an untrusted
/// context (`LBL-9`), and a violation is reported to the model as an error and ends the loop.
/// Labels stated here are taken as true (`LBL-5`).
#[derive(Clone)]
pub struct LabelPolicy {
    pub(super) auto_hide_untrusted: bool,
    pub(super) approval_on_violation: bool,
    pub(super) quarantine: Option<Arc<dyn ChatClient>>,
    pub(super) audits: Vec<Arc<dyn LabelAudit>>,
    allow_untrusted_tools: BTreeSet<String>,
    tools: BTreeMap<String, StatedLabels>,
    sources: BTreeMap<String, StatedLabels>,
}

impl Default for LabelPolicy {
    fn default() -> Self {
        Self {
            auto_hide_untrusted: true,
            approval_on_violation: false,
            quarantine: None,
            audits: Vec::new(),
            allow_untrusted_tools: BTreeSet::new(),
            tools: BTreeMap::new(),
            sources: BTreeMap::new(),
        }
    }
}

impl LabelPolicy {
    /// Creates a policy with the defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether an untrusted result is hidden in a variable, so that the model sees it only if
    /// it inspects the variable. On by default. If off, the result is shown and the context is
    /// untrusted from then on.
    #[must_use]
    pub fn auto_hide_untrusted(mut self, hides: bool) -> Self {
        self.auto_hide_untrusted = hides;
        self
    }

    /// Sets whether the user is asked about a violation instead of the call being blocked
    /// (`LBL-11`). Requires a session, as all approvals do. Violations found while a batch runs are
    /// always blocked.
    #[must_use]
    pub fn approval_on_violation(mut self, asks: bool) -> Self {
        self.approval_on_violation = asks;
        self
    }

    /// Allows calls of a tool in an untrusted context and with untrusted variables (`LBL-9`).
    #[must_use]
    pub fn allow_untrusted_tool(mut self, tool: impl Into<String>) -> Self {
        self.allow_untrusted_tools.insert(tool.into());
        self
    }

    /// States labels of one tool, by the name under which the model calls it.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>, labels: StatedLabels) -> Self {
        self.tools.insert(tool.into(), labels);
        self
    }

    /// States labels of all tools of a source, by the name of the source. Labels stated for a
    /// single tool take precedence.
    #[must_use]
    pub fn source(mut self, source: impl Into<String>, labels: StatedLabels) -> Self {
        self.sources.insert(source.into(), labels);
        self
    }

    /// Sets the model that sees hidden values for `quarantined_llm` (`LBL-13`). Defaults to the
    /// agent's model.
    #[must_use]
    pub fn quarantine(mut self, client: impl ChatClient + 'static) -> Self {
        self.quarantine = Some(Arc::new(client));
        self
    }

    /// Adds a receiver of every decision (`LBL-15`).
    #[must_use]
    pub fn audit(mut self, audit: impl LabelAudit + 'static) -> Self {
        self.audits.push(Arc::new(audit));
        self
    }

    /// Returns the effective labels of a tool.
    #[must_use]
    pub fn labels_of(&self, tool: &ToolName, source: &dyn ToolSource) -> ToolLabels {
        let of_tool = self.tools.get(tool.as_str()).cloned().unwrap_or_default();
        let program = of_tool.or(self.sources.get(source.name()).cloned().unwrap_or_default());
        let mut labels = ToolLabels::resolve(&program, &source.labels(tool), source.states_for());
        labels.accepts_untrusted |= self.allow_untrusted_tools.contains(tool.as_str());
        labels
    }
}

impl Guard for LabelPolicy {
    fn name(&self) -> Option<&'static str> {
        Some("labels")
    }

    fn definitions(&self) -> Result<Arc<[Arc<ToolDefinition>]>, DeclarationError> {
        tools::definitions()
    }

    fn begin(&self, run: GuardedRun<'_>) -> Arc<dyn RunGuard> {
        Arc::new(Flow::new(self, run))
    }

    fn hides_untrusted(&self) -> bool {
        true
    }

    fn carry_over(&self, from: &Session, to: &Session) {
        taint(to, &context_of(from));
    }
}

impl std::fmt::Debug for LabelPolicy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LabelPolicy")
            .field("auto_hide_untrusted", &self.auto_hide_untrusted)
            .field("approval_on_violation", &self.approval_on_violation)
            .field("allow_untrusted_tools", &self.allow_untrusted_tools)
            .field("tools", &self.tools)
            .field("sources", &self.sources)
            .finish_non_exhaustive()
    }
}
