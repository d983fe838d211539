//! Retries of calls (`RES-20`).

mod backoff;

use std::any::Any;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};

pub use self::backoff::Backoff;
use crate::label::{StatedBy, StatedLabels};
use crate::origin::ToolOrigin;
use crate::record::PluginIdentity;
use crate::{
    CallContext, Completion, ErrorType, Outcome, ToolCall, ToolDefinition, ToolName, ToolSource,
};

/// Pause before the first retry after a transient failure: short enough to go unnoticed, long
/// enough for a file to be unlocked.
const TRANSIENT_PAUSE: Duration = Duration::from_millis(200);
/// Maximum pause between retries after transient failures.
const TRANSIENT_PAUSE_MAX: Duration = Duration::from_secs(30);

/// Shortest and longest pause after a conflict. A conflict is over when the call ends; the pauses
/// only keep calls that have collided from colliding again.
const CONFLICT_PAUSE: Duration = Duration::from_millis(5);
const CONFLICT_PAUSE_MAX: Duration = Duration::from_millis(100);

/// Retries of a call, and the outcomes that lead to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Number of retries, and the pauses between them.
    pub backoff: Backoff,
    /// Outcomes after which a call is retried.
    pub on: RetryOn,
}

/// Outcomes after which a call is retried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum RetryOn {
    /// Every outcome that is marked transient, unless the record lists changes of files.
    #[default]
    Transient,
    /// [`ErrorType::Conflict`], if [the record](crate::CallRecord::is_repeatable) shows no lasting
    /// effect.
    Conflict,
}

impl Default for RetryPolicy {
    /// Retries nothing.
    fn default() -> Self {
        Self::on_transient(0)
    }
}

impl RetryPolicy {
    /// Retries calls that end in a transient failure (`RES-20`).
    #[must_use]
    pub fn on_transient(retries_max: u32) -> Self {
        let backoff =
            Backoff { retries_max, pause: TRANSIENT_PAUSE, pause_max: TRANSIENT_PAUSE_MAX };
        Self { backoff, on: RetryOn::Transient }
    }

    /// Retries calls that lose a race for a file to another call. Safe for every tool, because such
    /// a call has no lasting effect.
    #[must_use]
    pub fn on_conflict(retries_max: u32) -> Self {
        let backoff = Backoff { retries_max, pause: CONFLICT_PAUSE, pause_max: CONFLICT_PAUSE_MAX };
        Self { backoff, on: RetryOn::Conflict }
    }

    fn applies_to(&self, completion: &Completion) -> bool {
        let Completion { outcome, record } = completion;
        match self.on {
            RetryOn::Transient => outcome.transient() == Some(true) && !record.has_changed_files(),
            RetryOn::Conflict => {
                matches!(outcome, Outcome::Error(error) if error.error_type() == Some(ErrorType::Conflict))
                    && record.is_repeatable()
            }
        }
    }

    /// Calls `attempt` until its outcome is final or no retries are left. The record covers all
    /// attempts.
    pub async fn run<F>(
        &self,
        context: &CallContext,
        mut attempt: impl FnMut() -> F + Send,
    ) -> Completion
    where
        F: Future<Output = Completion> + Send,
    {
        let mut last = attempt().await;
        let mut is_retried = self.applies_to(&last);
        for attempts in 1.. {
            let Some(pause) = self.backoff.pause_after(attempts).filter(|_| is_retried) else {
                break;
            };
            tokio::select! {
                biased;
                () = context.cancelled() => return cancelled(last),
                () = tokio::time::sleep(pause) => {}
            }
            let earlier = last.record;
            last = attempt().await;
            // Judged by itself: the record of all attempts has effects that were undone.
            is_retried = self.applies_to(&last);
            last.record.add_earlier(&earlier);
        }
        last
    }
}

/// Source that retries the calls of another source by a policy.
///
/// Works on typed outcomes, before their conversion for the model; the last outcome is that of the
/// call. A call that is canceled, during an attempt or between two, ends at once as canceled.
/// Whether a failed attempt leaves changes behind depends on the source.
pub struct RetryingSource {
    source: Arc<dyn ToolSource>,
    policy: RetryPolicy,
}

impl RetryingSource {
    /// Returns a source that retries the calls of `source` by `policy`.
    #[must_use]
    pub fn new(source: Arc<dyn ToolSource>, policy: RetryPolicy) -> Self {
        Self { source, policy }
    }
}

