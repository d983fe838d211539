//! Calls that other gateways have started and this one continues.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_tool::{CallContext, Completion, Outcome, ToolName};

use super::Dispatcher;
use super::call::{CallClient, OfferEnd, PendingCall, WorkerOffer};
use super::shared::{FoundCall, SharedCall};
use super::source::{completion, report};
use crate::{DispatchError, result};

/// A call that another gateway has started.
pub struct ResumedCall {
    dispatcher: Arc<Dispatcher>,
    tool: ToolName,
    state: ResumedState,
}

enum ResumedState {
    Running(SharedCall, WorkerOffer),
    Ended(Bytes),
}

impl Dispatcher {
    /// Finds the call that a session has handed over under this id
    /// ([`Handover`](cofferdam_tool::handover::Handover)), and takes it over from the gateway that
    /// has it. Returns `None` if there is none.
    ///
    /// # Errors
    /// [`DispatchError::KeysUnavailable`] if the store does not answer.
    pub async fn resume(
        self: &Arc<Self>,
        session: &str,
        id: &str,
    ) -> Result<Option<ResumedCall>, DispatchError> {
        let found = SharedCall::take_over(self, session, id).await;
        let found = found.map_err(|error| DispatchError::KeysUnavailable(error.0))?;
        Ok(found.map(|found| match found {
            FoundCall::Running(shared, offer) => ResumedCall {
                dispatcher: Arc::clone(self),
                tool: shared.tool().clone(),
                state: ResumedState::Running(shared, offer),
            },
            FoundCall::Ended(tool, result) => ResumedCall {
                dispatcher: Arc::clone(self),
                tool,
                state: ResumedState::Ended(result),
            },
        }))
    }
}

impl ResumedCall {
    /// Returns the tool that was called.
    #[must_use]
    pub fn tool(&self) -> &ToolName {
        &self.tool
    }

    /// Waits for the end of the call. Questions and reports of the call go to `context` meanwhile.
    pub async fn run(self, context: &CallContext) -> Completion {
        let Self { dispatcher, tool, state } = self;
        let result = async {
            let result = match state {
                ResumedState::Ended(result) => result,
                ResumedState::Running(shared, offer) => {
                    let mut pending = dispatcher.pending(context.cancellation.clone());
                    pending.shared = Some(shared);
                    pending.offer = Some(offer.clone());
                    attached(&mut pending, &offer, context).await?
                }
            };
            result::decode(&result, context).map_err(DispatchError::InvalidResult)
        };
        let ended = tokio::select! {
            biased;
            () = context.cancelled() => return Completion::ended(Outcome::Cancelled, context),
            ended = result => ended,
        };
        completion(ended, &tool, context)
    }
}

/// Attaches this gateway to the worker and waits for the result.
async fn attached(
    pending: &mut PendingCall,
    offer: &WorkerOffer,
    context: &CallContext,
) -> Result<Bytes, DispatchError> {
    let reports = |message| report(message, context);
    let client = CallClient {
        reports: &reports,
        asker: context.asker.as_ref(),
        handover: context.handover.as_deref(),
    };
    let ended = match pending.attach(offer).await {
        Ok(number) => pending.wait(offer, number, &client).await,
        Err(_) => Ok(OfferEnd::WorkerLost),
    };
    pending.offer = None;
    let result = match ended {
        Ok(OfferEnd::Result(result)) => Ok(result),
        Ok(OfferEnd::Moved) => Err(DispatchError::Moved),
        Ok(OfferEnd::NotStarted | OfferEnd::WorkerLost) => Err(DispatchError::OutcomeUnknown),
        Err(error) => Err(error),
    };
    if let Err(error) = &result {
        pending.end_shared(error);
    }
    result
}
