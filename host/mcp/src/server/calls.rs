//! Runs one call from request to result: approval, questions, reports, and the change into a task.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use cofferdam_tool::ask::{AskError, Asker as _, Question, QuestionKind};
use cofferdam_tool::cut::shown_arguments;
use cofferdam_tool::handover::Handover;
use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::prompt::PromptText;
use cofferdam_tool::sink::ApprovalDecision;
use cofferdam_tool::{CallContext, Completion, RefusedCall, ToolDefinition, ToolFailure};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, InputRequiredResult, InputResponses, JsonObject, Task};
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::ServerShared;
use super::answer::{self, ResultBuilder};
use super::caller::Caller;
use super::catalog::{Catalog, CatalogEntry, RuleDecision};
use super::elicitation::{self, APPROVAL, Elicitation, Suspension};
use super::grants::{self, Grantor};
use super::operator_prompts::{CallPrompts, PromptSubject};
use super::principal::Principal;
use super::report::{Forwarder, Reports, ToolReport};
use super::rounds::{RoundState, StateBinding};
use super::tasks::TaskPermit;

/// Time after which an ordinary call that may take minutes becomes a task.
const TASK_GRACE: Duration = Duration::from_millis(500);
/// Time to store a task for other servers.
const HANDOVER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Suggested time between two polls.
const TASK_POLL: Duration = Duration::from_secs(1);
/// Name to which the state of a dry run is bound instead of the method.
const DRY_RUN: &str = "dry run";
/// Message about a call that a rule denies, as agents give it (`LOOP-52`).
const DENIED: &str = "A rule does not allow this call.";
/// Maximum length of the arguments that are shown to the user, in bytes.
const SHOWN_ARGUMENTS_BYTES_MAX: usize = 2000;

/// Request that runs a tool.
pub(super) struct ToolRequest<'a> {
    pub(super) catalog: Arc<Catalog>,
    pub(super) entry: &'a CatalogEntry,
    /// MCP method, to which a state is bound.
    pub(super) method: &'static str,
    pub(super) arguments: JsonObject,
    /// True if the client asks for a dry run.
    pub(super) is_dry_run: bool,
    pub(super) idempotency_key: Option<String>,
    pub(super) caller: &'a Arc<Caller>,
    pub(super) asked: ElicitationMode,
    pub(super) reports: Forwarder<'a>,
    /// True if the client accepts a task instead of a result.
    pub(super) takes_tasks: bool,
}

/// Delivery of questions to the client of a request, with its answers.
pub(super) enum ElicitationMode {
    ByRequest,
    ByResult { state: Option<String>, responses: Option<InputResponses> },
}

/// Outcome of a request.
pub(super) enum RequestOutcome {
    Done(Box<Result<Completion, RefusedCall>>),
    Asks(InputRequiredResult),
    Task(Task),
    /// The user did not allow the call, or could not be asked. Holds a message for the model.
    NotApproved(String),
}

/// Outcome of waiting for a call.
enum WatchOutcome {
    Ended(Box<Result<Completion, RefusedCall>>),
    Suspended(Suspension),
    BecomesTask(TaskPermit, Option<ToolReport>),
}

/// Call that runs while it is polled and stops when it is dropped.
pub(super) struct RunningCall {
    pub(super) elicitation: Arc<Elicitation>,
    pub(super) reports: Arc<Reports>,
    pub(super) call: Pin<Box<dyn Future<Output = Result<Completion, RefusedCall>> + Send>>,
    pub(super) stop: CancellationToken,
    /// Lets other servers continue the call.
    pub(super) handover: Option<Arc<Handover>>,
}

/// Call that has become a task, and what its result needs.
pub(super) struct PromotedCall {
    pub(super) running: RunningCall,
    /// `None` for a task that another server has started.
    pub(super) permit: Option<TaskPermit>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) wire: String,
    pub(super) principal: Principal,
}

impl ToolRequest<'_> {
    /// Returns the binding for the state of this request.
    fn binding(&self) -> StateBinding {
        let arguments = serde_json::to_vec(&self.arguments).unwrap_or_default();
        let name = self.entry.definition.name.as_str();
        // An approval of a dry run does not cover a real call.
        let method = if self.is_dry_run { DRY_RUN } else { self.method };
        StateBinding::new(self.caller.principal.name(), method, name, &arguments)
    }
}

