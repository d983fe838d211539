//! Host for one program, over any carrier of messages.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_tool::ask::{AskError, Asker, LogLevel, LogSink, Question, QuestionKind};
use cofferdam_tool::invoke::{ApprovalNeed, FileEffects, Progress, ProgressSink};
use cofferdam_tool::permission::RequestedLimits;
use cofferdam_tool::{CallContext, CallRecord, Completion, Outcome, Output, Toolset};
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::approver::ClientApprover;
use super::message::{ClientMessage, ClientReply, Hello, HostMessage};
use super::requests::Requests;
use super::{PROTOCOL, PipeOptions, functions};
use crate::operator::UnattendedPrompter;
use crate::{Error, Host, Observer, Operator, Purpose, Result, json as forms};

/// Carrier of messages to the program.
#[async_trait]
pub trait MessageSender: Send + Sync {
    /// Sends a message, when there is room. Without a receiver the message is lost.
    async fn send(&self, message: &HostMessage<'_>);

    /// Sends a message if there is room.
    fn offer(&self, message: &HostMessage<'_>);
}

/// Host for one program, which makes calls and answers requests of the host.
pub struct ProgramSession {
    host: Host,
    approves: bool,
    answers: bool,
    requests: Arc<Requests>,
    sender: Arc<dyn MessageSender>,
}

/// Call that the program makes.
#[derive(Debug, Clone, Default)]
pub struct ProgramCall {
    /// Number, unique among the calls in progress.
    pub id: u64,
    /// Name of the tool.
    pub tool: String,
    /// JSON object; `None` if absent.
    pub arguments: Option<Vec<u8>>,
    /// Name of the conversation that the call belongs to.
    pub session: Option<String>,
    /// Maximum wall-clock time in milliseconds. It never raises that of the host.
    pub timeout_ms: Option<u64>,
    /// True to report file changes without making them.
    pub dry_run: bool,
    /// True to include line differences in the record.
    pub diff: bool,
    /// True to send the progress and the log messages of the tool to the program.
    pub progress: bool,
}

/// Result of a call. As JSON, it has the members of `result` in the pipe protocol.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum CallResult {
    /// The call ran.
    Ended(Box<ProgramCompletion>),
    /// The call did not start. An object with `code` and `message`.
    Refused(Value),
}

/// Result of a call that ran.
#[derive(Debug, Serialize)]
pub struct ProgramCompletion {
    /// `ok`, `failure`, `error` or `cancelled`.
    pub outcome: &'static str,
    /// True unless the outcome is `ok` or `cancelled`.
    pub is_error: bool,
    /// Value that a model gets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Items instead of a value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contents: Option<Value>,
    /// Items as a model reads them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Message, suggestion and value of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<Value>,
    /// Facts for the operator.
    pub record: Box<CallRecord>,
}

impl ProgramSession {
    /// Builds a host with the functions of the program. `hello` is its first message.
    ///
    /// # Errors
    /// Returns an error if `hello` is not valid or the host cannot be built.
    pub async fn open(
        options: PipeOptions,
        hello: &str,
        sender: Arc<dyn MessageSender>,
    ) -> Result<Self> {
        let ClientMessage::Hello(hello) = ClientMessage::parse(hello)? else {
            return Err(Error::invalid("expected `hello` as the first message"));
        };
        if hello.protocol != PROTOCOL {
            let version = hello.protocol;
            return Err(Error::invalid(format!(
                "expected protocol {PROTOCOL}, found {version}; use versions of the client and of \
                 the host that belong together"
            )));
        }
        let requests = Arc::new(Requests::new(Arc::clone(&sender)));
        let host = build(options, &hello, &requests, &sender).await?;
        let answers = hello.answers.iter().any(|kind| kind == QuestionKind::Elicitation.as_str());
        Ok(Self { host, approves: hello.approves, answers, requests, sender })
    }

    /// Returns the message with the tools of the host.
    #[must_use]
    pub fn ready(&self) -> HostMessage<'static> {
        let unavailable = self.host.unavailable().iter();
        let plugins =
            unavailable.map(|plugin| json!({"name": plugin.name, "reason": plugin.reason()}));
        HostMessage::Ready {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION"),
            tools: tools(self.host.toolset()),
            unavailable: plugins.chain(unreachable(&self.host)).collect(),
        }
    }

    /// Makes a call.
    pub async fn call(&self, call: &ProgramCall, cancellation: CancellationToken) -> CallResult {
        let context = self.context(call, cancellation);
        let (tool, arguments) = (call.tool.as_str(), call.arguments.as_deref());
        let refusal = match self.host.approval(tool, arguments) {
            ApprovalNeed::NotNeeded => None,
            need => {
                let approval = context.cancellation.run_until_cancelled(self.approve(call, need));
                let Some(approval) = approval.await else {
                    return ended(Completion::ended(Outcome::Cancelled, &context));
                };
                approval
            }
        };
        if let Some(refusal) = refusal {
            return refusal;
        }
        match self.host.toolset().call(tool, arguments, &context).await {
            Ok(completion) => ended(completion),
            Err(refused) => CallResult::Refused(forms::refused(&refused)),
        }
    }

