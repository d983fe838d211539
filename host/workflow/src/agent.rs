//! Agents as executors.
//!
//! Each call that needs approval becomes one request of the workflow. The agent continues when all
//! of its requests are answered.
//!
//! * The prompt is `{"kind": "approval", "tool", "arguments"}`, with `against` if the label policy
//!   has objections to the call.
//! * An answer approves if it is `true`, or an object with `"approved": true`; everything else
//!   refuses (`LOOP-38`).
//! * Pending calls and the session that records them are in the executor's private state, and
//!   therefore in checkpoints.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use cofferdam_agent::{
    AgentRequest, AgentRun, ApprovalRequest, BoxError, IntoMessages, Message, MessageContent,
    Pairing, Response, RunError, Session,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::conversation;
use super::executor::Executor;
use super::message::{MessageType, Payload};
use super::snapshot::UserRequest;
use super::step::Step;

/// Executor that runs an agent.
pub struct AgentExecutor {
    id: String,
    agent: Arc<dyn AgentRun>,
    passes: ForwardMode,
    remembers: bool,
    names_speakers: bool,
    /// Agents to hand off to, by the name of the tool. If this is set, an answer without a handoff
    /// becomes a request to the user.
    handoffs: Option<BTreeMap<String, String>>,
}

/// Message that an agent sends to the next executor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ForwardMode {
    /// Its answer as a string; a structured answer as JSON.
    Text,
    /// Its answer as a message.
    Answer,
    /// The input and the answer: a growing conversation.
    Conversation,
}

/// Private state of an agent between two messages.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct AgentState {
    /// Session of the agent, if it remembers its turns or has pending calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<Session>,
    /// Turn that waits for answers to requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    open: Option<OpenCall>,
    /// Messages that arrived while a turn was open.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    held: Vec<Payload>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct OpenCall {
    conversation: Vec<Message>,
    /// Pending calls, by the id of the workflow's request.
    approvals: BTreeMap<String, ApprovalRequest>,
    /// Decisions about calls whose requests are answered.
    answers: Vec<MessageContent>,
}

/// Error returned if an agent needs something that a workflow does not support.
#[derive(Debug, thiserror::Error)]
enum UnsupportedFeature {
    #[error("the agent declares `{0}` for its caller to run, which a workflow does not support")]
    CallerRequest(String),
    #[error("the answer to `{0}` belongs to nothing that the agent waits for")]
    Answer(String),
}

impl AgentExecutor {
    /// Creates an executor that takes strings and messages, remembers its turns, and sends and
    /// yields its answers as strings.
    pub fn new(id: impl Into<String>, agent: impl Into<Arc<dyn AgentRun>>) -> Self {
        let passes = ForwardMode::Text;
        Self {
            id: id.into(),
            agent: agent.into(),
            passes,
            remembers: true,
            names_speakers: false,
            handoffs: None,
        }
    }

    /// Sets what the agent sends. It yields strings with [`ForwardMode::Text`], and messages
    /// otherwise.
    #[must_use]
    pub fn passing(mut self, passes: ForwardMode) -> Self {
        self.passes = passes;
        self
    }

    /// Makes the agent forget each turn; a message then has to contain everything that the agent
    /// needs.
    #[must_use]
    pub fn forgetting(mut self) -> Self {
        self.remembers = false;
        self
    }

    /// Adds the name of the speaker to messages of other agents.
    #[must_use]
    pub(super) fn with_speaker_names(mut self) -> Self {
        self.names_speakers = true;
        self
    }

    /// Lets the agent talk to the user and hand off with these tools.
    #[must_use]
    pub(super) fn with_handoffs(mut self, handoffs: BTreeMap<String, String>) -> Self {
        self.handoffs = Some(handoffs);
        self
    }

    /// Runs a turn of the agent with a conversation.
    async fn turn(
        &self,
        conversation: Vec<Message>,
        own: &mut AgentState,
        step: &Step,
    ) -> Result<(), BoxError> {
        let heard = conversation::as_heard_by(&conversation, &self.id, self.names_speakers);
        own.open = Some(OpenCall { conversation, ..OpenCall::default() });
        self.run(heard, own, step).await
    }

    async fn run(
        &self,
        messages: impl IntoMessages,
        own: &mut AgentState,
        step: &Step,
    ) -> Result<(), BoxError> {
        let session = own.session.get_or_insert_default().clone();
        let response = turn_of(&*self.agent, messages, &session, step).await?;
        if let Some(call) = response.caller_requests().next() {
            return Err(UnsupportedFeature::CallerRequest(call.name.clone()).into());
        }
        let requests: Vec<_> = response.approval_requests().cloned().collect();
        if !requests.is_empty() {
            return ask(requests, own, step);
        }
        if !self.remembers {
            own.session = None;
        }
        self.done(&response, own.open.take().unwrap_or_default(), own, step)
    }

    /// Yields and sends the agent's answer.
    fn done(
        &self,
        response: &Response,
        open: OpenCall,
        own: &mut AgentState,
        step: &Step,
    ) -> Result<(), BoxError> {
        let answer = conversation::answer(response, &self.id);
        // Receivers and conditions get the JSON without what the model wrote around it.
        let text = response.value().map_or_else(|| answer.text(), Value::to_string);
        let text = Payload::text(text);
        let message = Payload::messages(std::slice::from_ref(&answer));
        let is_said = !answer.contents.is_empty();
        let mut conversation = open.conversation;
        if is_said || self.handoffs.is_none() {
            step.output_payload(if self.passes == ForwardMode::Text {
                text.clone()
            } else {
                message.clone()
            })?;
            conversation.push(answer);
        }
        if let Some(handoffs) = &self.handoffs {
            let target = handoff(response, handoffs);
            return match target {
                Some(target) => {
                    Ok(step.send_payload(Payload::messages(&conversation), Some(target))?)
                }
                None => {
                    step.request(text, MessageType::Text)?;
                    own.open = Some(OpenCall { conversation, ..OpenCall::default() });
                    Ok(())
                }
            };
        }
        let sent = match self.passes {
            ForwardMode::Text => text,
            ForwardMode::Answer => message,
            ForwardMode::Conversation => Payload::messages(&conversation),
        };
        Ok(step.send_payload(sent, None)?)
    }

