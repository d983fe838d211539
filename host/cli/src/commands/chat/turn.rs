//! One turn: from the user's prompt to the model's answer, including approvals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cofferdam::record::LogEvent;
use cofferdam_agent::{
    AgentRequest, AgentRun, ApprovalRequest, FinishReason, Message, MessageContent, Pairing,
    Response, Role, RunContext, RunError, Session, TokenUsage, open_requests,
};
use cofferdam_terminal::is_interactive;
use cofferdam_tool::invoke::FileEffects;
use futures_util::StreamExt as _;
use tokio_util::sync::CancellationToken;

use super::AgentFactory;
use super::approve::{self, ApprovalOutcome, ApprovalPages, StandingApprovals};
use super::interrupts::Interrupts;
use super::screen::{Screen, short};
use super::sources;
use super::transcript::{self, Transcript};
use super::waiting::{self, TypedDecisions};
use crate::commands::labels::{Decisions, LABELS_ADVICE};
use crate::{inspector, print, signals, terminal};

/// State of a conversation.
pub(super) struct Conversation {
    pub(super) agent: Arc<dyn AgentRun>,
    /// Name of the model, as `--model` takes it.
    pub(super) model: String,
    pub(super) agents: AgentFactory,
    pub(super) session: Session,
    pub(super) screen: Arc<Screen>,
    pub(super) approved: StandingApprovals,
    /// Answers of the command line to requests that wait in the session.
    pub(super) typed: TypedDecisions,
    /// Pages that show approvals and questions besides the terminal.
    pub(super) pages: Option<ApprovalPages>,
    pub(super) interrupts: Interrupts,
    /// Printer of messages that also adds up usage.
    pub(super) transcript: Transcript,
    /// Decisions of the label policy, if it is enabled.
    pub(super) decisions: Option<Decisions>,
    /// True if calls only show their file changes.
    pub(super) is_dry_run: bool,
    /// True if the outcome of a turn is printed as JSON.
    pub(super) is_json: bool,
    /// Token usage of all turns.
    pub(super) used: TokenUsage,
    /// Pinned messages that the next turn sends before the prompt.
    pub(super) pinned: Vec<Message>,
    /// Files that the next turn sends with the prompt.
    pub(super) attached: Vec<MessageContent>,
    /// Reason for which the model has ended the last answer.
    pub(super) finish: Option<FinishReason>,
}

/// Outcome of a turn.
#[derive(Debug)]
pub(super) enum TurnEnd {
    /// The model has answered.
    Answered,
    /// The model has answered, but calls were denied because no user could approve them.
    Unapproved,
    /// A program waits in the session until a user approves one of its calls.
    Waiting,
    /// The model has called tools instead of answering, and the calls were not run.
    Unanswered,
    /// The label policy has blocked a call, which ended the turn.
    Blocked,
    /// The user has stopped the turn.
    Stopped,
    /// The turn failed without an answer.
    Failed(RunError),
}

/// Answers to the requests of a run.
enum RequestAnswers {
    Given(Vec<MessageContent>),
    /// The user has stopped the turn instead.
    Stopped,
    /// Some of them are about programs, which can wait until a user is there. None is answered,
    /// because the calls of a reply run together.
    Waiting,
}

/// Result of one run of a turn.
struct RunReport {
    response: Response,
    requests: Vec<ApprovalRequest>,
}

impl Conversation {
    /// Takes a turn and returns its outcome.
    pub(super) async fn turn(&mut self, text: &str) -> anyhow::Result<TurnEnd> {
        self.interrupts.forget();
        self.finish = None;
        let started = Instant::now();
        let mut messages = self.pinned.clone();
        let mut contents = self.attached.clone();
        contents.push(MessageContent::text(text));
        messages.push(Message::new(Role::User, contents));
        self.agents.stored.take();
        let end = self.runs(messages, TurnEnd::Answered).await;
        // A turn that is not stored is no part of the conversation, and nor is what it has sent.
        if self.agents.stored.take() {
            self.pinned.clear();
            self.attached.clear();
        }
        self.end(end, started)
    }

    /// Continues the calls that wait in the session with the programs among them, if the user
    /// answers. Returns `None` if no program waits and the command line answers nothing.
    pub(super) async fn resume(&mut self) -> anyhow::Result<Option<TurnEnd>> {
        let requests = open_requests(&self.session);
        self.typed.check(&requests)?;
        if self.typed.is_empty() && !requests.iter().any(ApprovalRequest::is_of_program) {
            return Ok(None);
        }
        let direct = requests.iter().filter(|request| !request.is_of_program());
        direct.for_each(|request| self.screen.note_call(&request.function_call));
        self.interrupts.forget();
        let started = Instant::now();
        let mut end = TurnEnd::Answered;
        let end = match self.answers(&requests, &mut end).await? {
            RequestAnswers::Given(answers) => {
                self.runs(vec![Message::new(Role::User, answers)], end).await
            }
            RequestAnswers::Stopped => Ok(TurnEnd::Stopped),
            RequestAnswers::Waiting => Ok(TurnEnd::Waiting),
        };
        self.end(end, started).map(Some)
    }

