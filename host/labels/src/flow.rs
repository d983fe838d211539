//! State of the policy during one run: the context's label and the checks of calls.

use std::sync::Arc;

use cofferdam_agent::guard::{BatchGuard, GuardedRun, Objection, RunGuard};
use cofferdam_agent::{
    ChatClient, FunctionCall, FunctionResult, Message, MessageContent, Reply, TokenBudget,
    TokenUsage,
};
use cofferdam_tool::label::{Label, StatedBy, ToolLabels};
use cofferdam_tool::{ToolDefinition, ToolSource, Toolset};
use parking_lot::Mutex;

use super::arguments;
use super::call::BatchFlow;
use super::check::violations;
use super::store::Store;
use super::tools::VariableTools;
use super::{AuditDecision, LabelDecision, LabelPolicy, Violation};

/// Field of a result's record that holds its label. The model does not see it.
pub(super) const RESULT_LABEL: &str = "security_label";
/// Field of a result's record that holds the id of the variable that hides the result.
pub(super) const RESULT_VARIABLE: &str = "variable_id";

/// State of the policy during one run.
pub(super) struct Flow {
    pub(super) policy: LabelPolicy,
    pub(super) store: Store,
    /// Id of the caller's session, if there is one.
    session: Option<String>,
    pub(super) client: Arc<dyn ChatClient>,
    pub(super) budgets: Vec<TokenBudget>,
    /// Token usage of quarantined model calls that has not been added to a response yet.
    pub(super) used: Mutex<Option<TokenUsage>>,
    definitions: Arc<[Arc<ToolDefinition>]>,
}

impl Flow {
    /// Applies the policy to a run, with the state of its session or, without one, for this run
    /// only.
    pub(super) fn new(policy: &LabelPolicy, run: GuardedRun<'_>) -> Self {
        let store = Store::new(run.session.cloned().unwrap_or_default());
        store.mark();
        Self {
            policy: policy.clone(),
            store,
            session: run.session.map(|session| session.id().to_owned()),
            client: policy.quarantine.clone().unwrap_or_else(|| Arc::clone(run.client)),
            budgets: run.budgets,
            used: Mutex::default(),
            definitions: Arc::clone(run.definitions),
        }
    }

    /// Returns the current label of the context.
    fn context(&self) -> Label {
        self.store.context()
    }

    /// Returns the violations of a call in a batch that has not begun.
    fn violations(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        source: &dyn ToolSource,
    ) -> Vec<Violation> {
        let labels = self.labels_of(tool, source);
        let mut data = self.context();
        if !is_own(source) {
            data.add(&arguments::label(&call.arguments, &self.store));
        }
        let found = violations(&labels, &data);
        if !found.is_empty() {
            self.tell(
                AuditDecision::ApprovalRequested,
                &call.name,
                &call.call_id,
                &data,
                None,
                &found,
            );
        }
        found
    }

    /// Returns the labels of a tool. The policy's own tools accept anything: their results get the
    /// labels of their inputs.
    pub(super) fn labels_of(&self, tool: &ToolDefinition, source: &dyn ToolSource) -> ToolLabels {
        match is_own(source) {
            true => ToolLabels { accepts_untrusted: true, ..ToolLabels::default() },
            false => self.policy.labels_of(&tool.name, source),
        }
    }

    /// Reports a decision to the log and to all audits (`LBL-15`).
    pub(super) fn tell(
        &self,
        decided: AuditDecision,
        tool: &str,
        call_id: &str,
        label: &Label,
        variable: Option<&str>,
        violations: &[Violation],
    ) {
        let context = self.context();
        let session = self.session.as_deref();
        let decision = LabelDecision {
            decided,
            tool,
            call_id,
            session,
            label,
            context: &context,
            variable,
            violations,
        };
        tracing::info!(
            target: "cofferdam::labels",
            decision = decided.word(),
            tool,
            call_id,
            session,
            integrity = label.integrity.word(),
            confidentiality = label.confidentiality.word(),
            context_integrity = context.integrity.word(),
            context_confidentiality = context.confidentiality.word(),
            variable,
        );
        self.policy.audits.iter().for_each(|audit| audit.decided(&decision));
    }
}

impl RunGuard for Flow {
    fn tools(self: Arc<Self>) -> Option<Arc<dyn ToolSource>> {
        let definitions = Arc::clone(&self.definitions);
        Some(Arc::new(VariableTools::new(self, definitions)))
    }

    /// Taints the context with the results that a run begins with. Results of earlier turns carry
    /// their labels, which count if the session has lost its state. Results without a label come
    /// from turns without the policy, from the caller, or from a service, so their label is
    /// unknown.
    fn begins_with(&self, messages: &[Arc<Message>]) {
        let label = |result: &FunctionResult| match result.extra.get(RESULT_LABEL) {
            Some(_) if result.extra.contains_key(RESULT_VARIABLE) => Label::default(),
            Some(label) => {
                serde_json::from_value(label.clone()).unwrap_or_else(|_| Label::unknown())
            }
            None => Label::unknown(),
        };
        let results = messages.iter().flat_map(|message| message.results());
        let labels: Vec<_> = results.map(label).collect();
        let earlier = Label::combine(&labels);
        if earlier != Label::default() {
            self.store.taint(&earlier);
        }
    }

    /// Taints the context with a reply that contains results: a service may have made calls itself
    /// (`LOOP-6`).
    fn replied(&self, reply: &Reply) {
        let is_result = |content: &MessageContent| content.as_result().is_some();
        if reply.messages.iter().flat_map(|message| &message.contents).any(is_result) {
            self.store.taint(&Label::untrusted());
        }
    }

    fn can_block(&self) -> bool {
        self.policy.approval_on_violation
    }

    /// Returns the objections to a call in a batch that has not begun, for the user to decide about
    /// (`LBL-11`). Returns none if the policy does not ask; the call is then blocked when it is
    /// made.
    fn objections(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
    ) -> Vec<Objection> {
        let source = toolset.source(&call.name).filter(|_| self.can_block());
        let found =
            source.map(|source| self.violations(call, tool, source.as_ref())).unwrap_or_default();
        found.iter().map(Objection::from).collect()
    }

    fn begin_batch(self: Arc<Self>) -> Box<dyn BatchGuard> {
        let context = self.context();
        Box::new(BatchFlow { flow: self, context })
    }

    fn take_usage(&self) -> Option<TokenUsage> {
        self.used.lock().take()
    }

    /// Returns true if details are hidden: a third party may have written them, and they have no
    /// label.
    fn hides_details(&self) -> bool {
        true
    }
}

/// Returns whether a source is the policy's own. No plugin, server or store can have its name.
pub(super) fn is_own(source: &dyn ToolSource) -> bool {
    source.name() == super::tools::NAME && source.states_for() == StatedBy::Program
}
