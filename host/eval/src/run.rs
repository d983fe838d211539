//! Runs cases.

#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use cofferdam_agent::middleware::{ChatContext, Signal};
use cofferdam_agent::{
    Agent, BoxError, BudgetLimits, Layer, Message, Middleware, Next, Reply, ReplyBuilder, Response,
    RunContext, RunError, Session, TokenBudget,
};
use futures_util::{StreamExt, stream};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::ObservedCall;
use crate::case::{EvalCase, PassCriterion, RUNS_MAX};
use crate::judge::{Judge, Judgment};
use crate::report::{CaseReport, Report, RunOutcome, RunReport};
use crate::rules::{self, Observation};

/// Maximum number of runs of one evaluation.
pub const TOTAL_RUNS_MAX: u64 = 100_000;
/// Maximum number of concurrent runs.
pub const CONCURRENCY_MAX: usize = 256;
/// Default number of concurrent runs. Providers limit the rate of requests.
const CONCURRENCY: usize = 4;
/// Time for a canceled run to end by itself before it is dropped.
const GRACE: Duration = Duration::from_secs(5);

/// Options of an evaluation.
#[derive(Clone)]
pub struct EvalOptions {
    /// Number of runs of each case, instead of its own.
    pub runs: Option<u32>,
    /// Number of concurrent runs, at most [`CONCURRENCY_MAX`]. The default is 4.
    pub concurrency: usize,
    /// Model that decides about cases with a rubric, which need one.
    pub judge: Option<Judge>,
    /// Token that ends the evaluation. The report then has the runs that have ended.
    pub cancellation: CancellationToken,
    /// Receiver of each run that ends.
    pub observer: Option<Arc<dyn RunObserver>>,
}

/// Receives runs as they end, in any order. It must not block.
pub trait RunObserver: Send + Sync {
    /// Handles one run.
    fn ended(&self, case: &EvalCase, run: &RunReport);
}

/// Error of an evaluation that does not begin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The number of runs is out of range.
    #[error("expected 1 to {RUNS_MAX} runs per case, found {found}")]
    Runs {
        /// Number of runs that the options ask for.
        found: u32,
    },
    /// A case needs more runs than the options allow.
    #[error(
        "the case {case:?} passes with {k} of its runs: expected at least {k} runs, found {found}"
    )]
    TooFewRuns {
        /// Name of the case.
        case: String,
        /// Number of runs that have to pass.
        k: u32,
        /// Number of runs that the options ask for.
        found: u32,
    },
    /// A case has a rubric, and nothing decides by it.
    #[error(
        "the case {case:?} has a rubric: expected a model that judges by it, found none; name one \
         with `--judge`"
    )]
    NoJudge {
        /// Name of the case.
        case: String,
    },
    /// A case names a tool that the agent does not have.
    #[error(
        "the case {case:?} names {tool:?} in `{field}`: expected a tool of the agent, found no \
         tool of this name; {advice}"
    )]
    UnknownTool {
        /// Name of the case.
        case: String,
        /// Field with the tool: `calls` or `forbidden`.
        field: &'static str,
        /// Name that no tool has.
        tool: String,
        /// Advice with the nearest name, or with the names of all tools.
        advice: String,
    },
    /// All cases together have too many runs.
    #[error("expected at most {TOTAL_RUNS_MAX} runs in total, found {found}; ask for fewer runs")]
    TooManyRuns {
        /// Number of runs of all cases.
        found: u64,
    },
    /// The concurrency is out of range.
    #[error("expected 1 to {CONCURRENCY_MAX} concurrent runs, found {found}")]
    Concurrency {
        /// Concurrency that the options ask for.
        found: usize,
    },
}

impl Default for EvalOptions {
    fn default() -> Self {
        Self {
            runs: None,
            concurrency: CONCURRENCY,
            judge: None,
            cancellation: CancellationToken::new(),
            observer: None,
        }
    }
}

impl<F: Fn(&EvalCase, &RunReport) + Send + Sync> RunObserver for F {
    fn ended(&self, case: &EvalCase, run: &RunReport) {
        self(case, run);
    }
}

