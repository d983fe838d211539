//! Labels the result of a call, and hides it if the policy says so (`LBL-6` to `LBL-8`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_agent::Data;
use cofferdam_agent::middleware::{FunctionContext, FunctionError, FunctionSignal, FunctionValue};
use cofferdam_tool::label::{Integrity, Label, StatedBy, ToolLabels};
use cofferdam_tool::{Content as ToolContent, Output, ToolError, ToolFailure};
use serde_json::{Value, json};

use super::AuditDecision;
use super::call::CallFlow;
use super::store::HiddenValue;

/// A call that has ended, with what is needed to label its result.
pub(super) struct CompletedCall<'c> {
    pub(super) call: &'c CallFlow,
    pub(super) name: &'c str,
    pub(super) labels: &'c ToolLabels,
    pub(super) by: StatedBy,
    /// True if the tool is one of the policy's own.
    pub(super) is_own: bool,
}

impl CompletedCall<'_> {
    /// Labels the result, then hides it or taints the context with it.
    pub(super) fn finish(
        &self,
        context: &mut FunctionContext,
        ended: &mut Result<(), FunctionSignal>,
    ) {
        let label = self.label(context);
        if let Some(record) = &mut context.record {
            record.label = Some(label.clone());
        }
        let call_id = &context.call_id;
        match ended {
            Ok(()) => {
                let value = context.result.take();
                context.result = value.map(|value| self.value(value, &label, call_id));
            }
            Err(FunctionSignal::Terminate(carried)) => {
                let value = carried.take().or(context.result.take());
                *carried = value.map(|value| self.value(value, &label, call_id));
            }
            Err(FunctionSignal::Error(FunctionError::Failure(failure))) if !self.is_own => {
                *failure = self.failure(std::mem::take(failure), &label, call_id);
            }
            Err(FunctionSignal::Error(FunctionError::Tool(error))) if error.has_own_value() => {
                *error = self.error(error.clone(), &label, call_id);
            }
            // The host writes the messages of all other errors.
            Err(_) => {}
        }
    }

    /// Combines the tool's own label, the label that its source gave this result, and the labels of
    /// the variables and inner calls that went into it (`LBL-6`, `LBL-12`).
    fn label(&self, context: &FunctionContext) -> Label {
        let said = context.record.as_ref().and_then(|record| record.label.as_ref());
        if self.is_own {
            return said.cloned().unwrap_or_else(Label::untrusted);
        }
        let own = match (said, self.by) {
            (None, _) => self.labels.result.clone(),
            (Some(said), StatedBy::Program) => said.clone(),
            (Some(said), StatedBy::ThirdParty) => self.labels.result.clone().stricter(said),
        };
        let [data, of_inner_calls] = self.call.inner.input_labels();
        Label::combine([&own, &data, &of_inner_calls])
    }

    fn value(&self, value: FunctionValue, label: &Label, call_id: &str) -> FunctionValue {
        if !self.is_hidden(label, call_id) {
            return value;
        }
        match self.call.hide((self.name, call_id), &hidden(&value), label) {
            Ok(reference) => match value {
                FunctionValue::Error(_) => FunctionValue::Error(Output::Value(reference)),
                FunctionValue::Finished(result) if result.is_error => {
                    FunctionValue::Error(Output::Value(reference))
                }
                _ => FunctionValue::Output(Output::Value(reference)),
            },
            Err(text) => {
                FunctionValue::Error(Output::Value(json!({"error": text, "function": self.name})))
            }
        }
    }

    /// Hides the words of a failure reported by a tool, if necessary.
    fn failure(&self, failure: ToolFailure, label: &Label, call_id: &str) -> ToolFailure {
        if !self.is_hidden(label, call_id) {
            return failure;
        }
        let message = format!("{} reported a failure, and its words are hidden.", self.name);
        let value = Some(self.hidden_words(failure.error_value(), label, call_id));
        ToolFailure { value, transient: failure.transient, ..ToolFailure::new(message) }
    }

    /// Hides the message of an error that a third party wrote, such as a server, if necessary.
    fn error(&self, error: ToolError, label: &Label, call_id: &str) -> ToolError {
        if !self.is_hidden(label, call_id) {
            return error;
        }
        let words = self.hidden_words(error.error_value(), label, call_id);
        error.with_error_value(|_| words)
    }

    fn hidden_words(&self, words: Value, label: &Label, call_id: &str) -> Value {
        let value = HiddenValue::text(words.to_string());
        let hidden = self.call.hide((self.name, call_id), &value, label);
        hidden.unwrap_or_else(|text| json!({ "message": text }))
    }

    /// Records the label of the result and returns whether to hide it. A visible result taints the
    /// context (`LBL-8`, `LBL-9`). The result of `inspect_variable` is never hidden again
    /// (`LBL-13`).
    fn is_hidden(&self, label: &Label, call_id: &str) -> bool {
        let is_inspected = self.is_own && self.name == super::tools::INSPECT;
        let hides = self.call.flow.policy.auto_hide_untrusted && !is_inspected;
        let is_hidden = hides && label.integrity == Integrity::Untrusted;
        if !is_hidden {
            self.call.flow.store.taint(label);
            self.call.decide(label.clone(), None);
        }
        self.call.flow.tell(AuditDecision::Labelled, self.name, call_id, label, None, &[]);
        is_hidden
    }
}

/// Converts a result to the form in which it is stored.
fn hidden(value: &FunctionValue) -> HiddenValue {
    let items = match value {
        FunctionValue::Output(Output::Contents(contents))
        | FunctionValue::Error(Output::Contents(contents)) => {
            contents.iter().filter_map(blob).collect()
        }
        FunctionValue::Finished(result) => result.items.clone(),
        _ => Vec::new(),
    };
    HiddenValue { text: value.text(), items }
}

fn blob(content: &ToolContent) -> Option<Data> {
    match content {
        ToolContent::Blob { media_type, data } => Some(Data {
            media_type: media_type.clone(),
            data: STANDARD.encode(data),
            ..Data::default()
        }),
        _ => None,
    }
}