impl ServerShared {
    /// Runs a tool until it ends, asks its first question or becomes a task.
    pub(super) async fn run(
        self: &Arc<Self>,
        mut request: ToolRequest<'_>,
    ) -> Result<RequestOutcome, ErrorData> {
        if request.caller.cancellation().is_cancelled() {
            return Err(ErrorData::internal_error("cancelled", None));
        }
        let _in_flight = self.in_flight.token();
        let arguments = serde_json::to_vec(&request.arguments)
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let decision = self.decide(&request, &arguments);
        if decision == RuleDecision::Deny {
            return Ok(RequestOutcome::NotApproved(DENIED.to_owned()));
        }
        let asks = decision == RuleDecision::Ask;
        let prompts = self.operator_prompts(&request, &arguments);
        let elicitation = Arc::new(self.elicitation(&mut request, prompts)?);
        if self.wants_consent(&request, asks)
            && let Some(ended) =
                Box::pin(self.settle_consent(&mut request, &elicitation, asks)).await?
        {
            return Ok(ended);
        }
        let may_become_task = request.takes_tasks && self.tasks.has_permits();
        let mut running = self.start(&request, arguments, elicitation, may_become_task);
        // Most calls end at the first poll, so nothing to wait for is set up before it.
        let ended = match futures_util::poll!(&mut running.call) {
            Poll::Ready(ended) => Box::new(ended),
            Poll::Pending => {
                match Box::pin(self.watch(&mut request, &mut running, may_become_task)).await? {
                    WatchOutcome::Ended(ended) => ended,
                    WatchOutcome::Suspended(suspension) => {
                        return self.suspended(suspension, &request, &running.elicitation);
                    }
                    WatchOutcome::BecomesTask(permit, first) => {
                        let promoted = PromotedCall {
                            running,
                            permit: Some(permit),
                            wire: request.entry.wire.clone(),
                            principal: request.caller.principal.clone(),
                            catalog: request.catalog,
                        };
                        return Ok(RequestOutcome::Task(self.promote(promoted, first).await));
                    }
                }
            }
        };
        // Sends the last reports before the result.
        while let Some(report) = running.reports.take() {
            request.reports.send(report).await;
        }
        Ok(RequestOutcome::Done(ended))
    }

    /// Waits for a call that does not end at once: for its result, questions, reports and
    /// cancellation.
    async fn watch(
        &self,
        request: &mut ToolRequest<'_>,
        running: &mut RunningCall,
        mut may_become_task: bool,
    ) -> Result<WatchOutcome, ErrorData> {
        let principal = request.caller.principal.clone();
        // Without room for another task, the call stays an ordinary one.
        let reserve = |may_become_task: &mut bool| {
            let permit = may_become_task.then(|| self.tasks.reserve(&principal)).flatten();
            *may_become_task = permit.is_some();
            permit
        };
        let grace = tokio::time::sleep(TASK_GRACE);
        tokio::pin!(grace);
        loop {
            tokio::select! {
                biased;
                report = running.reports.next() => {
                    if matches!(report, ToolReport::Progress(_))
                        && let Some(permit) = reserve(&mut may_become_task)
                    {
                        return Ok(WatchOutcome::BecomesTask(permit, Some(report)));
                    }
                    request.reports.send(report).await;
                }
                ended = &mut running.call => return Ok(WatchOutcome::Ended(Box::new(ended))),
                suspension = running.elicitation.suspended() => {
                    // Reports of the same moment come first. A task asks the question itself.
                    while let Some(report) = running.reports.take() {
                        let asks = matches!(suspension, Suspension::Asks { .. });
                        if asks
                            && matches!(report, ToolReport::Progress(_))
                            && let Some(permit) = reserve(&mut may_become_task)
                        {
                            return Ok(WatchOutcome::BecomesTask(permit, Some(report)));
                        }
                        request.reports.send(report).await;
                    }
                    return Ok(WatchOutcome::Suspended(suspension));
                }
                () = request.caller.cancellation().cancelled(), if !running.stop.is_cancelled() => running.stop.cancel(),
                () = &mut grace, if may_become_task => {
                    if let Some(permit) = reserve(&mut may_become_task) {
                        return Ok(WatchOutcome::BecomesTask(permit, None));
                    }
                }
            }
        }
    }

