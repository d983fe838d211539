//! Audit log of calls.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_tool::CallRecord;

use super::{FunctionContext, FunctionError, FunctionSignal, FunctionValue, Middleware, Next};

/// Reports every call that ends to a sink, with its true outcome. As the outermost middleware it
/// sees the result that the model sees; inside failure conversion it sees the failure itself.
pub struct Audit<S> {
    sink: S,
}

/// Receives audit entries. The run calls it synchronously, so it must not block.
pub trait AuditSink: Send + Sync {
    /// Handles one entry.
    fn record(&self, entry: AuditEntry<'_>);
}

/// Audit entry of a call that has ended.
#[derive(Debug)]
pub struct AuditEntry<'a> {
    /// Id that the model gave the call.
    pub call_id: &'a str,
    /// Name of the tool.
    pub tool: &'a str,
    /// Id of the session, if there is one.
    pub session: Option<&'a str>,
    /// Arguments that the tool received.
    pub arguments: String,
    /// `ok`, `failure`, `error`, `cancelled`, `refused` for a call that did not start, or `ended`
    /// by middleware.
    pub outcome: &'static str,
    /// Duration of the call, including all attempts.
    pub took: Duration,
    /// Record of the last attempt, if a tool ran.
    pub record: Option<&'a CallRecord>,
}

impl<S: AuditSink> Audit<S> {
    /// Creates middleware that reports to `sink`.
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
            record: context.record.as_deref(),
        });
        ended
    }
}
