//! Time limit of calls.

use std::time::Duration;

use async_trait::async_trait;
use cofferdam_tool::{ErrorType, ToolError};

use super::{FunctionContext, FunctionError, FunctionSignal, Middleware, Next};

/// Ends a call that takes too long with `Timeout` (`RES-8`): the call is dropped and leaves no
/// changes in files. Outside of [`Retry`](super::Retry) it limits all attempts together, inside of
/// it each one.
#[derive(Debug, Clone, Copy)]
pub struct Timeout {
    limit: Duration,
}

impl Timeout {
    /// Creates middleware with this time limit.
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
                // The dropped call may have set a result, which does not count, and the record
                // would be that of an earlier attempt.
                context.result = None;
                context.record = None;
                let error = ToolError::new(ErrorType::Timeout);
                let detail = format!("the call took longer than {:?}", self.limit);
                Err(FunctionError::Tool(error.with_detail(detail)).into())
            }
        }
    }
}