    /// Decides whether the tool may run: by the rules of the operator, or else by its source.
    fn decide(&self, request: &ToolRequest<'_>, arguments: &[u8]) -> RuleDecision {
        let (toolset, tool) = (&request.catalog.toolset, &request.entry.definition);
        let decision = match &request.catalog.rules {
            Some(rules) => {
                let arguments = String::from_utf8_lossy(arguments);
                rules.decide(tool, &arguments, toolset)
            }
            None => match toolset.needs_approval_for(tool.name.as_str(), Some(arguments)) {
                true => RuleDecision::Ask,
                false => RuleDecision::Run,
            },
        };
        match decision {
            // The client asks its user itself.
            RuleDecision::Ask if !self.options.asks_approval => RuleDecision::Run,
            other => other,
        }
    }

    /// Returns whether the user may have to be asked before the tool runs.
    fn wants_consent(&self, request: &ToolRequest<'_>, asks: bool) -> bool {
        let lacks = |grantor: &Arc<dyn Grantor>| !grantor.missing(&request.entry.source).is_empty();
        asks || (request.caller.principal.decides() && self.grantor.get().is_some_and(lacks))
    }

    /// Asks the user for consent. Returns the outcome of the request if the call must not run.
    async fn settle_consent(
        &self,
        request: &mut ToolRequest<'_>,
        elicitation: &Elicitation,
        asks: bool,
    ) -> Result<Option<RequestOutcome>, ErrorData> {
        let consent = tokio::select! {
            biased;
            suspension = elicitation.suspended() => {
                return self.suspended(suspension, request, elicitation).map(Some);
            }
            () = request.caller.cancellation().cancelled() => {
                return Err(ErrorData::internal_error("cancelled", None));
            }
            consent = self.consent(elicitation, request, asks) => consent,
        };
        match consent {
            Ok(Some(catalog)) => request.catalog = catalog,
            Ok(None) => {}
            Err(reason) => return Ok(Some(RequestOutcome::NotApproved(reason))),
        }
        Ok(None)
    }

    /// Asks the user for the permissions that the tool's source lacks, and for approval if the call
    /// needs it. Returns the current catalog if permissions were granted.
    async fn consent(
        &self,
        elicitation: &Elicitation,
        request: &ToolRequest<'_>,
        asks: bool,
    ) -> Result<Option<Arc<Catalog>>, String> {
        let mut granted = None;
        if let Some(grantor) = self.grantor.get().filter(|_| request.caller.principal.decides())
            && grants::ask(&**grantor, elicitation, &request.entry.source).await?
        {
            granted = Some(self.catalog(&request.caller.principal));
        }
        let name = request.entry.definition.name.as_str();
        if asks {
            let asked = Instant::now();
            let decided = |is_allowed| {
                if let Some(sink) = request.catalog.toolset.sink() {
                    sink.decided(&ApprovalDecision {
                        tool: name,
                        call_id: "",
                        by: match elicitation.is_approval_of_operator() {
                            true => "inspector",
                            false => request.caller.principal.name(),
                        },
                        is_allowed,
                        waited: asked.elapsed(),
                    });
                }
            };
            approve(elicitation, &request.entry.definition, &request.arguments, decided).await?;
        }
        Ok(granted)
    }

    /// Returns the prompts of a call for the operator, if the server has them.
    fn operator_prompts(&self, request: &ToolRequest<'_>, arguments: &[u8]) -> Option<CallPrompts> {
        let pending = self.options.prompts.clone()?;
        let tool = &request.entry.definition;
        let toolset = &request.catalog.toolset;
        let by_source = toolset.needs_approval_for(tool.name.as_str(), Some(arguments));
        let subject = PromptSubject {
            tool: tool.name.to_string(),
            source: request.entry.source.to_string(),
            arguments: PromptText::new(&String::from_utf8_lossy(arguments)),
            reason: match by_source {
                true => "The source of the tool asks for approval of this call.",
                false => "A rule of the configuration asks for approval of this call.",
            },
            annotations: tool.annotations,
        };
        Some(CallPrompts::new(pending, Arc::clone(&self.detached), subject, request.caller))
    }

