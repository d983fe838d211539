//! Applies the policy to one call: checks its arguments before it runs and labels its result after.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::guard::{BatchGuard, CallGuard, Objection};
use cofferdam_agent::middleware::{
    CallArguments, FunctionContext, FunctionError, FunctionSignal, FunctionValue,
};
use cofferdam_agent::{FunctionResult, Middleware, Next};
use cofferdam_tool::invoke::InnerCalls;
use cofferdam_tool::label::Label;
use cofferdam_tool::{Output, ToolFailure, Toolset};
use parking_lot::Mutex;
use serde_json::json;

use super::arguments::{self, ResolvedArguments, UnresolvedVariables};
use super::check::{self, violations};
use super::ended::CompletedCall;
use super::flow::{Flow, RESULT_LABEL, RESULT_VARIABLE, is_own};
use super::inner::{GrantedVariables, LabeledInnerCalls};
use super::store::HiddenValue;
use super::{AuditDecision, Violation};

/// State of the policy during one batch.
pub(super) struct BatchFlow {
    pub(super) flow: Arc<Flow>,
    /// Label of the context when the batch began. The model requested all calls of the batch before
    /// it saw any of their results.
    pub(super) context: Label,
}

/// State of the policy during one call.
pub(super) struct CallFlow {
    pub(super) flow: Arc<Flow>,
    /// Toolset that holds the called tool; `None` if no tool is called.
    toolset: Option<Toolset>,
    /// Label of the context when the batch began.
    batch: Label,
    /// Violations that the user has seen and approved.
    waived: Vec<Violation>,
    /// Checks the calls that the tool makes to other tools.
    pub(super) inner: Arc<LabeledInnerCalls>,
    /// Label of the result, and id of the variable that hides it.
    decided: Mutex<Option<(Label, Option<String>)>>,
}

impl BatchGuard for BatchFlow {
    fn begin_call(&self, toolset: Option<&Toolset>, waived: Vec<Objection>) -> Box<dyn CallGuard> {
        let (flow, batch) = (Arc::clone(&self.flow), self.context.clone());
        let inner = Arc::new(LabeledInnerCalls::new(Arc::clone(&flow)));
        let (toolset, waived, decided) =
            (toolset.cloned(), check::waived_violations(waived), Mutex::default());
        Box::new(CallFlow { flow, toolset, batch, waived, inner, decided })
    }
}

impl CallFlow {
    pub(super) fn decide(&self, label: Label, variable: Option<String>) {
        *self.decided.lock() = Some((label, variable));
    }

    /// Hides a value in a variable. The error is the message to show instead if the value cannot be
    /// stored.
    pub(super) fn hide(
        &self,
        (tool, call_id): (&str, &str),
        value: &HiddenValue,
        label: &Label,
    ) -> Result<serde_json::Value, String> {
        match self.flow.store.hide(value, label) {
            Ok(id) => {
                self.flow.tell(AuditDecision::Hidden, tool, call_id, label, Some(&id), &[]);
                let reference = reference(&id, label, tool);
                self.decide(label.clone(), Some(id));
                Ok(reference)
            }
            Err(not_stored) => {
                self.flow.tell(AuditDecision::Discarded, tool, call_id, label, None, &[]);
                // The host itself wrote the message that is shown instead.
                self.decide(Label::default(), None);
                Err(not_stored.to_string())
            }
        }
    }
}

impl CallGuard for CallFlow {
    fn inner_calls(&self) -> Option<Arc<dyn InnerCalls>> {
        Some(Arc::clone(&self.inner) as Arc<_>)
    }

    /// Writes the label of the result into its record, for users and for later turns. A result that
    /// no tool returned is a message of the host.
    fn finish(&self, result: &mut FunctionResult) {
        let (label, variable) = self.decided.lock().take().unwrap_or_default();
        result.extra.insert(RESULT_LABEL.to_owned(), json!(label));
        match variable {
            Some(variable) => result.extra.insert(RESULT_VARIABLE.to_owned(), variable.into()),
            None => result.extra.remove(RESULT_VARIABLE),
        };
    }
}

#[async_trait]
impl Middleware<FunctionContext> for CallFlow {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let flow = &self.flow;
        let name = context.tool.name.to_string();
        let source = self.toolset.as_ref().and_then(|toolset| toolset.source(&name)).cloned();
        let Some(source) = source else { return next.run(context).await };
        let (labels, is_own) =
            (flow.labels_of(&context.tool, source.as_ref()), is_own(source.as_ref()));
        let resolved = match is_own {
            true => Ok(ResolvedArguments::default()),
            false => arguments::resolve(&context.arguments, &flow.store),
        };
        let resolved = resolved.map_err(unresolved)?;
        let data = Label::combine([&self.batch, &resolved.label]);
        let found = violations(&labels, &data);
        if let Some(first) = found.iter().find(|violation| !self.waived.contains(violation)) {
            flow.tell(AuditDecision::Blocked, &name, &context.call_id, &data, None, &found);
            let shown = FunctionValue::Error(Output::Value(first.result(&name)));
            return Err(FunctionSignal::Terminate(Some(shown)));
        }
        if !found.is_empty() {
            flow.tell(AuditDecision::Approved, &name, &context.call_id, &data, None, &found);
        }
        let given = GrantedVariables {
            context: self.batch.clone(),
            tool: labels.result.clone(),
            data: resolved.label,
        };
        self.inner.begin(&context.call_id, given);
        let is_filled = resolved.arguments.is_some();
        let mut inside = LabeledCall::enter(context, resolved.arguments);
        let mut ended = next.run(inside.context).await;
        inside.is_over = true;
        drop(inside);
        if is_filled
            && matches!(ended, Err(FunctionSignal::Error(FunctionError::InvalidArguments(_))))
        {
            // Errors about invalid arguments quote them, which would reveal the hidden values.
            let said = "The values of the variables do not fit the arguments that they stand for.";
            ended = Err(FunctionError::Failure(ToolFailure::new(said)).into());
        }
        let by = source.states_for();
        CompletedCall { call: self, name: &name, labels: &labels, by, is_own }
            .finish(context, &mut ended);
        ended
    }
}

/// Scope of a call whose arguments contain values of variables. On drop, including when the caller
/// stops waiting, the arguments become what the model wrote again: outside of this scope, and in a
/// retry, the values would appear without their labels.
struct LabeledCall<'c> {
    context: &'c mut FunctionContext,
    written: Option<CallArguments>,
    /// True if the inner call has ended. Otherwise drop discards a partial result.
    is_over: bool,
}

impl<'c> LabeledCall<'c> {
    fn enter(context: &'c mut FunctionContext, filled: Option<CallArguments>) -> Self {
        let written = filled.map(|filled| std::mem::replace(&mut context.arguments, filled));
        (context.record, context.result) = (None, None);
        Self { context, written, is_over: false }
    }
}

impl Drop for LabeledCall<'_> {
    fn drop(&mut self) {
        if let Some(written) = self.written.take() {
            self.context.arguments = written;
        }
        if !self.is_over {
            self.context.result = None;
        }
    }
}

/// Returns the failure that `LBL-14` prescribes.
fn unresolved(error: UnresolvedVariables) -> FunctionSignal {
    let value = Some(json!(error.to_string()));
    FunctionError::Failure(ToolFailure { value, ..ToolFailure::new(error.to_string()) }).into()
}

/// Returns the reference that the model sees instead of a hidden result (`LBL-7`). The tool's name
/// is the one that the host knows; nothing in the reference was written by the tool.
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