    /// Passes on the program's answer to a request.
    ///
    /// # Errors
    /// Returns an error if `reply` is not such a message.
    pub fn reply(&self, reply: &str) -> Result<()> {
        let ClientMessage::Reply { id, reply } = ClientMessage::parse(reply)? else {
            return Err(Error::invalid("expected `returned`, `approved` or `answered`"));
        };
        self.settle(id, reply);
        Ok(())
    }

    /// Ends all requests to the program, and any later one.
    pub fn close(&self) {
        self.requests.close();
    }

    pub(super) fn settle(&self, id: u64, reply: ClientReply) {
        self.requests.settle(id, reply);
    }

    fn context(&self, call: &ProgramCall, cancellation: CancellationToken) -> CallContext {
        let reports = || Arc::new(CallReports { id: call.id, sender: Arc::clone(&self.sender) });
        let asker = || Arc::new(ProgramAsker { requests: Arc::clone(&self.requests), id: call.id });
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
            asker: self.answers.then(|| asker() as Arc<dyn Asker>),
            ..CallContext::new(call.id.to_string())
        }
    }

    /// Asks the program for approval of a call that needs it. Returns the refusal of the call, or
    /// `None` if it is approved.
    async fn approve(&self, call: &ProgramCall, need: ApprovalNeed) -> Option<CallResult> {
        let tool = call.tool.as_str();
        if need == ApprovalNeed::Denied {
            let message = format!("a rule of the configuration denies this call of `{tool}`");
            return Some(CallResult::refused("denied", &message));
        }
        if !self.approves {
            let message = format!(
                "this call of `{tool}` has to be approved, and the program approves no calls"
            );
            return Some(CallResult::refused("approval_needed", &message));
        }
        let arguments = call.arguments.as_deref().unwrap_or(b"{}");
        let arguments = serde_json::from_slice(arguments).unwrap_or(Value::Null);
        let (call, program) = (call.id, false);
        let message = |id| HostMessage::Approve { id, call, tool, arguments: &arguments, program };
        match self.requests.send(message).await {
            Some(ClientReply::Approved(true)) => None,
            _ => {
                let message = format!("the call to `{tool}` was not approved");
                Some(CallResult::refused("not_approved", &message))
            }
        }
    }
}

impl CallResult {
    /// Returns the result of a call that does not start.
    #[must_use]
    pub fn refused(code: &str, message: &str) -> Self {
        let refused = json!({
            "outcome": "refused", "is_error": true, "code": code, "message": message,
        });
        Self::Refused(refused)
    }
}

fn ended(completion: Completion) -> CallResult {
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
    CallResult::Ended(Box::new(ProgramCompletion {
        outcome: word,
        is_error,
        result,
        contents,
        text,
        failure,
        record,
    }))
}

/// Builds the host with the functions of the program.
async fn build(
    options: PipeOptions,
    hello: &Hello,
    requests: &Arc<Requests>,
    sender: &Arc<dyn MessageSender>,
) -> Result<Host> {
    let PipeOptions { mut selection, engine } = options;
    if !hello.tools.is_empty() {
        selection.sources.push(Arc::new(functions::source(&hello.tools, requests)?));
    }
    if hello.approves {
        selection.code.approver = Some(Arc::new(ClientApprover(Arc::clone(requests))));
    }
    let observer = Arc::new(ProgramObserver(Arc::clone(sender)));
    Host::builder()
        .selection(selection)
        .engine(engine)
        .operator(Operator::new(Arc::new(UnattendedPrompter), observer))
        .purpose(Purpose::Converse)
        .build()
        .await
}

#[cfg(feature = "mcp")]
fn unreachable(host: &Host) -> impl Iterator<Item = Value> {
    let servers = host.servers().unreachable.iter();
    servers.map(|server| json!({"name": server.name, "reason": server.to_string()}))
}

#[cfg(not(feature = "mcp"))]
fn unreachable(_host: &Host) -> impl Iterator<Item = Value> {
    std::iter::empty()
}

fn tools(toolset: &Toolset) -> Vec<Value> {
    let tool = |definition: &Arc<cofferdam_tool::ToolDefinition>| {
        let name = definition.name.as_str();
        let source = toolset.source(name).map(|source| source.name());
        let more = json!({"source": source, "needs_approval": toolset.needs_approval(name)});
        forms::with(forms::definition(definition), more)
    };
    toolset.definitions().map(tool).collect()
}

/// The program as an observer: it receives notes. It answers no questions while the host starts.
struct ProgramObserver(Arc<dyn MessageSender>);

impl Observer for ProgramObserver {
    fn note(&self, message: &str) {
        self.0.offer(&HostMessage::Note { message });
    }

    fn progress(&self, work: Option<&crate::Work>) {
        if let Some(work) = work.filter(|work| work.done == 0) {
            self.note(&format!("{} …", work.label));
        }
    }
}

/// Reports of one call to the program. They are lost if the program reads too slowly.
struct CallReports {
    id: u64,
    sender: Arc<dyn MessageSender>,
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
    requests: Arc<Requests>,
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
            match self.requests.send(message).await {
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
