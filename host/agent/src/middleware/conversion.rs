//! Conversion of failures to results for the model.

use async_trait::async_trait;
use cofferdam_tool::Outcome;

use super::{
    FunctionContext, FunctionError, FunctionSignal, FunctionValue, Middleware, MiddlewareOrder,
    Next,
};

/// Converts failures of tools to error envelopes for the model (`RES-2`, `RES-5`). An error of host
/// code that has no message for models stays an error, which the loop reports in generic words
/// (`LOOP-14`).
///
/// Every agent has one outside of all other function middleware (`MW-19`).
#[derive(Debug, Clone, Copy, Default)]
pub struct FailureConversion;

#[async_trait]
impl Middleware<FunctionContext> for FailureConversion {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let outcome = match next.run(context).await {
            Err(FunctionSignal::Error(FunctionError::Failure(failure))) => {
                Outcome::Failure(failure)
            }
            Err(FunctionSignal::Error(FunctionError::Tool(error)))
                if error.error_type().is_some() || error.has_own_value() =>
            {
                Outcome::Error(error)
            }
            other => return other,
        };
        context.result = outcome.shown().map(|shown| FunctionValue::Error(shown.output));
        Ok(())
    }

    fn order(&self) -> MiddlewareOrder {
        MiddlewareOrder::Conversion
    }
}
