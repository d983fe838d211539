//! Retries of transient failures.

use async_trait::async_trait;
use cofferdam_tool::retry::Backoff;

use super::{FunctionContext, FunctionSignal, Middleware, MiddlewareOrder, Next};

/// Retries a call when its failure is marked as transient (`RES-20`). A failed attempt leaves no
/// changes in files.
///
/// It has to be inside failure conversion; an agent with another order is rejected (`MW-19`).
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    backoff: Backoff,
}

impl Retry {
    /// Creates middleware with this number of retries and these pauses.
    #[must_use]
    pub fn new(backoff: Backoff) -> Self {
        Self { backoff }
    }
}

#[async_trait]
impl Middleware<FunctionContext> for Retry {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let mut attempts = 0;
        loop {
            attempts += 1;
            let result = next.run(context).await;
            let is_transient = matches!(&result, Err(FunctionSignal::Error(error)) if error.is_transient() == Some(true));
            let Some(pause) = self.backoff.pause_after(attempts).filter(|_| is_transient) else {
                return result;
            };
            tokio::select! {
                biased;
                () = context.cancellation.cancelled() => return Err(FunctionSignal::Cancelled),
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    fn order(&self) -> MiddlewareOrder {
        MiddlewareOrder::Retry
    }
}
