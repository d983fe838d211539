//! Questions of one call, and the three ways in which a client can be asked.
//!
//! A client of the handshake era is sent a request while the call waits. A client of the stateless
//! era gets the questions as the result of its request and sends the request again with the
//! answers: the call is then run again from its beginning and finds them (its changes to files were
//! rolled back, like those of every call that does not succeed). The client of a task finds the
//! questions in the task and answers them there.

use data_encoding::HEXLOWER;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use async_trait::async_trait;
use cofferdam_tool::OutputSchema;
use cofferdam_tool::ask::{Asker, NotAsked, Question, QuestionKind};
use futures_util::future::try_join_all;
use rmcp::RoleServer;
use rmcp::model::{
    ClientCapabilities, ElicitationCapability, InputRequest, InputRequests, ServerRequest,
};
use rmcp::service::Peer;
use rmcp::task_manager::TaskContext;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::Notify;

use super::caller::Caller;
use super::rounds::{Answered, State};

/// Most questions of one call. Each is kept by the client, by the server, or in the state between
/// them.
const QUESTIONS_MAX: usize = 64;
/// Maximum number of times that a question is repeated because its answer does not fit.
const REPEATS_MAX: u32 = 2;

/// What the names of the host's own questions begin with. No tool's question can: there is no `.`
/// in its alphabet.
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
    Result { known: BTreeMap<String, Answered>, misfits: BTreeMap<String, u32> },
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

    /// For a client that gets the questions as a result. `state` is what it brought from the round
    /// before, and `responses` its answers to that round.
    pub(super) fn by_result(
        caller: Arc<Caller>,
        state: State,
        responses: impl IntoIterator<Item = (String, Value)>,
    ) -> Self {
        let State { answers: mut known, asked, misfits } = state;
        for (key, answer) in responses {
            // What was not asked for in the round before may be an answer that a client knew to be
            // wanted. Questions of the host itself are asked first: their names are not a tool's to
            // use.
            let question = match asked.get(&key) {
                Some(question) => Some(question.clone()),
                None if key.starts_with(HOST_PREFIX) => continue,
                None => None,
            };
            known.entry(key).or_insert(Answered { question, answer });
        }
        Self::new(Way::Result { known, misfits }, caller)
    }

    fn new(way: Way, caller: Arc<Caller>) -> Self {
        let (task, asked, ended) = (OnceLock::new(), AtomicUsize::new(0), Mutex::new(None));
        let (has_ended, became_task) = (Notify::new(), Notify::new());
        Self { caller, way, task, asked, ended, has_ended, became_task }
    }

    /// From now on questions are put to the client in the task.
    pub(super) fn has_become(&self, task: TaskContext) {
        let _ = self.task.set(task);
        // A question may have been asked since the last look at the call: it goes to the task
        // instead.
        self.became_task.notify_one();
    }

    /// Returns when the call cannot go on.
    pub(super) async fn suspended(&self) -> Suspension {
        loop {
            let notified = self.has_ended.notified();
            if let Some(suspension) =
                self.ended.lock().unwrap_or_else(PoisonError::into_inner).take()
            {
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

    /// The same for questions, which can be asked after all if the call becomes a task at that
    /// moment. Returns then.
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
        misfits: &BTreeMap<String, u32>,
        questions: &[(String, Question)],
    ) -> Result<Result<Vec<Value>, Suspension>, NotAsked> {
        let digests: Vec<String> = questions.iter().map(|(_, question)| digest(question)).collect();
        let answer = |(key, question): &(String, Question), digest: &String| {
            let fits = |answered: &&Answered| {
                answered.question.as_ref().is_none_or(|asked| asked == digest)
            };
            let answered = known.get(key).filter(fits)?;
            Some(check(question, &answered.answer).map(|()| answered.answer.clone()))
        };
        let answers: Vec<Option<Result<Value, String>>> = questions
            .iter()
            .zip(&digests)
            .map(|(question, digest)| answer(question, digest))
            .collect();
        if answers.iter().all(|answer| matches!(answer, Some(Ok(_)))) {
            return Ok(Ok(answers.into_iter().flatten().flatten().collect()));
        }
        let mut state =
            State { answers: known.clone(), asked: BTreeMap::new(), misfits: misfits.clone() };
        let mut requests = InputRequests::new();
        for (((key, question), digest), answer) in questions.iter().zip(digests).zip(answers) {
            let request = match answer {
                Some(Ok(_)) => continue,
                Some(Err(problem)) => {
                    let count = state.misfits.entry(key.clone()).or_default();
                    *count += 1;
                    if *count > REPEATS_MAX {
                        return Err(NotAsked::Invalid(problem));
                    }
                    input_request(&asked_again(question, &problem))?
                }
                None => input_request(question)?,
            };
            state.answers.remove(key);
            requests.insert(key.clone(), request);
            state.asked.insert(key.clone(), digest);
        }
        Ok(Err(Suspension::Asks { requests, state: Box::new(state) }))
    }

    async fn ask_in_task(&self, questions: &[(String, Question)]) -> Result<Vec<Value>, NotAsked> {
        let Some(task) = self.task.get() else {
            return Err(NotAsked::Failed("nobody was asked".to_owned()));
        };
        let asked = questions.iter().cloned().map(|(key, question)| {
            let task = task.clone();
            repeated(question, move |question, repeat| {
                // No question of a tool has a `.` in its name.
                let key = if repeat == 0 { key.clone() } else { format!("{key}.{repeat}") };
                let task = task.clone();
                async move {
                    let answer = task.request_input(key, input_request(&question)?);
                    answer.await.map_err(|_| NotAsked::Failed("the task was cancelled".to_owned()))
                }
            })
        });
        try_join_all(asked).await
    }
}

#[async_trait]
impl Asker for Interview {
    fn can_ask(&self, kind: QuestionKind) -> bool {
        match kind {
            // A client that says nothing about the modes has the one that there was first.
            QuestionKind::Elicitation => {
                self.caller.capabilities().elicitation.as_ref().is_some_and(|elicitation| {
                    elicitation.form.is_some() || elicitation.url.is_none()
                })
            }
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
        match &self.way {
            Way::Request if self.task.get().is_none() => {
                let peer = self.caller.peer();
                let asked = questions.iter().cloned().map(|(_, question)| {
                    let peer = peer.clone();
                    repeated(question, move |question, _| {
                        let peer = peer.clone();
                        async move { send(&peer, &question).await }
                    })
                });
                try_join_all(asked).await
            }
            Way::Request => self.ask_in_task(&questions).await,
            Way::Result { known, misfits } => match Self::recall(known, misfits, &questions)? {
                Ok(answers) => Ok(answers),
                Err(asks) => {
                    self.suspend_unless_task(asks).await;
                    self.ask_in_task(&questions).await
                }
            },
        }
    }
}

/// Asks until an answer fits, a few times at most.
async fn repeated<F>(
    question: Question,
    ask: impl Fn(Question, u32) -> F,
) -> Result<Value, NotAsked>
where
    F: Future<Output = Result<Value, NotAsked>>,
{
    let mut asked = question.clone();
    let mut repeat = 0;
    loop {
        let answer = ask(asked, repeat).await?;
        let Err(problem) = check(&question, &answer) else { return Ok(answer) };
        repeat += 1;
        if repeat > REPEATS_MAX {
            return Err(NotAsked::Invalid(problem));
        }
        asked = asked_again(&question, &problem);
    }
}

/// A question whose answer was not taken: a person is told why.
fn asked_again(question: &Question, problem: &str) -> Question {
    let mut question = question.clone();
    if let Some(Value::String(message)) = question.parameters.get_mut("message") {
        message.push_str(&format!("\n\nThe last answer was not taken: {problem}."));
    }
    question
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

/// Says what is wrong with a client's answer. A refusal is an answer.
fn check(question: &Question, answer: &Value) -> Result<(), String> {
    let invalid = |problem: &str| Err(problem.to_owned());
    let Some(members) = answer.as_object() else { return invalid("it is not an object") };
    match question.kind {
        QuestionKind::Roots if !members.get("roots").is_some_and(Value::is_array) => {
            invalid("`roots` is missing")
        }
        QuestionKind::Sampling if !members.contains_key("content") => {
            invalid("`content` is missing")
        }
        QuestionKind::Roots | QuestionKind::Sampling => Ok(()),
        QuestionKind::Elicitation => match members.get("action").and_then(Value::as_str) {
            Some("accept") => check_form(question, members.get("content")),
            Some("decline" | "cancel") => Ok(()),
            _ => invalid("`action` is not accept, decline or cancel"),
        },
    }
}

fn check_form(question: &Question, content: Option<&Value>) -> Result<(), String> {
    let Some(schema) = question.parameters.get("requestedSchema") else { return Ok(()) };
    // Some clients leave `content` out when a person has filled in nothing.
    let empty = json!({});
    let content = content.unwrap_or(&empty);
    let Some(fields) = content.as_object() else {
        return Err("`content` is not an object".to_owned());
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    let missing: Vec<_> = required
        .filter_map(Value::as_str)
        .filter(|name| !fields.contains_key(*name))
        .map(|name| format!("`{name}`"))
        .collect();
    if !missing.is_empty() {
        let verb = if missing.len() == 1 { "is" } else { "are" };
        return Err(format!("{} {verb} missing", missing.join(", ")));
    }
    match OutputSchema::compile("form", &schema.to_string()) {
        Ok(schema) => schema.validate(content),
        // A schema that cannot be compiled was not checked by whoever sent it either.
        Err(_) => Ok(()),
    }
}

/// Hexadecimal digits of the digest of a question: 128 bits.
const DIGEST_DIGITS: usize = 32;

fn digest(question: &Question) -> String {
    let text = json!([question.kind.to_string(), question.parameters]).to_string();
    let mut digest = HEXLOWER.encode(&Sha256::digest(text.as_bytes()));
    digest.truncate(DIGEST_DIGITS);
    digest
}

fn capability(kind: QuestionKind) -> ClientCapabilities {
    let mut capabilities = ClientCapabilities::default();
    match kind {
        QuestionKind::Elicitation => {
            capabilities.elicitation = Some(ElicitationCapability::default())
        }
        QuestionKind::Sampling => capabilities.sampling = Some(Default::default()),
        QuestionKind::Roots => capabilities.roots = Some(Default::default()),
    }
    capabilities
}

/// One interview as the asker of a call.
pub(super) fn asker(interview: &Arc<Interview>) -> Arc<dyn Asker> {
    Arc::clone(interview) as Arc<dyn Asker>
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> Question {
        let parameters = json!({"message": "Allow?", "requestedSchema": {
            "type": "object", "properties": {"allow": {"type": "boolean"}}, "required": ["allow"],
        }});
        let parameters = parameters.as_object().unwrap().clone();
        Question { name: "q".to_owned(), kind: QuestionKind::Elicitation, parameters }
    }

    #[tokio::test]
    async fn an_answer_that_does_not_fit_is_asked_again_twice() {
        let asked = Mutex::new(Vec::new());
        let unfit = repeated(form(), |question, repeat| {
            asked.lock().unwrap().push(question.parameters["message"].as_str().unwrap().to_owned());
            async move { Ok(json!({"action": "accept", "content": {"repeat": repeat}})) }
        });
        assert_eq!(unfit.await, Err(NotAsked::Invalid("`allow` is missing".to_owned())));
        let asked = asked.into_inner().unwrap();
        assert_eq!(asked.len(), 3);
        assert!(
            asked[0] == "Allow?" && asked[2].ends_with("not taken: `allow` is missing."),
            "{asked:?}"
        );
        let second = repeated(form(), |_, repeat| async move {
            let allow = if repeat == 0 { json!("x") } else { json!(true) };
            Ok(json!({"action": "accept", "content": {"allow": allow}}))
        });
        assert_eq!(second.await.unwrap()["content"]["allow"], true);
        let declined = repeated(form(), |_, _| async { Ok(json!({"action": "decline"})) });
        assert_eq!(declined.await.unwrap()["action"], "decline");
    }

    #[test]
    fn rounds_end_when_no_answer_fits() {
        let questions = [("q".to_owned(), form())];
        let (mut known, mut misfits) = (BTreeMap::new(), BTreeMap::new());
        for round in 0..3 {
            let Ok(Err(Suspension::Asks { requests, state })) =
                Interview::recall(&known, &misfits, &questions)
            else {
                panic!("round {round} does not ask")
            };
            let request = serde_json::to_value(&requests).unwrap().to_string();
            assert_eq!(request.contains("`allow` is missing"), round > 0, "{request}");
            misfits = state.misfits;
            let question = Some(state.asked["q"].clone());
            known
                .insert("q".to_owned(), Answered { question, answer: json!({"action": "accept"}) });
        }
        let ended = Interview::recall(&known, &misfits, &questions);
        assert!(
            matches!(ended, Err(NotAsked::Invalid(problem)) if problem == "`allow` is missing")
        );
    }
}