    fn elicitation(
        &self,
        request: &mut ToolRequest<'_>,
        prompts: Option<CallPrompts>,
    ) -> Result<Elicitation, ErrorData> {
        let caller = Arc::clone(request.caller);
        match std::mem::replace(&mut request.asked, ElicitationMode::ByRequest) {
            ElicitationMode::ByRequest => Ok(Elicitation::by_request(caller, prompts)),
            ElicitationMode::ByResult { state, responses } => {
                let state = match state {
                    Some(sealed) => self.seal.open(&sealed, &request.binding()),
                    None => Ok(RoundState::default()),
                };
                let state =
                    state.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
                let responses = responses.unwrap_or_default();
                Ok(Elicitation::by_result(caller, prompts, state, responses))
            }
        }
    }

    /// Creates the call, which starts when it is polled. It owns its data, because it may outlive
    /// the request.
    fn start(
        &self,
        request: &ToolRequest<'_>,
        arguments: Vec<u8>,
        elicitation: Arc<Elicitation>,
        may_become_task: bool,
    ) -> RunningCall {
        let reports = Arc::new(Reports::default());
        // Answering a request cancels it, but a task continues after its request has been answered.
        let stop = match may_become_task {
            true => CancellationToken::new(),
            false => request.caller.cancellation().clone(),
        };
        let shares_task = may_become_task && self.shared_tasks.get().is_some();
        let handover = shares_task.then(Handover::new);
        let wants_progress = request.reports.wants_progress() || request.takes_tasks;
        let context = CallContext {
            session: Some(request.caller.principal.name().to_owned()),
            cancellation: stop.clone(),
            progress: wants_progress.then(|| Arc::clone(&reports) as _),
            log: request.reports.log_level.map(|_| Arc::clone(&reports) as _),
            asker: Some(elicitation::asker(&elicitation)),
            trace: request.caller.trace(),
            request: request.catalog.toolset.sink().map(|_| Arc::new(request.caller.record())),
            file_effects: FileEffects {
                is_dry_run: request.is_dry_run,
                shows_diffs: request.is_dry_run,
            },
            idempotency_key: request.idempotency_key.clone(),
            handover: handover.clone(),
            ..CallContext::new(self.next_call_id())
        };
        let toolset = request.catalog.toolset.clone();
        let definition = Arc::clone(&request.entry.definition);
        let call =
            async move { toolset.call(definition.name.as_str(), Some(&arguments), &context).await };
        let call = Box::pin(call.in_current_span());
        RunningCall { elicitation, reports, call, stop, handover }
    }

    fn suspended(
        &self,
        suspension: Suspension,
        request: &ToolRequest<'_>,
        elicitation: &Elicitation,
    ) -> Result<RequestOutcome, ErrorData> {
        match suspension {
            Suspension::Asks { requests, mut state, questions } => {
                elicitation.detach(&questions, &mut state);
                let sealed = self.seal.seal(&state, &request.binding());
                let sealed = sealed
                    .map_err(|_| ErrorData::internal_error("the state cannot be sealed", None))?;
                Ok(RequestOutcome::Asks(InputRequiredResult::new(Some(requests), Some(sealed))))
            }
            Suspension::Lacks(capabilities) => {
                Err(ErrorData::missing_required_client_capability(*capabilities))
            }
        }
    }

    /// Turns a call into a task, which other servers can continue if they share tasks.
    async fn promote(self: &Arc<Self>, call: PromotedCall, first: Option<ToolReport>) -> Task {
        let handover = call.running.handover.clone();
        let task = self.spawn_task(call, None, first);
        if let Some(handover) = handover {
            // Without an answer, the task belongs to this server alone.
            let request = handover.request(task.task_id.clone());
            let _ = tokio::time::timeout(HANDOVER_WAIT_MAX, request).await;
        }
        task
    }

    /// Starts a task. One that another server has started has an `id`.
    pub(super) fn spawn_task(
        self: &Arc<Self>,
        call: PromotedCall,
        id: Option<String>,
        first: Option<ToolReport>,
    ) -> Task {
        let PromotedCall { running, permit, catalog, wire, principal } = call;
        let mut options = TaskOptions::default();
        options.poll_interval_ms = u64::try_from(TASK_POLL.as_millis()).ok();
        options.status_message = first.as_ref().and_then(message);
        let (shared, owner) = (Arc::clone(self), principal.clone());
        let (known_id, handover) = (id.clone(), running.handover.clone());
        // A server that stops waits for its tasks as it does for its calls.
        let in_flight = self.in_flight.token();
        self.tasks.spawn(&owner, id, options, permit, move |task| {
            running.elicitation.attach_task(task.clone());
            Box::pin(async move {
                let _in_flight = in_flight;
                let ended = as_task(running, &task).await?;
                if handover.is_some_and(|handover| handover.has_moved()) {
                    let id = known_id.as_deref().unwrap_or(task.task_id());
                    shared.tasks.forget(id, task.task_id());
                    return Err(TaskExit::Cancelled);
                }
                shared.task_result(&catalog, &wire, &principal, ended)
            })
        })
    }

