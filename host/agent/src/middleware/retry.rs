//! Another try for what may pass.

use std::time::Duration;

use async_trait::async_trait;

use super::{FunctionContext, FunctionSignal, Middleware, Next, Place};

/// Tries a call again when its failure is marked as transient (`RES-20`). Nothing of a failed try is left in any file.
///
/// It belongs inside failure conversion, and is refused outside of it (`MW-19`).
#[derive(Debug, Clone, Copy)]
pub struct Retry {
    retries_max: u32,
    pause: Duration,
}

impl Retry {
    /// At most so many tries after the first, with this pause before the second and twice the last one before each further one.
    #[must_use]
    pub fn new(retries_max: u32, pause: Duration) -> Self {
        Self { retries_max, pause }
    }
}

#[async_trait]
impl Middleware<FunctionContext> for Retry {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let mut pause = self.pause;
        for _ in 0..self.retries_max {
            match next.run(context).await {
                Err(FunctionSignal::Error(error)) if error.is_transient() == Some(true) => {}
                other => return other,
            }
            tokio::select! {
                biased;
                () = context.cancellation.cancelled() => return Err(FunctionSignal::Cancelled),
                () = tokio::time::sleep(pause) => {}
            }
            pause = pause.saturating_mul(2);
        }
        next.run(context).await
    }

    fn place(&self) -> Place {
        Place::Retry
    }
}
