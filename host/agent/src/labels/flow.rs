//! The policy at work in one run: before a call and after it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use cofferdam_tool::{Label, Output, StatedBy, ToolDefinition, ToolFailure, ToolLabels, ToolSource, Toolset};
use serde_json::json;

use super::arguments::{self, Resolved, Unresolved};
use super::check::violations;
use super::ended::Ended;
use super::inner::{Given, Inner};
use super::store::{Hidden, Store};
use super::{Decided, LabelDecision, LabelPolicy, Violation};
use crate::middleware::{
    CallArguments, FunctionContext, FunctionError, FunctionSignal, FunctionValue, Middleware, Next,
};
use crate::{
    ChatClient, Content, FunctionCall, FunctionResult, Message, Reply, Session, TokenBudget, TokenUsage,
};

/// The field of a result's record that its label stands in. No model sees it.
const RESULT_LABEL: &str = "security_label";
/// The field that the variable stands in that a result is hidden in.
const RESULT_VARIABLE: &str = "variable_id";

/// The policy at work in one run.
pub(crate) struct Flow {
    pub(super) policy: LabelPolicy,
    pub(super) store: Store,
    /// The id of the caller's session, if there is one.
    session: Option<String>,
    pub(super) client: Arc<dyn ChatClient>,
    pub(super) budgets: Vec<TokenBudget>,
    /// What quarantined model calls have used, and the response does not say yet.
    pub(super) used: Mutex<Option<TokenUsage>>,
}

/// What the policy knows of one call.
pub(crate) struct CallFlow {
    /// The tools that the call is one of.
    pub(super) toolset: Toolset,
    /// The context's label when the batch began: none of its calls was asked for in view of another one's result.
    pub(super) batch: Label,
    /// What a person has seen of what speaks against the call, and has approved.
    pub(super) waived: Vec<Violation>,
    /// What the tool may do with other tools.
    pub(crate) inner: Arc<Inner>,
    /// The label that the result has got, and the variable that it is hidden in.
    decided: Mutex<Option<(Label, Option<String>)>>,
}

impl Flow {
    /// The policy for a run of a session; for this run alone without one.
    pub(crate) fn new(
        policy: &LabelPolicy,
        session: Option<&Session>,
        client: &Arc<dyn ChatClient>,
        budgets: Vec<TokenBudget>,
    ) -> Self {
        Self {
            policy: policy.clone(),
            store: Store::new(session.cloned().unwrap_or_default()),
            session: session.map(|session| session.id().to_owned()),
            client: policy.quarantine.clone().unwrap_or_else(|| Arc::clone(client)),
            budgets,
            used: Mutex::default(),
        }
    }

    /// The label of the context by now.
    pub(crate) fn context(&self) -> Label {
        self.store.context()
    }

    /// Whether a person may be asked about a call.
    pub(crate) fn may_ask(&self) -> bool {
        self.policy.approval_on_violation
    }

    /// What a person has to be asked about before a call of a batch that has not begun (`LBL-11`). Nothing if nobody is asked:
    /// then the call is blocked when it comes to it.
    pub(crate) fn gated(
        &self,
        call: &FunctionCall,
        tool: &ToolDefinition,
        toolset: &Toolset,
    ) -> Vec<Violation> {
        let Some(source) = toolset.source(&call.name).filter(|_| self.may_ask()) else { return Vec::new() };
        let labels = self.labels_of(tool, source.as_ref());
        let mut data = self.context();
        if !is_own(source.as_ref()) {
            data.add(&arguments::label(&call.arguments, &self.store));
        }
        let found = violations(&labels, &data);
        if !found.is_empty() {
            self.tell(Decided::ApprovalRequested, &call.name, &call.call_id, &data, None, &found);
        }
        found
    }

    /// One call of a batch.
    pub(crate) fn call(
        self: &Arc<Self>,
        toolset: &Toolset,
        batch: &Label,
        waived: Vec<Violation>,
    ) -> CallFlow {
        CallFlow {
            toolset: toolset.clone(),
            batch: batch.clone(),
            waived,
            inner: Arc::new(Inner::new(Arc::clone(self))),
            decided: Mutex::default(),
        }
    }

