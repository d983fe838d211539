//! A line for every call.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_tool::CallRecord;

use super::{FunctionContext, FunctionError, FunctionSignal, FunctionValue, Middleware, Next};

/// Tells a sink about every call that ends, with its true outcome. Outermost it sees what the model
/// is shown; inside failure conversion it sees the failure itself.
pub struct Audit<S> {
    sink: S,
}

/// Takes entries. Called from within the run: it must not block.
pub trait AuditSink: Send + Sync {
    /// Takes one.
    fn record(&self, entry: AuditEntry<'_>);
}

/// A call that has ended.
#[derive(Debug)]
pub struct AuditEntry<'a> {
    /// The model's id of the call.
    pub call_id: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// The session, if there is one.
    pub session: Option<&'a str>,
    /// The arguments as the tool was sent them.
    pub arguments: String,
    /// `ok`, `failure`, `error`, `cancelled`, `refused` for a call that did not start, or `ended`
    /// by middleware.
    pub outcome: &'static str,
    /// How long the call took, all tries together.
    pub took: Duration,
    /// What the last try left behind, if a tool ran.
    pub record: Option<&'a CallRecord>,
}

impl<S: AuditSink> Audit<S> {
    /// Middleware that tells `sink`.
    pub fn new(sink: S) -> Self {
        Self { sink }
    }
}

impl<F: Fn(AuditEntry<'_>) + Send + Sync> AuditSink for F {
    fn record(&self, entry: AuditEntry<'_>) {
        self(entry);
    }
}

#[async_trait]
impl<S: AuditSink> Middleware<FunctionContext> for Audit<S> {
    async fn process(
        &self,
        context: &mut FunctionContext,
        next: Next<'_, FunctionContext>,
    ) -> Result<(), FunctionSignal> {
        let started = Instant::now();
        let ended = next.run(context).await;
        let of_tool = context.record.as_ref().map(|record| record.outcome);
        let outcome = match &ended {
            Ok(()) if matches!(context.result, Some(FunctionValue::Error(_))) => {
                of_tool.unwrap_or("error")
            }
            Ok(()) => of_tool.unwrap_or("ended"),
            Err(FunctionSignal::Error(
                FunctionError::InvalidArguments(_) | FunctionError::UsedUp(_),
            )) => "refused",
            Err(FunctionSignal::Error(FunctionError::Failure(_))) => "failure",
            Err(FunctionSignal::Error(_)) => "error",
            Err(FunctionSignal::Cancelled) => "cancelled",
            Err(FunctionSignal::Terminate(_) | FunctionSignal::FailClosed(_)) => "ended",
        };
        self.sink.record(AuditEntry {
            call_id: &context.call_id,
            tool: context.tool.name.as_str(),
            session: context.session.as_ref().map(|session| session.id()),
            arguments: context.arguments.to_text(),
            outcome,
            took: started.elapsed(),
            record: context.record.as_ref(),
        });
        ended
    }
}