#[async_trait]
impl ToolSource for RetryingSource {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
        self.source.definitions()
    }

    fn instructions(&self) -> Option<&str> {
        self.source.instructions()
    }

    fn needs_approval(&self, tool: &ToolName) -> bool {
        self.source.needs_approval(tool)
    }

    fn origin(&self, tool: &ToolName) -> ToolOrigin {
        self.source.origin(tool)
    }

    fn plugin_identity(&self) -> Option<&PluginIdentity> {
        self.source.plugin_identity()
    }

    fn needs_approval_for(&self, tool: &ToolName, arguments: &Map<String, Value>) -> bool {
        self.source.needs_approval_for(tool, arguments)
    }

    fn supports_dry_run(&self, tool: &ToolName) -> bool {
        self.source.supports_dry_run(tool)
    }

    fn file_stores(&self) -> Vec<Arc<dyn Any + Send + Sync>> {
        self.source.file_stores()
    }

    fn labels(&self, tool: &ToolName) -> StatedLabels {
        self.source.labels(tool)
    }

    fn states_for(&self) -> StatedBy {
        self.source.states_for()
    }

    async fn invoke(&self, call: ToolCall<'_>, context: &CallContext) -> Completion {
        self.policy.run(context, || self.source.invoke(call.clone(), context)).await
    }
}