impl EvalOptions {
    fn runs_of(&self, case: &EvalCase) -> u32 {
        self.runs.unwrap_or(case.runs)
    }

    fn check(&self, cases: &[EvalCase]) -> Result<(), EvalError> {
        if let Some(found) = self.runs.filter(|runs| !(1..=RUNS_MAX).contains(runs)) {
            return Err(EvalError::Runs { found });
        }
        if !(1..=CONCURRENCY_MAX).contains(&self.concurrency) {
            return Err(EvalError::Concurrency { found: self.concurrency });
        }
        for case in cases {
            let found = self.runs_of(case);
            if let PassCriterion::K(k) = case.pass
                && found < k
            {
                return Err(EvalError::TooFewRuns { case: case.name.clone(), k, found });
            }
            if case.rubric.is_some() && self.judge.is_none() {
                return Err(EvalError::NoJudge { case: case.name.clone() });
            }
        }
        let runs = |case| u64::from(self.runs_of(case));
        let found = cases.iter().fold(0_u64, |sum, case| sum.saturating_add(runs(case)));
        match found > TOTAL_RUNS_MAX {
            true => Err(EvalError::TooManyRuns { found }),
            false => Ok(()),
        }
    }
}

/// Runs cases and reports what the runs did. `agent` makes a new agent for each run, with tools
/// whose state no other run has changed; it receives the case and the number of the run, from 1.
/// The turns of a run share a new session. Tools that cases name are not checked here, but by
/// [`check_tools`](crate::check_tools).
///
/// A run whose agent cannot be made, whose provider or judge fails, or that asks for an approval
/// ends with an error and says nothing about the tools. All other runs pass or fail.
///
/// # Errors
/// [`EvalError`] if the options and the cases do not fit together. Errors of runs are part of the
/// report.
pub async fn evaluate<F, Fut>(
    cases: &[EvalCase],
    options: &EvalOptions,
    agent: F,
) -> Result<Report, EvalError>
where
    F: Fn(&EvalCase, u32) -> Fut,
    Fut: Future<Output = Result<Agent, BoxError>>,
{
    options.check(cases)?;
    let numbers = |(index, case)| (1..=options.runs_of(case)).map(move |number| (index, number));
    let planned: Vec<_> = cases.iter().enumerate().flat_map(numbers).collect();
    let agent = &agent;
    let mut ended = stream::iter(planned)
        .map(|(index, number)| async move {
            let case = cases.get(index)?;
            let ended = run(case, number, options, agent).await?;
            if let Some(observer) = &options.observer {
                observer.ended(case, &ended);
            }
            Some((index, ended))
        })
        .buffer_unordered(options.concurrency);
    let mut by_case: Vec<_> = cases.iter().map(|_| Vec::new()).collect();
    while let Some(run) = ended.next().await {
        if let Some((index, run)) = run
            && let Some(runs) = by_case.get_mut(index)
        {
            runs.push(run);
        }
    }
    let cases = cases.iter().zip(by_case);
    let cases = cases.map(|(case, runs)| CaseReport::new(case, options.runs_of(case), runs));
    Ok(Report { cases: cases.collect(), ..Report::default() })
}

