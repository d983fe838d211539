//! Redaction of secrets.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::redact::Redactor;

use super::{FunctionContext, FunctionError, FunctionSignal, FunctionValue, Middleware, Next};

/// Replaces the values of secrets in results and in errors of calls.
#[derive(Clone)]
pub struct Redaction {
    redactor: Arc<Redactor>,
}

impl Redaction {
    /// Creates middleware that replaces what `redactor` finds.
    pub fn new(redactor: impl Into<Arc<Redactor>>) -> Self {
        Self { redactor: redactor.into() }
    }

    fn value(&self, value: FunctionValue) -> FunctionValue {
        match value {
            FunctionValue::Output(output) => FunctionValue::Output(self.redactor.output(output)),
            FunctionValue::Error(output) => FunctionValue::Error(self.redactor.output(output)),
            FunctionValue::Finished(mut result) => {
                result.result = self.redactor.text(&result.result).into_owned();
                FunctionValue::Finished(result)
            }
        }
    }
}

#[async_trait]
impl Middleware<FunctionContext> for Redaction {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let ended = next.run(context).await;
        context.result = context.result.take().map(|value| self.value(value));
        ended.map_err(|signal| match signal {
            FunctionSignal::Error(FunctionError::Failure(failure)) => {
                FunctionError::Failure(self.redactor.failure(failure)).into()
            }
            FunctionSignal::Error(FunctionError::Tool(error)) => {
                FunctionError::Tool(self.redactor.error(error)).into()
            }
            FunctionSignal::Terminate(Some(value)) => {
                FunctionSignal::Terminate(Some(self.value(value)))
            }
            other => other,
        })
    }
}