/// Returns the completion of a call whose caller gave up before the next attempt.
fn cancelled(mut last: Completion) -> Completion {
    last.outcome = Outcome::Cancelled;
    last.record.set_outcome(&last.outcome);
    last
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::record::{FileChange, FileChangeKind, HostContact};
    use crate::{
        Annotations, CallRecord, DecodeOptions, InputSchema, Output, ToolError, ToolFailure,
        ToolName,
    };

    /// Returns the n-th outcome from the n-th call, and the last one from every further call.
    struct Script {
        outcomes: Vec<Outcome>,
        calls: AtomicUsize,
    }

    #[async_trait]
    impl ToolSource for Script {
        fn name(&self) -> &str {
            "script"
        }

        fn definitions(&self) -> Arc<[Arc<ToolDefinition>]> {
            Arc::new([])
        }

        async fn invoke(&self, _: ToolCall<'_>, _: &CallContext) -> Completion {
            let index = self.calls.fetch_add(1, Ordering::Relaxed).min(self.outcomes.len() - 1);
            let outcome = self.outcomes[index].clone();
            let mut record =
                CallRecord { attempts: 1, instructions: Some(10), ..CallRecord::default() };
            record.set_outcome(&outcome);
            Completion::new(outcome, record)
        }
    }

    async fn run(outcomes: Vec<Outcome>, retries_max: u32, context: &CallContext) -> Completion {
        let script = Script { outcomes, calls: AtomicUsize::new(0) };
        let mut policy = RetryPolicy::on_transient(retries_max);
        policy.backoff.pause = Duration::from_millis(1);
        let input = InputSchema::compile("t", r#"{"type":"object"}"#).unwrap();
        let arguments = input.decode("t", None, &DecodeOptions::default()).unwrap();
        let tool = Arc::new(ToolDefinition {
            name: ToolName::new("t").unwrap(),
            title: None,
            description: String::new(),
            input: Arc::new(input),
            output: None,
            annotations: Annotations::default(),
            group: None,
        });
        RetryingSource::new(Arc::new(script), policy)
            .invoke(ToolCall { tool: &tool, arguments, toolset: None }, context)
            .await
    }

    fn timeout() -> Outcome {
        Outcome::Error(ToolError::new(ErrorType::Timeout))
    }

    fn ok() -> Outcome {
        Outcome::Ok(Output::Value("ok".into()))
    }

    #[tokio::test]
    async fn only_what_is_marked_transient_is_tried_again() {
        let context = CallContext::default();
        let ended = run(vec![timeout(), timeout(), ok()], 2, &context).await;
        assert_eq!((ended.outcome, ended.record.attempts), (ok(), 3));
        assert_eq!(ended.record.instructions, Some(30));
        assert_eq!((ended.record.outcome, ended.record.error_type), ("ok", None));

        let unknown = Outcome::Failure(ToolFailure::new("no"));
        let trap = Outcome::Error(ToolError::new(ErrorType::TrapUnreachable));
        let host = Outcome::Error(ToolError::host("Odd"));
        for other in [unknown, trap, host, ok(), Outcome::Cancelled] {
            let ended = run(vec![other.clone(), ok()], 2, &context).await;
            assert_eq!((ended.outcome, ended.record.attempts), (other, 1));
        }
    }

    #[tokio::test]
    async fn inner_calls_of_earlier_attempts_stay_in_the_record() {
        let policy = RetryPolicy::on_transient(2);
        let context = CallContext::default();
        let mut left = 3;
        let ended = policy.run(&context, || {
            left -= 1;
            let outcome = if left == 0 { ok() } else { timeout() };
            let mut record = CallRecord { attempts: 1, ..CallRecord::default() };
            record.add_inner(CallRecord::default());
            record.store_failures.push(format!("attempt {left}"));
            record.set_outcome(&outcome);
            async { Completion::new(outcome, record) }
        });
        let record = ended.await.record;
        assert_eq!((record.attempts, record.inner.len()), (3, 3));
        assert_eq!(record.store_failures, ["attempt 0", "attempt 1", "attempt 2"]);
    }

    #[tokio::test]
    async fn the_last_outcome_counts_and_the_default_is_one_attempt() {
        let context = CallContext::default();
        let ended = run(vec![timeout()], 2, &context).await;
        assert_eq!((ended.outcome, ended.record.attempts), (timeout(), 3));
        let ended =
            run(vec![timeout(), ok()], RetryPolicy::default().backoff.retries_max, &context).await;
        assert_eq!((ended.outcome, ended.record.attempts), (timeout(), 1));
    }

    #[tokio::test]
    async fn of_conflicts_those_are_tried_again_that_leave_nothing_behind() {
        let conflict = || Outcome::Error(ToolError::new(ErrorType::Conflict));
        let end = |outcome: Outcome, record: &CallRecord| {
            let mut record = CallRecord { attempts: 1, ..record.clone() };
            record.set_outcome(&outcome);
            Completion::new(outcome, record)
        };
        let context = CallContext::default();
        let attempts = async |first: Outcome, record: CallRecord| {
            let mut first = Some(first);
            let policy = RetryPolicy::on_conflict(3);
            let ended = policy.run(&context, || {
                let completion = end(first.take().unwrap_or_else(ok), &record);
                async { completion }
            });
            ended.await.record.attempts
        };
        assert_eq!(attempts(conflict(), CallRecord::default()).await, 2);
        assert_eq!(attempts(timeout(), CallRecord::default()).await, 1);

        let contact = HostContact { host: "example.org".into(), port: 443, requests: 1 };
        let has_sent = CallRecord { hosts: vec![contact], ..CallRecord::default() };
        let has_asked = CallRecord { questions: 1, ..CallRecord::default() };
        let name = crate::PluginName::new("inner").unwrap();
        let plugin = crate::record::PluginIdentity { name, digest: "sha256:".into() };
        let of_plugin = CallRecord { plugin: Some(plugin.clone()), ..CallRecord::default() };
        let of_server = CallRecord::default();
        let calls = |inner: CallRecord| CallRecord { inner: vec![inner], ..CallRecord::default() };
        assert_eq!(attempts(conflict(), calls(of_plugin)).await, 2);
        let change = FileChange {
            mount: "data".into(),
            path: "a".into(),
            what: FileChangeKind::Created,
            bytes: 1,
            diff: None,
        };
        let has_changed = CallRecord { files: vec![change], ..CallRecord::default() };
        // Changes of an inner call are dropped with those of the call.
        let inner_has_changed = CallRecord { plugin: Some(plugin.clone()), ..has_changed.clone() };
        assert_eq!(attempts(conflict(), calls(inner_has_changed)).await, 2);
        let inner_has_sent = CallRecord { plugin: Some(plugin), ..has_sent.clone() };
        let lasting = [has_sent, has_asked, calls(of_server), calls(inner_has_sent)];
        for record in lasting.into_iter().chain([has_changed.clone()]) {
            assert_eq!(attempts(conflict(), record).await, 1);
        }
        let policy = RetryPolicy::on_transient(3);
        let ended = policy.run(&context, || {
            let completion = end(timeout(), &has_changed);
            async { completion }
        });
        assert_eq!(ended.await.record.attempts, 1);
    }

    #[tokio::test]
    async fn cancellation_stops_at_once() {
        let context =
            CallContext { cancellation: CancellationToken::new(), ..CallContext::default() };
        context.cancellation.cancel();
        let ended = run(vec![timeout(), ok()], 2, &context).await;
        assert_eq!((ended.outcome, ended.record.attempts), (Outcome::Cancelled, 1));
        assert_eq!((ended.record.outcome, ended.record.error_type), ("cancelled", None));
    }
}