/// Runs a case once. Returns `None` if the evaluation was canceled before the run ended.
async fn run<F, Fut>(
    case: &EvalCase,
    number: u32,
    options: &EvalOptions,
    agent: F,
) -> Option<RunReport>
where
    F: Fn(&EvalCase, u32) -> Fut,
    Fut: Future<Output = Result<Agent, BoxError>>,
{
    let cancellation = &options.cancellation;
    if cancellation.is_cancelled() {
        return None;
    }
    let made = cancellation.run_until_cancelled(agent(case, number)).await?;
    let (seen, verdict) = match made {
        Ok(agent) => CaseRun::new(case, agent, cancellation.child_token()).observe().await,
        Err(error) => {
            let reason = format!("the agent of the run cannot be made: {error}");
            (Observation::default(), RunVerdict::Error(reason))
        }
    };
    let (outcome, reasons, judgment) = match verdict {
        RunVerdict::Cancelled if cancellation.is_cancelled() => return None,
        RunVerdict::Cancelled => (RunOutcome::Error, vec!["the run was canceled".to_owned()], None),
        RunVerdict::Error(reason) => (RunOutcome::Error, vec![reason], None),
        RunVerdict::Failed(reasons) => (RunOutcome::Failed, reasons, None),
        RunVerdict::Ended => judge(case, &seen, options).await?,
    };
    let failed_calls = seen.calls.iter().filter(|call| call.failed).count() as u64;
    let report = RunReport {
        number,
        outcome,
        reasons,
        call_count: seen.calls.len() as u64,
        failed_calls,
        calls: seen.calls,
        answer: seen.answer,
        judgment,
        rounds: seen.rounds,
        input_tokens: seen.input_tokens,
        output_tokens: seen.output_tokens,
        seconds: seen.seconds,
    };
    Some(report.shortened())
}

/// Judges a run whose model answered: by the rules of its case, and then by the rubric, if there is
/// one. Returns `None` if the evaluation was canceled.
async fn judge(
    case: &EvalCase,
    seen: &Observation,
    options: &EvalOptions,
) -> Option<(RunOutcome, Vec<String>, Option<Judgment>)> {
    let reasons = rules::reasons(case, seen);
    if !reasons.is_empty() {
        return Some((RunOutcome::Failed, reasons, None));
    }
    let (Some(rubric), Some(judge)) = (&case.rubric, &options.judge) else {
        return Some((RunOutcome::Passed, reasons, None));
    };
    match judge.decide(rubric, case, seen, options.cancellation.child_token()).await {
        Err(RunError::Cancelled) if options.cancellation.is_cancelled() => None,
        Err(error) => {
            Some((RunOutcome::Error, vec![format!("the judge did not decide: {error}")], None))
        }
        Ok(judgment) => {
            let problems: Vec<_> = judgment.problem().into_iter().collect();
            let outcome = match problems.is_empty() {
                true => RunOutcome::Passed,
                false => RunOutcome::Failed,
            };
            Some((outcome, problems, Some(judgment)))
        }
    }
}

/// End of a run, before its calls and its answer are judged.
enum RunVerdict {
    /// The model answered all turns.
    Ended,
    Failed(Vec<String>),
    Error(String),
    Cancelled,
}

/// One run of a case.
struct CaseRun<'c> {
    case: &'c EvalCase,
    agent: Agent,
    session: Session,
    cancellation: CancellationToken,
    context: RunContext,
    budget: Option<TokenBudget>,
    rounds: Arc<AtomicU32>,
    seen: Observation,
}

impl<'c> CaseRun<'c> {
    fn new(case: &'c EvalCase, agent: Agent, cancellation: CancellationToken) -> Self {
        let budget = case.limits.tokens.map(|max| {
            // A budget is exceeded when usage equals its limit.
            let total = Some(max.saturating_add(1));
            TokenBudget::new(BudgetLimits { total, ..BudgetLimits::default() })
        });
        let mut context = RunContext::default();
        context.cancellation = cancellation.clone();
        context.budgets.extend(budget.clone());
        Self {
            case,
            agent,
            session: Session::new(),
            cancellation,
            context,
            budget,
            rounds: Arc::default(),
            seen: Observation::default(),
        }
    }

    async fn observe(mut self) -> (Observation, RunVerdict) {
        let started = Instant::now();
        let limit = self.case.limits.seconds.and_then(|max| Duration::try_from_secs_f64(max).ok());
        let cancellation = self.cancellation.clone();
        let stopped = async {
            match limit {
                Some(limit) => {
                    let _ = tokio::time::timeout(limit, cancellation.cancelled()).await;
                }
                None => cancellation.cancelled().await,
            }
        };
        let ended = {
            let mut turns = std::pin::pin!(self.turns());
            tokio::select! {
                ended = &mut turns => ended,
                () = stopped => {
                    cancellation.cancel();
                    let ended = tokio::time::timeout(GRACE, turns).await;
                    ended.unwrap_or(Err(RunError::Cancelled))
                }
            }
        };
        self.seen.seconds = started.elapsed().as_secs_f64();
        self.seen.rounds = self.rounds.load(Ordering::Relaxed);
        if let Some(used) = self.context.usage.take() {
            self.seen.input_tokens = used.input;
            self.seen.output_tokens = used.output;
            self.seen.total_tokens = used.total.max(used.input.saturating_add(used.output));
        }
        let verdict = self.verdict(ended);
        (self.seen, verdict)
    }

