//! Questions of one call, and the three ways in which a client can be asked.
//!
//! A client of the handshake era is sent a request while the call waits. A client of the stateless era gets the questions as
//! the result of its request and sends the request again with the answers: the call is then run again from its beginning and
//! finds them (its changes to files were rolled back, like those of every call that does not succeed). The client of a task
//! finds the questions in the task and answers them there.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use cofferdam_tool::{Asker, NotAsked, OutputSchema, Question, QuestionKind};
use futures_util::future::try_join_all;
use rmcp::RoleServer;
use rmcp::model::{ClientCapabilities, ElicitationCapability, InputRequest, InputRequests, ServerRequest};
use rmcp::service::Peer;
use rmcp::task_manager::TaskContext;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use super::caller::Caller;
use super::rounds::{Answered, State};

/// Most questions of one call. Each is kept by the client, by the server, or in the state between them.
const QUESTIONS_MAX: usize = 64;

/// What the names of the host's own questions begin with. No tool's question can: there is no `.` in its alphabet.
pub(super) const HOST_PREFIX: &str = "cofferdam.";

/// The questions and answers of one call.
pub(super) struct Interview {
    caller: Arc<Caller>,
    way: Way,
    /// The task that the call has become, if it has.
    task: OnceLock<TaskContext>,
    asked: AtomicUsize,
    ended: Mutex<Option<Suspension>>,
    has_ended: Notify,
    became_task: Notify,
}

/// How the client is asked.
enum Way {
    /// By a request while the call waits.
    Request,
    /// By a result; the client comes back with the answers.
    Result { known: BTreeMap<String, Answered> },
}

/// Why a call cannot go on in this request.
pub(super) enum Suspension {
    /// These questions have to be answered first.
    Asks { requests: InputRequests, state: Box<State> },
    /// The tool needs what the client has not declared.
    Lacks(Box<ClientCapabilities>),
}

impl Interview {
    /// For a client that is asked by requests.
    pub(super) fn by_request(caller: Arc<Caller>) -> Self {
        Self::new(Way::Request, caller)
    }

    /// For a client that gets the questions as a result. `state` is what it brought from the round before, and `responses` its
    /// answers to that round.
    pub(super) fn by_result(
        caller: Arc<Caller>,
        state: State,
        responses: impl IntoIterator<Item = (String, Value)>,
    ) -> Self {
        let State { answers: mut known, asked } = state;
        for (key, answer) in responses {
            // What was not asked for in the round before may be an answer that a client knew to be wanted. Questions of the host
            // itself are asked first: their names are not a tool's to use.
            let question = match asked.get(&key) {
                Some(question) => Some(question.clone()),
                None if key.starts_with(HOST_PREFIX) => continue,
                None => None,
            };
            known.entry(key).or_insert(Answered { question, answer });
        }
        Self::new(Way::Result { known }, caller)
    }

    fn new(way: Way, caller: Arc<Caller>) -> Self {
        let (task, asked, ended) = (OnceLock::new(), AtomicUsize::new(0), Mutex::new(None));
        let (has_ended, became_task) = (Notify::new(), Notify::new());
        Self { caller, way, task, asked, ended, has_ended, became_task }
    }

    /// From now on questions are put to the client in the task.
    pub(super) fn has_become(&self, task: TaskContext) {
        let _ = self.task.set(task);
        // A question may have been asked since the last look at the call: it goes to the task instead.
        self.became_task.notify_one();
    }

    /// Returns when the call cannot go on.
    pub(super) async fn suspended(&self) -> Suspension {
        loop {
            let notified = self.has_ended.notified();
            if let Some(suspension) = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take() {
                return suspension;
            }
            notified.await;
        }
    }

    /// Ends the call from within: whoever waits for [`Self::suspended`] drops it.
    async fn suspend<T>(&self, suspension: Suspension) -> T {
        self.announce(suspension);
        std::future::pending().await
    }

    /// The same for questions, which can be asked after all if the call becomes a task at that moment. Returns then.
    async fn suspend_unless_task(&self, asks: Suspension) {
        if self.task.get().is_none() {
            self.announce(asks);
        }
        while self.task.get().is_none() {
            self.became_task.notified().await;
        }
    }

    fn announce(&self, suspension: Suspension) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = Some(suspension);
        self.has_ended.notify_one();
    }

    /// What the client knows the question by: its name, which is the same when the call runs again.
    fn key(&self, question: &Question) -> Result<String, NotAsked> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        if number > QUESTIONS_MAX {
            return Err(NotAsked::Failed(format!("a call can ask {QUESTIONS_MAX} questions")));
        }
        Ok(question.name.clone())
    }

    /// What a client that comes back has answered, or what it has to be asked.
    fn recall(
        known: &BTreeMap<String, Answered>,
        questions: &[(String, Question)],
    ) -> Result<Result<Vec<Value>, Suspension>, NotAsked> {
        let digests: Vec<String> = questions.iter().map(|(_, question)| digest(question)).collect();
        let answer = |(key, question): &(String, Question), digest: &String| {
            let fits = |answered: &&Answered| answered.question.as_ref().is_none_or(|asked| asked == digest);
            let answered = known.get(key).filter(fits)?;
            is_answer(question, &answered.answer).then(|| answered.answer.clone())
        };
        let answers: Vec<Option<Value>> =
            questions.iter().zip(&digests).map(|(question, digest)| answer(question, digest)).collect();
        if answers.iter().all(Option::is_some) {
            return Ok(Ok(answers.into_iter().flatten().collect()));
        }
        let mut state = State { answers: known.clone(), asked: BTreeMap::new() };
        let mut requests = InputRequests::new();
        for (((key, question), digest), answer) in questions.iter().zip(digests).zip(&answers) {
            if answer.is_none() {
                state.answers.remove(key);
                requests.insert(key.clone(), input_request(question)?);
                state.asked.insert(key.clone(), digest);
            }
        }
        Ok(Err(Suspension::Asks { requests, state: Box::new(state) }))
    }

    async fn ask_in_task(&self, questions: &[(String, Question)]) -> Result<Vec<Value>, NotAsked> {
        let Some(task) = self.task.get() else {
            return Err(NotAsked::Failed("nobody was asked".to_owned()));
        };
        let asked = questions.iter().map(|(key, question)| async move {
            let answer = task.request_input(key.clone(), input_request(question)?);
            answer.await.map_err(|_| NotAsked::Failed("the task was cancelled".to_owned()))
        });
        try_join_all(asked).await
    }
}