    /// Taints the context with the results that a run begins with. Those of earlier turns have their labels beside them, which
    /// counts where the session has lost its state. Those without one are of turns without the policy, of the caller, or of a
    /// service: where they are from is not known.
    pub(crate) fn note_earlier<'m>(&self, messages: impl IntoIterator<Item = &'m Message>) {
        let label = |result: &FunctionResult| match result.extra.get(RESULT_LABEL) {
            Some(_) if result.extra.contains_key(RESULT_VARIABLE) => Label::default(),
            Some(label) => serde_json::from_value(label.clone()).unwrap_or_else(|_| Label::untrusted()),
            None => Label::untrusted(),
        };
        let labels: Vec<_> = messages.into_iter().flat_map(Message::results).map(label).collect();
        let earlier = Label::combine(&labels);
        if earlier != Label::default() {
            self.store.taint(&earlier);
        }
    }

    /// The same for a reply: a service may have made calls itself (`LOOP-6`).
    pub(crate) fn note_reply(&self, reply: &Reply) {
        let is_result = |content: &Content| content.as_result().is_some();
        if reply.messages.iter().flat_map(|message| &message.contents).any(is_result) {
            self.store.taint(&Label::untrusted());
        }
    }

    /// What quarantined model calls have used since the last time.
    pub(crate) fn take_used(&self) -> Option<TokenUsage> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What counts of a tool. The policy's own may be called with anything: what they give has the label of what went in.
    pub(super) fn labels_of(&self, tool: &ToolDefinition, source: &dyn ToolSource) -> ToolLabels {
        match is_own(source) {
            true => ToolLabels { accepts_untrusted: true, ..ToolLabels::default() },
            false => self.policy.labels_of(&tool.name, source),
        }
    }

    /// Tells whoever wants to know of a decision (`LBL-15`).
    pub(super) fn tell(
        &self,
        decided: Decided,
        tool: &str,
        call_id: &str,
        label: &Label,
        variable: Option<&str>,
        violations: &[Violation],
    ) {
        let context = self.context();
        let session = self.session.as_deref();
        let decision =
            LabelDecision { decided, tool, call_id, session, label, context: &context, variable, violations };
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

/// Whether a source is the policy's own. Its name is one that no plugin, server or store can have.
pub(super) fn is_own(source: &dyn ToolSource) -> bool {
    source.name() == super::tools::NAME && source.states_for() == StatedBy::Program
}

/// Writes the label that a result has got into its record, where it is for people and for later turns. What no tool has given
/// is the host's own word.
pub(crate) fn label_result(result: &mut FunctionResult, call: Option<&CallFlow>) {
    let decided = call.and_then(|call| call.decided().take());
    let (label, variable) = decided.unwrap_or_default();
    result.extra.insert(RESULT_LABEL.to_owned(), json!(label));
    match variable {
        Some(variable) => result.extra.insert(RESULT_VARIABLE.to_owned(), variable.into()),
        None => result.extra.remove(RESULT_VARIABLE),
    };
}

impl CallFlow {
    fn decided(&self) -> MutexGuard<'_, Option<(Label, Option<String>)>> {
        self.decided.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn decide(&self, label: Label, variable: Option<String>) {
        *self.decided() = Some((label, variable));
    }
}

impl std::fmt::Debug for CallFlow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CallFlow").field("batch", &self.batch).finish_non_exhaustive()
    }
}

/// The innermost function middleware but for an invoker, which only calls tools in the place of the loop.
pub(crate) struct FlowLayer(pub(crate) Arc<Flow>);

