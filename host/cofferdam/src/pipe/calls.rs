//! Calls that the program makes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink, Question, QuestionKind};
use cofferdam_tool::invoke::{ApprovalNeed, FileEffects, Progress, ProgressSink};
use cofferdam_tool::permission::RequestedLimits;
use cofferdam_tool::{CallContext, CallRecord, Completion, Outcome, Output, RefusedCall};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use super::lines::LineSender;
use super::message::{ClientCall, ClientReply, Hello, HostMessage};
use super::requests::Requests;
use crate::{Error, Host, Result, json as forms};

/// Maximum number of calls in progress. Further ones are refused.
const CALLS_MAX: usize = 1024;

/// Calls of one program.
pub(super) struct Calls {
    shared: Arc<SharedCalls>,
    tasks: TaskTracker,
    /// Fires when the program is gone.
    end: CancellationToken,
}

struct SharedCalls {
    host: Host,
    approves: bool,
    answers: bool,
    requests: Arc<Requests>,
    sender: LineSender,
    running: Mutex<HashMap<u64, CancellationToken>>,
}

/// Call that did not start.
struct CallRefusal {
    code: &'static str,
    message: String,
}

/// Result of a call that ran.
#[derive(Serialize)]
struct CallResult<'r> {
    #[serde(rename = "type")]
    message: &'static str,
    id: u64,
    outcome: &'static str,
    is_error: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    contents: Option<Value>,
    /// Contents as a model reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<Value>,
    record: &'r CallRecord,
}

impl Calls {
    pub(super) fn new(
        host: Host,
        hello: &Hello,
        requests: Arc<Requests>,
        sender: LineSender,
    ) -> Self {
        let shared = SharedCalls {
            host,
            approves: hello.approves,
            answers: hello.answers.iter().any(|kind| kind == QuestionKind::Elicitation.as_str()),
            requests,
            sender,
            running: Mutex::default(),
        };
        Self { shared: Arc::new(shared), tasks: TaskTracker::new(), end: CancellationToken::new() }
    }

    pub(super) fn requests(&self) -> &Requests {
        &self.shared.requests
    }

    /// Returns a guard that cancels all calls when it is dropped.
    pub(super) fn cancel_on_drop(&self) -> DropGuard {
        self.end.clone().drop_guard()
    }