#[async_trait]
impl Asker for Interview {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        match kind {
            // A client that says nothing about the modes has the one that there was first.
            QuestionKind::Elicitation => self
                .caller
                .capabilities()
                .elicitation
                .as_ref()
                .is_some_and(|elicitation| elicitation.form.is_some() || elicitation.url.is_none()),
            QuestionKind::Sampling => self.caller.capabilities().sampling.is_some(),
            QuestionKind::Roots => self.caller.capabilities().roots.is_some(),
        }
    }

    async fn ask(&self, questions: Vec<Question>) -> Result<Vec<Value>, NotAsked> {
        if let Some(question) = questions.iter().find(|question| !self.can_ask(question.kind)) {
            if let Way::Result { .. } = self.way {
                return self.suspend(Suspension::Lacks(Box::new(capability(question.kind)))).await;
            }
            return Err(NotAsked::Unsupported(question.kind));
        }
        let questions: Vec<(String, Question)> = questions
            .into_iter()
            .map(|question| Ok((self.key(&question)?, question)))
            .collect::<Result<_, NotAsked>>()?;
        let answers = match &self.way {
            Way::Request if self.task.get().is_none() => {
                let peer = self.caller.peer();
                try_join_all(questions.iter().map(|(_, question)| send(peer, question))).await?
            }
            Way::Request => self.ask_in_task(&questions).await?,
            Way::Result { known } => match Self::recall(known, &questions)? {
                Ok(answers) => return Ok(answers),
                Err(asks) => {
                    self.suspend_unless_task(asks).await;
                    self.ask_in_task(&questions).await?
                }
            },
        };
        match questions.iter().zip(&answers).find(|((_, question), answer)| !is_answer(question, answer)) {
            Some(_) => Err(NotAsked::Failed("the answer is not what was asked for".to_owned())),
            None => Ok(answers),
        }
    }
}

/// Asks by a request of the server's own.
async fn send(peer: &Peer<RoleServer>, question: &Question) -> Result<Value, NotAsked> {
    let request = match input_request(question)? {
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(NotAsked::Unsupported(question.kind)),
    };
    let result = peer.send_request(request).await;
    let result = result.map_err(|error| NotAsked::Failed(error.to_string()))?;
    serde_json::to_value(result).map_err(|error| NotAsked::Failed(error.to_string()))
}

fn input_request(question: &Question) -> Result<InputRequest, NotAsked> {
    let method = match question.kind {
        QuestionKind::Elicitation => "elicitation/create",
        QuestionKind::Sampling => "sampling/createMessage",
        QuestionKind::Roots => "roots/list",
    };
    let request = json!({"method": method, "params": question.parameters});
    serde_json::from_value(request).map_err(|_| {
        NotAsked::Failed(format!("the question is not what MCP takes as parameters of `{method}`"))
    })
}

/// Whether a client's answer has the form that the question asks for. A refusal is an answer.
fn is_answer(question: &Question, answer: &Value) -> bool {
    let Some(members) = answer.as_object() else { return false };
    match question.kind {
        QuestionKind::Roots => members.get("roots").is_some_and(Value::is_array),
        QuestionKind::Sampling => members.contains_key("content"),
        QuestionKind::Elicitation => match members.get("action").and_then(Value::as_str) {
            Some("accept") => fits_form(question, members.get("content")),
            Some("decline" | "cancel") => true,
            _ => false,
        },
    }
}

fn fits_form(question: &Question, content: Option<&Value>) -> bool {
    let Some(schema) = question.parameters.get("requestedSchema") else { return true };
    match OutputSchema::compile("form", &schema.to_string()) {
        Ok(schema) => content.is_some_and(|content| schema.validate(content).is_ok()),
        // A schema that cannot be compiled was not checked by whoever sent it either.
        Err(_) => content.is_some_and(Value::is_object),
    }
}

fn digest(question: &Question) -> String {
    let text = json!([question.kind.to_string(), question.parameters]).to_string();
    Sha256::digest(text.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn capability(kind: QuestionKind) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    match kind {
        QuestionKind::Elicitation => capabilities.elicitation = Some(ElicitationCapability::default()),
        QuestionKind::Sampling => capabilities.sampling = Some(Default::default()),
        QuestionKind::Roots => capabilities.roots = Some(Default::default()),
    }
    capabilities
}

/// One interview as the asker of a call.
pub(super) fn asker(interview: &Arc<Interview>) -> Arc<dyn Asker> {
    Arc::clone(interview) as Arc<dyn Asker>
}