#[async_trait]
impl Middleware<FunctionContext> for FlowLayer {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let flow = &self.0;
        let Some(call) = context.flow.clone() else {
            // Every call of a run with a policy has one.
            return Err(FunctionError::Failure(ToolFailure::new("The call has no labels.")).into());
        };
        let name = context.tool.name.to_string();
        let Some(source) = call.toolset.source(&name).cloned() else { return next.run(context).await };
        let (labels, is_own) = (flow.labels_of(&context.tool, source.as_ref()), is_own(source.as_ref()));
        let resolved = match is_own {
            true => Ok(Resolved::default()),
            false => arguments::resolve(&context.arguments, &flow.store),
        };
        let resolved = resolved.map_err(unresolved)?;
        let data = Label::combine([&call.batch, &resolved.label]);
        let found = violations(&labels, &data);
        if let Some(first) = found.iter().find(|violation| !call.waived.contains(violation)) {
            flow.tell(Decided::Blocked, &name, &context.call_id, &data, None, &found);
            let shown = FunctionValue::Error(Output::Value(first.result(&name)));
            return Err(FunctionSignal::Terminate(Some(shown)));
        }
        if !found.is_empty() {
            flow.tell(Decided::Approved, &name, &context.call_id, &data, None, &found);
        }
        call.inner.begin(Given {
            context: call.batch.clone(),
            tool: labels.result.clone(),
            data: resolved.label,
        });
        let is_filled = resolved.arguments.is_some();
        let mut inside = Inside::enter(context, resolved.arguments);
        let mut ended = next.run(inside.context).await;
        inside.is_over = true;
        drop(inside);
        if is_filled && matches!(ended, Err(FunctionSignal::Error(FunctionError::InvalidArguments(_)))) {
            // What is wrong with arguments is said with their values.
            let said = "The values of the variables do not fit the arguments that they stand for.";
            ended = Err(FunctionError::Failure(ToolFailure::new(said)).into());
        }
        let by = source.states_for();
        Ended { flow, call: &call, name: &name, labels: &labels, by, is_own }.finish(context, &mut ended);
        ended
    }
}

/// A call that goes on, with values in its arguments. However it ends, also when whoever waits for it does not any more, what is
/// outside finds the arguments as the model wrote them: values there would be without their labels, in another try as well.
struct Inside<'c> {
    context: &'c mut FunctionContext,
    written: Option<CallArguments>,
    /// Whether it came to its end. Otherwise nobody gets what there is of a result.
    is_over: bool,
}

impl<'c> Inside<'c> {
    fn enter(context: &'c mut FunctionContext, filled: Option<CallArguments>) -> Self {
        let written = filled.map(|filled| std::mem::replace(&mut context.arguments, filled));
        (context.record, context.result) = (None, None);
        Self { context, written, is_over: false }
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        if let Some(written) = self.written.take() {
            self.context.arguments = written;
        }
        if !self.is_over {
            self.context.result = None;
        }
    }
}

/// A failure in the words of the contract (`LBL-14`).
fn unresolved(error: Unresolved) -> FunctionSignal {
    let value = Some(json!(error.to_string()));
    FunctionError::Failure(ToolFailure { value, ..ToolFailure::new(error.to_string()) }).into()
}

impl Flow {
    /// Hides a value. The error is what is shown instead when that cannot be done.
    pub(super) fn hide(
        &self,
        call: &CallFlow,
        (tool, call_id): (&str, &str),
        value: &Hidden,
        label: &Label,
    ) -> Result<serde_json::Value, String> {
        match self.store.hide(value, label) {
            Ok(id) => {
                self.tell(Decided::Hidden, tool, call_id, label, Some(&id), &[]);
                let reference = reference(&id, label, tool);
                call.decide(label.clone(), Some(id));
                Ok(reference)
            }
            Err(not_kept) => {
                self.tell(Decided::Discarded, tool, call_id, label, None, &[]);
                // What is shown instead is the host's own word.
                call.decide(Label::default(), None);
                Err(not_kept.to_string())
            }
        }
    }
}

/// What a model sees of a hidden result (`LBL-7`). The tool's name is the host's word; nothing in here is the tool's.
fn reference(id: &str, label: &Label, tool: &str) -> serde_json::Value {
    json!({
        "type": arguments::REFERENCE,
        "variable_id": id,
        "security_label": {
            "integrity": label.integrity,
            "confidentiality": label.confidentiality,
            "metadata": label.metadata,
        },
        "description": format!(
            "The result of {tool} is untrusted and hidden. Pass variable_id on as an argument, ask quarantined_llm about it, or \
             see it with inspect_variable."
        ),
    })
}
