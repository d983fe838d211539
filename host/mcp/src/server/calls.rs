//! One call from request to result: approval, questions, reports, and when it becomes a task.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use cofferdam_tool::ask::{Asker as _, NotAsked, Question, QuestionKind};
use cofferdam_tool::invoke::FileEffects;
use cofferdam_tool::{CallContext, Completion, RefusedCall, ToolFailure};
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, InputRequiredResult, InputResponses, JsonObject, Task};
use rmcp::task_manager::{TaskContext, TaskExit, TaskOptions};
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::ServerShared;
use super::answer::{self, ResultBuilder};
use super::caller::Caller;
use super::catalog::{Catalog, CatalogEntry};
use super::grants::{self, Grantor};
use super::interview::{self, HOST_PREFIX, Interview, Suspension};
use super::principal::Principal;
use super::report::{Forwarder, Reports, ToolReport};
use super::rounds::{RoundState, StateBinding};

/// Time after which an ordinary call that may take minutes becomes a task.
const TASK_GRACE: Duration = Duration::from_millis(500);
/// Time that a task is kept, from its creation on.
const TASK_TTL: Duration = Duration::from_secs(60 * 60);
/// Suggested time between two polls.
const TASK_POLL: Duration = Duration::from_secs(1);
/// Name that a state of a dry run is bound to instead of the method.
const DRY_RUN: &str = "dry run";
/// Longest argument text that the user is shown, in bytes.
const SHOWN_ARGUMENTS_BYTES_MAX: usize = 2000;

/// A request that runs a tool.
pub(super) struct ToolRequest<'a> {
    pub(super) catalog: Arc<Catalog>,
    pub(super) entry: &'a CatalogEntry,
    /// The MCP method, for what a state is bound to.
    pub(super) method: &'static str,
    pub(super) arguments: JsonObject,
    /// True if the client wants to see what would change, and no change.
    pub(super) is_dry_run: bool,
    pub(super) caller: &'a Arc<Caller>,
    pub(super) asked: ElicitationMode,
    pub(super) reports: Forwarder<'a>,
    /// True if the client can be given a task instead of a result.
    pub(super) takes_tasks: bool,
}

/// Way in which the client of a request is asked, with its answers.
pub(super) enum ElicitationMode {
    ByRequest,
    ByResult { state: Option<String>, responses: Option<InputResponses> },
}

/// Outcome of a request.
pub(super) enum RequestOutcome {
    Done(Box<Result<Completion, RefusedCall>>),
    Asks(InputRequiredResult),
    Task(Task),
    /// The user did not allow it, or could not be asked; for the model.
    NotApproved(String),
}

/// Outcome of waiting for a call.
enum WatchOutcome {
    Ended(Box<Result<Completion, RefusedCall>>),
    Suspended(Suspension),
    BecomesTask(Option<ToolReport>),
}

/// A call that runs as long as it is polled, and is stopped by dropping it.
struct RunningCall {
    interview: Arc<Interview>,
    reports: Arc<Reports>,
    call: Pin<Box<dyn Future<Output = Result<Completion, RefusedCall>> + Send>>,
    stop: CancellationToken,
}

impl ToolRequest<'_> {
    /// Returns the binding of a state of this request.
    fn binding(&self) -> StateBinding {
        let arguments = serde_json::to_vec(&self.arguments).unwrap_or_default();
        let name = self.entry.definition.name.as_str();
        // What was approved for a dry run was not approved for a call.
        let method = if self.is_dry_run { DRY_RUN } else { self.method };
        StateBinding::new(self.caller.principal.name(), method, name, &arguments)
    }
}

