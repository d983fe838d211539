//! Model calls, inside the chat middleware.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;

use super::cycle::Cycle;
use super::plan::FunctionPlan;
use crate::middleware::{ChatContext, ChatResult, Innermost, Next, Signal};
use crate::{
    ChatClient, ChatError, ChatOptions, ChatRequest, Delta, Reply, ReplyBuilder, ReplyStream,
    RunError, TokenBudget, Update,
};

/// Result of a model call.
pub(super) struct ModelOutcome {
    pub(super) reply: Reply,
    /// True if chat middleware ends the loop (`MW-15`).
    pub(super) is_terminated: bool,
    /// Error if a token budget is now used up (`LOOP-48`).
    pub(super) budget: Result<(), RunError>,
}

impl Cycle<'_> {
    /// Calls the model.
    pub(super) async fn ask(&mut self, plan: &FunctionPlan) -> Result<ModelOutcome, RunError> {
        let model = Model { client: Arc::clone(&self.parts.client), budgets: self.budgets() };
        model.check()?;
        let request = self.request(plan);
        let mut context = ChatContext {
            request,
            session: self.given.session.clone(),
            host: self.given.context.host.clone(),
            is_streaming: self.updates.is_some(),
            result: None,
        };
        let done = Next::new(&self.chains.chat, &model).run(&mut context).await;
        let (carried, is_terminated) = match done {
            Ok(()) => (None, false),
            Err(Signal::Terminate(carried)) => (carried.map(ChatResult::Reply), true),
            Err(Signal::Error(error)) => return Err(error),
        };
        let result = carried.or(context.result).unwrap_or(ChatResult::Reply(Reply::default()));
        let reply = match result {
            ChatResult::Reply(reply) if self.updates.is_none() => reply,
            ChatResult::Reply(reply) => self.read(reply.into(), plan).await?,
            ChatResult::Stream(stream) => self.read(stream, plan).await?,
        };
        Ok(ModelOutcome { reply, is_terminated, budget: model.check() })
    }

    /// Returns the budgets that the run counts to.
    pub(super) fn budgets(&self) -> Vec<TokenBudget> {
        self.given.budgets(self.parts)
    }

    fn request(&mut self, plan: &FunctionPlan) -> ChatRequest {
        let tool_choice = plan.tool_choice.clone();
        let withheld_tools = if plan.advertised.is_empty() {
            Arc::clone(&self.listed)
        } else {
            self.listed = Arc::clone(&plan.advertised);
            Arc::default()
        };
        ChatRequest {
            messages: self.messages.get(self.stored..).unwrap_or_default().to_vec(),
            tools: Arc::clone(&plan.advertised),
            loaded_tools: plan.loaded,
            withheld_tools,
            options: ChatOptions { tool_choice, ..self.given.options.clone() },
            conversation_id: self.response.conversation_id.clone(),
            session_id: self.given.session.as_ref().map(|session| session.id().to_owned()),
            trace: self.given.context.trace,
            cancellation: self.given.context.cancellation.clone(),
        }
    }

    /// Reads a stream to its end, passing on its updates (`LOOP-29`).
    async fn read(
        &mut self,
        mut stream: ReplyStream,
        plan: &FunctionPlan,
    ) -> Result<Reply, RunError> {
        let mut held = Vec::new();
        let mut builder = ReplyBuilder::default();
        while let Some(update) = stream.next().await {
            let mut update = update?;
            builder.add(update.clone());
            if self.is_withdrawn {
                update.deltas.retain(|delta| !holds_call(delta));
            }
            if plan.may_ask && (!held.is_empty() || update.deltas.iter().any(holds_call)) {
                // Updates after a call are held back too, to keep the order.
                held.push(update);
            } else {
                self.send_update(update).await;
            }
        }
        for update in held {
            self.send_update(update).await;
        }
        Ok(stream.finished(builder.build()))
    }

    async fn send_update(&self, update: Update) {
        if let Some(updates) = &self.updates {
            // If the reader is gone, the run is about to be dropped.
            let _ = updates.send(update).await;
        }
    }
}

fn holds_call(delta: &Delta) -> bool {
    match delta {
        Delta::Call { .. } => true,
        Delta::Content(content) => content.as_call().is_some(),
        Delta::Text(_) | Delta::TextEnd(_) | Delta::Reasoning(_) => false,
    }
}

/// Innermost part of the chat middleware: the client, and the budgets to which its usage counts.
struct Model {
    client: Arc<dyn ChatClient>,
    budgets: Vec<TokenBudget>,
}

impl Model {
    /// Checks that the budgets have tokens left (`LOOP-48`).
    fn check(&self) -> Result<(), RunError> {
        self.budgets.iter().try_for_each(|budget| Ok(budget.check()?))
    }
}

#[async_trait]
impl Innermost<ChatContext> for Model {
    async fn run(&self, context: &mut ChatContext) -> Result<(), Signal<Reply>> {
        // Checked again, because middleware may call the model several times.
        self.check()?;
        let request = context.request.clone();
        let cancellation = request.cancellation.clone();
        let asked = async {
            Ok(if context.is_streaming {
                ChatResult::Stream(self.counted(self.client.stream(request).await?))
            } else {
                let reply = self.client.reply(request).await?;
                if let Some(usage) = reply.usage {
                    TokenBudget::count_each(&self.budgets, usage);
                }
                ChatResult::Reply(reply)
            })
        };
        let result: Result<_, ChatError> = tokio::select! {
            biased;
            () = cancellation.cancelled() => Err(ChatError::cancelled()),
            result = asked => result,
        };
        context.result = Some(result.map_err(RunError::from)?);
        Ok(())
    }
}

impl Model {
    /// Counts the usage that a stream reports. The hooks of the client stay.
    fn counted(&self, stream: ReplyStream) -> ReplyStream {
        let budgets = self.budgets.clone();
        stream.map_updates(move |update| {
            if let Some(usage) = update.usage {
                TokenBudget::count_each(&budgets, usage);
            }
            update
        })
    }
}