    /// Shows the outcome of a turn.
    fn end(&mut self, end: anyhow::Result<TurnEnd>, started: Instant) -> anyhow::Result<TurnEnd> {
        let usage = self.transcript.take_used();
        self.screen.end_turn()?;
        let end = end?;
        if let Some(usage) = usage {
            self.used += usage;
        }
        if self.is_json {
            transcript::end(&end, self.finish.take().as_ref(), usage.as_ref())?;
        }
        match &end {
            TurnEnd::Answered | TurnEnd::Unapproved | TurnEnd::Unanswered => {}
            TurnEnd::Waiting => waiting::note(&open_requests(&self.session), self.session.id()),
            TurnEnd::Blocked => {
                print::note("the turn ends here: the label policy has blocked a call")
            }
            TurnEnd::Stopped => print::note("stopped"),
            TurnEnd::Failed(error) => print::note(&format!("error: {}", explained(error))),
        }
        // Programs get the tokens from `--json`.
        if is_interactive() && !self.is_json {
            let tokens = usage.map(|usage| format!(", {}", tokens(&usage))).unwrap_or_default();
            print::aside(&format!("{}{tokens}", print::time(started.elapsed())));
        }
        Ok(end)
    }

    /// Continues the conversation with the model that `typed` names.
    pub(super) fn change_model(&mut self, typed: &str) -> anyhow::Result<()> {
        let model = self.agents.model(typed)?;
        self.agent = self.agents.agent(&model)?;
        self.model = model.to_string();
        Ok(())
    }

    /// Runs the agent until it needs no more answers. `end` is the outcome of the turn so far.
    async fn runs(
        &mut self,
        mut messages: Vec<Message>,
        mut end: TurnEnd,
    ) -> anyhow::Result<TurnEnd> {
        loop {
            messages.iter().try_for_each(|message| self.transcript.message(message))?;
            let RunReport { response, requests } = match self.run(messages).await? {
                Ok(ran) => ran,
                Err(RunError::Cancelled) => return Ok(TurnEnd::Stopped),
                Err(error) => return Ok(TurnEnd::Failed(error)),
            };
            if requests.is_empty() {
                if self.is_blocked(&response) {
                    return Ok(TurnEnd::Blocked);
                }
                sources::note(&response);
                let unrun = unrun_calls(&response);
                if unrun.is_empty() {
                    note_end(&response);
                } else {
                    self.note_unrun(&unrun);
                    end = TurnEnd::Unanswered;
                }
                self.finish = response.finish;
                return Ok(end);
            }
            let answers = match self.answers(&requests, &mut end).await? {
                RequestAnswers::Given(answers) => answers,
                RequestAnswers::Stopped => return Ok(TurnEnd::Stopped),
                RequestAnswers::Waiting => return Ok(TurnEnd::Waiting),
            };
            messages = vec![Message::new(Role::User, answers)];
        }
    }

    /// Returns whether the label policy has ended the turn. In that case the model has not answered
    /// the last results.
    fn is_blocked(&self, response: &Response) -> bool {
        let has_blocked = self.decisions.as_ref().is_some_and(Decisions::take_blocked);
        has_blocked && response.messages.last().is_some_and(|message| message.role == Role::Tool)
    }

    /// Runs the agent once and shows its updates. Ctrl-C cancels the run; a second Ctrl-C ends the
    /// process.
    async fn run(&mut self, messages: Vec<Message>) -> anyhow::Result<Result<RunReport, RunError>> {
        let cancellation = CancellationToken::new();
        let mut context = RunContext::default();
        context.cancellation = cancellation.clone();
        context.log = Some(terminal::log());
        context.progress = Some(terminal::progress());
        context.host = Some(Arc::new(self.agents.host_values()));
        context.asker = terminal::asker(self.pages.as_ref().map(|pages| &pages.prompts));
        if self.is_dry_run {
            context.file_effects = FileEffects { is_dry_run: true, shows_diffs: true };
        }
        let request = AgentRequest::new(messages).session(&self.session).context(context);
        let mut stream = self.agent.stream(request);
        self.screen.wait_for_model();
        loop {
            tokio::select! {
                update = stream.next() => match update {
                    Some(Ok(update)) => self.screen.update(&update)?,
                    Some(Err(error)) => return Ok(Err(error)),
                    None => break,
                },
                () = self.interrupts.next() => {
                    if cancellation.is_cancelled() {
                        signals::exit_interrupted().await
                    }
                    cancellation.cancel();
                }
            }
        }
        self.screen.end_line()?;
        Ok(stream.finish().await.map(|response| RunReport {
            requests: response.approval_requests().cloned().collect(),
            response,
        }))
    }