    fn task_result(
        &self,
        catalog: &Catalog,
        wire: &str,
        principal: &Principal,
        ended: Result<Completion, RefusedCall>,
    ) -> Result<CallToolResult, TaskExit> {
        let completion = match ended {
            Ok(completion) => completion,
            Err(refused) => return Ok(answer::refused(&refused)),
        };
        let entry = catalog.find(wire, principal).ok_or(TaskExit::Cancelled)?;
        self.answers(principal).completion(completion, entry).ok_or(TaskExit::Cancelled)
    }

    pub(super) fn answers<'a>(&'a self, principal: &'a Principal) -> ResultBuilder<'a> {
        ResultBuilder {
            keep: &self.keep,
            principal,
            text_bytes_max: self.options.text_bytes_max,
            receipts: self.options.receipts,
            grantor: self.grantor.get().map(|grantor| &**grantor),
        }
    }
}

/// Runs the rest of a call that has become a task.
async fn as_task(
    mut running: RunningCall,
    task: &TaskContext,
) -> Result<Result<Completion, RefusedCall>, TaskExit> {
    loop {
        tokio::select! {
            biased;
            report = running.reports.next() => {
                if let Some(message) = message(&report) {
                    task.set_status_message(message);
                }
            }
            ended = &mut running.call => return Ok(ended),
            suspension = running.elicitation.suspended() => {
                // Questions from before the change are asked by the task.
                if let Suspension::Lacks(capabilities) = suspension {
                    return Err(TaskExit::Error(ErrorData::missing_required_client_capability(*capabilities)));
                }
            }
            () = task.cancelled(), if !running.stop.is_cancelled() => running.stop.cancel(),
        }
    }
}

fn message(report: &ToolReport) -> Option<String> {
    match report {
        ToolReport::Progress(progress) => progress.message.clone(),
        ToolReport::Log(..) => None,
    }
}

/// Asks the user whether the tool may run. Calls `decided` with the answer, if there is one.
async fn approve(
    elicitation: &Elicitation,
    tool: &ToolDefinition,
    arguments: &JsonObject,
    decided: impl Fn(bool),
) -> Result<(), String> {
    let arguments = Value::Object(arguments.clone()).to_string();
    let shown = shown_arguments(tool, arguments.as_bytes(), SHOWN_ARGUMENTS_BYTES_MAX);
    let tool = tool.name.as_str();
    if !elicitation.can_ask(QuestionKind::Elicitation) {
        return Err(no_one_to_ask(tool));
    }
    let message = format!("Allow the tool {tool} to run with {shown}?");
    let question = Question::approval(APPROVAL, message);
    let answers = match elicitation.ask(vec![question]).await {
        Ok(answers) => answers,
        Err(AskError::Unsupported(_)) => return Err(no_one_to_ask(tool)),
        Err(error @ AskError::Invalid(_)) => {
            return Err(format!("The call of '{tool}' was not approved: {error}."));
        }
        Err(_) => {
            return Err(format!("The call of '{tool}' was not approved: there was no answer."));
        }
    };
    let is_allowed = answers.first().is_some_and(Question::is_allowed);
    decided(is_allowed);
    if is_allowed {
        return Ok(());
    }
    // A client can send any string as a reason.
    let reason = answers.first().and_then(Question::denial_reason);
    let reason = reason.filter(|_| elicitation.is_approval_of_operator());
    Err(match reason {
        Some(reason) => format!("The user declined the call to '{tool}': {reason}"),
        None => format!("The user declined the call to '{tool}'."),
    })
}

fn no_one_to_ask(tool: &str) -> String {
    format!(
        "Each call of '{tool}' has to be approved by a person, and this client cannot ask one. Whoever starts the server \
         can leave approval to the client with `--approvals client`."
    )
}

/// Returns the error envelope of a call that was not approved.
pub(super) fn not_approved(reason: &str) -> CallToolResult {
    answer::error(json!({"error": ToolFailure::new(reason).error_value()}).to_string())
}