    /// Handles the messages that arrived while a turn was open.
    async fn handle_held_messages(
        &self,
        own: &mut AgentState,
        step: &Step,
    ) -> Result<(), BoxError> {
        while own.open.is_none() && !own.held.is_empty() {
            let next = own.held.remove(0);
            self.turn(conversation::read(&next)?, own, step).await?;
        }
        Ok(())
    }
}

/// Runs a turn of an agent. The session starts with the label of the run, and its label is added to
/// the run afterwards.
async fn turn_of(
    agent: &dyn AgentRun,
    messages: impl IntoMessages,
    session: &Session,
    step: &Step,
) -> Result<Response, RunError> {
    cofferdam_labels::taint(session, &step.label());
    let request = AgentRequest::new(messages).session(session).context(step.context().clone());
    let response = agent.run(request).await?;
    step.taint(&cofferdam_labels::context_of(session));
    Ok(response)
}

/// Runs a turn of an agent in a session of its own, which is dropped.
pub(super) async fn separate_turn(
    agent: &dyn AgentRun,
    messages: impl IntoMessages,
    step: &Step,
) -> Result<Response, RunError> {
    turn_of(agent, messages, &Session::new(), step).await
}

/// Makes one request for each approval.
fn ask(requests: Vec<ApprovalRequest>, own: &mut AgentState, step: &Step) -> Result<(), BoxError> {
    let open = own.open.get_or_insert_default();
    open.approvals.clear();
    open.answers.clear();
    for request in requests {
        let call = &request.function_call;
        let against: Vec<_> = request.violations().collect();
        let prompt = match against.is_empty() {
            true => json!({"kind": "approval", "tool": call.name, "arguments": call.arguments}),
            false => {
                json!({"kind": "approval", "tool": call.name, "arguments": call.arguments, "against": against})
            }
        };
        let id = step.request(Payload::json(prompt), MessageType::Any)?;
        open.approvals.insert(id, request);
    }
    Ok(())
}

/// Returns the agent that the response hands off to: the target of the first handoff tool that
/// succeeded.
fn handoff<'h>(response: &Response, handoffs: &'h BTreeMap<String, String>) -> Option<&'h str> {
    let answered = Pairing::of(&response.messages).answered(&response.messages);
    let mut done = answered.into_iter().filter(|(_, result)| !result.is_error);
    done.find_map(|(call, _)| handoffs.get(&call.name)).map(String::as_str)
}

/// Returns the user's decision about a call.
fn decided(request: &ApprovalRequest, answer: &Value) -> MessageContent {
    let approved = answer.get("approved").unwrap_or(answer);
    let reason = answer.get("reason").and_then(Value::as_str).map(str::to_owned);
    if approved == &Value::Bool(true) { request.approve() } else { request.refuse(reason) }
}

#[async_trait]
impl Executor for AgentExecutor {
    fn id(&self) -> &str {
        &self.id
    }

    fn kind(&self) -> &str {
        match (&self.handoffs, self.passes) {
            (Some(_), _) => "agent/handoff",
            (None, ForwardMode::Text) => "agent/text",
            (None, ForwardMode::Answer) => "agent/answer",
            (None, ForwardMode::Conversation) => "agent/conversation",
        }
    }

    fn accepts(&self) -> Vec<MessageType> {
        conversation::accepted_types()
    }

    fn sends(&self) -> Vec<MessageType> {
        self.yields()
    }

    fn yields(&self) -> Vec<MessageType> {
        vec![if self.passes == ForwardMode::Text {
            MessageType::Text
        } else {
            MessageType::messages()
        }]
    }

    async fn handle(&self, message: Payload, step: &Step) -> Result<(), BoxError> {
        let mut own = step.read_executor_state::<AgentState>()?;
        if own.open.is_some() {
            own.held.push(message);
        } else {
            self.turn(conversation::read(&message)?, &mut own, step).await?;
        }
        step.write_executor_state(&own)
    }

    async fn answered(
        &self,
        request: UserRequest,
        answer: Payload,
        step: &Step,
    ) -> Result<(), BoxError> {
        let mut own = step.read_executor_state::<AgentState>()?;
        let open = own.open.get_or_insert_default();
        match open.approvals.remove(&request.id) {
            Some(approval) => {
                open.answers.push(decided(&approval, &answer.value));
                if open.approvals.is_empty() {
                    let answers = std::mem::take(&mut open.answers);
                    self.run(answers, &mut own, step).await?;
                }
            }
            None if self.handoffs.is_some() => {
                let mut conversation = own.open.take().unwrap_or_default().conversation;
                let text = answer.read::<String>()?;
                // An empty answer ends the conversation.
                if !text.is_empty() {
                    conversation.push(Message::user(text));
                    self.turn(conversation, &mut own, step).await?;
                }
            }
            None => return Err(UnsupportedFeature::Answer(request.id).into()),
        }
        self.handle_held_messages(&mut own, step).await?;
        step.write_executor_state(&own)
    }
}