    /// Answers all requests, or none.
    async fn answers(
        &mut self,
        requests: &[ApprovalRequest],
        end: &mut TurnEnd,
    ) -> anyhow::Result<RequestAnswers> {
        let prompts = self.pages.as_ref().map(|pages| &pages.prompts);
        let has_answer = inspector::is_possible(prompts);
        let may_wait = requests.iter().any(ApprovalRequest::is_of_program);
        let is_open =
            |request: &ApprovalRequest| !self.typed.has(request) && !self.approved.approve(request);
        if !has_answer && may_wait && requests.iter().any(is_open) {
            if !self.typed.is_empty() {
                waiting::note_missing();
            }
            return Ok(RequestAnswers::Waiting);
        }
        let mut answers = Vec::new();
        for request in requests {
            let started = Instant::now();
            if let Some(answer) = self.typed.take(request) {
                let answered = ApprovalOutcome { answer, is_unasked: false, by: "flag" };
                self.record(request, &answered, started.elapsed());
                answers.push(answered.answer);
                continue;
            }
            let answered = tokio::select! {
                answered = approve::answer(request, &self.approved, &self.session, self.pages.as_ref()) => answered,
                () = self.interrupts.next() => return Ok(RequestAnswers::Stopped),
            };
            if answered.is_unasked && may_wait {
                return Ok(RequestAnswers::Waiting);
            }
            self.record(request, &answered, started.elapsed());
            if answered.is_unasked {
                *end = TurnEnd::Unapproved;
            }
            answers.push(answered.answer);
        }
        Ok(RequestAnswers::Given(answers))
    }
}

impl Conversation {
    /// Says which calls have ended the turn without being run.
    fn note_unrun(&self, calls: &[&str]) {
        let quoted = |names: &[&str]| {
            let names: Vec<_> = names.iter().map(|name| format!("`{}`", short(name))).collect();
            names.join(", ")
        };
        let is_unknown = |name: &&str| self.agents.toolset.definition(name).is_err();
        let unknown: Vec<_> = calls.iter().copied().filter(is_unknown).collect();
        let why = match self.agents.loop_settings.terminate_on_unknown && !unknown.is_empty() {
            true => format!("there is no tool {}", quoted(&unknown)),
            false => format!("calls of {} were not run", quoted(calls)),
        };
        print::note(&format!("the turn ends here, without an answer: {why}"));
    }

    /// Records a decision about a call.
    fn record(&self, request: &ApprovalRequest, answered: &ApprovalOutcome, waited: Duration) {
        if let Some(log) = &self.agents.call_log {
            log.recorder().event(LogEvent::Approval {
                tool: request.function_call.name.clone(),
                call: request.function_call.call_id.clone(),
                by: answered.by.to_owned(),
                decision: answered.decision().to_owned(),
                waited,
            });
        }
    }
}

/// Returns token counts for the user.
pub(super) fn tokens(usage: &TokenUsage) -> String {
    let TokenUsage { total, input, output, .. } = usage;
    format!("{total} tokens ({input} in, {output} out)")
}

/// Returns the names of the tools that the last reply calls, if the calls were not run.
fn unrun_calls(response: &Response) -> Vec<&str> {
    let pairing = Pairing::of(&response.messages);
    let Some((last, message)) = response.messages.iter().enumerate().next_back() else {
        return Vec::new();
    };
    let contents = message.contents.iter().enumerate();
    let unrun = contents.filter(|(index, _)| pairing.result_at((last, *index)).is_none());
    unrun.filter_map(|(_, content)| Some(content.as_call()?.name.as_str())).collect()
}

/// Explains an answer that is incomplete or empty.
fn note_end(response: &Response) {
    match &response.finish {
        Some(FinishReason::Length) => {
            print::note("the answer was cut off at the maximum number of tokens");
        }
        Some(FinishReason::ContentFilter) => {
            print::note("the provider withheld a part of the answer")
        }
        Some(FinishReason::Refusal) => print::note("the model refused to answer"),
        Some(FinishReason::Other(reason)) => {
            let reason = short(reason);
            print::note(&format!("the model has ended its answer for the reason `{reason}`"));
        }
        _ if response.text().is_empty() => print::note("the model said nothing"),
        _ => {}
    }
}

fn explained(error: &RunError) -> String {
    match error {
        RunError::Chat(error) => format!("the model gives no reply: {error}"),
        RunError::Calls(_) => format!("too many calls failed in a row: {error}"),
        RunError::GuardMissing { .. } => format!("{error}; {LABELS_ADVICE}"),
        other => other.to_string(),
    }
}