    /// Runs the turns. Returns why the run does not count, if a turn asks for something that no
    /// user is there to give.
    async fn turns(&mut self) -> Result<Option<String>, RunError> {
        let case = self.case;
        for turn in &case.turns {
            let response = self.turn(turn).await?;
            self.seen.answer = response.text();
            self.add_calls(response.messages.iter().map(|message| &**message));
            if let Some(request) = response.approval_requests().next() {
                return Ok(Some(format!(
                    "the agent asks for approval of a call of `{}`; evaluate agents that do not \
                     ask, or pass --yes",
                    request.function_call.name
                )));
            }
        }
        Ok(None)
    }

    async fn turn(&mut self, turn: &str) -> Result<Response, RunError> {
        let rounds = Layer::Chat(Arc::new(RoundCounter { rounds: Arc::clone(&self.rounds) }));
        let run = self.agent.run(turn).session(&self.session).layer(rounds);
        let mut stream = run.context(self.context.clone()).stream();
        // The response of a run that fails is lost, and its calls with it.
        let mut builder = ReplyBuilder::default();
        while let Some(update) = stream.next().await {
            match update {
                Ok(update) => builder.add(update),
                Err(error) => {
                    self.add_calls(builder.build().messages.iter());
                    return Err(error);
                }
            }
        }
        stream.finish().await
    }

    fn add_calls<'m>(&mut self, messages: impl Iterator<Item = &'m Message> + Clone) {
        let failed: Vec<_> = messages
            .clone()
            .flat_map(Message::results)
            .filter(|result| result.is_error)
            .map(|result| result.call_id.as_str())
            .collect();
        let calls = messages.flat_map(Message::calls).map(|call| ObservedCall {
            tool: call.name.clone(),
            arguments: arguments(&call.arguments),
            failed: failed.contains(&call.call_id.as_str()),
        });
        self.seen.calls.extend(calls);
    }

    fn verdict(&self, ended: Result<Option<String>, RunError>) -> RunVerdict {
        let exceeded = rules::exceeded(&self.case.limits, &self.seen);
        let is_over_budget = self.budget.as_ref().is_some_and(|budget| budget.check().is_err());
        match ended {
            Ok(None) => RunVerdict::Ended,
            Ok(Some(reason)) => RunVerdict::Error(reason),
            Err(RunError::Cancelled) if !exceeded.is_empty() => RunVerdict::Failed(exceeded),
            Err(RunError::Cancelled) => RunVerdict::Cancelled,
            Err(RunError::BudgetExceeded(_)) if is_over_budget => RunVerdict::Failed(exceeded),
            Err(error @ (RunError::Answer(_) | RunError::Calls(_))) => {
                RunVerdict::Failed(vec![format!("the run failed: {error}")])
            }
            Err(error) => RunVerdict::Error(format!("the run did not end: {error}")),
        }
    }
}

/// Returns the arguments of a call; the string itself if it is not JSON.
fn arguments(text: &str) -> Value {
    match text.trim() {
        "" => Value::Object(serde_json::Map::new()),
        json => serde_json::from_str(json).unwrap_or_else(|_| text.into()),
    }
}

/// Counts model requests.
struct RoundCounter {
    rounds: Arc<AtomicU32>,
}

#[async_trait]
impl Middleware<ChatContext> for RoundCounter {
    async fn process(
        &self,
        context: &mut ChatContext,
        next: Next<'_, ChatContext>,
    ) -> Result<(), Signal<Reply>> {
        self.rounds.fetch_add(1, Ordering::Relaxed);
        next.run(context).await
    }
}
