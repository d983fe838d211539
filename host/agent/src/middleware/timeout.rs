//! A limit on the time that a call takes.

use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::{ErrorType, ToolError};

use super::{FunctionContext, FunctionError, FunctionSignal, Middleware, Next};

/// Ends a call that takes longer than it may, as a `Timeout` (`RES-8`): the call is dropped, and
/// nothing of it is left in any file. Outside of [`Retry`](super::Retry) it limits all tries
/// together, inside of it each one.
#[derive(Debug, Clone, Copy)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// The longest that a call may take.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        Self { limit }
    }
}

#[async_trait]
impl Middleware<FunctionContext> for Timeout {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        match tokio::time::timeout(self.limit, next.run(context)).await {
            Ok(ended) => ended,
            Err(_) => {
                // Whatever the dropped call had set by then is not its result.
                context.result = None;
                let error = ToolError::new(ErrorType::Timeout);
                let detail = format!("the call took longer than {:?}", self.limit);
                Err(FunctionError::Tool(error.with_detail(detail)).into())
            }
        }
    }
}
