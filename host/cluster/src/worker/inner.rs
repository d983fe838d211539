//! Lets the gateway of a call decide about the calls that it makes of other tools.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use cofferdam_tool::ask::AskError;
use cofferdam_tool::invoke::{InnerCall, InnerCalls};
use cofferdam_tool::label::{Label, StatedLabels, ToolLabels};
use cofferdam_tool::{
    CallContext, CallRecord, Completion, Outcome, ToolCall, ToolFailure, ToolName, ToolSource,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::call::{CallReport, completion_with};
use super::questions::{OpenQuestions, QuestionTarget};
use crate::inner::{InnerCallsHeader, InnerCheck, InnerDecision, carried};
use crate::question;

/// Asks the gateway of a call about each call that it makes of other tools.
pub(super) struct GatewayInnerCalls {
    /// Combined label of everything that the calling tool has, if the gateway has a label policy.
    label: Mutex<Option<Label>>,
    /// Calls about which the gateway was asked and that have not ended.
    checked: Mutex<HashSet<String>>,
    /// Labels of results that the calling tool has from calls that the gateway does not know, by
    /// source and tool: results that the worker has kept.
    kept: Mutex<BTreeMap<(String, ToolName), KeptLabel>>,
    /// Held while these labels are reported: no other call may begin before the gateway knows them.
    reporting: tokio::sync::Mutex<()>,
    questions: Arc<OpenQuestions>,
    reports: mpsc::Sender<CallReport>,
}

/// Label of results that the worker has kept.
#[derive(Clone, Default)]
struct KeptLabel {
    /// Label of the tool, without the policy of the gateway.
    own: Label,
    /// Combined label that its source gave the results.
    said: Option<Label>,
    is_reported: bool,
}

impl GatewayInnerCalls {
    pub(super) fn new(
        header: InnerCallsHeader,
        questions: Arc<OpenQuestions>,
        reports: mpsc::Sender<CallReport>,
    ) -> Self {
        Self {
            label: Mutex::new(header.label),
            checked: Mutex::default(),
            kept: Mutex::default(),
            reporting: tokio::sync::Mutex::default(),
            questions,
            reports,
        }
    }

    /// Reports the labels of results that the worker has kept. The gateway has to know them before
    /// the calling tool calls another one, and before it ends.
    ///
    /// # Errors
    /// The end of the call if the gateway does not accept them.
    pub(super) async fn report_kept(&self, context: &CallContext) -> Result<(), Box<Outcome>> {
        let _reporting = self.reporting.lock().await;
        while let Some((key, KeptLabel { own, said, .. })) = self.next_kept() {
            let (source, tool) = key.clone();
            let received = InnerCheck::Received { source, tool, own, label: said.clone() };
            self.check(received, context).await?;
            if let Some(kept) = self.kept.lock().get_mut(&key) {
                kept.is_reported = kept.said == said;
            }
        }
        Ok(())
    }

    fn next_kept(&self) -> Option<((String, ToolName), KeptLabel)> {
        let kept = self.kept.lock();
        let next = kept.iter().find(|(_, kept)| !kept.is_reported)?;
        Some((next.0.clone(), next.1.clone()))
    }

    /// Asks the gateway.
    ///
    /// # Errors
    /// The end of the inner call if the gateway does not accept it.
    async fn check(&self, check: InnerCheck, context: &CallContext) -> Result<(), Box<Outcome>> {
        let asked = tokio::select! {
            biased;
            () = context.cancelled() => return Err(Box::new(Outcome::Cancelled)),
            asked = self.ask(&check) => asked,
        };
        let label = match asked {
            Ok(decision) => decision.into_label().map_err(|failure| Outcome::Failure(*failure))?,
            Err(error) => {
                let message = format!("the gateway of the call did not allow this call: {error}");
                return Err(Box::new(Outcome::Failure(ToolFailure::new(message))));
            }
        };
        if let (Some(known), Some(label)) = (&mut *self.label.lock(), label) {
            known.add(&label);
        }
        Ok(())
    }

    async fn ask(&self, check: &InnerCheck) -> Result<InnerDecision, AskError> {
        let body = Bytes::from(check.encode().map_err(AskError::Failed)?);
        let answer = self.questions.ask(body, QuestionTarget::Gateway, &self.reports).await?;
        let values = question::decode_answer(&answer, 1)?;
        serde_json::from_value(values.into_iter().next().unwrap_or_default())
            .map_err(|error| AskError::Failed(format!("its answer is invalid: {error}")))
    }
}

#[async_trait]
impl InnerCalls for GatewayInnerCalls {
    /// Admits the call, because a gateway cannot be asked without waiting: `invoke` does.
    fn admit(&self, _: &InnerCall<'_>) -> Result<(), Box<ToolFailure>> {
        Ok(())
    }

    async fn invoke(
        &self,
        call: ToolCall<'_>,
        source: &dyn ToolSource,
        context: &CallContext,
    ) -> Completion {
        let tool = call.tool.name.clone();
        self.checked.lock().insert(context.call_id.clone());
        let begin = InnerCheck::Begin {
            call: context.call_id.clone(),
            outer: context.outer.as_ref().map(|outer| outer.call_id.clone()),
            source: source.name().to_owned(),
            tool: tool.clone(),
        };
        let admitted = match self.report_kept(context).await {
            Ok(()) => self.check(begin, context).await,
            Err(outcome) => Err(outcome),
        };
        if let Err(outcome) = admitted {
            let mut completion = Completion::ended(*outcome, context);
            completion.record.tool = Some(tool);
            completion.record.is_denied = true;
            return completion;
        }
        let mut completion = source.invoke(call, context).await;
        let label = completion.record.label.clone().map(carried);
        let end = InnerCheck::End { call: context.call_id.clone(), label };
        if let Err(outcome) = self.check(end, context).await {
            // The calling tool may not have a result of which the gateway does not know the label.
            completion = completion_with(completion, *outcome);
        }
        completion
    }

    /// Keeps the label of a result that comes from no checked call, until it is reported.
    fn ended(&self, call: &InnerCall<'_>, record: &CallRecord) {
        if self.checked.lock().remove(call.call_id) {
            return;
        }
        let mut label = self.label.lock();
        let Some(known) = &mut *label else { return };
        let (name, stated) = (&call.tool.name, call.source.labels(&call.tool.name));
        let by = call.source.states_for();
        let own = carried(ToolLabels::resolve(&StatedLabels::default(), &stated, by).result);
        let said = record.label.clone().map(carried);
        known.add(&own);
        let mut kept = self.kept.lock();
        let kept = kept.entry((call.source.name().to_owned(), name.clone())).or_default();
        kept.own = own;
        let Some(said) = said else { return };
        known.add(&said);
        let before = kept.said.clone();
        kept.said.get_or_insert_default().add(&said);
        kept.is_reported &= kept.said == before;
    }

    fn label(&self) -> Option<Label> {
        self.label.lock().clone()
    }
}