impl ServerShared {
    /// Runs a tool to its end, to its first question, or until it has become a task.
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
        let interview = Arc::new(self.interview(&mut request)?);
        if self.wants_consent(&request)
            && let Some(ended) = Box::pin(self.settle_consent(&mut request, &interview)).await?
        {
            return Ok(ended);
        }
        let may_become_task = request.takes_tasks && self.tasks.has_room();
        let mut running = self.start(&request, arguments, interview, may_become_task);
        // Most calls end where they begin, so nothing is made to wait for yet.
        let ended = match futures_util::poll!(&mut running.call) {
            Poll::Ready(ended) => Box::new(ended),
            Poll::Pending => {
                match Box::pin(self.watch(&mut request, &mut running, may_become_task)).await? {
                    WatchOutcome::Ended(ended) => ended,
                    WatchOutcome::Suspended(suspension) => {
                        return self.suspended(suspension, &request);
                    }
                    WatchOutcome::BecomesTask(first) => {
                        return Ok(RequestOutcome::Task(self.promote(request, running, first)));
                    }
                }
            }
        };
        // What was reported last is worth as much as what came first, and belongs before the
        // result.
        while let Some(report) = running.reports.take() {
            request.reports.send(report).await;
        }
        Ok(RequestOutcome::Done(ended))
    }

    /// Waits for a call that takes its time, and meanwhile for everything that can happen to it.
    async fn watch(
        &self,
        request: &mut ToolRequest<'_>,
        running: &mut RunningCall,
        may_become_task: bool,
    ) -> Result<WatchOutcome, ErrorData> {
        let grace = tokio::time::sleep(TASK_GRACE);
        tokio::pin!(grace);
        loop {
            tokio::select! {
                biased;
                report = running.reports.next() => {
                    if may_become_task && matches!(report, ToolReport::Progress(_)) {
                        return Ok(WatchOutcome::BecomesTask(Some(report)));
                    }
                    request.reports.send(report).await;
                }
                ended = &mut running.call => return Ok(WatchOutcome::Ended(Box::new(ended))),
                suspension = running.interview.suspended() => return Ok(WatchOutcome::Suspended(suspension)),
                () = request.caller.cancellation().cancelled(), if !running.stop.is_cancelled() => running.stop.cancel(),
                () = &mut grace, if may_become_task => return Ok(WatchOutcome::BecomesTask(None)),
            }
        }
    }

    /// Returns whether the user may have to be asked before the tool runs.
    fn wants_consent(&self, request: &ToolRequest<'_>) -> bool {
        let lacks = |grantor: &Arc<dyn Grantor>| !grantor.missing(&request.entry.source).is_empty();
        (request.caller.principal.decides() && self.grantor.get().is_some_and(lacks))
            || (self.options.asks_approval && needs_approval(request))
    }

    /// Asks that person, and says how the request ends if it is not to go on.
    async fn settle_consent(
        &self,
        request: &mut ToolRequest<'_>,
        interview: &Interview,
    ) -> Result<Option<RequestOutcome>, ErrorData> {
        let consent = tokio::select! {
            biased;
            suspension = interview.suspended() => return self.suspended(suspension, request).map(Some),
            () = request.caller.cancellation().cancelled() => {
                return Err(ErrorData::internal_error("cancelled", None));
            }
            consent = self.consent(interview, request) => consent,
        };
        match consent {
            Ok(Some(catalog)) => request.catalog = catalog,
            Ok(None) => {}
            Err(reason) => return Ok(Some(RequestOutcome::NotApproved(reason))),
        }
        Ok(None)
    }

    /// Asks the user for what the tool's source lacks, and for the call itself where that needs
    /// approval. Gives the catalogue of now if something was granted.
    async fn consent(
        &self,
        interview: &Interview,
        request: &ToolRequest<'_>,
    ) -> Result<Option<Arc<Catalog>>, String> {
        let mut granted = None;
        if let Some(grantor) = self.grantor.get().filter(|_| request.caller.principal.decides())
            && grants::ask(&**grantor, interview, &request.entry.source).await?
        {
            granted = Some(self.catalog());
        }
        let name = request.entry.definition.name.as_str();
        if self.options.asks_approval && needs_approval(request) {
            approve(interview, name, &request.arguments).await?;
        }
        Ok(granted)
    }

    fn interview(&self, request: &mut ToolRequest<'_>) -> Result<Interview, ErrorData> {
        let caller = Arc::clone(request.caller);
        match std::mem::replace(&mut request.asked, ElicitationMode::ByRequest) {
            ElicitationMode::ByRequest => Ok(Interview::by_request(caller)),
            ElicitationMode::ByResult { state, responses } => {
                let state = match state {
                    Some(sealed) => self.seal.open(&sealed, &request.binding()),
                    None => Ok(RoundState::default()),
                };
                let state =
                    state.map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
                Ok(Interview::by_result(caller, state, responses.unwrap_or_default()))
            }
        }
    }

    /// The call, which starts when it is polled. It owns what it needs, for it may outlive the
    /// request.
    fn start(
        &self,
        request: &ToolRequest<'_>,
        arguments: Vec<u8>,
        interview: Arc<Interview>,
        may_become_task: bool,
    ) -> RunningCall {
        let reports = Arc::new(Reports::default());
        // A task goes on when its request has been answered, which cancels the request.
        let stop = match may_become_task {
            true => CancellationToken::new(),
            false => request.caller.cancellation().clone(),
        };
        let wants_progress = request.reports.wants_progress() || request.takes_tasks;
        let context = CallContext {
            session: Some(request.caller.principal.name().to_owned()),
            cancellation: stop.clone(),
            progress: wants_progress.then(|| Arc::clone(&reports) as _),
            log: request.reports.log_level.map(|_| Arc::clone(&reports) as _),
            asker: Some(interview::asker(&interview)),
            file_effects: FileEffects {
                is_dry_run: request.is_dry_run,
                shows_diffs: request.is_dry_run,
            },
            ..CallContext::new(self.next_call_id())
        };
        let toolset = request.catalog.toolset.clone();
        let definition = Arc::clone(&request.entry.definition);
        let call =
            async move { toolset.call(definition.name.as_str(), Some(&arguments), &context).await };
        RunningCall { interview, reports, call: Box::pin(call.in_current_span()), stop }
    }

    fn suspended(
        &self,
        suspension: Suspension,
        request: &ToolRequest<'_>,
    ) -> Result<RequestOutcome, ErrorData> {
        match suspension {
            Suspension::Asks { requests, state } => {
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

    /// Lets a call go on as a task, and answers with its beginning.
    fn promote(
        self: &Arc<Self>,
        request: ToolRequest<'_>,
        running: RunningCall,
        first: Option<ToolReport>,
    ) -> Task {
        let mut options = TaskOptions::default();
        options.ttl_ms = u64::try_from(TASK_TTL.as_millis()).ok();
        options.poll_interval_ms = u64::try_from(TASK_POLL.as_millis()).ok();
        options.status_message = first.as_ref().and_then(message);
        let (shared, principal) = (Arc::clone(self), request.caller.principal.clone());
        let (catalog, wire) = (Arc::clone(&request.catalog), request.entry.wire.clone());
        // A server that is stopping waits for its tasks as for its calls.
        let in_flight = self.in_flight.token();
        self.tasks.spawn(&request.caller.principal, options, move |task| {
            running.interview.has_become(task.clone());
            Box::pin(async move {
                let _in_flight = in_flight;
                let ended = as_task(running, &task).await?;
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

/// The rest of a call that has become a task.
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
            suspension = running.interview.suspended() => {
                // Questions that were asked before the call became a task are asked there.
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

/// Returns true if the user has to approve this call.
fn needs_approval(request: &ToolRequest<'_>) -> bool {
    let (toolset, name) = (&request.catalog.toolset, request.entry.definition.name.as_str());
    // Most tools need none, and then nothing is written out.
    toolset.needs_approval(name)
        && toolset.needs_approval_for(name, serde_json::to_vec(&request.arguments).ok().as_deref())
}

/// Asks the user whether the tool may run.
async fn approve(interview: &Interview, tool: &str, arguments: &JsonObject) -> Result<(), String> {
    if !interview.can_ask(QuestionKind::Elicitation) {
        return Err(no_one_to_ask(tool));
    }
    let mut shown = Value::Object(arguments.clone()).to_string();
    if shown.len() > SHOWN_ARGUMENTS_BYTES_MAX {
        let end = (0..=SHOWN_ARGUMENTS_BYTES_MAX)
            .rev()
            .find(|at| shown.is_char_boundary(*at))
            .unwrap_or(0);
        shown.truncate(end);
        shown.push('…');
    }
    let question = Question {
        // A name that no tool can give: the answer to a tool's question is never taken for this
        // one.
        name: format!("{HOST_PREFIX}approval"),
        kind: QuestionKind::Elicitation,
        parameters: Map::from_iter([
            ("message".to_owned(), format!("Allow the tool {tool} to run with {shown}?").into()),
            (
                "requestedSchema".to_owned(),
                json!({
                    "type": "object",
                    "properties": {"allow": {"type": "boolean", "title": "Allow this call"}},
                    "required": ["allow"],
                }),
            ),
        ]),
    };
    let answers = match interview.ask(vec![question]).await {
        Ok(answers) => answers,
        Err(NotAsked::Unsupported(_)) => return Err(no_one_to_ask(tool)),
        Err(error @ NotAsked::Invalid(_)) => {
            return Err(format!("The call of '{tool}' was not approved: {error}."));
        }
        Err(_) => {
            return Err(format!("The call of '{tool}' was not approved: there was no answer."));
        }
    };
    let is_allowed = answers.first().is_some_and(|answer| {
        answer.get("action").is_some_and(|action| action == "accept")
            && answer.pointer("/content/allow").is_some_and(|allow| allow == true)
    });
    if is_allowed { Ok(()) } else { Err(format!("A person declined the call of '{tool}'.")) }
}

fn no_one_to_ask(tool: &str) -> String {
    format!(
        "Each call of '{tool}' has to be approved by a person, and this client cannot ask one. Whoever starts the server \
         can leave approval to the client with `--approvals client`."
    )
}

/// The error envelope of a call that was not approved.
pub(super) fn not_approved(reason: &str) -> CallToolResult {
    answer::error(json!({"error": ToolFailure::new(reason).error_value()}).to_string())
}
