//! Workflows as agents, and through that as tools (`WF-15`).
//!
//! A workflow as an agent takes the new messages as its input and answers with its last output.
//! Calls of its agents that need approval become approval requests of the response; the session
//! holds the snapshot until they are answered. A request of another kind cannot be answered by the
//! caller of an agent and ends the run.

use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{
    AgentRequest, AgentRun, AgentTool, AgentToolOptions, ApprovalAnswer, ApprovalRequest, Delta,
    FunctionCall, InvalidAgentTool, Message, MessageContent, Response, Role, RunError, RunStream,
    Session, Update,
};
use cofferdam_labels::{context_of, taint};
use cofferdam_tool::invoke::Progress;
use cofferdam_tool::label::Label;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::builder::Workflow;
use super::error::WorkflowError;
use super::event::WorkflowEvent;
use super::message::Payload;
use super::routing;
use super::run::WorkflowRun;
use super::snapshot::{Snapshot, UserRequest};

/// Part of a session's state that holds a run that waits for approvals.
const PART: &str = "open_workflow";
/// Field of an approval request with the objections to the call, as the agent crate writes it.
const VIOLATIONS: &str = "policy_violations";

/// A run that waits for approvals.
#[derive(Serialize, Deserialize)]
struct OpenRun {
    snapshot: Snapshot,
    /// Last output so far.
    #[serde(default)]
    text: String,
}

impl Workflow {
    /// Makes the workflow a tool of agents. Each call is a run of its own, whose input is the task
    /// and whose last output is the result.
    ///
    /// # Errors
    /// [`InvalidAgentTool`] if the name of the tool or of its argument is invalid.
    pub fn into_tool(self, options: AgentToolOptions) -> Result<AgentTool, InvalidAgentTool> {
        AgentTool::new(self, options)
    }

    /// Returns the run that a request begins or continues, and the last output so far.
    fn requested(&self, request: &AgentRequest) -> Result<(WorkflowRun, String), WorkflowError> {
        let open = request.session.as_ref().and_then(|session| {
            // A new turn abandons a run that its messages do not answer.
            let part = session.part(PART);
            session.set_part(PART, Value::Null);
            OpenRun::deserialize(part).ok()
        });
        if let Some(OpenRun { snapshot, text }) = open {
            let answers = answers(&request.messages, snapshot.requests());
            if !answers.is_empty() {
                let run = self.resume(snapshot)?;
                let run = answers.into_iter().fold(run, |run, (id, answer)| run.answer(id, answer));
                return Ok((run, text));
            }
        }
        let messages: Vec<_> = request.messages.iter().map(|message| (**message).clone()).collect();
        Ok((self.run(self.input(&messages)), String::new()))
    }

    /// Returns the input of a run: a single message as a string if the start takes one, or else the
    /// messages.
    fn input(&self, messages: &[Message]) -> Payload {
        if let [message] = messages {
            let text = Payload::text(message.text());
            if routing::takes(&self.graph, &self.graph.start, &text) {
                return text;
            }
        }
        Payload::messages(messages)
    }

    async fn response(&self, request: AgentRequest) -> Result<Response, RunError> {
        let (mut run, mut text) = self.requested(&request).map_err(failed)?;
        if let Some(session) = &request.session {
            run = run.label(&context_of(session));
        }
        let mut stream = run.context(request.context.clone()).stream();
        let mut invoked = 0_u32;
        while let Some(event) = stream.next().await {
            match event {
                WorkflowEvent::Output(produced) => text = produced.text(),
                WorkflowEvent::ExecutorInvoked { executor } => {
                    invoked = invoked.saturating_add(1);
                    if let Some(progress) = &request.context.progress {
                        let (done, message) =
                            (f64::from(invoked), Some(format!("runs `{executor}`")));
                        progress.report(self.name(), Progress { done, total: None, message });
                    }
                }
                _ => {}
            }
        }
        let ended = stream.finish().await;
        if let Some(session) = &request.session {
            // The label of a run that fails is not known.
            let label =
                ended.as_ref().map_or_else(|_| Label::untrusted(), |end| end.label().clone());
            taint(session, &label);
        }
        let snapshot = ended.map_err(failed)?;
        if snapshot.requests().is_empty() {
            return Ok(Response::text_only(text));
        }
        self.waiting(snapshot, text, request.session.as_ref())
    }

