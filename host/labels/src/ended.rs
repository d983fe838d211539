//! What becomes of the result of a call: its label, and whether it is hidden (`LBL-6` to `LBL-8`).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cofferdam_agent::Data;
use cofferdam_agent::middleware::{FunctionContext, FunctionError, FunctionSignal, FunctionValue};
use cofferdam_tool::label::{Integrity, Label, StatedBy, ToolLabels};
use cofferdam_tool::{Content as ToolContent, Output, ToolError, ToolFailure};
use serde_json::{Value, json};

use super::Decided;
use super::call::CallFlow;
use super::store::Hidden;

/// A call that has ended.
pub(super) struct Ended<'c> {
    pub(super) call: &'c CallFlow,
    pub(super) name: &'c str,
    pub(super) labels: &'c ToolLabels,
    pub(super) by: StatedBy,
    /// Whether the tool is one of the policy's own.
    pub(super) is_own: bool,
}

impl Ended<'_> {
    /// Labels what the call gave, and hides it or taints the context with it.
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
            // The text of any other error is the host's own.
            Err(_) => {}
        }
    }

    /// The tool's own label, what its source says of this result, and the variables that went into
    /// it (`LBL-6`, `LBL-12`).
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
        let [data, of_inner_calls] = self.call.inner.gone_in();
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

    /// A failure that a tool has reported, in its words.
    fn failure(&self, failure: ToolFailure, label: &Label, call_id: &str) -> ToolFailure {
        if !self.is_hidden(label, call_id) {
            return failure;
        }
        let message = format!("{} reported a failure, and its words are hidden.", self.name);
        let value = Some(self.hidden_words(failure.error_value(), label, call_id));
        ToolFailure { value, transient: failure.transient, ..ToolFailure::new(message) }
    }

    /// An error of which somebody else has written the text, such as a server.
    fn error(&self, error: ToolError, label: &Label, call_id: &str) -> ToolError {
        if !self.is_hidden(label, call_id) {
            return error;
        }
        let words = self.hidden_words(error.error_value(), label, call_id);
        error.with_error_value(|_| words)
    }

    fn hidden_words(&self, words: Value, label: &Label, call_id: &str) -> Value {
        let value = Hidden::text(words.to_string());
        let hidden = self.call.hide((self.name, call_id), &value, label);
        hidden.unwrap_or_else(|text| json!({ "message": text }))
    }

    /// Gives the result its label. What is not hidden is seen, and taints the context (`LBL-8`,
    /// `LBL-9`). What a person asks for by `inspect_variable` is never hidden again (`LBL-13`).
    fn is_hidden(&self, label: &Label, call_id: &str) -> bool {
        let is_inspected = self.is_own && self.name == super::tools::INSPECT;
        let hides = self.call.flow.policy.auto_hide_untrusted && !is_inspected;
        let is_hidden = hides && label.integrity == Integrity::Untrusted;
        if !is_hidden {
            self.call.flow.store.taint(label);
            self.call.decide(label.clone(), None);
        }
        self.call.flow.tell(Decided::Labelled, self.name, call_id, label, None, &[]);
        is_hidden
    }
}

/// A result as it is kept.
fn hidden(value: &FunctionValue) -> Hidden {
    let items = match value {
        FunctionValue::Output(Output::Contents(contents))
        | FunctionValue::Error(Output::Contents(contents)) => {
            contents.iter().filter_map(blob).collect()
        }
        FunctionValue::Finished(result) => result.items.clone(),
        _ => Vec::new(),
    };
    Hidden { text: value.text(), items }
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