    /// Waits until all calls have ended.
    pub(super) async fn ended(&self) {
        self.shared.requests.close();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Starts a call. Its result is sent when it ends.
    ///
    /// # Errors
    /// Returns an error if the id belongs to a call in progress.
    pub(super) async fn start(&self, call: ClientCall<'_>) -> Result<()> {
        let ClientCall { id, tool, arguments, .. } = &call;
        let cancellation = self.end.child_token();
        {
            let mut running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
            if running.contains_key(id) {
                return Err(Error::invalid(format!(
                    "expected a new `id` in `call`, found {id}, which belongs to a call in progress"
                )));
            }
            if running.len() < CALLS_MAX {
                running.insert(*id, cancellation.clone());
            }
        }
        if !self.shared.is_running(*id) {
            let message = format!(
                "{CALLS_MAX} calls are in progress; wait for a result before the next call"
            );
            self.shared.refuse(*id, &CallRefusal { code: "too_many_calls", message }).await;
            return Ok(());
        }
        let (id, tool) = (*id, tool.clone());
        let arguments = arguments.map(|arguments| arguments.get().as_bytes().to_vec());
        let context = self.shared.context(&call, cancellation);
        let shared = Arc::clone(&self.shared);
        self.tasks.spawn(async move {
            shared.run(id, &tool, arguments.as_deref(), context).await;
        });
        Ok(())
    }

    /// Cancels a call, if it is in progress.
    pub(super) fn cancel(&self, id: u64) {
        let running = self.shared.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(cancellation) = running.get(&id) {
            cancellation.cancel();
        }
    }
}

impl SharedCalls {
    fn is_running(&self, id: u64) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).contains_key(&id)
    }

    fn context(
        self: &Arc<Self>,
        call: &ClientCall<'_>,
        cancellation: CancellationToken,
    ) -> CallContext {
        let reports = || Arc::new(CallReports { id: call.id, sender: self.sender.clone() });
        let asker = ProgramAsker { calls: Arc::clone(self), id: call.id };
        let limits = call.timeout_ms.map(|wall_ms_max| RequestedLimits {
            wall_ms_max: Some(wall_ms_max),
            ..RequestedLimits::default()
        });
        CallContext {
            session: call.session.clone(),
            cancellation,
            limits: limits.map(Arc::new),
            file_effects: FileEffects { is_dry_run: call.dry_run, shows_diffs: call.diff },
            progress: call.progress.then(|| reports() as Arc<dyn ProgressSink>),
            log: call.progress.then(|| reports() as Arc<dyn LogSink>),
            asker: self.answers.then(|| Arc::new(asker) as Arc<dyn Asker>),
            ..CallContext::new(call.id.to_string())
        }
    }

    async fn run(&self, id: u64, tool: &str, arguments: Option<&[u8]>, context: CallContext) {
        let approved = tokio::select! {
            approved = self.approve(id, tool, arguments) => approved,
            () = context.cancelled() => {
                self.finish(id);
                let completion = Completion::ended(Outcome::Cancelled, &context);
                self.send(id, completion).await;
                return;
            }
        };
        if let Err(refusal) = approved {
            self.finish(id);
            self.refuse(id, &refusal).await;
            return;
        }
        let ended = self.host.toolset().call(tool, arguments, &context).await;
        // The program may use the id again as soon as it has the result.
        self.finish(id);
        match ended {
            Ok(completion) => self.send(id, completion).await,
            Err(refused) => self.sender.send(&refused_call(id, &refused)).await,
        }
    }

    fn finish(&self, id: u64) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
    }

    /// Asks the program for approval of a call that needs it.
    async fn approve(
        &self,
        id: u64,
        tool: &str,
        arguments: Option<&[u8]>,
    ) -> Result<(), CallRefusal> {
        let refusal = |code, message| Err(CallRefusal { code, message });
        match self.host.approval(tool, arguments) {
            ApprovalNeed::NotNeeded => return Ok(()),
            ApprovalNeed::Denied => {
                let message = format!("a rule of the configuration denies this call of `{tool}`");
                return refusal("denied", message);
            }
            ApprovalNeed::Needed => {}
        }
        if !self.approves {
            let message = format!(
                "this call of `{tool}` has to be approved, and the program approves no calls"
            );
            return refusal("approval_needed", message);
        }
        let arguments = arguments.unwrap_or(b"{}");
        let arguments = serde_json::from_slice(arguments).unwrap_or(Value::Null);
        let message =
            |request| HostMessage::Approve { id: request, call: id, tool, arguments: &arguments };
        match self.requests.send(message).await {
            Some(ClientReply::Approved(true)) => Ok(()),
            _ => refusal("not_approved", format!("the call of `{tool}` was not approved")),
        }
    }

    async fn send(&self, id: u64, completion: Completion) {
        let Completion { outcome, record } = completion;
        let word = outcome.word();
        let failure = match &outcome {
            Outcome::Failure(failure) => Some(json!({
                "message": failure.message,
                "suggestion": failure.suggestion,
                "value": failure.value,
            })),
            _ => None,
        };
        let shown = outcome.into_shown();
        let is_error = shown.as_ref().is_some_and(|shown| shown.is_error);
        let (result, contents, text) = match shown.map(|shown| shown.output) {
            Some(Output::Value(value)) => (Some(value), None, None),
            Some(output) => (None, Some(forms::contents(&output)), Some(output.text())),
            None => (None, None, None),
        };
        let message = CallResult {
            message: "result",
            id,
            outcome: word,
            is_error,
            result,
            contents,
            text,
            failure,
            record: &record,
        };
        self.sender.send(&message).await;
    }

    async fn refuse(&self, id: u64, refusal: &CallRefusal) {
        let CallRefusal { code, message } = refusal;
        let message = json!({
            "type": "result", "id": id, "outcome": "refused", "is_error": true, "code": code,
            "message": message,
        });
        self.sender.send(&message).await;
    }
}

fn refused_call(id: u64, refused: &RefusedCall) -> Value {
    forms::with(json!({"type": "result", "id": id}), forms::refused(refused))
}

/// Reports of one call to the program. They are lost if the program reads too slowly.
struct CallReports {
    id: u64,
    sender: LineSender,
}

impl ProgressSink for CallReports {
    fn report(&self, _call_id: &str, progress: Progress) {
        self.sender.offer(&HostMessage::progress(self.id, progress));
    }
}

impl LogSink for CallReports {
    fn log(&self, _call_id: &str, level: LogLevel, message: &str) {
        self.sender.offer(&HostMessage::Log { id: self.id, level, message });
    }
}

/// Puts the questions of one call to the program.
struct ProgramAsker {
    calls: Arc<SharedCalls>,
    id: u64,
}

#[async_trait]
impl Asker for ProgramAsker {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        kind == QuestionKind::Elicitation
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, AskError> {
        if let Some(other) = questions.iter().find(|question| !self.can_ask(question.kind)) {
            return Err(AskError::Unsupported(other.kind));
        }
        let mut answers = Vec::new();
        for question in &questions {
            let message = |request| HostMessage::Ask {
                id: request,
                call: self.id,
                kind: question.kind.as_str(),
                parameters: &question.parameters,
            };
            match self.calls.requests.send(message).await {
                Some(ClientReply::Answered(answer)) => answers.push(answer),
                Some(_) => {
                    let reason = "the reply to `ask` is not an `answered`";
                    return Err(AskError::Failed(reason.to_owned()));
                }
                None => return Err(AskError::Failed("the program has ended".to_owned())),
            }
        }
        Ok(answers)
    }
}