    /// Returns the response of a run that waits for approvals.
    fn waiting(
        &self,
        snapshot: Snapshot,
        text: String,
        session: Option<&Session>,
    ) -> Result<Response, RunError> {
        let mut requests = Vec::new();
        for request in snapshot.requests() {
            let Some(approval) = approval(request) else {
                let executor = &request.executor;
                let needs = format!("`{executor}` waits for an answer of the user");
                return Err(RunError::NeedsInput(needs));
            };
            requests.push(MessageContent::ApprovalRequest(approval));
        }
        if let Some(session) = session {
            let open = serde_json::to_value(OpenRun { snapshot, text });
            session.set_part(PART, open.map_err(|error| RunError::Other(error.into()))?);
        }
        let message = Arc::new(Message::new(Role::Assistant, requests));
        Ok(Response { messages: vec![message], ..Response::default() })
    }
}

/// Returns the approval that an agent of a workflow has requested, unless it is a request of
/// another kind.
fn approval(request: &UserRequest) -> Option<ApprovalRequest> {
    let prompt = &request.prompt.value;
    let text = |key: &str| prompt.get(key).and_then(Value::as_str).map(str::to_owned);
    if prompt.get("kind")? != "approval" {
        return None;
    }
    let function_call = FunctionCall {
        call_id: request.id.clone(),
        name: text("tool")?,
        arguments: text("arguments")?,
        ..FunctionCall::default()
    };
    let id = request.id.clone();
    let mut approval = ApprovalRequest { id, function_call, ..ApprovalRequest::default() };
    if let Some(against) = prompt.get("against") {
        approval.extra.insert(VIOLATIONS.to_owned(), against.clone());
    }
    Some(approval)
}

/// Returns the answers to open requests, by request. Answers to other requests and answers about
/// another call do not count.
fn answers(messages: &[Arc<Message>], open: &[UserRequest]) -> Vec<(String, Value)> {
    let answers = messages.iter().flat_map(|message| &message.contents);
    let answers = answers.filter_map(|content| match content {
        MessageContent::ApprovalAnswer(answer) => Some(answer),
        _ => None,
    });
    let mut counted: Vec<(String, Value)> = Vec::new();
    for answer in answers {
        let request = open.iter().find(|request| request.id == answer.id);
        let is_about = request.and_then(approval).is_some_and(|known| is_about(answer, &known));
        if is_about && !counted.iter().any(|(id, _)| *id == answer.id) {
            let decided = json!({"approved": answer.approved, "reason": answer.reason});
            counted.push((answer.id.clone(), decided));
        }
    }
    counted
}

fn is_about(answer: &ApprovalAnswer, request: &ApprovalRequest) -> bool {
    let call = &request.function_call;
    let fits =
        |given: &Option<String>, known: &str| given.as_ref().is_none_or(|given| given == known);
    fits(&answer.call_id, &call.call_id)
        && fits(&answer.name, &call.name)
        && fits(&answer.arguments, &call.arguments)
}

/// Returns the error of an agent if one ended the run.
fn failed(error: WorkflowError) -> RunError {
    match error {
        WorkflowError::Cancelled => RunError::Cancelled,
        WorkflowError::Executor { source, executor } => match source.downcast::<RunError>() {
            Ok(error) => *error,
            Err(source) => RunError::Other(WorkflowError::Executor { executor, source }.into()),
        },
        other => RunError::Other(other.into()),
    }
}

#[async_trait]
impl AgentRun for Workflow {
    fn name(&self) -> &str {
        Self::name(self)
    }

    fn stream(&self, request: AgentRequest) -> RunStream {
        let workflow = self.clone();
        RunStream::of(|updates| async move {
            let response = workflow.response(request).await?;
            for content in response.messages.iter().flat_map(|message| &message.contents) {
                let delta = match content {
                    MessageContent::Text(text) => Delta::Text(text.text.clone()),
                    other => Delta::Content(other.clone()),
                };
                let (role, deltas) = (Some(Role::Assistant), vec![delta]);
                // If the reader is gone, the run is about to be dropped.
                let _ = updates.send(Update { role, deltas, ..Update::default() }).await;
            }
            Ok(response)
        })
    }

    async fn run(&self, request: AgentRequest) -> Result<Response, RunError> {
        self.response(request).await
    }

    fn carry_over(&self, from: &Session, to: &Session) {
        taint(to, &context_of(from));
    }
}

impl From<Workflow> for Arc<dyn AgentRun> {
    fn from(workflow: Workflow) -> Self {
        Arc::new(workflow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MessageType;

    #[test]
    fn objections_to_a_call_are_part_of_its_approval() {
        let prompt =
            json!({"kind": "approval", "tool": "send", "arguments": "{}", "against": ["private"]});
        let request = UserRequest {
            id: "a-1".to_owned(),
            executor: "a".to_owned(),
            prompt: Payload::json(prompt),
            answer: MessageType::Any,
        };
        let approval = approval(&request).unwrap();
        assert_eq!(approval.violations().collect::<Vec<_>>(), ["private"]);
    }
}
