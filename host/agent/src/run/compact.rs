//! Compaction before requests (`SES-19`, `SES-20`).

use super::cycle::Cycle;
use super::plan::FunctionPlan;
use crate::compaction::{Compaction, CompactionSnapshot, Conversation, RequestSize, TokenCounter};
use crate::{Reply, RunError, TokenBudget};

/// Tokens of the instructions, the functions and the first messages of a conversation.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownSize {
    tokens: u64,
    messages: usize,
}

impl Cycle<'_> {
    /// Shortens the conversation if the agent has a compaction and the caller's side keeps the
    /// conversation.
    pub(super) async fn compact(&mut self, plan: &FunctionPlan) -> Result<(), RunError> {
        let Some(compaction) = self.parts.compaction.clone() else { return Ok(()) };
        if self.response.conversation_id.is_some() || self.parts.client.keeps_conversation() {
            return Ok(());
        }
        let budgets = self.budgets();
        budgets.iter().try_for_each(|budget| budget.check())?;
        let Compaction { strategy, counter, observer } = compaction;
        let size = self.size(plan, &*counter);
        let cancellation = self.given.context.cancellation.clone();
        let mut conversation =
            Conversation::new(&self.messages, &*counter, size, cancellation.clone());
        let done = tokio::select! {
            biased;
            () = cancellation.cancelled() => return Err(RunError::Cancelled),
            done = strategy.compact(&mut conversation) => done,
        };
        if let Err(error) = done {
            tracing::warn!(%error, "a conversation was not shortened");
        }
        if let Some(used) = conversation.usage() {
            TokenBudget::count_each(&budgets, used);
            *self.response.usage.get_or_insert_default() += used;
        }
        let Some((messages, report)) = conversation.finish() else { return Ok(()) };
        self.known_size = Some(KnownSize { tokens: report.tokens_after, messages: messages.len() });
        let responses = self.response.messages.len();
        self.compaction = Some(CompactionSnapshot { responses, messages: messages.clone() });
        self.messages = messages;
        tracing::debug!(?report, "a conversation was shortened");
        if let Some(observer) = observer {
            observer(&report);
        }
        Ok(())
    }

    /// Remembers the tokens of a request and its reply, if the provider has counted them.
    pub(super) fn note_size(&mut self, reply: &Reply) {
        if let Some(usage) = reply.usage.filter(|usage| usage.input > 0) {
            let tokens = usage.input.saturating_add(usage.output);
            self.known_size = Some(KnownSize { tokens, messages: self.messages.len() });
        }
    }

    /// Returns the size of the next request.
    fn size(&self, plan: &FunctionPlan, counter: &dyn TokenCounter) -> RequestSize {
        let instructions =
            self.given.options.instructions.as_ref().map_or(0, |text| counter.text(text));
        let functions = plan.advertised.iter().map(|definition| {
            let schema = counter.data(&definition.input.published().to_string());
            counter.text(definition.name.as_str()) + counter.text(&definition.description) + schema
        });
        let fixed = functions.fold(instructions, u64::saturating_add);
        let known = self.known_size.unwrap_or(KnownSize { tokens: fixed, messages: 0 });
        let added = self.messages.get(known.messages..).unwrap_or_default();
        let added = added.iter().map(|message| counter.message(message));
        RequestSize { fixed, total: added.fold(known.tokens, u64::saturating_add) }
    }
}
