//! Calls that other gateways have started and this one continues.

use std::sync::Arc;

use bytes::Bytes;
use cofferdam_tool::{CallContext, Completion, Outcome, ToolName};

use super::Dispatcher;
use super::call::{CallClient, CallRequest, OfferEnd, PendingCall, RemoteCall, WorkerOffer};
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
    Waiting(SharedCall, Box<CallRequest>, Bytes),
    Running(SharedCall, WorkerOffer),
    Ended(Bytes),
}

impl Dispatcher {
    /// Finds the call that a session has handed over under this id
    /// ([`Handover`](cofferdam_tool::handover::Handover)), and takes it over from the gateway that
    /// has it. Returns `None` if the session has handed over no such call.
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
        Ok(found.map(|found| {
            let (tool, state) = match found {
                FoundCall::Waiting(shared, request, arguments) => {
                    (shared.tool().clone(), ResumedState::Waiting(shared, request, arguments))
                }
                FoundCall::Running(shared, offer) => {
                    (shared.tool().clone(), ResumedState::Running(shared, offer))
                }
                FoundCall::Ended(tool, result) => (tool, ResumedState::Ended(result)),
            };
            ResumedCall { dispatcher: Arc::clone(self), tool, state }
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
            let mut pending = dispatcher.pending(context.cancellation.clone());
            let reports = |message| report(message, context);
            let client = CallClient {
                reports: &reports,
                asker: context.asker.as_ref(),
                inner_calls: None,
                handover: context.handover.as_deref(),
            };
            let result = match state {
                ResumedState::Ended(result) => result,
                ResumedState::Waiting(shared, request, arguments) => {
                    let deadline = context.deadline;
                    let call =
                        RemoteCall { request: &request, arguments: &arguments, deadline, client };
                    pending.run_waiting(shared, &call).await?
                }
                ResumedState::Running(shared, offer) => {
                    (pending.shared, pending.is_taken_over) = (Some(shared), true);
                    pending.offer = Some(offer.clone());
                    attached(&mut pending, &offer, &client).await?
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
    client: &CallClient<'_>,
) -> Result<Bytes, DispatchError> {
    // If the bus does not take the message, it is sent again after a while, as a lost one is.
    let attached = pending.attach(offer).await.unwrap_or_default();
    let ended = pending.wait(offer, attached, client).await;
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
