//! Observer of an agent's runs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam_tool::trace::TraceContext;

use crate::{Agent, Response, RunError, Session, TokenUsage};

/// Receives each run of an agent when it has ended. Called from within the run, so it must not
/// block.
pub trait RunObserver: Send + Sync {
    /// Receives a run.
    fn ended(&self, run: &EndedRun<'_>);
}

/// Run of an agent that has ended.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct EndedRun<'r> {
    /// Name of the agent.
    pub agent: &'r str,
    /// Model of the agent.
    pub model: &'r str,
    /// Id of the session, if there is one.
    pub session: Option<&'r str>,
    /// Span of the run.
    pub trace: TraceContext,
    /// Tokens of the whole run, if the provider tells and the run succeeded.
    pub usage: Option<TokenUsage>,
    /// Error that ended the run; `None` also for a run that was dropped.
    pub error: Option<&'r RunError>,
    /// True if the run was dropped before it ended.
    pub is_dropped: bool,
    /// Time from start to end.
    pub duration: Duration,
}

/// A run that is observed. Dropping it reports a run that was dropped.
pub(crate) struct ObservedRun {
    agent: Agent,
    session: Option<String>,
    trace: TraceContext,
    started: Instant,
    observer: Option<Arc<dyn RunObserver>>,
}

impl ObservedRun {
    pub(crate) fn start(agent: &Agent, session: Option<&Session>, trace: TraceContext) -> Self {
        let observer = agent.parts.observer.clone();
        let session = session.filter(|_| observer.is_some()).map(|session| session.id().to_owned());
        Self { agent: agent.clone(), session, trace, started: Instant::now(), observer }
    }

    /// Reports the end of the run.
    pub(crate) fn end(mut self, result: &Result<Response, RunError>) {
        let usage = result.as_ref().ok().and_then(|response| response.usage);
        self.report(usage, result.as_ref().err(), false);
    }

    fn report(&mut self, usage: Option<TokenUsage>, error: Option<&RunError>, is_dropped: bool) {
        if let Some(observer) = self.observer.take() {
            observer.ended(&EndedRun {
                agent: &self.agent.parts.name,
                model: self.agent.parts.client.model(),
                session: self.session.as_deref(),
                trace: self.trace,
                usage,
                error,
                is_dropped,
                duration: self.started.elapsed(),
            });
        }
    }
}

impl Drop for ObservedRun {
    fn drop(&mut self) {
        self.report(None, None, true);
    }
}
